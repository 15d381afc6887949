"""csmd's server in the assistant's own `.claude.json`: one entry of `mcpServers`, put in and taken out as edits of the text.

Pure: bytes in, bytes out. Ours is what runs this home's `hook/mcp`, under whatever name the user gave it; every other
server, key and byte stays. A server that is named csmd and is not ours stays, too, and then ours is not added.
The command lies in the home: it outlives an environment that is moved or made anew, and the plugin runs the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from csmd import wire
from csmd.cli import json_text
from csmd.cli.json_text import Item
from csmd.errors import BadInput, ConfigError

NAME = "csmd"
KEY = "mcpServers"
BOM = "\ufeff"
SCRIPT = Path("hook") / "mcp"


def config_file(folder: Path, *, user_home: Path, chosen: bool) -> Path:
    """Where the assistant keeps its servers: in its configuration directory when that was `chosen`, else beside it."""
    return folder / ".claude.json" if chosen else user_home / ".claude.json"


def entry(home: Path) -> dict[str, Any]:
    """The server as the assistant is told of it."""
    return {"type": "stdio", "command": str(home / SCRIPT), "args": [], "env": {}}


def merge(before: bytes | None, home: Path, where: str = ".claude.json") -> bytes:
    """The file with our server in it; `before` is None where there is no file, `where` its name in errors.

    An entry of ours is brought up to date where it stands, a second one goes. ConfigError when `before` is no JSON object
    or its `mcpServers` is none.
    """
    if not str(home).isprintable():
        raise ConfigError(f"{str(home)!r} cannot be written into {where}", hint="choose another CSMD_HOME")
    text = _decode(before, where)
    if not text.removeprefix(BOM).strip():
        bom = BOM if text.startswith(BOM) else ""
        return f"{bom}{wire.pretty({KEY: {NAME: entry(home)}})}\n".encode()
    servers = _servers(text, where)
    if servers is None:
        return json_text.append(text, json_text.root(text), KEY, {NAME: entry(home)}).encode()
    ours = _ours(text, servers, home)
    if not ours:
        taken = json_text.member(text, servers.value, NAME) is not None
        return (text if taken else json_text.append(text, servers.value, NAME, entry(home))).encode()
    items = json_text.items(text, servers.value)
    edits = json_text.cuts(items, [item in ours[1:] for item in items])
    if _needs_change(wire.loads(text[ours[0].value : ours[0].end]), home):
        edits.append((ours[0].value, ours[0].end, json_text.render_in_place(text, ours[0], entry(home))))
    return json_text.edited(text, edits).encode()


def removal(current: bytes, home: Path, where: str = ".claude.json") -> bytes:
    """The file without our server; `mcpServers` goes too when it held nothing else."""
    text = _decode(current, where)
    servers = _servers(text, where) if text.removeprefix(BOM).strip() else None
    if servers is None:
        return current
    items, ours = json_text.items(text, servers.value), _ours(text, servers, home)
    if not ours:
        return current
    if len(ours) == len(items):
        return json_text.without_member(text, json_text.root(text), KEY).encode()
    return json_text.edited(text, json_text.cuts(items, [item in ours for item in items])).encode()


def is_registered(current: bytes | None, home: Path) -> bool:
    """Whether the assistant would start this home's server; False for a file that cannot be read."""
    try:
        text = _decode(current, "")
        servers = _servers(text, "") if text.removeprefix(BOM).strip() else None
    except ConfigError:
        return False
    return servers is not None and bool(_ours(text, servers, home))


def _ours(text: str, servers: Item, home: Path) -> list[Item]:
    """The entries that run this home's script, whatever they are called."""
    script = str(home / SCRIPT)

    def runs(value: Any) -> bool:
        if not isinstance(value, dict):
            return False
        words = [value.get("command"), *(value["args"] if isinstance(value.get("args"), list) else ())]
        return script in words

    found = json_text.items(text, servers.value)
    return [item for item in found if runs(wire.loads(text[item.value : item.end]))]


def _needs_change(value: dict[str, Any], home: Path) -> bool:
    """Whether an entry of ours was altered where it counts; keys that the user added to it are theirs."""
    wanted = entry(home)
    return any(value.get(key) != wanted[key] for key in ("command", "args")) or value.get("type", "stdio") != "stdio"


def _servers(text: str, where: str) -> Item | None:
    servers = json_text.member(text, json_text.root(text), KEY)
    if servers is not None and text[servers.value] != "{":
        raise ConfigError(f"{where}: `{KEY}` is not an object", hint="correct it, then run this again")
    return servers


def _decode(current: bytes | None, where: str) -> str:
    """The text of the file; ConfigError when it is neither blank nor a JSON object."""
    hint = f"csmd never overwrites what it cannot read: correct {where} or move it away"
    try:
        text = (current or b"").decode()
        bare = text.removeprefix(BOM).strip()
        value = wire.loads(bare) if bare else {}
    except (UnicodeDecodeError, BadInput) as error:
        raise ConfigError(f"{where}: {error}", hint=hint) from error
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: not a JSON object", hint=hint)
    return text
