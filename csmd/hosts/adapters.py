"""The table of assistants, each with its adapter."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from csmd.config import Config
from csmd.hosts.adapter import Adapter, InstructionNames, OwnMemory
from csmd.hosts.claude import environment
from csmd.hosts.claude import hooks as claude_hooks
from csmd.hosts.claude import transcript as claude_transcript
from csmd.hosts.claude.export import export
from csmd.hosts.codex import hooks as codex_hooks
from csmd.hosts.codex import registration as codex_registration
from csmd.hosts.codex import transcript as codex_transcript
from csmd.hosts.copilot import hooks as copilot_hooks
from csmd.hosts.copilot import registration as copilot_registration
from csmd.hosts.copilot import transcript as copilot_transcript
from csmd.hosts.droid import hooks as droid_hooks
from csmd.hosts.droid import registration as droid_registration
from csmd.hosts.droid import transcript as droid_transcript
from csmd.hosts.gemini import hooks as gemini_hooks
from csmd.hosts.gemini import registration as gemini_registration
from csmd.hosts.gemini import transcript as gemini_transcript
from csmd.hosts.opencode import hooks as opencode_hooks
from csmd.hosts.opencode import registration as opencode_registration
from csmd.hosts.opencode import transcript as opencode_transcript
from csmd.hosts.qwen import hooks as qwen_hooks
from csmd.hosts.qwen import registration as qwen_registration
from csmd.hosts.qwen import transcript as qwen_transcript


def make_first_line_test(pattern: re.Pattern[bytes]) -> Callable[[bytes], bool]:
    """Returns the test whether a file's first bytes match."""
    return lambda beginning: pattern.match(beginning) is not None


def make_locator(path: re.Pattern[str]) -> Callable[[str, str], tuple[str, str] | None]:
    """Returns the function from a root and a path below it to (project directory, session), by a pattern of the path.

    The last group that matches is the session. The group `project` is its project's directory, without it the root.
    """

    def place_of(root: str, inside: str) -> tuple[str, str] | None:
        match = path.fullmatch(inside)
        if match is None:
            return None
        project = match.groupdict().get("project")
        return (f"{root}/{project}" if project else root), match[match.lastindex or 0]

    return place_of


def _claude_place_of(root: str, inside: str) -> tuple[str, str]:
    """Returns (project directory, session) of one of Claude Code's transcripts; any file in a project's directory
    belongs to it."""
    project, _, rest = inside.partition("/")
    if not rest:  # a transcript in the root itself
        return root, project.removesuffix(".jsonl")
    return f"{root}/{project}", rest.partition("/")[0].removesuffix(".jsonl")


def _list_below(*names: str) -> Callable[[Path], list[Path]]:
    """Returns the function that lists these files and directories in a configuration directory."""
    return lambda folder: [folder / name for name in names]


def _fixed_window(tokens: int) -> Callable[[str, int], int]:
    """Returns the function that gives this context window, or the number of tokens in use, to every model."""
    return lambda _, used: max(tokens, used)


CLAUDE_MEMORY = OwnMemory(
    folder=environment.memory_folder, read_memo=environment.memo, body=environment.body,
    cut_index=environment.cut_index,
    most_files=environment.MAX_FILES, read_bytes=environment.READ_BYTES,
)  # fmt: skip
CLAUDE = Adapter(
    host=claude_transcript.HOST, title="Claude Code", transcripts="projects",
    is_transcript=claude_transcript.is_transcript, make_reader=claude_transcript.make_reader,
    drops=claude_transcript.make_warmup_test, read_titles=claude_transcript.read_titles, place_of=_claude_place_of,
    places=claude_transcript.list_private_paths,
    may_answer=claude_transcript.may_answer, client_versions=environment.latest_versions,
    written_for_user=claude_transcript.WRITTEN_FOR_USER, hooks=claude_hooks.HOOKS,
    hooks_state=environment.hooks_state_in,
    window=environment.window, expects_hooks=environment.expects_hooks, days_kept=environment.days_kept,
    memory=CLAUDE_MEMORY,
)  # fmt: skip

