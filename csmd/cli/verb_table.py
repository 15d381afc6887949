"""The table of verbs: the heading and the module of each."""

from __future__ import annotations

#: Headings of `csmd --help` and the verbs below each, in the order shown.
GROUPS: dict[str, str] = {
    "Health": "status web doctor logs",
    "What is known": "search memories show brief why",
    "Corrections": "remember edit forget pin review undo",
    "What happened": "today goal done session errors",
    "Privacy": "pause resume scan project encrypt",
    "Upkeep": "dream model backup restore",
    "In and out": "import export",
    "Team": "team",
    "Language models": "provider",
    "Installation": "install uninstall upgrade start stop restart config mcp help",
}
#: Verbs that few people need, and verbs for programs: `csmd help more` lists them.
HIDDEN = (
    "recall topics supersede unpin tag link tail report checkpoint context instructions self sync repair ledger "
    "governance pipeline tool hooks daemon plugin completion"
)
#: Module of csmd.cli -> its verbs. A module is imported when one of its verbs is used: importing all of them takes
#: longer than most verbs.
SUBJECTS: dict[str, str] = {
    "status": "status",
    "follow": "tail logs",
    "search": "search",
    "memories": "remember memories edit supersede pin unpin",
    "show": "show",
    "topics": "topics tag link",
    "review": "review undo",
    "injections": "brief recall context why",
    "instructions": "instructions",
    "sessions": "session today self errors",
    "checkpoints": "checkpoint",
    "goals": "goal done",
    "forget": "scan forget",
    "pause": "pause resume",
    "projects": "project",
    "encryption": "encrypt",
    "dreams": "dream",
    "pipeline": "pipeline governance",
    "import_export": "import export sync",
    "model": "model",
    "backups": "backup restore repair",
    "team": "team",
    "provider": "provider ledger",
    "install": "install hooks upgrade plugin",
    "uninstall": "uninstall",
    "daemon": "daemon start stop restart",
    "doctor": "doctor report",
    "settings": "config",
    "mcp": "mcp",
    "tool": "tool",
    "web": "web",
    "overview": "help",
    "main": "completion",
}


def in_view() -> list[str]:
    """The verbs that help and completion show."""
    return [verb for verbs in GROUPS.values() for verb in verbs.split()]
