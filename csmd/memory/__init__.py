"""Statements to memories, and what becomes of them."""
