"""Qwen Code's adapter."""
