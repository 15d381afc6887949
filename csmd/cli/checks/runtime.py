"""What the daemon and its store say of themselves, and how far a marker came that was sent through the hooks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import csmd
from csmd.cli import show
from csmd.cli.checks.scene import Check, Finding, Scene, fail, note, warn

#: Events that wait longer are not on their way any more.
SPOOL_PATIENCE_S = 60.0
#: A turn that is later than now by more has a wrong clock.
AHEAD_S = 120.0
#: The host's own limit is longer; a person feels this at every prompt.
SLOW_HOOK_MS = 1_000.0


def _daemon(scene: Scene) -> Iterator[Finding]:
    if scene.status is not None:
        return
    what, remedy = scene.trouble
    if scene.pid:
        yield fail(
            f"the daemon (pid {scene.pid}) does not answer: hooks wait for it in vain, then spool", "`csmd restart`"
        )
    elif scene.paths.stopped_mark.exists():
        yield fail("the daemon was stopped: what happens is kept in the spool, and nothing is put before a session")
    else:
        yield fail(what or "no daemon runs: what happens is kept in the spool", remedy)


def _version(scene: Scene) -> Iterator[Finding]:
    told = (scene.status or {}).get("version", csmd.__version__)
    if told != csmd.__version__:
        yield warn(f"the daemon is csmd {told}, this command {csmd.__version__}")


def _capture(scene: Scene) -> Iterator[Finding]:
    for one in scene.ran:
        if one.problem:
            yield fail(f"the hook for {one.event} does not work: {one.problem}")
        elif one.stored and one.spooled:
            yield warn(f"the hook for {one.event} got no answer in time: its turn came by way of the spool")
        elif one.stored and one.took_ms > SLOW_HOOK_MS:
            yield warn(f"the hook for {one.event} took {one.took_ms / 1000:.1f} s: the assistant waits for it",
                       "look at what the machine is busy with")  # fmt: skip
        elif not one.stored and scene.status is not None and not scene.status.get("paused"):
            where = "it is in the spool" if one.spooled else "it is in neither the store nor the spool"
            yield fail(f"a turn that the hook for {one.event} reported is not found: {where}")
        elif not one.stored and not one.spooled and scene.status is None:
            yield fail(f"the hook for {one.event} keeps nothing in the spool: without a daemon, turns are lost",
                       "see what the checks say of the disk and of the hook")  # fmt: skip


def _paused(scene: Scene) -> Iterator[Finding]:
    paused = (scene.status or {}).get("paused")
    if paused:
        until = f"until {show.when(paused['until'])}" if paused.get("until") else "until you resume it"
        yield warn(f"capture is paused {until}")


def _alarms(scene: Scene) -> Iterator[Finding]:
    for alarm in (scene.status or {}).get("alarms") or ():
        yield fail(str(alarm.get("what", "")), str(alarm.get("do", "")))


def _degraded(scene: Scene) -> Iterator[Finding]:
    for text in (scene.status or {}).get("degraded", ()):
        if not text.startswith("vectors: no embedding model"):  # told by its own check
            yield warn(text)


def _model(scene: Scene) -> Iterator[Finding]:
    if scene.status is not None and not scene.status["model"]["name"]:
        yield note("no embedding model is installed: search is by words alone")


def spool_places(home: Path) -> list[Path]:
    """Where hooks keep what no daemon took: as hooks/csmd_spool.py names them."""
    name = os.path.realpath(home).replace("%", "%25").replace("/", "%2F")
    return [home / "spool", Path(f"/tmp/csmd-{os.getuid()}/spool-{name}")]  # noqa: S108


def spooled(home: Path) -> list[Path]:
    """The events that wait, the oldest first; an OSError of a place that cannot be read is the caller's."""
    found = [path for place in spool_places(home) if place.is_dir() for path in place.iterdir()]
    return sorted((path for path in found if path.suffix == ".event"), key=lambda path: path.name)


def _spool(scene: Scene) -> Iterator[Finding]:
    waiting = spooled(scene.paths.home)
    if not waiting:
        return
    age = _age(waiting[0].name, scene.now_s)
    said = "1 event waits" if len(waiting) == 1 else f"{len(waiting)} events wait"
    if scene.status is None:
        yield note(f"{said} in the spool, the oldest for {show.age(age)}: a daemon takes them in")
    elif age > SPOOL_PATIENCE_S:
        yield warn(f"{said} in the spool, the oldest for {show.age(age)}, and the daemon does not take them in")


def _age(name: str, now_s: float) -> float:
    try:
        return max(0.0, now_s - int(name[:16], 16) / 1e9)
    except ValueError:
        return 0.0


