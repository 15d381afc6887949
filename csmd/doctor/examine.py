"""`csmd doctor`: sends a marker through the hooks and walks the checks."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from csmd import client, config, wire
from csmd.doctor import host_settings
from csmd.doctor.checks import CHECKS, LEVELS, Check, Finding, HookRun, Level, Scene, open_plain, spooled_events, warn
from csmd.doctor.host_settings import Registered
from csmd.errors import BadInput, CsmdError, DaemonUnreachable
from csmd.hosts.host_files import PROBED_EVENTS, HostFiles, Question
from csmd.hosts.registrations import CLAUDE, FILES
from csmd.installer import plan, service
from csmd.machine import THREADS_HINT, run_bounded, start_in_thread
from csmd.paths import Paths, is_directory, is_there
from csmd.vocabulary import PROBE_SESSION, PROBE_TEXT

#: An assistant's event that reports a turn -> csmd's name for it, and the payload's key with the text.
_MARKERS = (PROBED_EVENTS, *(files.markers for files in FILES.values()))
TURN_EVENTS = {event: marker for markers in _MARKERS for event, marker in markers.items()}
#: The letters of a marker: no vowels, so that it is not a word.
LETTERS = "bcdfghjklmnpqrstvwxz"
WORD_LETTERS = 20
#: Seconds that a hook may run; the assistant has such a limit, too.
HOOK_TIMEOUT_S = 10.0
#: Most hooks that are run: enough for a few configuration directories and assistants.
MAX_HOOKS = 16
#: Seconds that a turn may take from the hook to search; a spooled one waits for the daemon's next look.
SEARCH_TIMEOUT_S = 5.0
#: Bytes of a spooled event that are searched for a marker.
MAX_EVENT_BYTES = 65_536
#: Seconds for the daemon's status; for a check of the database, without which it stays unchecked; for reading a file.
STATUS_TIMEOUT_S = 5.0
CHECK_TIMEOUT_S = 10.0
READ_TIMEOUT_S = 3.0


def send_markers(paths: Paths, hooks: Sequence[Registered], *, answers: bool) -> tuple[HookRun, ...]:
    """Runs the user's hooks that report turns, each with a marker; `answers` says whether a daemon answers."""
    if answers:
        try:
            client.call(paths, "csm_probe_take", {"id": f"{PROBE_SESSION}{LETTERS}"}, patience_s=SEARCH_TIMEOUT_S)
        except CsmdError:
            return ()  # an older daemon would store the marker as a turn
    turn_hooks = [hook for hook in hooks if hook.event in TURN_EVENTS and hook.scope == "user"]
    own_hooks = {(hook.event, hook.command): hook for hook in turn_hooks}
    return tuple(_send_marker(paths, hook, answers) for hook in list(own_hooks.values())[:MAX_HOOKS])


def _send_marker(paths: Paths, hook: Registered, answers: bool) -> HookRun:
    word = "".join(secrets.choice(LETTERS) for _ in range(WORD_LETTERS))
    name, key = TURN_EVENTS[hook.event]
    session, marker = f"{PROBE_SESSION}{word}", PROBE_TEXT.format(event=name, word=word)
    payload = {"session_id": session, "transcript_path": "", "cwd": "", "hook_event_name": hook.event, key: marker}
    started = time.monotonic()
    problem, stored = _run(hook, wire.dumps(payload).encode(), paths.home), False
    spooled = is_there(paths.hung_mark)  # the hook then spools, and the daemon may already have read the spool
    until = time.monotonic() + SEARCH_TIMEOUT_S
    take = partial(client.call, paths, "csm_probe_take", {"id": session}, patience_s=SEARCH_TIMEOUT_S)
    try:
        while answers and not problem and not stored and time.monotonic() <= until:
            if not (stored := marker in take()["found"]):
                spooled = spooled or bool(_spooled_markers(paths, session))
                time.sleep(0.05)
    except CsmdError as error:
        problem = error.what
    took_ms = round((time.monotonic() - started) * 1000, 1)
    for path in _spooled_markers(paths, session):
        spooled = True
        with contextlib.suppress(OSError):
            path.unlink()
    run = HookRun(event=hook.event, command=hook.command, took_ms=took_ms, problem=problem)
    return replace(run, stored=stored, spooled=spooled)


def _run(hook: Registered, payload: bytes, home: Path) -> str:
    """Runs a command line as the assistant does; returns the problem, "" if there is none."""
    timeout_s = min(hook.timeout or HOOK_TIMEOUT_S, HOOK_TIMEOUT_S)
    with subprocess.Popen(
        ["/bin/sh", "-c", hook.command], env={}, cwd=home if is_directory(home) else "/", stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
    ) as child:  # fmt: skip
        try:
            _, complaint = child.communicate(payload, timeout=timeout_s)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)  # its children may keep the pipe open, so the rest is not read
            return f"it did not end within {timeout_s:g} s"
    if complaint:
        return complaint.decode("utf-8", "replace").strip().splitlines()[-1][:200]
    return f"it ended with exit code {child.returncode}" if child.returncode else ""


