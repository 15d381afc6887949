"""Whether csmd works here; looks and returns findings."""
