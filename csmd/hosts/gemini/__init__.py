"""Gemini CLI's adapter."""
