"""Removes excluded, paused and purged turns and known secrets from the turns of a transcript."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from csmd.capture import project_identity
from csmd.capture.ingest import find_purge_times
from csmd.capture.project_identity import Places
from csmd.conversation import Project, Turn
from csmd.exclusions import Excludes
from csmd.hosts.transcript_reading import Reading
from csmd.json_fields import EPOCH
from csmd.pauses import Pauses
from csmd.privacy.fingerprints import PURGED, remove_purged
from csmd.privacy.redaction import KNOWN_AGAIN
from csmd.store import tombstones
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.store.stored_secrets import keep_secrets_out
from csmd.text import tokens


@dataclass(slots=True, kw_only=True)
class TurnFilter:
    """Removes turns of a reading that are excluded or were said in a pause; looks up each directory once."""

    excludes: Excludes
    place_of: Callable[[str], Project]
    off: bool = False
    """Whether the session began in an excluded directory: then nothing of it is kept."""
    began: str = EPOCH
    """The first time in the transcript."""
    latest: str = EPOCH
    """The time of the last turn that was read."""
    written_at: str
    """When the file was written: the time of turns without a time."""
    _paused: int = 0
    _is_last_out: bool | None = None
    _is_out: dict[str, bool] = field(default_factory=dict)

    def take_paused(self) -> int:
        """Returns how many turns in a pause were left out since the last call."""
        paused, self._paused = self._paused, 0
        return paused

    def titles(self, titles: dict[str, str]) -> dict[str, str]:
        """Returns the titles in a transcript's first bytes that are kept."""
        first = self.began if self.began != EPOCH else self.written_at
        return {} if self.off or self.excludes.pauses().touches(first, max(first, self.written_at)) else titles

    def split(self, reading: Reading) -> tuple[Reading, list[Turn]]:
        """Returns the rest of the next piece, with a time for each turn, and the turns that are left out."""
        pauses = self.excludes.pauses()
        self.latest = self.latest if self.latest != EPOCH else self.written_at
        spans = find_spans(reading.turns, self.latest) if pauses.spans else []
        in_pause = [pauses.touches(*span) for span in spans] or [False] * len(reading.turns)
        self._paused += sum(in_pause)
        excluded = [
            self.off or is_paused or self._is_left_out(turn.cwd)
            for turn, is_paused in zip(reading.turns, in_pause, strict=True)
        ]  # fmt: skip
        is_silent = self.off or (self.began != EPOCH and pauses.covers(self.began))
        titles = reading.titles.items() if not is_silent else ()
        positions = reading.title_at
        reading = replace(
            reading, turns=fill_times(reading.turns, self.latest),
            worktrees=[] if any(excluded) or is_silent else reading.worktrees,
            titles={name: title for name, title in titles if not self._is_title_out(positions.get(name, 0), excluded, pauses)},
        )  # fmt: skip
        if excluded:
            self._is_last_out, self.latest = excluded[-1], reading.turns[-1].at
        left_out = list(itertools.compress(reading.turns, excluded))
        flags = iter(excluded)
        return reading.filter_turns(lambda _: not next(flags)) if left_out else reading, left_out

    def _is_title_out(self, turn_count: int, out: list[bool], pauses: Pauses) -> bool:
        """Whether a title is dropped with the turn before it, after `turn_count` turns of the piece."""
        if turn_count:
            return out[turn_count - 1]
        if self._is_last_out is not None:
            return self._is_last_out
        return (bool(out) and out[0]) or pauses.covers(self.latest)

    def _is_left_out(self, cwd: str) -> bool:
        if not self.excludes.reads_disk or not cwd:
            return False
        if cwd not in self._is_out:
            self._is_out[cwd] = project_identity.is_excluded(self.excludes, self.place_of(cwd), cwd)
        return self._is_out[cwd]


def find_spans(turns: list[Turn], latest: str) -> list[tuple[str, str]]:
    """Returns the earliest and latest possible time of each turn: its own time twice, or the times of its neighbours.

    `latest` is used if it has no neighbours with a time.
    """
    after: list[str] = []
    following = EPOCH
    for turn in reversed(turns):
        following = turn.at if turn.at != EPOCH else following
        after.append(following)
    spans: list[tuple[str, str]] = []
    before = EPOCH
    for turn, then in zip(turns, reversed(after), strict=True):
        before = turn.at if turn.at != EPOCH else before
        ends = [at for at in (before, then) if at != EPOCH] or [latest]
        spans.append((min(ends), max(ends)))
    return spans


