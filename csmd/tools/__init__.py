"""What the daemon can be asked: a module for each subject, and `registry`, the table of all tools."""