CODEX = Adapter(
    host=codex_transcript.HOST, title="Codex", transcripts="sessions",
    is_transcript=make_first_line_test(codex_transcript.FIRST_LINE), make_reader=codex_transcript.make_reader,
    place_of=make_locator(codex_transcript.PATH_PATTERN), places=_list_below("sessions", "archived_sessions", "history.jsonl"),
    written_for_user=codex_transcript.WRITTEN_FOR_USER, hooks=codex_hooks.HOOKS,
    hooks_state=codex_registration.hooks_state,
    window=_fixed_window(codex_transcript.WINDOW_TOKENS),
    instructions=InstructionNames(
        user=(("AGENTS.override.md", "AGENTS.md"),), project=(("AGENTS.override.md", "AGENTS.md"),)
    ),
)  # fmt: skip

COPILOT = Adapter(
    host=copilot_transcript.HOST, title="Copilot CLI", transcripts="session-state",
    is_transcript=make_first_line_test(copilot_transcript.FIRST_LINE), make_reader=copilot_transcript.make_reader,
    place_of=make_locator(copilot_transcript.PATH_PATTERN),
    places=_list_below("session-state", "session-store.db", "session-store.db-wal", "command-history-state.json", "logs"),
    written_for_user=copilot_transcript.WRITTEN_FOR_USER, hooks=copilot_hooks.HOOKS,
    hooks_state=copilot_registration.HOOKS.state, window=_fixed_window(copilot_transcript.WINDOW_TOKENS),
    instructions=InstructionNames(
        user=(("copilot-instructions.md",),),
        project=(
            (".github/copilot-instructions.md",), ("AGENTS.md",), ("CLAUDE.md",), ("GEMINI.md",),
            (".github/instructions/*.instructions.md",),
        ),
    ),
)  # fmt: skip

DROID = Adapter(
    host=droid_transcript.HOST, title="Droid", transcripts="sessions",
    is_transcript=make_first_line_test(droid_transcript.FIRST_LINE), make_reader=droid_transcript.make_reader,
    read_titles=droid_transcript.read_titles, place_of=make_locator(droid_transcript.PATH_PATTERN),
    places=_list_below("sessions", "history.json", "logs", "cache"),
    written_for_user=droid_transcript.WRITTEN_FOR_USER, hooks=droid_hooks.HOOKS,
    hooks_state=droid_registration.HOOKS.state,
    window=_fixed_window(droid_transcript.WINDOW_TOKENS),
    instructions=InstructionNames(user=(("AGENTS.md",),), project=(("AGENTS.md",), ("CLAUDE.md",))),
)  # fmt: skip

GEMINI = Adapter(
    host=gemini_transcript.HOST, title="Gemini CLI", transcripts="tmp",
    is_transcript=make_first_line_test(gemini_transcript.FIRST_LINE), make_reader=gemini_transcript.make_reader,
    place_of=make_locator(gemini_transcript.PATH_PATTERN), places=_list_below("tmp"), started_in=gemini_transcript.find_start_directory,
    written_for_user=gemini_transcript.WRITTEN_FOR_USER, hooks=gemini_hooks.HOOKS,
    hooks_state=gemini_registration.HOOKS.state, window=_fixed_window(gemini_transcript.WINDOW_TOKENS),
    instructions=InstructionNames(user=(("GEMINI.md",),), project=(("GEMINI.md",),)),
)  # fmt: skip

QWEN = Adapter(
    host=qwen_transcript.HOST, title="Qwen Code", transcripts="projects",
    is_transcript=make_first_line_test(qwen_transcript.FIRST_LINE), make_reader=qwen_transcript.make_reader,
    place_of=make_locator(qwen_transcript.PATH_PATTERN), places=_list_below("projects", "tmp"), hooks=qwen_hooks.HOOKS,
    hooks_state=qwen_registration.HOOKS.state, window=_fixed_window(qwen_transcript.WINDOW_TOKENS),
    instructions=InstructionNames(user=(("QWEN.md",),), project=(("QWEN.md",), ("AGENTS.md",))),
)  # fmt: skip


