"""What must not be stored, and how purged words are known."""