def _quarantine(scene: Scene) -> Iterator[Finding]:
    folder = scene.paths.quarantine
    notes = len(list(folder.iterdir())) if folder.is_dir() else 0
    if notes:
        said = "1 note lies" if notes == 1 else f"{notes} notes lie"
        yield note(f"{said} in {folder}: input that could not be read")


def _store(scene: Scene) -> Iterator[Finding]:
    if scene.status is not None and scene.store_problems is None:
        yield note(
            "the database was not read to its end: it is large, or the daemon busy", "`csmd tool csm_store_check`"
        )
    for problem in scene.store_problems or ():
        yield fail(f"the database is damaged: {problem}")


def _beliefs(scene: Scene) -> Iterator[Finding]:
    for what, remedy in scene.broken_rules:
        yield warn(what, remedy)


def _hung_mark(scene: Scene) -> Iterator[Finding]:
    mark = scene.paths.hung_mark
    if mark.exists() and scene.status is not None:
        age = max(0.0, scene.now_s - mark.stat().st_mtime)
        if age < 30:
            yield warn(f"a hook waited in vain {age:.0f} s ago: until 30 s after that hooks do not ask the daemon")


def _socket(scene: Scene) -> Iterator[Finding]:
    if scene.paths.endpoint.is_file():
        path = scene.paths.endpoint.read_text(encoding="utf-8", errors="replace").strip()
        if path and not path.startswith(f"{scene.paths.home}/"):
            yield note(f"the path of {scene.paths.home} is too long for a socket: it is {path}")


def _clock(scene: Scene) -> Iterator[Finding]:
    if scene.newest_turn:
        ahead = _seconds(scene.newest_turn) - scene.now_s
        if ahead > AHEAD_S:
            yield warn(f"the newest turn is of {show.when(scene.newest_turn)}, {show.age(ahead)} from now: "
                       "the clock is behind, or was ahead then")  # fmt: skip
    built = Path(csmd.__file__).stat().st_mtime
    if scene.now_s < built - 86_400:
        yield warn(
            f"the clock says {datetime.fromtimestamp(scene.now_s, UTC):%Y-%m-%d}, before this csmd was installed"
        )


def _seconds(stamp: str) -> float:
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except (ValueError, OverflowError):
        return 0.0


CHECKS: tuple[Check, ...] = (
    Check(id="daemon", question="Does a daemon answer?", look=_daemon,
          remedy="`csmd start`"),
    Check(id="daemon-version", question="Is it of this version?", look=_version, asks=True,
          remedy="`csmd upgrade`"),
    Check(id="capture", question="Is a turn found that the registered hooks report?", look=_capture,
          remedy="`csmd restart`; if that does not help, `csmd report` gathers what a bug report needs"),
    Check(id="paused", question="Is capture not paused?", look=_paused, asks=True,
          remedy="`csmd resume`"),
    Check(id="alarms", question="Has the daemon raised no alarm?", look=_alarms, asks=True,
          remedy="see docs/operations.md"),
    Check(id="degraded", question="Does every part of the daemon work?", look=_degraded, asks=True,
          remedy="the line says what and where; the log has more"),
    Check(id="hung-mark", question="Has no hook waited in vain just now?", look=_hung_mark, asks=True,
          remedy="nothing: what happens meanwhile is in the spool; `csmd restart` if it comes again"),
    Check(id="model", question="Is there an embedding model?", look=_model, asks=True,
          remedy="`csmd model fetch` (90 MB, once), or `csmd model add DIR`"),
    Check(id="spool", question="Is the spool empty?", look=_spool,
          remedy="`csmd start`; a daemon that runs says in `csmd status` why it takes nothing in"),
    Check(id="quarantine", question="Could all input be read?", look=_quarantine,
          remedy="nothing has to be done; if they become more, put one into a bug report: it says where and why, never what"),
    Check(id="store", question="Is the database sound?", look=_store, asks=True,
          remedy="`csmd repair --dry-run` says what could be had, `csmd repair` does it"),
    Check(id="beliefs", question="Does what is believed keep its rules?", look=_beliefs,
          remedy="`csmd governance` lists the rules and what breaks them"),
    Check(id="socket", question="Does the socket lie in the home?", look=_socket,
          remedy="nothing has to be done; a shorter CSMD_HOME brings it back"),
    Check(id="clock", question="Is the clock right?", look=_clock,
          remedy="set the clock; nothing is lost by a wrong one, but ages are counted by it"),
)  # fmt: skip
