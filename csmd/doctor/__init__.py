"""Whether csmd works here: looks, sends a marker, returns findings; nothing is printed."""
