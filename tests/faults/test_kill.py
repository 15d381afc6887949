"""kill -9 at random points while hooks, transcripts and imports go on: nothing is lost and nothing is there twice.

CSMD_FAULT_ROUNDS=200 makes it long, CSMD_FAULT_SEED repeats one that failed; without a seed each run has its own.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from faults import kill_rounds
from machine import Machine

ROUNDS = int(os.environ.get("CSMD_FAULT_ROUNDS", "7"))
SEED = int(os.environ.get("CSMD_FAULT_SEED") or random.SystemRandom().randrange(1 << 32))


@pytest.mark.invariant("Killed at any point, nothing acknowledged is lost or doubled")
@pytest.mark.timeout(60 + 30 * ROUNDS)
def test_a_daemon_killed_at_any_point_loses_nothing_and_doubles_nothing(machine: Machine, tiny_model: Path) -> None:
    """One round for each phase, in the short form."""
    world = kill_rounds.run(machine, rounds=ROUNDS, seed=SEED, model=tiny_model, say=print)
    assert sum(world.kills.values()) == ROUNDS
    assert len(world.acknowledged) > ROUNDS
