"""Limits the allocator's pools, and returns freed memory to the system."""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress

#: glibc's number of the option that limits the number of memory pools.
M_ARENA_MAX = -8


def limit_memory_pools() -> None:
    """Limits the allocator to two pools, because a pool for each thread would scatter and keep freed memory."""
    _call_allocator("mallopt", M_ARENA_MAX, 2)


def release_freed_memory() -> None:
    """Collects garbage, and returns the freed memory that the allocator would keep."""
    gc.collect()
    _call_allocator("malloc_trim", 0)


def _call_allocator(name: str, *arguments: int) -> None:
    """Calls a function of glibc's allocator; other allocators lack it, and free memory by themselves."""
    with suppress(AttributeError, OSError):
        getattr(ctypes.CDLL(None), name)(*arguments)
