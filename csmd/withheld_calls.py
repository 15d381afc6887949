"""Withholds the input and output of tool calls that show an excluded file; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from csmd import file_lines
from csmd.exclusions import Excludes
from csmd.file_lines import NOT_KEPT

#: Keys of a call's input that are kept if it names an excluded file.
KEPT_KEYS = ("file_path", "notebook_path", "path", "description", "offset", "limit")
_PATH_KEY = re.compile(r"path|file|uri|source|destination|target", re.IGNORECASE)
_SHELL_LINE = re.compile(r"\s*<bash-(input|stdout)>(.*)</bash-\1>", re.DOTALL)


@dataclass(slots=True, kw_only=True)
class WithheldCalls:
    """Withholds the input and output of tool calls that named an excluded file."""

    excludes: Excludes = field(default_factory=Excludes)
    excluded_calls: set[str] = field(default_factory=set)
    """Calls that named an excluded file."""
    suspect_calls: set[str] = field(default_factory=set)
    """Calls that may have printed an excluded file without naming it."""

    def filter_input(self, call_id: str, value: Any) -> Any:
        """Returns the input of a call, without its content if it names an excluded file; the call is then recorded."""
        if not isinstance(value, Mapping) or not self.excludes.files:
            return value
        command = value.get("command")
        command = command if isinstance(command, str) else ""
        if not self._names_excluded_file(value) and not self.excludes.names_excluded_file(command):
            if self.excludes.may_print_excluded(command):
                self.suspect_calls.add(call_id)
            return self._without_diffs(value)
        self.excluded_calls.add(call_id)
        visible = {key: value[key] for key in KEPT_KEYS if key in value}
        if command and "\n" not in command:  # a command of several lines may write the file
            visible["command"] = command
        return {**visible, "content": NOT_KEPT}

    def _names_excluded_file(self, value: Any) -> bool:
        return any(map(self.excludes.covers_file, _find_paths(value)))

    def _without_diffs(self, value: Any) -> Any:
        """Returns an input without the lines of excluded files in its diffs."""
        if isinstance(value, str):
            return self.excludes.without_files(value, only_diffs=True)
        if isinstance(value, Mapping):
            return {key: self._without_diffs(item) for key, item in value.items()}
        return [self._without_diffs(item) for item in value] if isinstance(value, list) else value

    def filter_output(self, call_id: str, content: str, result: Any) -> str:
        """Returns the output of a call without excluded content; `result` is the assistant's record, which may name the
        file.

        If the output attributes lines to files, only the excluded files' lines are removed.
        """
        if not self.excludes.files:
            return content
        is_hidden = call_id in self.suspect_calls and not file_lines.names_its_files(content)
        if is_hidden or call_id in self.excluded_calls or self._names_excluded_file(result):
            return NOT_KEPT
        return self.excludes.without_files(content)

    def filter_prompt(self, text: str) -> str:
        """Returns a prompt without excluded content, if it is the person's shell line (`!`) or its output."""
        shell = _SHELL_LINE.match(text) if self.excludes.files else None
        if shell is None:
            return text
        kind, content = shell.groups()
        if kind == "input":
            self.excluded_calls.discard("!")
            self.suspect_calls.discard("!")
            self.filter_input("!", {"command": content})
            return text
        output = self.filter_output("!", content, None)
        return text if output == content else f"<bash-stdout>{output}</bash-stdout>"


def _find_paths(value: Any) -> list[str]:
    """Returns the strings in an input or a result that name files."""
    paths: list[str] = []
    for key, item in value.items() if isinstance(value, Mapping) else ():
        if key == "file":
            paths += _find_paths(item)
        if _PATH_KEY.search(str(key)):
            strings = [path for path in (item if isinstance(item, list) else [item]) if isinstance(path, str)]
            paths += [path.removeprefix("file://") for path in strings]
    return paths
