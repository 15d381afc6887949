"""Droid's hook payloads, which have Claude Code's form.

The end of a turn is reported without its words, which are in the transcript.
"""

from __future__ import annotations

from functools import partial

from csmd.hosts.droid.transcript import HOST, classify_prompt, clean_words
from csmd.hosts.hook_payloads import Hooks

HOOKS = Hooks(
    host=HOST, events=frozenset({"session_start", "prompt", "stop", "session_end"}),
    clean=clean_words, classify_prompt=partial(classify_prompt, by_person=True),
)  # fmt: skip
