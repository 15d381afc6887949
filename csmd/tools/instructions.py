"""Tools on the assistant's instruction files and its own memory."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from csmd.capture import claude_instructions
from csmd.errors import BadInput
from csmd.paths import is_directory
from csmd.store.sqlite import Rows
from csmd.text.token_weights import weigh_tokens
from csmd.tools.declaration import Json, ToolContext, Tools, find_places

TOOLS = Tools()


@TOOLS.add("csm_context_build")
def _build_context(ctx: ToolContext, rows: Rows, project: str, asking: str = "", mode: str = "host") -> Json:
    """Show the instructions that the assistant gives a session there."""
    if mode not in ("host", "seed"):
        raise BadInput(f"mode is host or seed, not {mode!r}")
    directory = _check_directory(rows, project, asking)
    location = claude_instructions.find_place(directory, claude_instructions.find_user(ctx.config))
    loaded = claude_instructions.load_instructions(location)
    problems: list[str] = []
    if mode == "host":
        files: list[tuple[str, str, str]] = [(file.kind, file.path, file.content) for file in loaded]
        body = claude_instructions.render_instructions(loaded)
    else:
        files, problems = claude_instructions.merge_files(location)
        files += [("memory", file.path, file.content) for file in loaded if file.kind == "AutoMem"]
        body = "\n\n".join(content for *_, content in files)
    return {
        "project": location.start, "mode": mode, "text": body, "tokens": weigh_tokens(body),
        "files": [
            {"scope": scope.lower(), "path": path, "tokens": weigh_tokens(content)} for scope, path, content in files
        ],
        "problems": problems,
    }  # fmt: skip


@TOOLS.add("csm_memdir_scan")
def _list_notes(ctx: ToolContext, rows: Rows, project: str, asking: str = "") -> Json:
    """List the files of the assistant's own memory."""
    folder = _find_memory_folder(ctx, rows, project, asking)
    return {"folder": str(folder), "files": [asdict(memo) for memo in claude_instructions.scan_notes(folder)]}


def _find_memory_folder(ctx: ToolContext, rows: Rows, project: str, asking: str) -> Path:
    user = claude_instructions.find_user(ctx.config)
    return claude_instructions.find_memory_folder(_check_directory(rows, project, asking), user)


@TOOLS.add("csm_memdir_load")
def _load_note(ctx: ToolContext, rows: Rows, *, project: str, asking: str = "", file: str) -> Json:
    """Show one file of the assistant's own memory."""
    folder = _find_memory_folder(ctx, rows, project, asking)
    return {"folder": str(folder), "file": file, "text": claude_instructions.read_note(folder, file)}


def _check_directory(rows: Rows, project: str, asking: str) -> str:
    if not is_directory(project):
        raise BadInput(f"{project}: there is no such directory", hint="name one that is on this machine")
    find_places(rows, project, asking)  # a wall also applies to files
    return project
