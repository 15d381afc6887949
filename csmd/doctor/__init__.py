"""Examines whether csmd works here; changes nothing."""
