"""A store on a real file for each test."""

from __future__ import annotations
