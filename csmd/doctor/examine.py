"""`csmd doctor`: sends a marker through the hooks and walks the checks."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from csmd import client, config, wire
from csmd.doctor import host_settings
from csmd.doctor.checks import CHECKS, LEVELS, Check, Finding, Level, Ran, Scene, spooled, warn
from csmd.doctor.host_settings import Registered
from csmd.errors import BadInput, CsmdError, DaemonUnreachable
from csmd.hosts.claude import registration
from csmd.installer import plan, service
from csmd.model import PROBE_SESSION, PROBE_TEXT
from csmd.paths import Paths

#: The host's events that bring a turn -> what csmd calls them, and the key that holds the words.
BRINGING = {"UserPromptSubmit": ("prompt", "prompt"), "Stop": ("stop", "last_assistant_message")}
LETTERS = "bcdfghjklmnpqrstvwxz"  # no vowel, so that it is nobody's word
WORD_LETTERS = 20
#: A hook that takes longer than it was granted is ended by the assistant, too.
HOOK_S = 10.0
#: A few configuration directories with two each.
MOST_HOOKS = 8
#: How long a turn may take from the hook to search: what was spooled comes with the daemon's next step.
FOUND_S = 5.0
LONGEST_EVENT = 65_536


def send(paths: Paths, hooks: Sequence[Registered], *, answers: bool) -> tuple[Ran, ...]:
    """Runs each command of the user's that is registered for an event that brings a turn; a daemon `answers` or not."""
    if answers:
        try:
            client.call(paths, "csm_probe_take", {"id": f"{PROBE_SESSION}{LETTERS}"}, patience_s=FOUND_S)
        except CsmdError:
            return ()  # an older daemon would take the marker for somebody's turn
    wanted = {(hook.event, hook.command): hook for hook in hooks if hook.event in BRINGING and hook.scope == "user"}
    return tuple(_send_through(paths, hook, answers) for hook in list(wanted.values())[:MOST_HOOKS])


def _send_through(paths: Paths, hook: Registered, answers: bool) -> Ran:
    word = "".join(secrets.choice(LETTERS) for _ in range(WORD_LETTERS))
    name, key = BRINGING[hook.event]
    session, said = f"{PROBE_SESSION}{word}", PROBE_TEXT.format(event=name, word=word)
    payload = {"session_id": session, "transcript_path": "", "cwd": "", "hook_event_name": hook.event, key: said}
    started = time.monotonic()
    problem, stored = _run(hook, wire.dumps(payload).encode(), paths.home), False
    waits = paths.hung_mark.exists()  # then the hook did not ask, and the spool may be empty again by now
    until = time.monotonic() + FOUND_S
    try:
        while answers and not problem and time.monotonic() <= until:
            stored = said in client.call(paths, "csm_probe_take", {"id": session}, patience_s=FOUND_S)["found"]
            if stored:
                break
            waits = waits or bool(_waiting(paths, session))
            time.sleep(0.05)
    except CsmdError as error:
        problem = error.what
    took_ms = round((time.monotonic() - started) * 1000, 1)
    for path in _waiting(paths, session):
        waits = True
        with contextlib.suppress(OSError):
            path.unlink()
    return Ran(event=hook.event, command=hook.command, took_ms=took_ms, problem=problem, stored=stored, spooled=waits)


def _run(hook: Registered, payload: bytes, home: Path) -> str:
    """Runs a command line as the assistant does; returns what went wrong, or ""."""
    folder = home if home.is_dir() else Path("/")
    with subprocess.Popen(
        ["/bin/sh", "-c", hook.command], env={}, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, start_new_session=True,
    ) as child:  # fmt: skip
        try:
            _, complaint = child.communicate(payload, timeout=min(hook.timeout or HOOK_S, HOOK_S))
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)  # and no reading on: what it began may keep the pipe open
            return f"it did not end within {min(hook.timeout or HOOK_S, HOOK_S):g} s"
    if complaint:
        return complaint.decode("utf-8", "replace").strip().splitlines()[-1][:200]
    return f"it ended with exit code {child.returncode}" if child.returncode else ""


def _waiting(paths: Paths, session: str) -> list[Path]:
    """The spooled events of a marker's session."""
    found = []
    with contextlib.suppress(OSError):
        for path in spooled(paths.home):
            with contextlib.suppress(OSError):
                handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
                with open(handle, "rb") as file:
                    if session.encode() in file.read(LONGEST_EVENT):
                        found.append(path)
    return found


STATUS_S = 5.0
#: Reading a large database takes longer; it is then left to who asks for it.
CHECKED_S = 10.0
READ_S = 3.0

T = TypeVar("T")


def examine(paths: Paths, *, cwd: Path, now_s: float) -> dict[str, Any]:
    """The verdict and what every check found: `{"works", "verdict", "took_ms", "checks": [{"id", "question", "level", "findings"}]}`."""
    return judge(look(paths, cwd=cwd, now_s=now_s))


def look(paths: Paths, *, cwd: Path, now_s: float, managed: Path | None = None) -> Scene:
    """Reads the settings, asks the daemon, sends the marker."""
    problems: tuple[str, ...] = ()
    recorded: tuple[Path, ...] = ()
    try:
        recorded = plan.assistant_dirs(paths)
    except (CsmdError, OSError) as error:
        problems = (str(error),)
    dirs = tuple(dict.fromkeys((*recorded, config.assistant_dir())))
    managed = managed or Path(registration.MANAGED.get(sys.platform, registration.MANAGED["linux"]))
    process = service.running_service(paths)
    mask = os.umask(0o077)
    os.umask(mask)
    scene = Scene(
        paths=paths, cwd=cwd, user_home=config.user_home(), platform=sys.platform, now_s=now_s, env=config.environment(),
        recorded=recorded, dirs=dirs, problems=problems, umask=mask, pid=process.pid if process else 0,
        sources=read_sources(dirs, cwd, managed), states=read_states(dirs),
    )  # fmt: skip
    return _with_answers(scene)


