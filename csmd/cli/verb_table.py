"""The help heading and the module of each verb."""

from __future__ import annotations

from collections.abc import Iterable

#: Headings of `csmd --help` and the verbs below each, in the order shown.
VERB_GROUPS: dict[str, list[str]] = {
    "Health": "status web doctor logs".split(),
    "Memories": "search memories show brief why".split(),
    "Corrections": "remember edit forget pin review undo".split(),
    "History": "today goal done session errors".split(),
    "Privacy": "pause resume scan project encrypt".split(),
    "Upkeep": "dream model backup restore".split(),
    "Import and export": ["import", "export"],
    "Team": ["team"],
    "Language models": ["provider"],
    "Installation": "install uninstall upgrade start stop restart config mcp help".split(),
}
#: Verbs that few people need, and verbs for programs: `csmd help more` lists them.
ADVANCED_VERBS = (
    "recall topics supersede unpin tag link tail report checkpoint context instructions self sync repair ledger "
    "governance pipeline tool hooks daemon plugin completion"
).split()
#: Words of other programs -> the verb that does it.
SYNONYMS = {
    **dict.fromkeys(("delete", "remove", "rm", "purge"), "forget"), **dict.fromkeys(("list", "ls"), "memories"),
    **dict.fromkeys(("add", "save", "new"), "remember"), **dict.fromkeys(("find", "grep"), "search"),
    **dict.fromkeys(("off", "disable"), "pause"), **dict.fromkeys(("on", "enable"), "resume"),
    "memory": "memories", "settings": "config", "history": "session", "todo": "done", "log": "logs", "update": "upgrade", "view": "show",
}  # fmt: skip
#: Module of csmd.cli -> its verbs. A module is imported when one of its verbs is used: importing
#: all of them takes longer than most verbs.
MODULE_VERBS: dict[str, list[str]] = {
    "follow": ["tail", "logs"], "memories": "remember memories edit supersede pin unpin".split(),
    "topics": ["topics", "tag", "link"], "review": ["review", "undo"], "injections": "brief recall context why".split(),
    "sessions": "session today self errors".split(), "checkpoints": ["checkpoint"], "goals": ["goal", "done"],
    "forget": ["scan", "forget"], "pause": ["pause", "resume"], "projects": ["project"], "encryption": ["encrypt"],
    "dreams": ["dream"], "pipeline": ["pipeline"], "import_export": ["import", "export", "sync"],
    "backups": ["backup", "restore", "repair"], "provider": ["provider", "ledger"],
    "install": "install hooks upgrade plugin".split(), "daemon": "daemon start stop restart".split(),
    "doctor": "doctor report governance".split(), "settings": ["config"], "overview": ["help"], "main": ["completion"],
    **{name: [name] for name in "status search show instructions model team uninstall mcp tool web".split()},
}  # fmt: skip


def find_similar(typed: str, names: Iterable[str]) -> str:
    """The verb or other name nearest to an unknown word; "" if none is near."""
    import difflib  # only for a mistyped word

    near = difflib.get_close_matches(typed, [*names, *SYNONYMS], n=1)
    return SYNONYMS.get(near[0], near[0]) if near else ""


def visible_verbs() -> list[str]:
    """Returns the verbs that help and completion show."""
    return [verb for verbs in VERB_GROUPS.values() for verb in verbs]
