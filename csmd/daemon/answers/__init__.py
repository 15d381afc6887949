"""What the daemon answers, by subject: each module is one table of tools and the functions behind it."""
