"""The assistants that csmd knows, each by its adapter."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from csmd.config import Config
from csmd.hosts.adapter import Adapter, InstructionNames, OwnMemory, below, place_below, window_of
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

CLAUDE_MEMORY = OwnMemory(
    folder=environment.memory_folder, read_memo=environment.memo, body=environment.body, cut_index=environment.cut_index,
    most_files=environment.MOST_FILES, read_bytes=environment.READ_BYTES,
)  # fmt: skip
CLAUDE = Adapter(
    host=claude_transcript.HOST, title="Claude Code", transcripts="projects",
    is_transcript=claude_transcript.is_one, read_from=claude_transcript.read_from, drops=claude_transcript.dropped,
    titles_in=claude_transcript.titles_in, place_of=place_below, places=claude_transcript.places,
    may_answer=claude_transcript.may_answer, client_versions=environment.latest_versions,
    written_for_user=claude_transcript.WRITTEN_FOR_USER, hooks=claude_hooks.HOOKS, hooks_state=environment.hooks_state_in,
    window=environment.window, expects_hooks=environment.expects_hooks, days_kept=environment.days_kept,
    memory=CLAUDE_MEMORY,
)  # fmt: skip

CODEX = Adapter(
    host=codex_transcript.HOST, title="Codex", transcripts="sessions",
    is_transcript=codex_transcript.is_transcript, read_from=codex_transcript.read_from,
    place_of=codex_transcript.place_of, places=below("sessions", "archived_sessions", "history.jsonl"),
    written_for_user=codex_transcript.WRITTEN_FOR_USER, hooks=codex_hooks.HOOKS, hooks_state=codex_registration.hooks_state,
    window=window_of(codex_transcript.WINDOW),
    instructions=InstructionNames(
        user=(("AGENTS.override.md", "AGENTS.md"),), project=(("AGENTS.override.md", "AGENTS.md"),)
    ),
)  # fmt: skip

COPILOT = Adapter(
    host=copilot_transcript.HOST, title="Copilot CLI", transcripts="session-state",
    is_transcript=copilot_transcript.is_transcript, read_from=copilot_transcript.read_from,
    place_of=copilot_transcript.place_of,
    places=below("session-state", "session-store.db", "session-store.db-wal", "command-history-state.json", "logs"),
    written_for_user=copilot_transcript.WRITTEN_FOR_USER, hooks=copilot_hooks.HOOKS,
    hooks_state=copilot_registration.HOOKS.state, window=window_of(copilot_transcript.WINDOW),
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
    is_transcript=droid_transcript.is_transcript, read_from=droid_transcript.read_from,
    titles_in=droid_transcript.titles_in, place_of=droid_transcript.place_of,
    places=below("sessions", "history.json", "logs", "cache"),
    written_for_user=droid_transcript.WRITTEN_FOR_USER, hooks=droid_hooks.HOOKS, hooks_state=droid_registration.HOOKS.state,
    window=window_of(droid_transcript.WINDOW),
    instructions=InstructionNames(user=(("AGENTS.md",),), project=(("AGENTS.md",), ("CLAUDE.md",))),
)  # fmt: skip

GEMINI = Adapter(
    host=gemini_transcript.HOST, title="Gemini CLI", transcripts="tmp",
    is_transcript=gemini_transcript.is_transcript, read_from=gemini_transcript.read_from,
    place_of=gemini_transcript.place_of, places=below("tmp"), started_in=gemini_transcript.started_in,
    written_for_user=gemini_transcript.WRITTEN_FOR_USER, hooks=gemini_hooks.HOOKS,
    hooks_state=gemini_registration.HOOKS.state, window=window_of(gemini_transcript.WINDOW),
    instructions=InstructionNames(user=(("GEMINI.md",),), project=(("GEMINI.md",),)),
)  # fmt: skip

QWEN = Adapter(
    host=qwen_transcript.HOST, title="Qwen Code", transcripts="projects",
    is_transcript=qwen_transcript.is_transcript, read_from=qwen_transcript.read_from,
    place_of=qwen_transcript.place_of, places=below("projects", "tmp"), hooks=qwen_hooks.HOOKS,
    hooks_state=qwen_registration.HOOKS.state, window=window_of(qwen_transcript.WINDOW),
    instructions=InstructionNames(user=(("QWEN.md",),), project=(("QWEN.md",), ("AGENTS.md",))),
)  # fmt: skip


def _opencode(host: str) -> Adapter:
    """The adapter of OpenCode or of its fork."""
    database = opencode_transcript.DATABASES[host]
    return Adapter(
        host=host, title=opencode_registration.TITLES[host], transcripts=database,
        is_transcript=partial(opencode_transcript.is_transcript, host), read_from=partial(opencode_transcript.read_from, host),
        titles_in=partial(opencode_transcript.titles_in, host), place_of=opencode_transcript.place_of,
        places=below(database, f"{database}-wal", "storage", "tool-output"), hooks=opencode_hooks.HOOKS[host],
        hooks_state=partial(opencode_registration.hooks_state, host), window=window_of(opencode_transcript.WINDOW),
        # The one of all projects lies with its settings, apart from its data.
        instructions=InstructionNames(
            user=((f"../../../.config/{host}/AGENTS.md",),), project=(("AGENTS.md", "CLAUDE.md"),)
        ),
    )  # fmt: skip


OPENCODE, KILO = map(_opencode, opencode_transcript.DATABASES)

#: How a stored session of any assistant becomes one that is resumed: Claude Code alone takes a transcript back.
EXPORT = export

#: Host -> its adapter, in the order in which they are asked whose a transcript is.
ADAPTERS: dict[str, Adapter] = {
    adapter.host: adapter for adapter in (CODEX, COPILOT, DROID, GEMINI, QWEN, OPENCODE, KILO, CLAUDE)
}


def of_transcript(beginning: bytes) -> Adapter:
    """The adapter of a transcript, by its first bytes; Claude Code's where none of them tells."""
    return next((adapter for adapter in ADAPTERS.values() if adapter.is_transcript(beginning)), CLAUDE)


