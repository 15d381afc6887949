"""One adapter for each assistant."""
