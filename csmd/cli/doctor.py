"""`csmd doctor`: sends a marker through the registered hooks, then walks every check; it changes nothing.

What may hang is asked from a thread of its own and left behind at its limit: a dead disk costs one check, not the
answer. Exit code 1 when something that is said is not captured.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from csmd import client, config, wire
from csmd.cli import ask as asking
from csmd.cli import assistant, probe, record, service, show_doctor
from csmd.cli import install as installing
from csmd.cli.ask import json_option
from csmd.cli.checks import hooks, host, machine, runtime
from csmd.cli.checks.scene import LEVELS, Check, Finding, Scene, warn
from csmd.config import default_paths
from csmd.errors import BadInput, CsmdError, DaemonUnreachable
from csmd.paths import Paths

#: Every check, in the order in which a turn goes: from the assistant to the store; the rest behind.
CHECKS: tuple[Check, ...] = (*hooks.CHECKS, *runtime.CHECKS, *host.CHECKS, *machine.CHECKS)
STATUS_S = 5.0
#: Reading a large database takes longer; it is then left to who asks for it.
CHECKED_S = 10.0
READ_S = 3.0

T = TypeVar("T")


def examine(paths: Paths, *, cwd: Path, now_s: float, managed: Path | None = None) -> dict[str, Any]:
    """The verdict and what every check found: `{"works", "verdict", "took_ms", "checks": [{"id", "question", "level", "findings"}]}`."""
    scene = look(paths, cwd=cwd, now_s=now_s, managed=managed)
    return judged(scene, walk(CHECKS, scene))


def look(paths: Paths, *, cwd: Path, now_s: float, managed: Path | None = None) -> Scene:
    """Reads the settings, asks the daemon, sends the marker."""
    problems: list[str] = []
    try:
        recorded = record.assistant_dirs(paths)
    except (CsmdError, OSError) as error:
        problems.append(str(error))
        recorded = ()
    dirs = tuple(dict.fromkeys((*recorded, config.assistant_dir())))
    managed = managed or Path(assistant.MANAGED.get(sys.platform, assistant.MANAGED["linux"]))
    process = service.running(paths)
    scene = Scene(
        paths=paths, cwd=cwd, user_home=config.user_home(), platform=sys.platform, now_s=now_s,
        env=config.environment(), recorded=recorded, dirs=dirs, problems=tuple(problems), share=installing.share(),
        umask=_umask(), pid=process.pid if process else 0, sources=read_sources(dirs, cwd, managed), states=read_states(dirs),
    )  # fmt: skip
    return _asked(scene)


def read_sources(dirs: tuple[Path, ...], cwd: Path, managed: Path) -> tuple[assistant.Source, ...]:
    """The settings files of sessions in `cwd`, the one that decides first."""
    found = []
    pieces = bounded(lambda: assistant.managed_pieces(managed), READ_S) or []
    for path, scope in [*pieces, *assistant.places(dirs, cwd, managed)]:
        late = assistant.Source(path=str(path), scope=scope, problem=f"its disk does not answer within {READ_S:g} s")
        found.append(bounded(lambda: assistant.source(path, scope, _bytes), READ_S) or late)  # noqa: B023 - it is awaited
    return tuple(found)


def _asked(scene: Scene) -> Scene:
    """The scene with what the daemon says, and how far the marker came."""
    paths = scene.paths
    status, trouble = None, ("", "")
    try:
        status = client.call(paths, "csm_runtime_status", patience_s=STATUS_S)
    except DaemonUnreachable as error:
        told = service.why_not(paths, error)
        trouble = (told.what, told.hint)
    except CsmdError as error:
        trouble = (error.what, error.hint)
    hears = status is not None and not status.get("paused")
    ran = bounded(lambda: probe.send(paths, scene.ours, answers=hears), 4 * probe.HOOK_S)
    problems = None
    if status is not None:
        with contextlib.suppress(CsmdError):
            problems = tuple(
                client.call(paths, "csm_store_check", {"indexes": False}, patience_s=CHECKED_S)["problems"]
            )
    rules: tuple[tuple[str, str], ...] = ()
    if problems == ():
        with contextlib.suppress(CsmdError):
            report = client.call(paths, "csm_memory_governance_report", patience_s=CHECKED_S)
            rules = tuple(
                (f"{row['rule']}: not so of {', '.join(row['broken_by'][:3])}", row["try"])
                for row in report["rules"]
                if not row["holds"]
            )
    newest = max((row["last"] for row in status["projects"]), default="") if status else ""
    return replace(
        scene,
        status=status,
        trouble=trouble,
        ran=ran or (),
        store_problems=problems,
        broken_rules=rules,
        newest_turn=newest,
    )


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _in_time(path: Path) -> bytes | None:
    return bounded(lambda: _bytes(path), READ_S)


def read_states(dirs: tuple[Path, ...]) -> dict[str, Any]:
    """What the client keeps of its directories; of several files the later ones add what the first does not say."""
    found: dict[str, Any] = {}
    for path in [path for folder in dirs for path in assistant.state_files(folder)]:
        try:
            value = wire.loads(_in_time(path) or b"{}")
        except (OSError, BadInput):
            continue
        if isinstance(value, dict):
            known = found.get("projects")
            found = {**value, **found}
            if isinstance(known, dict) and isinstance(value.get("projects"), dict):
                found["projects"] = {**value["projects"], **known}
    return found


def begin(work: Callable[[], T]) -> Callable[[float], T | None]:
    """Starts `work` on a thread of its own; what waits for it until so many seconds after its start, None when it is late.

    Errors of `work` are raised to whoever waits. A thread that hangs is left behind: it keeps nothing from ending.
    """
    done: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:  # noqa: BLE001 - raised below, by whoever waits
            failed.append(error)

    started = time.monotonic()
    thread = threading.Thread(target=run, daemon=True, name="csmd-doctor")
    thread.start()

    def wait(limit_s: float) -> T | None:
        thread.join(max(0.0, started + limit_s - time.monotonic()))
        if failed:
            raise failed[0]
        return done[0] if done else None

    return wait


def bounded(work: Callable[[], T], limit_s: float) -> T | None:
    """What `work` gives, or None when it takes longer than its limit; its errors are raised."""
    return begin(work)(limit_s)


def walk(checks: Sequence[Check], scene: Scene) -> list[tuple[Check, list[Finding]]]:
    """What every check finds: all at once, so that several that hang take no longer than one."""
    begun = [(check, begin(lambda check=check: list(check.look(scene)))) for check in checks]  # type: ignore[misc]
    return [(check, _found(check, wait)) for check, wait in begun]


def _found(check: Check, wait: Callable[[float], list[Finding] | None]) -> list[Finding]:
    """What a check found; one that fails or hangs is a finding itself."""
    try:
        found = wait(check.limit_s)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        found = [warn(f"this could not be looked at: {where}{error.strerror or type(error).__name__}")]
    except CsmdError as error:
        found = [warn(f"this could not be looked at: {error.what}", error.hint)]
    except (ValueError, KeyError, TypeError) as error:
        found = [warn(f"this could not be looked at: {type(error).__name__}")]
    if found is None:
        found = [
            warn(f"no answer within {check.limit_s:g} s", "a disk that does not answer? `df` shows which one hangs")
        ]
    return [one if one.remedy else replace(one, remedy=check.remedy) for one in found]


def judged(scene: Scene, findings: Sequence[tuple[Check, list[Finding]]]) -> dict[str, Any]:
    """The findings as `--json` shows them, with the verdict before them."""
    checks = []
    for check, found in findings:
        unasked = check.asks and scene.status is None
        level = min((one.level for one in found), key=LEVELS.index, default="unasked" if unasked else "ok")
        checks.append(
            {
                "id": check.id,
                "question": check.question,
                "level": level,
                "findings": [{"level": one.level, "what": one.what, "try": one.remedy} for one in found],
            }
        )
    # That no daemon answers is told before what follows from it.
    ordered = sorted(findings, key=lambda pair: pair[0].id != "daemon")
    broken = [one.what for _, found in ordered for one in found if one.level == "fail"]
    took = max((one.took_ms for one in scene.ran if one.stored), default=0.0)
    return {
        "works": not broken,
        "verdict": _verdict(scene, next(iter(broken), ""), took),
        "took_ms": took,
        "checks": checks,
    }


def _verdict(scene: Scene, broken: str, took_ms: float) -> str:
    if broken:
        return f"Capture is broken: {broken}."
    if (scene.status or {}).get("paused"):
        return "Capture is paused."
    if not any(one.stored for one in scene.ran):  # csmd's plugin carries the hooks, not the settings
        return "Nothing is found broken; no registered hook could be tried."
    return f"Capture works: a turn went from the hook to search in {took_ms:.0f} ms."


@click.command()
@click.option("--all", "everything", is_flag=True, help="List the checks that passed, too.")
@json_option
def doctor(everything: bool, as_json: bool) -> None:
    """Prove that capture works, and name what stops or distorts it."""
    value = examine(default_paths(), cwd=Path(asking.here(None)), now_s=time.time())
    asking.out(value, as_json, lambda shown: show_doctor.examined(shown, everything=everything))
    if not value["works"]:
        raise SystemExit(1)  # told why


#: In the order that `csmd --help` lists them.
VERBS: tuple[click.Command, ...] = (doctor,)