def started_in(beginning: bytes) -> str:
    """The directory a transcript's session was started in, by its first bytes; "" for none."""
    return of_transcript(beginning).started_in(beginning)


def is_transcript(beginning: bytes) -> bool:
    """Whether a file's first bytes are those of a transcript of any assistant."""
    return any(adapter.is_transcript(beginning) for adapter in ADAPTERS.values())


def directories(config: Config) -> list[tuple[Adapter, Path]]:
    """The configuration directories that are read, each with its adapter."""
    further = [(ADAPTERS[host], folder) for host, folder in config.host_dirs if host in ADAPTERS]
    return [*((CLAUDE, folder) for folder in config.assistant_dirs), *further]


def roots(config: Config) -> list[Path]:
    """The directories with transcripts of the assistants."""
    return [folder / adapter.transcripts for adapter, folder in directories(config)]


def place_of(root: str, inside: str) -> tuple[str, str]:
    """(project directory, session) of a transcript, by a root of transcripts and the path below it."""
    places = (adapter.place_of(root, inside) for adapter in ADAPTERS.values())
    return next(filter(None, places), (root, inside))


def below_root(config: Config, path: str) -> tuple[Adapter, bool] | None:
    """The adapter in whose directory of transcripts a file lies, and whether a transcript can be there; None for none."""
    for adapter, folder in directories(config):
        root = f"{folder / adapter.transcripts}/"
        if path.startswith(root):
            return adapter, adapter.place_of(root[:-1], path.removeprefix(root)) is not None
    return None


def of_session(session_id: str) -> Adapter:
    """The adapter of a session, by its id, which begins with its host's name; Claude Code's do not."""
    return ADAPTERS.get(session_id.partition(":")[0], CLAUDE)


def is_written_for_user(said: str) -> bool:
    """Whether a stored prompt was written by an assistant in the user's name: it states nothing."""
    patterns = (adapter.written_for_user for adapter in ADAPTERS.values())
    return any(pattern is not None and pattern.match(said) for pattern in patterns)