def fill_times(turns: list[Turn], otherwise: str) -> list[Turn]:
    """Returns the turns, with the time of the previous turn, or of the next one, where a time is unreadable."""
    if all(turn.at != EPOCH for turn in turns):
        return turns
    before = next((turn.at for turn in turns if turn.at != EPOCH), otherwise)
    timed: list[Turn] = []
    for turn in turns:
        timed.append(turn if turn.at != EPOCH else replace(turn, at=before))
        before = timed[-1].at
    return timed


def filter_purged(
    store: Store, places: Places, reading: Reading, early: dict[str, str]
) -> tuple[Reading, dict[str, str]]:
    """Returns the reading, and the titles of the file's beginning, without purged text.

    Call it on the thread that also purges, so that no tombstone is written before its result is stored.
    """
    if not store.read(tombstones.has_purged):
        return reading, early
    projects_of = {turn.cwd: places.of(turn.cwd) for turn in reading.turns}
    return store.read(lambda rows: _drop_purged(rows, reading, early, projects_of, store.hash_key))


def remove_known_secrets(store: Store, reading: Reading, now: str) -> Reading:
    """Returns the reading without the secrets that its sessions have elsewhere; its own are noted first."""
    key, sessions = store.hash_key, dict.fromkeys(turn.session_id for turn in reading.turns)
    if new := {session: reading.secrets[session] for session in sessions if session in reading.secrets}:

        def note(rows: Rows) -> None:
            for session, secrets in new.items():
                keep_secrets_out(rows, session, secrets, key=key, now=now)

        store.write(note)
    marks = store.read(lambda rows: {session: tombstones.secrets_of(rows, [session], key) for session in sessions})
    if not any(marks.values()):
        return reading

    def clean_text(session: str, text: str) -> str:
        return remove_purged(text, marks[session], placeholder=KNOWN_AGAIN)[0] if session in marks else text

    turns = [replace(turn, text=clean_text(turn.session_id, turn.text)) for turn in reading.turns]
    exits = [replace(item, text=clean_text(item.session_id, item.text)) for item in reading.queue_exits]
    titles = {session: clean_text(session, title) for session, title in reading.titles.items()}
    return replace(reading, turns=turns, queue_exits=exits, titles=titles)


def _drop_purged(
    rows: Rows, reading: Reading, early: dict[str, str], places: dict[str, Project], key: bytes
) -> tuple[Reading, dict[str, str]]:
    marks = tombstones.purged_marks(rows, key)
    names = {name for turn in reading.turns for name in (turn.session_id, turn.stream)} | {*reading.titles, *early}
    purged = tombstones.purged_names(rows, "session", list(names), key=key)
    since = find_purge_times(rows, places.values(), key)

    def is_permitted(turn: Turn) -> bool:
        until = since.get(places[turn.cwd].key, "")
        return turn.session_id not in purged and turn.stream not in purged and turn.at > until

    def permit_titles(titles: dict[str, str]) -> dict[str, str]:
        return {session: remove_purged(title, marks)[0] for session, title in titles.items() if session not in purged}

    reading = reading.filter_turns(is_permitted)
    emptied = _find_purged_turns(rows, reading.turns, key)
    texts = [PURGED if turn.uuid in emptied else remove_purged(turn.text, marks)[0] for turn in reading.turns]
    pairs = zip(reading.turns, texts, strict=True)
    permitted = [turn if text == turn.text else replace(turn, text=text) for turn, text in pairs]
    return replace(reading, turns=permitted, titles=permit_titles(reading.titles)), permit_titles(early)


def _find_purged_turns(rows: Rows, turns: list[Turn], key: bytes) -> set[str]:
    """Returns the uuids of turns that were purged individually."""
    if not tombstones.has_kind(rows, "turn"):
        return set()
    names = {
        turn.uuid: tombstones.list_turn_names(turn.uuid, turn.stream, tokens.keyed_hash(turn.text, key))
        for turn in turns
    }
    every_name = list(itertools.chain.from_iterable(names.values()))
    purged = tombstones.purged_names(rows, "turn", every_name, key=key)
    return {uuid for uuid, turn_names in names.items() if not purged.keys().isdisjoint(turn_names)}
