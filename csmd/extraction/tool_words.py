"""The words of tool calls that searches find."""

from __future__ import annotations

import re

from csmd.capture.hosts import claude_tool_calls
from csmd.extraction import sources
from csmd.extraction.statements import is_settled
from csmd.store import candidates, cursors, passages, turns
from csmd.store.core import Store
from csmd.store.cursors import Behind
from csmd.store.sqlite import Rows

#: The tools that write to a file.
EDITS = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
_COMMAND = re.compile(r'"command":"((?:[^"\\]|\\.){1,8000})')
_FILE = re.compile(r'"(?:file_path|notebook_path)":"((?:[^"\\]|\\.){1,1000})"')
_ESCAPED = re.compile(r"\\(u[0-9a-f]{4}|.)", re.IGNORECASE | re.DOTALL)


def command_of(given: str) -> str:
    """The shell line in a tool call's input, which may be cut in its middle."""
    found = _COMMAND.search(given)
    return _plain(found.group(1)) if found else ""


def file_of(given: str) -> str:
    """The file that a tool call's input names."""
    found = _FILE.search(given)
    return _plain(found.group(1)) if found else ""


def _plain(written: str) -> str:
    signs = {"n": "\n", "t": "\t", "r": "\r"}

    def sign(found: re.Match[str]) -> str:
        one = found.group(1)
        return chr(int(one[1:], 16)) if len(one) == 5 else signs.get(one, one)

    return _ESCAPED.sub(sign, written)


STAGE = "tool words"
#: What an agent reported is said in a conversation of its own.
ROLES = ("plan", "commit")
TOOLS = tuple(tool for tool, (role, _) in claude_tool_calls.CALLS.items() if role in ROLES)
#: Sessions that one step looks at.
SESSIONS = 8


def step(store: Store, *, quiet_before: str) -> int:
    """Goes through a part of the sessions with new turns; how many turns were passed, 0 for nothing left.

    A call without a result stops its session until the result is there, or nothing came since `quiet_before`.
    """
    passed = sessions = 0
    for session in store.read(lambda rows: cursors.sessions_behind(rows, STAGE)):
        turns = _go_through(store, session, settled=is_settled(session, quiet_before=quiet_before))
        passed, sessions = passed + turns, sessions + (turns > 0)
        if sessions == SESSIONS:
            break
    return passed


def _go_through(store: Store, session: Behind, *, settled: bool) -> int:
    def look(rows: Rows) -> tuple[list[turns.Call], int]:
        calls = turns.tool_calls(
            rows, session.session_seq, after=session.position, tools=TOOLS, holding=claude_tool_calls.HOLDING
        )
        # What hooks report comes without end while somebody works; calls stand in transcripts alone.
        provisional = candidates.first_provisional(rows, session.session_seq, after=session.position)
        return calls, session.turns if provisional is None else min(session.turns, provisional - 1)

    calls, upto = store.read(look)
    waiting = [] if settled else [call.turn.ordinal for call in calls if call.result is None]
    upto = min([upto, *(ordinal - 1 for ordinal in waiting)])
    if upto <= session.position:
        return 0

    def write(rows: Rows) -> int:
        for call in calls:
            said = sources.called(call.turn, call.tool, call.result)
            if said is not None and call.turn.ordinal <= upto:
                passages.add_words(rows, call.turn.seq, said.turn.text, given=call.turn.text)
        cursors.move_cursor(rows, STAGE, str(session.session_seq), upto)
        return upto - session.position

    return store.write(write)
