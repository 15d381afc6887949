"""Rounds in which the daemon is killed with SIGKILL while it chooses old memories anew.

    python tests/faults/reselection_rounds.py [--rounds 40] [--seed N]

After each kill a new daemon goes on in the same journal. In every second round a person makes csmd forget a memory between
the two. Then the dream is undone: every row must be what it was, and what was forgotten must not be there again.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from machine import Machine, own_machine
from reselection_home import age, killed, looked_at


def attempt(machine: Machine, chance: random.Random, *, forgetting: bool) -> int:
    """One kill and what must hold after it; how many changes the journal held by then at least."""
    was = looked_at(machine)
    at = chance.randrange(1, 20)
    killed(machine, machine.start(), at)
    looked_at(machine)
    daemon = machine.start()
    gone: set[str] = set()
    if forgetting:
        one = chance.choice(machine.call("csm_memory_list")["memories"])
        machine.call("csm_memory_delete", id=one["id"], by_person=True)
        gone.add(one["id"])
    done = machine.work("csm_distill_again")
    undone = machine.work("csm_dream_undo", id=done["id"], dry_run=False)
    assert machine.stop(daemon) == 0
    left = looked_at(machine)
    if forgetting:
        assert not gone & {ident for ident, *_ in left}, "what was forgotten is there again"
        # What it had superseded holds again.
        freed = {ident for ident, seen, _ in was if seen["superseded_by"] in gone}
        left, was = ([row for row in rows if row[0] not in gone | freed] for rows in (left, was))
        if any(not one["item"] for one in undone["kept"]):  # an action that touched it has no image any more, and stays
            left = [row for row in left if row[0] in {ident for ident, *_ in was}]
    different = [(one, other) for one, other in zip(was, left, strict=False) if one != other]
    assert left == was, (undone["kept"], gone, different, len(was), len(left))
    return at


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    chosen = parser.parse_args()
    began = time.monotonic()
    for number in range(chosen.rounds):
        try:
            with own_machine() as machine:
                age(machine)
                at = attempt(machine, random.Random(f"{chosen.seed}:{number}"), forgetting=number % 2 == 1)
        except BaseException:
            print(f"round {number} of seed {chosen.seed} failed", flush=True)
            raise
        print(f"round {number}: killed at change {at}; undone, row for row", flush=True)
    print(f"seed {chosen.seed}: {chosen.rounds} kills in {time.monotonic() - began:.0f} s; nothing forgotten is back")
    return 0


if __name__ == "__main__":
    sys.exit(main())
