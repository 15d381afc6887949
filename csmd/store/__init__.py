"""The database and csmd's own files; the only SQL."""
