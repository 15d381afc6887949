"""The adapter for Copilot CLI."""
