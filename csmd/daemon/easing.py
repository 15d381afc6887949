"""After a burst of work its memory goes back to the system: the daemon stays for weeks, and is asked for little.

What SQLite keeps of pages for the next question and what the allocator keeps of freed memory would stay for good.
"""

from __future__ import annotations

import ctypes
import gc

from csmd.cache import cached
from csmd.store.core import Store

#: glibc's name for how many pools there may be.
M_ARENA_MAX = -8
#: Fewer commits are a day's work as it comes, and not a burst.
BURST_COMMITS = 500
#: Fewer than these leave nothing to give back.
FEW_COMMITS = 10


def ease(store: Store) -> None:
    """Lets go of what is not needed to wait."""
    store.shrink()
    gc.collect()
    _trim()


def few_arenas() -> None:
    """Keeps the allocator to two pools: with one for each of a hundred threads freed memory is spread, and stays."""
    choose = _of_libc("mallopt")
    if choose is not None:
        choose(M_ARENA_MAX, 2)


def _trim() -> None:
    trim = _of_libc("malloc_trim")
    if trim is not None:
        trim(0)


@cached(16)
def _of_libc(name: str) -> ctypes._NamedFuncPointer | None:
    """A function of the allocator, where it has that: glibc does, others give freed memory back by themselves."""
    try:
        found: ctypes._NamedFuncPointer = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError):
        return None
    return found
