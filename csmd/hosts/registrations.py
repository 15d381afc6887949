"""The assistants that csmd can be installed for, each by its files."""

from __future__ import annotations

from csmd.hosts.claude import registration as claude_registration
from csmd.hosts.codex import registration as codex_registration
from csmd.hosts.host_files import HostFiles

CLAUDE = claude_registration.FILES
#: Host -> its files, in the order in which a person is asked.
FILES: dict[str, HostFiles] = {files.host: files for files in (CLAUDE, codex_registration.FILES)}
