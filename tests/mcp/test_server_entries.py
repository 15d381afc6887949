"""csmd's server in the settings of other assistants: written where they document it, and taken back byte for byte."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from machine import Machine

from csmd.errors import CsmdError
from csmd.installer import plan
from csmd.mcp.server_entries import HOSTS
from csmd.text import json_edits
from csmd.text.entry_edits import JSON, TOML, Format

#: Settings as somebody has them, with another server, comments, and what a parser would lose.
FOREIGN = {
    "json": '// mine\n{\n\t"theme" : "dark",   // why\n\t"KEY": {\n\t\t"other": {"command": "x"}, /* theirs */\n\t},\n}\n',
    "toml": "# mine\ntheme   =  'dark'\n\n[KEY.other] # theirs\ncommand = 'x'\n\n[profiles.a]\nmodel = 'm'\n# the end",
    "map": "# mine\ntheme:   dark # why\nKEY:\n    # theirs\n    other:\n        cmd: x\nlast: [1,  2]\n",
    "list": "# mine\nname: a\nversion: 1.0.0\nKEY:\n  # theirs\n  - name: other\n    command: x\nmodels: []\n",
}


def foreign_settings(name: str) -> bytes:
    host = HOSTS[name]
    form = "json" if host.format is JSON else "toml" if host.format is TOML else "list" if name == "continue" else "map"
    return FOREIGN[form].replace("KEY", host.key).encode()


def parsed(form: Format, text: str) -> Any:
    """Read by a parser of its own."""
    if form is JSON:
        return json.loads(json_edits.blank_comments(text))
    return tomllib.loads(text) if form is TOML else yaml.safe_load(text)


@pytest.fixture
def home(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine whose user's home is its root."""
    for name, value in machine.environment().items():
        monkeypatch.setenv(name, value)
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "COPILOT_HOME"):
        monkeypatch.delenv(name, raising=False)
    return machine


def settings_of(name: str, data: bytes | None) -> Path:
    path = HOSTS[name].path()
    path.parent.mkdir(parents=True, exist_ok=True)
    if data is not None:
        path.write_bytes(data)
    return path


#: Where each documents its servers, below the user's home.
WHERE = {
    "cursor": ".cursor/mcp.json", "cline": ".cline/data/settings/cline_mcp_settings.json", "continue": ".continue/config.yaml",
    "windsurf": ".codeium/windsurf/mcp_config.json", "zed": ".config/zed/settings.json", "droid": ".factory/mcp.json",
    "goose": ".config/goose/config.yaml", "codex": ".codex/config.toml", "copilot": ".copilot/mcp-config.json",
    "gemini": ".gemini/settings.json", "opencode": ".config/opencode/opencode.json", "kilo": ".config/kilo/kilo.json",
    "qwen": ".qwen/settings.json",
}  # fmt: skip


@pytest.mark.invariant("Another assistant's settings get csmd's server and lose it byte for byte, comments kept")
@pytest.mark.parametrize("name", list(HOSTS))
def test_an_assistants_settings_get_the_server_and_lose_it_byte_for_byte(home: Machine, name: str) -> None:
    before = foreign_settings(name)
    path = settings_of(name, before)
    assert path == home.root / WHERE[name]
    change = plan.install_server(home.config(), name, ["--tools", "all"])
    assert change.changed and change.trouble is None and change.what == "memory server"
    after = parsed(HOSTS[name].format, path.read_text())
    servers = after[HOSTS[name].key]
    if name == "continue":
        servers = {server["name"]: server for server in servers}
    entry = servers["csmd"]
    command = entry.get("cmd", entry.get("command"))
    words = command if isinstance(command, list) else [command, *entry["args"]]
    assert words == [str(home.home / "hook" / "mcp"), "--tools", "all"] and "other" in servers
    assert "mine" in path.read_text() and "theirs" in path.read_text()
    assert not plan.install_server(home.config(), name, ["--tools", "all"]).changed
    again = plan.install_server(home.config(), name, [])
    assert again.changed and "--tools" not in path.read_text()
    assert plan.remove_server(home.config(), name).changed
    assert path.read_bytes() == before
    with pytest.raises(CsmdError, match="csmd has no entry in"):
        plan.remove_server(home.config(), name)


