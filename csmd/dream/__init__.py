"""Background consolidation: gated, planned, reversible; a plan first, then its deed, in a journal that can be undone."""
