"""A question, prompt or start to the right memories."""
