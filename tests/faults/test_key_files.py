"""Key files and secrets told in words come in by a real daemon and real hooks; afterwards no byte of them is in the home."""

from __future__ import annotations

from typing import Any

import pytest
from machine import Machine, eventually

from csmd.file_lines import NOT_KEPT

#: (command, what it printed); WORD stands for the content of a file of keys.
PRINTED = [
    ("rg -n PEPPER", ".env\n3:PEPPER=WORD\n\napp.py\n9:pepper"),
    ("grep -rn PEPPER .", "./.env:3:PEPPER=WORD\n./app.py:9:pepper"),
    ("git diff", "diff --git a/.env b/.env\n--- a/.env\n+++ b/.env\n@@ -3 +3 @@\n-A=WORD\n+A=WORD"),
    ("git show 1f2e", "commit 1f2e\n\ndiff --git a/id_rsa b/id_rsa\n--- /dev/null\n+++ b/id_rsa\n+WORD"),
    ("head *", "==> credentials <==\nWORD\n\n==> app.py <==\nimport os"),
    ("for f in .*; do echo == $f; cat $f; done", "== .env\nA=WORD\n== .gitignore\n*.pyc"),
    ("cat .e*", "A is WORD"),
]
#: What a person types of secrets, each between two marks.
TOLD = [
    'the vault passphrase is "⟦plum orchard sings in winter⟧"',
    "the door code is ⟦nine one one four⟧, then hash",
    "zaloguj się, hasło: ⟦zielona_szafa_93⟧, i sprawdź log",
    "first half of the token: ⟦q9Xz71Lm⟧, second half: ⟦Kp40Rt8W⟧",
    "the wifi password is ⟦blumenkohl⟧.",
]


def tool_lines(machine: Machine, number: int, command: str, printed: str) -> list[dict[str, Any]]:
    """A call of the shell and what it printed."""
    asked, shown = machine.line("assistant", "", uuid=f"c{number}"), machine.line("user", "", uuid=f"r{number}")
    asked["message"]["content"] = [
        {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": command}}
    ]
    shown["message"]["content"] = [{"type": "tool_result", "tool_use_id": f"t{number}", "content": printed}]
    return [asked, shown]


@pytest.mark.invariant(
    "No line of a key file is kept, whichever way it came; what a text says is a secret is not kept either"
)
def test_of_key_files_and_of_secrets_told_in_words_no_byte_is_in_the_home(machine: Machine) -> None:
    lines = [machine.line("user", "Where is the pepper read?")]
    words = []
    for number, (command, printed) in enumerate(PRINTED):
        words.append(f"heronwalk{number}bittern")
        lines += tool_lines(machine, number, command, printed.replace("WORD", words[-1]))
    tag = "<ide_selection>The user selected lines 1 to 2 from /w/.env:\nB=egretpond\n</ide_selection>"
    lines.append(machine.line("user", f"Why does it fail?\n{tag}", uuid="selected"))
    secrets = [part.partition("⟧")[0] for told in TOLD for part in told.split("⟦")[1:]]
    plain = [told.replace("⟦", "").replace("⟧", "") for told in TOLD]
    machine.transcript(*lines, *(machine.line("user", told, uuid=f"p{n}") for n, told in enumerate(plain)))
    daemon = machine.start()
    for told in plain:
        machine.event("UserPromptSubmit", "s2", prompt=told)
    machine.sync()
    eventually(lambda: not machine.spooled())
    wal = machine.paths.database.with_name("csmd.db-wal").read_bytes()
    assert machine.stop(daemon) == 0
    files = [path.read_bytes() for path in machine.home.rglob("*") if path.is_file()]
    left = [word for word in (*words, "egretpond", *secrets) if any(word.encode() in data for data in (*files, wal))]
    assert left == []
    assert any(NOT_KEPT.encode() in data for data in (*files, wal)), "nothing was read at all"
