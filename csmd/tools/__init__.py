"""The daemon's tools: a module for each subject, and `registry`, the table of all tools."""
