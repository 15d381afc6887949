"""Fails where pytest's report (junit XML) names a skipped test, or none at all."""

import sys
from xml.etree import ElementTree

cases = list(ElementTree.parse(sys.argv[1]).iter("testcase"))
skipped = [(case, mark) for case in cases for mark in case.iter("skipped")]
for case, mark in skipped:
    print(f"skipped: {case.get('classname')}::{case.get('name')}: {mark.get('message')}")
print(f"{len(cases)} tests, {len(skipped)} skipped")
sys.exit(bool(skipped) or not cases)