def _make_opencode(host: str) -> Adapter:
    """Returns the adapter of OpenCode or of its fork."""
    database = opencode_transcript.DATABASES[host]
    return Adapter(
        host=host, title=opencode_registration.TITLES[host], transcripts=database,
        is_transcript=partial(opencode_transcript.is_transcript, host),
        make_reader=partial(opencode_transcript.make_reader, host),
        read_titles=partial(opencode_transcript.read_titles, host), place_of=make_locator(opencode_transcript.PATH_PATTERN),
        places=_list_below(database, f"{database}-wal", "storage", "tool-output"), hooks=opencode_hooks.HOOKS[host],
        hooks_state=partial(opencode_registration.hooks_state, host), window=_fixed_window(opencode_transcript.WINDOW_TOKENS),
        # The file for all projects is with its settings, which are apart from its data.
        instructions=InstructionNames(
            user=((f"../../../.config/{host}/AGENTS.md",),), project=(("AGENTS.md", "CLAUDE.md"),)
        ),
    )  # fmt: skip


OPENCODE, KILO = map(_make_opencode, opencode_transcript.DATABASES)

#: Exports a stored session of any assistant; only Claude Code resumes a transcript that it did not write.
EXPORT = export

#: Host -> its adapter, in the order in which they are asked whether a transcript is theirs.
_ALL = (CODEX, COPILOT, DROID, GEMINI, QWEN, OPENCODE, KILO, CLAUDE)
ADAPTERS: dict[str, Adapter] = {adapter.host: adapter for adapter in _ALL}


def adapter_of_transcript(beginning: bytes) -> Adapter:
    """Returns the adapter of a transcript, by its first bytes; Claude Code's if no adapter recognises it."""
    return next((adapter for adapter in ADAPTERS.values() if adapter.is_transcript(beginning)), CLAUDE)


def find_start_directory(beginning: bytes) -> str:
    """Returns the directory in which a transcript's session was started, by its first bytes; "" if there is none."""
    return adapter_of_transcript(beginning).started_in(beginning)


def is_transcript(beginning: bytes) -> bool:
    """Whether a file with these first bytes is a transcript of any assistant."""
    return any(adapter.is_transcript(beginning) for adapter in ADAPTERS.values())


def list_directories(config: Config) -> list[tuple[Adapter, Path]]:
    """Returns the configuration directories that are read, each with its adapter."""
    further = [(ADAPTERS[host], folder) for host, folder in config.host_dirs if host in ADAPTERS]
    return [*((CLAUDE, folder) for folder in config.assistant_dirs), *further]


def list_roots(config: Config) -> list[Path]:
    """Returns the directories of transcripts of all assistants."""
    return [folder / adapter.transcripts for adapter, folder in list_directories(config)]


def locate_transcript(root: str, inside: str) -> tuple[str, str]:
    """Returns (project directory, session) of a transcript, by a root of transcripts and the path relative to it."""
    locations = (adapter.place_of(root, inside) for adapter in ADAPTERS.values())
    return next(filter(None, locations), (root, inside))


def find_adapter_of_path(config: Config, path: str) -> tuple[Adapter, bool] | None:
    """Returns the adapter whose directory of transcripts contains a file, and whether a transcript can have that path.

    None if no such directory contains it.
    """
    for adapter, folder in list_directories(config):
        root = f"{folder / adapter.transcripts}/"
        if path.startswith(root):
            return adapter, adapter.place_of(root[:-1], path.removeprefix(root)) is not None
    return None


def adapter_of_session(session_id: str) -> Adapter:
    """Returns the adapter of a session, by the host's name at the beginning of its id; Claude Code's ids have none."""
    return ADAPTERS.get(session_id.partition(":")[0], CLAUDE)


def is_written_for_user(prompt: str) -> bool:
    """Whether an assistant wrote a stored prompt in the user's name: it states nothing."""
    patterns = (adapter.written_for_user for adapter in ADAPTERS.values())
    return any(pattern is not None and pattern.match(prompt) for pattern in patterns)
