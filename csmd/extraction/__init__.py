"""Turns to statements, digests, packets and failure reports."""