def _with_answers(scene: Scene) -> Scene:
    """The scene with what the daemon says, and how far the marker came."""
    paths = scene.paths
    status: dict[str, Any] | None = None
    trouble: CsmdError | None = None
    try:
        status = client.call(paths, "csm_runtime_status", patience_s=STATUS_S)
    except DaemonUnreachable as error:
        trouble = service.explain_unreachable(paths, error)
    except CsmdError as error:
        trouble = error
    hears = status is not None and not status.get("paused")
    ran = bounded(lambda: send(paths, scene.ours, answers=hears), 4 * HOOK_S)
    problems, rules = None, []
    if status is not None:
        with contextlib.suppress(CsmdError):
            found = client.call(paths, "csm_store_check", {"indexes": False}, patience_s=CHECKED_S)
            problems = tuple(found["problems"])
            if not problems:
                rules = client.call(paths, "csm_memory_governance_report", patience_s=CHECKED_S)["rules"]
    broken = (row for row in rules if not row["holds"])
    return replace(
        scene,
        status=status,
        trouble=(trouble.what, trouble.hint) if trouble else ("", ""),
        ran=ran or (),
        store_problems=problems,
        broken_rules=tuple(
            (f"{row['rule']}: not so of {', '.join(row['broken_by'][:3])}", row["try"]) for row in broken
        ),
        newest_turn=max((row["last"] for row in status["projects"]), default="") if status else "",
    )


def read_sources(dirs: tuple[Path, ...], cwd: Path, managed: Path) -> tuple[host_settings.Source, ...]:
    """The settings files of sessions in `cwd`, the one that decides first."""
    found = []
    pieces = bounded(lambda: host_settings.managed_pieces(managed), READ_S) or []
    for path, scope in [*pieces, *host_settings.places(dirs, cwd, managed)]:
        late = host_settings.Source(
            path=str(path), scope=scope, problem=f"its disk does not answer within {READ_S:g} s"
        )
        found.append(bounded(lambda: host_settings.source(path, scope, _bytes), READ_S) or late)  # noqa: B023 - it is awaited
    return tuple(found)


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def read_states(dirs: tuple[Path, ...]) -> dict[str, Any]:
    """What the client keeps of its directories; of several files the later ones add what the first does not say."""
    found: dict[str, Any] = {}
    for path in [path for folder in dirs for path in host_settings.state_files(folder)]:
        try:
            data = bounded(lambda: _bytes(path), READ_S)  # noqa: B023 - it is awaited
            value = wire.loads(data or b"{}")
        except (OSError, BadInput):
            continue
        if isinstance(value, dict):
            known = found.get("projects")
            found = {**value, **found}
            if isinstance(known, dict) and isinstance(value.get("projects"), dict):
                found["projects"] = {**value["projects"], **known}
    return found


def begin(work: Callable[[], T]) -> Callable[[float], T | None]:
    """Starts `work` on its own thread; returns a function that waits for its result up to a limit in seconds from the start.

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
    failed = "this could not be looked at"
    try:
        found = wait(check.limit_s)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        found = [warn(f"{failed}: {where}{error.strerror or type(error).__name__}")]
    except CsmdError as error:
        found = [warn(f"{failed}: {error.what}", error.hint)]
    except (ValueError, KeyError, TypeError) as error:
        found = [warn(f"{failed}: {type(error).__name__}")]
    if found is None:
        hint = "a disk that does not answer? `df` shows which one hangs"
        found = [warn(f"no answer within {check.limit_s:g} s", hint)]
    return [one if one.remedy else one._replace(remedy=check.remedy) for one in found]


def judge(scene: Scene) -> dict[str, Any]:
    """What every check finds in a scene, as `--json` shows it, with the verdict before it."""
    findings = walk(CHECKS, scene)
    checks = []
    for check, found in findings:
        usual: Level = "unasked" if check.asks and scene.status is None else "ok"
        rows = [{"level": one.level, "what": one.what, "try": one.remedy} for one in found]
        level = min((one.level for one in found), key=LEVELS.index, default=usual)
        checks.append({"id": check.id, "question": check.question, "level": level, "findings": rows})
    # That no daemon answers is told before what follows from it.
    ordered = sorted(findings, key=lambda pair: pair[0].id != "daemon")
    broken = next((one.what for _, found in ordered for one in found if one.level == "fail"), "")
    took = max((one.took_ms for one in scene.ran if one.stored), default=0.0)
    return {"works": not broken, "verdict": _verdict(scene, broken, took), "took_ms": took, "checks": checks}


def _verdict(scene: Scene, broken: str, took_ms: float) -> str:
    if broken:
        return f"Capture is broken: {broken}."
    if (scene.status or {}).get("paused"):
        return "Capture is paused."
    if not any(one.stored for one in scene.ran):  # csmd's plugin carries the hooks, not the settings
        return "Nothing is found broken; no registered hook could be tried."
    return f"Capture works: a turn went from the hook to search in {took_ms:.0f} ms."
