"""A question to the right memories: search, the brief, the recall at a prompt."""
