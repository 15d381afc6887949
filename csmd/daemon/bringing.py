"""Memories that are brought from elsewhere or taken out: an export's, the assistant's own notes; on the steward's thread.

`csmd import` tells by what lies there what it is given: what `csmd export` wrote, a memory directory, or transcripts.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import BinaryIO

from csmd.capture import project_identity
from csmd.capture.hosts import claude_environment
from csmd.daemon.context import Context
from csmd.daemon.job import Job
from csmd.daemon.now import now_iso
from csmd.dream import transfer
from csmd.errors import BadInput, ConfigError, StoreError
from csmd.store import exports, files, projects, tombstones, workspaces
from csmd.store.sqlite import Rows

#: What an import of transcripts counts, and another one has none of.
NO_TURNS = {"files": 0, "turns_new": 0, "turns_known": 0, "bad_lines": 0, "redactions": 0}


def read(context: Context, job: Job) -> Generator[None, None, bool]:
    """Takes in memories where the job's path holds such; False, and nothing done, where it holds transcripts."""
    path = Path(job.path)
    memories = transfer.found_in(path)
    if memories is not None:
        with transfer.opened(memories) as file:
            yield from _parcel(context, job, file)
        return True
    notes = transfer.notes_in(path)
    if notes:
        yield from _notes(context, job, notes)
    return bool(notes)


def _parcel(context: Context, job: Job, file: BinaryIO) -> Iterator[None]:
    taken = transfer.Taken()
    vouched = bool(job.order.get("by_person"))
    named = str(job.order.get("project") or job.order.get("asking") or "")
    here = project_identity.marked(project_identity.identified(named)) if named else None
    for done in transfer.take_in(context.store, file, vouched=vouched, now=now_iso(), taken=taken, here=here):
        job.progress.update(step="taking in memories", done=done)
        _go_on(context)
        yield
    job.result.update(
        {**NO_TURNS, "files": 1, "redactions": taken.redactions.total(), "memories_known": taken.known,
         "forgotten": taken.forgotten, "lowered": taken.lowered, "vouched": taken.vouched,
         "placed": [{"was": was, "is": now, "remote": remote, "memories": number}
                    for (was, now, remote), number in sorted(taken.placed.items())]}
    )  # fmt: skip


def _notes(context: Context, job: Job, notes: list[Path]) -> Iterator[None]:
    taken = transfer.NotesTaken()
    project = _project(context, job, notes[0].parent)
    for done in transfer.take_in_notes(context.store, notes, project=project, now=now_iso(), taken=taken):
        job.progress.update(step="reading notes", done=done, total=len(notes))
        _go_on(context)
        yield
    job.result.update(
        {**NO_TURNS, "files": taken.files, "redactions": taken.redactions.total(), "memories_known": taken.known,
         "forgotten": taken.forgotten, "problems": taken.problems}
    )  # fmt: skip


def _project(context: Context, job: Job, folder: Path) -> int:
    """The project that notes are about: the one that is named, else the one whose memory directory it is."""
    named = str(job.order.get("project", ""))
    if named:
        place = project_identity.identified(named)
        return context.store.write(lambda rows: projects.ensure(rows, project_identity.marked(place), now=now_iso()))
    whose = folder.parent.name if folder.name == "memory" else folder.name

    def known(rows: Rows) -> set[int]:
        return {seq for path, seq in workspaces.directories(rows) if claude_environment.folder_name(path) == whose}

    found = context.store.read(known)
    if len(found) != 1:
        raise BadInput(
            f"{folder}: which project are these notes about?", hint="name it: csmd import DIR --project PATH"
        )
    return found.pop()


# --- out


def write(context: Context, job: Job) -> Iterator[None]:
    """Writes the memories of the job's places into its directory, which is made, or empty, or holds an earlier export."""
    began, directory = time.monotonic(), Path(job.path)
    _make_room(directory)
    total = 0
    for total in transfer.export(context.store, directory, job.order["places"]):
        job.progress.update(step="writing", done=total)
        _go_on(context)
        yield
    every, forgotten = context.store.read(lambda rows: (len(exports.seqs(rows, None)), tombstones.number(rows)))
    job.result.update(
        path=str(directory / transfer.NAME), memories=total, project=job.order["project"], elsewhere=every - total,
        forgotten=forgotten, took_s=round(time.monotonic() - began, 3), degraded=[],
    )  # fmt: skip


def _make_room(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        info = directory.lstat()
        beside = sorted(one.name for one in directory.iterdir() if one.name != transfer.NAME)
    except OSError as error:
        raise ConfigError(f"{directory}: {error.strerror}", hint="name a directory that you can write to") from error
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid():
        raise ConfigError(f"{directory} is not a directory of yours", hint="name another one")
    if beside and not (directory / transfer.NAME).is_file():
        raise ConfigError(f"{directory} is not empty: {beside[0]} is in it", hint="name an empty or a new directory")
    files.make_private(directory)


def _go_on(context: Context) -> None:
    if context.stopping:
        raise StoreError("the daemon is stopping", hint="run it again when the daemon is up")
