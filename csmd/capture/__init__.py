"""Raw events in: hook payloads and transcript lines become turns, exactly once, redacted."""