def _spooled_markers(paths: Paths, session: str) -> list[Path]:
    """Returns the spooled events of a marker's session."""
    spooled = []
    with contextlib.suppress(OSError):
        for path in spooled_events(paths.home):
            with contextlib.suppress(OSError), open_plain(path) as file:
                if session.encode() in file.read(MAX_EVENT_BYTES):
                    spooled.append(path)
    return spooled


def read_scene(paths: Paths, *, cwd: Path, now_s: float, managed: Path | None = None) -> Scene:
    """Reads the settings, asks the daemon, sends the markers."""
    problems: tuple[str, ...] = ()
    recorded: tuple[Path, ...] = ()
    others: tuple[tuple[str, Path], ...] = ()
    try:
        recorded, others = plan.read_assistant_dirs(paths), plan.read_host_dirs(paths)
    except (CsmdError, OSError) as error:
        problems = (str(error),)
    dirs = tuple(dict.fromkeys((*recorded, config.assistant_dir())))
    managed = managed or Path(CLAUDE.managed_file(sys.platform))
    process = service.find_process(paths)
    scene = Scene(
        paths=paths, cwd=cwd, user_home=config.user_home(), now_s=now_s, env=config.environment(), recorded=recorded,
        dirs=dirs, problems=problems, pid=process.pid if process else 0, host_dirs=others,
        answers={host: ask_program(paths, FILES[host], folder, cwd) for host, folder in others},
        sources=read_sources(dirs, cwd, managed), states=read_states(dirs),
    )  # fmt: skip
    return _with_answers(scene)


