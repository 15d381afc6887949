"""A team's shared memory: a copy on a PostgreSQL server, and what colleagues share there."""
