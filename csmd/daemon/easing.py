"""After a burst of work its memory goes back to the system: the daemon stays for weeks, and is asked for little.

What SQLite keeps of pages for the next question and what the allocator keeps of freed memory would stay for good.
"""

from __future__ import annotations

import ctypes
import gc
from functools import cache

from csmd.store.core import Store

#: Fewer commits are a day's work as it comes, and not a burst.
BURST_COMMITS = 500


def ease(store: Store) -> None:
    """Lets go of what is not needed to wait."""
    store.shrink()
    gc.collect()
    _trim()


def _trim() -> None:
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@cache
def _malloc_trim() -> ctypes._NamedFuncPointer | None:
    """The C library's own way, where it has one: glibc does, others give freed memory back by themselves."""
    try:
        found: ctypes._NamedFuncPointer = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return None
    return found
