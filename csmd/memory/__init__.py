"""Statements to memories: one door, with confidence, confirmation and provenance."""
