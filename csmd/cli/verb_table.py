"""The table of verbs: under which heading each is listed, which are not, and in which module each is."""

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
#: The verbs of `csmd pipeline`: how statements become memories, step by step. Few people need them.
PIPELINE = "beliefs duplicates merge archive packets candidates promote advisory"
#: Verbs that few people need from day to day, and verbs of programs: `csmd help more` lists them.
HIDDEN = (
    "recall topics supersede unpin tag link tail report checkpoint context instructions self sync repair ledger "
    "governance pipeline tool hooks daemon plugin completion"
)
#: Former names of verbs: they work and are listed nowhere.
FORMER = f"receipts memdir {PIPELINE}"
#: The modules of csmd.cli with the verbs of each (its VERBS). A module is imported when one of its verbs is asked for:
#: all of them take longer than most verbs.
SUBJECTS: dict[str, str] = {
    "status": "status tail logs",
    "memories": "search remember brief recall tool memories edit topics tag link errors",
    "beliefs": "beliefs duplicates archive merge governance supersede pin unpin packets candidates promote advisory self review undo",
    "dreams": "dream",
    "sessions": "session today context memdir instructions checkpoint goal done why receipts show",
    "privacy": "scan forget pause resume project",
    "encryption": "encrypt",
    "intake": "import export sync model backup restore repair",
    "installation": "install uninstall hooks upgrade daemon start stop restart mcp plugin doctor report",
    "settings": "config",
    "provider": "provider ledger",
    "team": "team",
    "overview": "help",
    "web": "web",
    "main": "completion pipeline",
}


def in_view() -> list[str]:
    """The verbs that help and completion show."""
    return [verb for verbs in GROUPS.values() for verb in verbs.split()]
