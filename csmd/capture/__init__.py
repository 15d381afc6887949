"""Raw events in: turns exactly once, redacted."""
