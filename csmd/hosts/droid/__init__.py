"""The adapter for Droid."""
