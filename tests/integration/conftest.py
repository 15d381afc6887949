"""The parts of a daemon in the test's own process."""

from __future__ import annotations

from in_process import parts

__all__ = ["parts"]
