"""Fails where pytest's reports (junit XML) name a test that was skipped in each that has it, or no test at all.

nothing_skipped.py [--but TEXT]... REPORT...     skips whose reason holds a TEXT are listed and fail nothing
"""

import argparse
import sys
from xml.etree import ElementTree

parser = argparse.ArgumentParser()
parser.add_argument("--but", action="append", default=[])
parser.add_argument("reports", nargs="+")
chosen = parser.parse_args()

skipped, done = {}, set()
for report in chosen.reports:
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        mark = case.find("skipped")
        if mark is None:
            done.add(name)
        else:
            skipped[name] = mark.get("message") or ""
unrun = {name: reason for name, reason in skipped.items() if name not in done}
for name, reason in unrun.items():
    print(f"skipped: {name}: {reason}")
print(f"{len(done | skipped.keys())} tests, {len(unrun)} skipped")
refused = [name for name, reason in unrun.items() if not any(text in reason for text in chosen.but)]
sys.exit(bool(refused) or not done)
