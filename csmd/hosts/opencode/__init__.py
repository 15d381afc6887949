"""The adapter of OpenCode, and of Kilo, which is a fork of it."""