@pytest.mark.parametrize("name", [name for name, host in HOSTS.items() if host.may_create])
def test_settings_that_csmd_began_go_with_its_entry(home: Machine, name: str) -> None:
    path = settings_of(name, None)
    assert plan.install_server(home.config(), name, []).changed
    assert path.read_text() == plan.describe_server(home.config(), name, [])[1], "what is printed is what is written"
    plan.remove_server(home.config(), name)
    assert not path.exists()


@pytest.mark.parametrize("name", list(HOSTS))
def test_what_others_changed_since_stays(home: Machine, name: str) -> None:
    path = settings_of(name, foreign_settings(name))
    plan.install_server(home.config(), name, [])
    path.write_bytes(path.read_bytes().replace(b"other", b"another"))
    assert plan.uninstall(home.paths)[0].changed, "uninstalling csmd takes it back as well"
    left = path.read_text()
    assert "another" in left and "mine" in left and "theirs" in left and "csmd" not in left
    parsed(HOSTS[name].format, left)


@pytest.mark.parametrize("name", list(HOSTS))
def test_another_server_of_the_name_stays(home: Machine, name: str) -> None:
    before = foreign_settings(name).replace(b"other", b"csmd")
    path = settings_of(name, before)
    change = plan.install_server(home.config(), name, [])
    assert not change.changed and "a server named csmd" in change.out[0] and path.read_bytes() == before


def test_an_assistant_that_never_ran_here_is_said_to_have_no_settings(home: Machine) -> None:
    with pytest.raises(CsmdError, match=r"Cursor has no .*mcp\.json yet"):
        plan.install_server(home.config(), "cursor", [])
    settings_of("continue", None)
    with pytest.raises(CsmdError, match="Continue has no"):
        plan.install_server(home.config(), "continue", [])
    assert not (home.root / ".cursor").exists()


def test_variables_and_comments_choose_the_file(home: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_HOME", str(home.root / "codex"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home.root / "xdg"))
    assert HOSTS["codex"].path() == home.root / "codex" / "config.toml"
    path = home.root / "xdg" / "opencode" / "opencode.jsonc"
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    assert HOSTS["opencode"].path() == path


def test_the_command_prints_writes_and_takes_back(home: Machine) -> None:
    path = settings_of("codex", b"# mine\n")
    shown = home.run("mcp", "--tools", "sessions,csm_memory_list", "--print-config", "codex")
    assert str(path) in shown.stderr and path.read_bytes() == b"# mine\n"
    assert tomllib.loads(shown.stdout)["mcp_servers"]["csmd"] == {
        "command": str(home.home / "hook" / "mcp"), "args": ["--tools", "sessions,csm_memory_list"],
    }  # fmt: skip
    assert f"memory server added to {path}" in home.csmd("mcp", "--install", "codex")
    assert str(path) in home.csmd("uninstall", "--dry-run")
    assert f"restored {path}" in home.csmd("mcp", "--remove", "codex")
    assert path.read_bytes() == b"# mine\n"
    assert "mcpServers" in home.csmd("mcp", "--print-config", "claude")
    assert home.run("mcp", "--tools", "nothing", "--print-config", "codex").returncode != 0
    assert home.run("mcp", "--install", "emacs").returncode == 2
    refused = home.run("mcp", "--print-config")
    assert refused.returncode == 2 and all(host in refused.stderr for host in HOSTS)


def test_claude_code_keeps_the_tools_that_were_chosen(home: Machine) -> None:
    home.assistant.mkdir()
    plan.install_server(home.config(), "claude", ["--tools", "memory"])
    path = home.assistant / ".claude.json"
    later = plan.plan_merge(path, [plan.SERVER_KINDS["claude"]], plan.make_registration(home.config()))
    assert later.after == later.before, "installing csmd again changes nothing of it"
    assert json.loads(path.read_text())["mcpServers"]["csmd"]["args"] == ["--tools", "memory"]
    plan.remove_server(home.config(), "claude")
    assert not path.exists()
