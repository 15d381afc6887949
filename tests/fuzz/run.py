"""Fuzzes one target, guided by coverage.

    python tests/fuzz/run.py TARGET [--runs 1000000] [--corpus DIR] [--keep]

Needs `pip install atheris`. It begins with the kept corpus (tests/data/fuzz/TARGET), prints libFuzzer's own figures,
and fails at the first crash or at an input that takes more than 5 seconds; the input is left beside the corpus. With
--keep the smallest inputs that reach the same code replace the kept corpus.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
KEPT = HERE.parent / "data" / "fuzz"
#: No more inputs than these are kept, and none that is longer.
KEPT_FILES, KEPT_BYTES = 120, 2000


def fuzz(target: str, arguments: list[str]) -> None:
    """Runs libFuzzer in this process; it exits by itself."""
    import atheris

    sys.path.insert(0, str(HERE))
    with atheris.instrument_imports(include=["csmd", "targets"]):
        from targets import TARGETS
    atheris.Setup([sys.argv[0], *arguments], TARGETS[target])
    atheris.Fuzz()


def least(target: str, inputs: set[bytes]) -> list[bytes]:
    """The smallest inputs that together reach every step from line to line that all of them reach."""
    sys.path.insert(0, str(HERE))
    from targets import TARGETS

    seen: set[tuple[str, int, int]] = set()
    chosen = []
    for data in sorted(inputs, key=lambda data: (len(data), data)):
        reached: set[tuple[str, int, int]] = set()
        before = {"": 0}

        def trace(frame: Any, event: str, _: Any, reached: Any = reached, before: Any = before) -> Any:
            name = frame.f_code.co_filename
            if "csmd" not in name:
                return None
            if event == "line":
                reached.add((name, before.get(name, 0), frame.f_lineno))
                before[name] = frame.f_lineno
            return trace

        sys.settrace(trace)
        try:
            TARGETS[target](data)
        finally:
            sys.settrace(None)
        if len(data) <= KEPT_BYTES and not reached <= seen:
            seen |= reached
            chosen.append(data)
    return chosen[:KEPT_FILES]


def main() -> int:
    parser = argparse.ArgumentParser(description="Fuzzes one target, guided by coverage.")
    parser.add_argument("target")
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--child", nargs="*", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child is not None:
        fuzz(chosen.target, [f"-{flag}" if "=" in flag else flag for flag in chosen.child])
        return 0
    kept = KEPT / chosen.target
    kept.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        corpus = chosen.corpus or Path(scratch) / "corpus"
        corpus.mkdir(parents=True, exist_ok=True)
        child = [sys.executable, __file__, chosen.target, "--child"]
        limits = [
            "timeout=5",
            "rss_limit_mb=2048",
            "max_len=4096",
            f"artifact_prefix={kept.parent}/{chosen.target}-",
        ]
        code = subprocess.run([*child, str(corpus), str(kept), f"runs={chosen.runs}", *limits], check=False).returncode
        if code == 0 and chosen.keep:
            inputs = {path.read_bytes() for folder in (corpus, kept) for path in folder.iterdir()}
            shutil.rmtree(kept)
            kept.mkdir()
            for data in least(chosen.target, inputs):
                (kept / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
    return code


if __name__ == "__main__":
    sys.exit(main())
