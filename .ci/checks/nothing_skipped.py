"""Fails where pytest's reports (junit XML) name a test that was skipped in each that has it, or no test at all."""

import sys
from xml.etree import ElementTree

skipped, done = {}, set()
for report in sys.argv[1:]:
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        mark = case.find("skipped")
        if mark is None:
            done.add(name)
        else:
            skipped[name] = mark.get("message")
for name in skipped.keys() - done:
    print(f"skipped: {name}: {skipped[name]}")
print(f"{len(done | skipped.keys())} tests, {len(skipped.keys() - done)} skipped")
sys.exit(bool(skipped.keys() - done) or not done)
