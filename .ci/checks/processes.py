"""Lists processes that name one of the given directories in their command line, environment or working directory.

    processes.py [end] DIR...     exit code 1 where there are any; with `end` they are killed first

Our own ancestors do not count.
"""

import contextlib
import os
import signal
import sys
from pathlib import Path

end = sys.argv[1] == "end"
marks = [os.fsencode(word) for word in sys.argv[1 + end :]]
ancestors, pid = set(), os.getpid()
while pid > 1:
    ancestors.add(pid)
    pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
found = []
for folder in Path("/proc").glob("[0-9]*"):
    try:
        text = folder.joinpath("cmdline").read_bytes() + folder.joinpath("environ").read_bytes()
        text += os.fsencode(os.readlink(folder / "cwd"))
        if any(mark in text for mark in marks) and int(folder.name) not in ancestors:
            found.append((int(folder.name), folder.joinpath("cmdline").read_bytes().replace(b"\0", b" ").decode()))
    except OSError:
        continue  # it has ended
for pid, command in found:
    print(f"still running: {pid} {command[:200]}")
    with contextlib.suppress(OSError):
        chosen = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        print("   ", *(os.fsdecode(word) for word in chosen if word.startswith((b"CSMD_HOME=", b"HOME="))))
    if end:
        os.kill(pid, signal.SIGKILL)
sys.exit(bool(found))
