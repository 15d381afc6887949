"""A store on a real file and the transcripts that are read into it, for the tests of assistants' transcripts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from csmd.capture import transcript_listing, transcripts
from csmd.store.core import Store

NOW = "2027-06-01T00:00:00.000Z"
#: (kind, text) of a turn, by its stream: a session, or session/agent.
Streams = dict[str, list[tuple[str, str]]]


def latest_transcripts(root: Path) -> list[Path]:
    """Every transcript in a directory, the latest written first."""
    listed = sorted(transcript_listing.list_transcripts(root), key=lambda file: (-file.mtime_ns, file.path))
    return [Path(file.path) for file in listed]


class Home:
    """A store, and the transcripts that are read into it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.store = Store(root / "csmd.db", now=NOW)

    def tail(self, path: Path, **more: Any) -> transcripts.ReadReport:
        """Reads on in a transcript."""
        more = {"now": lambda: NOW, "tool_limit": 8192, "quarantine": self.root / "quarantine", **more}
        return transcripts.read_transcript(self.store, path, transcripts.ReadOptions(**more))

    def read(self, tree: Path) -> None:
        """Reads on in every transcript below a directory."""
        for path in sorted(latest_transcripts(tree)):  # as the backlog orders the files of a session
            self.tail(path)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        return self.store.read(lambda rows: list(rows.all(query)))

    def calls(self) -> list[tuple[str, Any]]:
        """Each tool call that is stored: the tool, and what it was given."""
        calls = self.rows("select tool_name, text from turns where kind = 'tool_call' order by seq")
        return [(name, json.loads(text)) for name, text in calls]

    def results(self) -> list[str]:
        """What is stored of what tools gave back."""
        return [text for (text,) in self.rows("select text from turns where kind = 'tool_result' order by seq")]

    def streams(self, *, standing: bool = False) -> Streams:
        """What is stored of each stream, in order; with `standing` without what was left behind."""
        streams: Streams = {}
        for stream, kind, text in self.rows(
            "select s.id, t.kind, t.text from session_turn st join turns t on t.seq = st.turn_seq "
            f"join sessions s on s.seq = st.session_seq where st.rewound in (0, {int(not standing)}) order by s.id, st.ordinal"
        ):
            streams.setdefault(stream, []).append((kind, text))
        return streams


def check(stored: Streams, expected: Streams) -> None:
    """What is stored is what an oracle finds; of a call its words, of a result what was printed."""
    assert stored.keys() == expected.keys()
    for stream, turns in stored.items():
        assert [kind for kind, _ in turns] == [kind for kind, _ in expected[stream]], stream
        for (kind, text), (_, words) in zip(turns, expected[stream], strict=True):
            if kind == "tool_call":
                assert json.dumps(words, ensure_ascii=False)[1:-1] in text
            elif kind == "tool_result":
                assert text.strip().endswith(words.strip())
            else:
                assert text == words
