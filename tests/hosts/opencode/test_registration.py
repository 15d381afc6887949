"""csmd's plugin file for OpenCode: the same for every version, its own alone, and gone without a trace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from csmd.errors import ConfigError
from csmd.hosts.host_files import Registration
from csmd.hosts.opencode import registration

HOME = Path("/h/a home's/csmd")
FOREIGN = "export const csmd = async () => ({})\n"


def merged(text: str, home: Path = HOME) -> str:
    return registration.merge_plugin("opencode", text, Registration(home=home, interpreter="python3"), "csmd.js")


def test_the_file_loads_the_plugin_in_csmds_home_and_is_taken_out_whole() -> None:
    once = merged("")
    assert json.dumps(f"{HOME}/hook/opencode.js") in once and merged(once) == once
    assert registration.remove_plugin("opencode", once, HOME, "csmd.js") == ""


@pytest.mark.parametrize("text", [FOREIGN, merged("", Path("/o/csmd"))])
def test_a_file_of_somebody_else_stays(text: str) -> None:
    assert merged(text) == registration.remove_plugin("opencode", text, HOME, "csmd.js") == text
    wanted = Registration(home=HOME, interpreter="python3")
    assert "was kept" in registration.describe_foreign_plugin(text, wanted, "csmd.js")
    assert not registration.describe_foreign_plugin(merged(""), wanted, "csmd.js")
    with pytest.raises(ConfigError, match="not csmd's"):
        registration.decode(b"\xff", "csmd.js")


def test_a_plugin_that_somebody_extended_is_neither_overwritten_nor_deleted() -> None:
    extended = f"{merged('')}export const mine = async () => ({{}})\n"
    assert merged(extended) == extended
    assert not registration.describe_foreign_plugin(extended, Registration(home=HOME, interpreter="python3"), "csmd.js")
    with pytest.raises(ConfigError, match="was edited"):
        registration.remove_plugin("opencode", extended, HOME, "csmd.js")


def test_it_is_said_where_the_assistant_will_wait_for_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert "fetches @kilocode/plugin from npm once" in registration.describe_package_fetch("kilo")
    (tmp_path / "kilo" / "node_modules").mkdir(parents=True)
    (tmp_path / "kilo" / "package-lock.json").write_text(
        '{"packages": {"": {"dependencies": {"@kilocode/plugin": "7"}}}}'
    )
    assert registration.describe_package_fetch("kilo") == ""
