"""The files of each assistant that csmd can be installed for."""

from __future__ import annotations

from csmd.hosts.claude import registration as claude_registration
from csmd.hosts.codex import registration as codex_registration
from csmd.hosts.copilot import registration as copilot_registration
from csmd.hosts.droid import registration as droid_registration
from csmd.hosts.gemini import registration as gemini_registration
from csmd.hosts.host_files import HostFiles
from csmd.hosts.opencode import registration as opencode_registration
from csmd.hosts.qwen import registration as qwen_registration

CLAUDE = claude_registration.FILES
#: Host -> its files, in the order in which the installer asks about them.
FILES: dict[str, HostFiles] = {
    files.host: files
    for files in (
        CLAUDE,
        codex_registration.FILES,
        copilot_registration.FILES,
        droid_registration.FILES,
        gemini_registration.FILES,
        qwen_registration.FILES,
        *opencode_registration.FILES,
    )
}  # fmt: skip
