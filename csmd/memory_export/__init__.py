"""Memories as a file: its records, the export, and the import."""
