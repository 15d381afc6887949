"""Vectors, from one child process."""