def ask_program(paths: Paths, files: HostFiles, folder: Path, cwd: Path) -> dict[str, str] | None:
    """Asks an assistant's program about csmd's hooks: event -> state; None if it cannot be asked or does not answer."""
    search, question = config.child_environment().get("PATH", os.defpath), files.question
    programs = plan.find_programs(search.split(os.pathsep), files.program) if question else []
    if question is None or not programs:
        return None
    environment = {**config.child_environment(), **files.environment(folder)}
    with contextlib.suppress(OSError), tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as empty, subprocess.Popen(
        [str(programs[0]), *question.arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=environment, cwd=empty if question.in_empty_directory else cwd, start_new_session=True,
    ) as child:  # fmt: skip
        try:
            return run_bounded(lambda: _read_states(child, question, cwd, paths.home), question.patience_s)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # it may have ended
                os.killpg(child.pid, signal.SIGKILL)
    return None


def _read_states(child: subprocess.Popen[bytes], question: Question, cwd: Path, home: Path) -> dict[str, str] | None:
    assert child.stdin is not None and child.stdout is not None
    child.stdin.write("".join(f"{wire.dumps(message)}\n" for message in question.requests(cwd)).encode())
    child.stdin.flush()
    for line in child.stdout:
        with contextlib.suppress(KeyError, TypeError, AttributeError):
            states = question.read(line.decode("utf-8", "replace"), home)
            if states is not None:
                return states
    return {} if question.ends and child.wait() == 0 else None


def _hooks_of_others(scene: Scene) -> list[Registered]:
    """Returns the hooks of other assistants that take a marker, as far as they are registered."""
    return [
        Registered(
            event=event, command=files.hook_command("", scene.paths.home, event), home=str(scene.paths.home),
            timeout=float(files.events[event]), path=str(files.kinds[0].file(folder)), scope="user",
        )
        for host, folder in scene.host_dirs
        if plan.is_in((files := FILES[host]).kinds[0], files.kinds[0].file(folder), scene.paths.home)
        for event in files.markers
    ]  # fmt: skip


def _with_answers(scene: Scene) -> Scene:
    """Returns the scene with the daemon's answers and the results of the markers."""
    paths, ask = scene.paths, partial(client.call, scene.paths)
    try:
        scene = replace(scene, status=ask("csm_runtime_status", patience_s=STATUS_TIMEOUT_S))
    except CsmdError as error:
        if isinstance(error, DaemonUnreachable):
            error = service.explain_unreachable(paths, error)
        scene = replace(scene, trouble=(error.what, error.hint))
    status, hooks = scene.status, (*scene.ours, *_hooks_of_others(scene))
    captures = status is not None and not status.get("paused")
    runs = run_bounded(lambda: send_markers(paths, hooks, answers=captures), 4 * HOOK_TIMEOUT_S) or ()
    problems, broken = None, []
    if status is not None:
        with contextlib.suppress(CsmdError):
            problems = tuple(ask("csm_store_check", {"indexes": False}, patience_s=CHECK_TIMEOUT_S)["problems"])
            rules = [] if problems else ask("csm_memory_governance_report", patience_s=CHECK_TIMEOUT_S)["rules"]
            broken = [row for row in rules if not row["holds"]]
    broken_rules = tuple((f"{row['rule']}: broken by {', '.join(row['broken_by'][:3])}", row["try"]) for row in broken)
    return replace(scene, runs=runs, store_problems=problems, broken_rules=broken_rules)


def read_sources(dirs: tuple[Path, ...], cwd: Path, managed: Path) -> tuple[host_settings.Source, ...]:
    """Returns the settings files of sessions in `cwd`, by precedence."""
    sources = []
    pieces = run_bounded(lambda: host_settings.managed_pieces(managed), READ_TIMEOUT_S) or []
    for path, scope in [*pieces, *host_settings.settings_files(dirs, cwd, managed)]:
        problem = f"its disk does not answer within {READ_TIMEOUT_S:g} s"
        source = run_bounded(partial(host_settings.read_source, path, scope, _read_bytes), READ_TIMEOUT_S)
        sources.append(source or host_settings.Source(path=str(path), scope=scope, problem=problem))
    return tuple(sources)


def _read_bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def read_states(dirs: tuple[Path, ...]) -> dict[str, Any]:
    """Returns the client's state, merged from its files; earlier ones take precedence."""
    state: dict[str, Any] = {}
    for path in [path for folder in dirs for path in host_settings.state_files(folder)]:
        try:
            data = run_bounded(partial(_read_bytes, path), READ_TIMEOUT_S)
            value = wire.loads(data or b"{}")
        except (OSError, BadInput):
            continue
        if isinstance(value, dict):
            projects, further = state.get("projects"), value.get("projects")
            state = value | state
            if isinstance(projects, dict) and isinstance(further, dict):
                state["projects"] = further | projects
    return state


def collect_findings(checks: Sequence[Check], scene: Scene) -> list[tuple[Check, list[Finding]]]:
    """Runs all checks at once, so that several that hang take no longer than one."""
    started = [(check, start_in_thread(lambda check=check: list(check.examine(scene)))) for check in checks]  # type: ignore[misc]
    return [(check, _wait_for_findings(check, wait)) for check, wait in started]


def _wait_for_findings(check: Check, wait: Callable[[float], list[Finding] | None] | None) -> list[Finding]:
    """Returns the findings of one check; an error or a timeout becomes a finding."""
    failed = "could not be checked"
    if wait is None:
        return [warn(f"{failed}: no thread can be started", THREADS_HINT)]
    try:
        findings = wait(check.limit_s)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        findings = [warn(f"{failed}: {where}{error.strerror or type(error).__name__}")]
    except CsmdError as error:
        findings = [warn(f"{failed}: {error.what}", error.hint)]
    except (ValueError, KeyError, TypeError) as error:
        findings = [warn(f"{failed}: {type(error).__name__}")]
    if findings is None:
        hint = "a disk that does not answer? `df` shows which one hangs"
        findings = [warn(f"no answer within {check.limit_s:g} s", hint)]
    return [finding if finding.remedy else finding._replace(remedy=check.remedy) for finding in findings]


def diagnose(scene: Scene) -> dict[str, Any]:
    """Returns the verdict and every check's findings.

    Returns `{"works", "verdict", "took_ms", "checks": [{"id", "question", "level", "findings"}]}`.
    """
    results = collect_findings(CHECKS, scene)
    checks = []
    for check, findings in results:
        default: Level = "unasked" if check.needs_daemon and scene.status is None else "ok"
        rows = [{"level": finding.level, "what": finding.what, "try": finding.remedy} for finding in findings]
        level = min((finding.level for finding in findings), key=LEVELS.index, default=default)
        checks.append({"id": check.id, "question": check.question, "level": level, "findings": rows})
    # The missing daemon comes before its consequences.
    ordered = sorted(results, key=lambda result: result[0].id != "daemon")
    failures = (finding.what for _, findings in ordered for finding in findings if finding.level == "fail")
    broken = next(failures, "")
    took_ms = max((run.took_ms for run in scene.runs if run.stored), default=0.0)
    return {"works": not broken, "verdict": _verdict(scene, broken, took_ms), "took_ms": took_ms, "checks": checks}


def _verdict(scene: Scene, broken: str, took_ms: float) -> str:
    if broken:
        return f"Capture is broken: {broken}."
    if (scene.status or {}).get("paused"):
        return "Capture is paused."
    if not any(run.stored for run in scene.runs):  # with csmd's plugin no hook is in the settings
        return "No problems found; no registered hook could be tried."
    return f"Capture works: a turn went from the hook to search in {took_ms:.0f} ms."
