"""A team's memory: a shared copy on a PostgreSQL server, and what colleagues said on it."""
