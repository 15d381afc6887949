"""Background consolidation: gated, planned, reversible; pages and days."""
