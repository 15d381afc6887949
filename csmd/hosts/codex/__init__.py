"""Codex' adapter."""
