"""Decides the scope of a memory by its words: its project, its user, or everywhere.

The words are in data/scope_words.txt. A memory shown in the wrong project does more harm than one stated twice: a path,
an identifier, a part of a project or an uncommon name keeps a statement in its project, whatever else it says.
"""

from __future__ import annotations

import hashlib
import re

from csmd import data
from csmd.cache import cached
from csmd.text import sentence, tokens
from csmd.vocabulary import Gate, Scope

_WORDS = data.word_table("scope_words.txt")
#: Kinds of work and of text, and names that belong to no project: a general rule may name them.
GENERAL_NAMES = _WORDS["everywhere"]
#: Most characters of a text in which its speaker's self-description is sought.
MAX_CHARACTERS = 400
#: Reach of a statement whose words do not say where it applies.
NO_REACH = 0
#: Reach of one that applies everywhere if it is about its speaker's work.
WORK_REACH = 1
#: Reach of one that applies everywhere, on any subject.
FULL_REACH = 2


def _any_of(name: str) -> str:
    """Returns a pattern for the words and phrases of a class."""
    return f"(?:{'|'.join(re.escape(word).replace('_', ' ') for word in sorted(_WORDS[name], key=len, reverse=True))})"


#: Something that only one project has: a path, a file name, a CamelCase or snake_case identifier, a flag, code, a host.
_SPECIFIC = re.compile(
    r"`[^`]+`|(?:^|\s)[~.]?/[\w.-]+|\w-*+/[\w./-]|\w-*+\.(?:py|go|ts|tsx|js|rs|md|ya?ml|json|toml|sh|sql|java|rb|c|h"
    r"|cpp)\b"
    r"|\b[a-z]++_[a-z_]++\b|\b[a-z]++[A-Z]\w|\b[A-Z][a-z]++[A-Z]|(?:^|\s)--?[a-z][\w-]+"
    r"|\b(?:ssh|host|server|machine|into|onto|on|at|from) [a-z]+(?:-[a-z0-9]+)*-\d+\b|\b\d{1,3}(?:\.\d{1,3}){3}\b"
    r"|\b[\w-]+\.(?:internal|local|corp|lan)\b"
)
_CONTRACTION = re.compile(r"(?<=\w)(?:'(?:m|s|re|ve)|n't)\b")
_FULL_FORM = {"'m": " am", "'s": " is", "'re": " are", "'ve": " have", "n't": " not"}
_EVERY_UNIT = (
    rf"{_any_of('with')} {_any_of('every')} (?P<own>(?=(?:of )?(?:my|our) ))?(?:{_any_of('of')} )*{_any_of('unit')}"
)
#: "In all my repos", "wherever I work"; and "everywhere", which an order that is carried out once may contain too.
_REACH = re.compile(rf"(?i)\b(?:(?P<wherever>{_any_of('wherever')})|{_EVERY_UNIT}|(?P<all>{_any_of('all_over')}))\b")
_PROJECT_PART = re.compile(
    rf"(?i)\b{_any_of('article')} (?:[\w.-]++ ){{0,3}}{_any_of('part')}s?\b|\w-*+ {_any_of('named_part')}\b"
)
_POINTER = re.compile(rf"(?i)\b(?:{_any_of('at_hand')}|you \w+ed)\b")
#: A worktree or branch: "this branch", "on release/2.4", "in ../spike".
_CHECKOUT = re.compile(
    rf"(?i)\b(?:{_any_of('checkout')}\b|(?:in|on|for|of) (?:the |branch )*((?:\.\.|{_any_of('branch')})/[\w./-]*\w))"
)
#: The names in a statement: after a preposition ("in" in a group of its own), or capitalised within the sentence.
_NAME_AFTER_PREPOSITION = r"\b(?i:inside|within|for|of|on|(in)) (?i:(?:the|our|my|an?) )?([A-Za-z][\w+#-]*)"
_NAME_USES = re.compile(_NAME_AFTER_PREPOSITION + r"|(?<=[\w,;)] )(?!I\b)([A-Z][\w+#-]*)")


def scope_of(text: str, *, gate: Gate, about_speaker: bool, project_name: str) -> Scope:
    """Returns the scope of a memory: its project, unless its words are general.

    A statement is general if it names all projects, or says what its speaker always does or how they like answers, even
    with "this" or "we"; otherwise only if it is a behavioral statement or correction about its speaker that points at
    nothing.
    """
    plain, reach = _split_reach(_expand_contractions(text))
    about_answers = _is_about_answers(text)
    is_work = gate in ("behavioral", "correction") and (reach or about_speaker)
    if not (reach == FULL_REACH or about_answers or is_work) or _names_place(plain, project_name):
        return "project"
    is_general = reach or about_answers or not _POINTER.search(plain)
    names = (after or capital for inside, after, capital in _NAME_USES.findall(plain) if not (inside and about_answers))
    if not is_general or any(name.lower() not in GENERAL_NAMES | _WORDS["language"] for name in names):
        return "project"
    return "global" if gate == "correction" else "user"


def identity(project: int, text: str) -> str:
    """Returns the id of a statement in a scope: `m` and ten hex digits."""
    return "m" + hashlib.sha256(f"{project}:{tokens.normalise(text)}".encode()).hexdigest()[:10]


def points_at_place(text: str, *, project_name: str) -> bool:
    """Whether a text points at a project, at a part of one, or at something at hand."""
    plain = _expand_contractions(text)
    return _names_place(plain, project_name) or _POINTER.search(plain) is not None


def named_checkout(text: str) -> str:
    """Returns the worktree or branch that a text is about: "../spike", "release/2.4", "this branch"; else ""."""
    match = _CHECKOUT.search(text)
    return (match[1] or match[0].lower()) if match else ""


def _names_place(text: str, project_name: str) -> bool:
    """Whether a text names a project or something in it: a path, an identifier, a part, a checkout."""
    name_words, words = (re.findall(r"[a-z0-9]+", part.lower()) for part in (project_name, text))
    whole = len(project_name) > 2 and any(words[at : at + len(name_words)] == name_words for at in range(len(words)))
    is_named = whole or "".join(name_words) in {word for word in words if len(word) > 2}
    return is_named or any(pattern.search(text) for pattern in (_SPECIFIC, _PROJECT_PART, _CHECKOUT))


def _expand_contractions(text: str) -> str:
    """Returns a text with its contractions written out."""
    return _CONTRACTION.sub(lambda match: _FULL_FORM[match[0]], text.replace("\u2019", "'"))


def _split_reach(text: str) -> tuple[str, int]:
    """Returns a text without the words that say that it applies everywhere, and its reach."""
    plain = _REACH.sub(" ", text)
    parsed = sentence.parse(plain)
    # An order to do something everywhere is carried out once, unless it is a rule without that word.
    is_standing = parsed.lasting in sentence.RULES or not _WORDS["standing"].isdisjoint(parsed.words[:1])
    is_habit = "_".join(parsed.words[:2]) in _WORDS["i_always"] and _WORDS["befalls"].isdisjoint(parsed.words[2:3])
    reach = WORK_REACH if parsed.kind == "states" and is_habit else NO_REACH
    for match in _REACH.finditer(text):
        if is_standing or not (match["all"] or parsed.kind == "orders"):
            reach = max(reach, FULL_REACH if match["wherever"] or match["own"] is not None else WORK_REACH)
    return plain if reach else text, reach


def _is_about_answers(text: str) -> bool:
    """Whether a text says in which language, or how, its speaker likes to be answered."""
    parsed, lowered = sentence.parse(text), text.lower().replace(",", " ").replace(" to me", " me").rstrip(".!")
    words, lasts = lowered.split(), parsed.lasting in sentence.RULES
    in_language, in_its_own = (
        any(word in (words if word.isascii() else lowered) for word in _WORDS[name])
        for name in ("language", "answer_in")
    )
    if parsed.kind == "asks" or parsed.is_of_moment or (in_language and in_its_own):
        return parsed.kind != "asks" and not parsed.is_of_moment
    for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False):
        is_first = parsed.words[:1] == (word,)
        if word in _WORDS["answers"] and (is_first or before in _WORDS["before_answers"]):
            return in_language or lasts or is_first or parsed.kind == "orders" or parsed.words[:1] == ("be",)
        if word in _WORDS["answer"] and ((after == "me" and lasts) or (after in ("me", "in") and in_language)):
            return lasts or is_first or not _WORDS["me"].isdisjoint(words)
    return False


# --- the user's self-descriptions

#: A profession may be a role in one project: "I'm a reviewer here".
_A_ROLE = "(?i:a|an)"
_CAPITALS = r"(?P<name>[A-Z]\w++(?:[ -][A-Z]\w++){0,2})"
_END = r"(?=,? now\b|,? again\b|\s*(?:[.,;:!()]|$|and\b|but\b|so\b))"
_CLOCK = rf"(?:(?:UTC|GMT)[+-]\d{{1,2}}|{'|'.join(_WORDS['clock']).upper()})\b"
_SLOTS = {
    "NAME": _CAPITALS + _END, "PLACE": _CAPITALS, "ZONE": rf"(?:[A-Z]\w+/[A-Z]\w+|{_CLOCK})", "CLOCK": _CLOCK,
    "LANG": r"[A-Z]\w+", "DIGIT": r"\d[\w:.]*", "END": _END, "~": r"(?:\S+ ){0,3}?",
    "HI": r"^(?i:hi|hello|hey)\b[ ,!.]*+", "PRONOUN": r"(?:she|he|they|xe|ze|it|any)/\w+(?:/\w+)?",
    "WORK": rf"(?i:{_any_of('work')})\w*+(?! (?:of|on|for)\b)",
    "COLOURS": rf"(?:.{{0,80}}?\b{_any_of('colour')}/{_any_of('colour')}\b)?",
}  # fmt: skip


@cached(1)
def _self_forms() -> list[re.Pattern[str]]:
    """Returns the forms in which people say who they are (data/scope_words.txt), as patterns."""
    forms = []
    for form in sorted(_WORDS["self"]):
        pattern, words = r"\b", form.split("_")
        for word, after in zip(words, [*words[1:], "END"], strict=True):
            adverb = "(?: now| currently)?" if word in ("i", "am", "is") else ""
            slot = _SLOTS.get(word) or f"(?i:{word.removeprefix('?')})" + adverb
            gap = "" if word in ("~", "HI", "COLOURS") or after in ("END", "COLOURS") else r"[ ,:(]+"
            pattern += f"(?:{slot}{gap})?" if word[0] == "?" else slot + gap
        forms.append(re.compile(pattern + r"(?:,? (?:now|again)\b)?"))
    return forms


def describes_user(text: str, *, project_name: str) -> bool:
    """Whether a user's sentence says who they are in all projects; not a question, and not a role in one project."""
    plain = _expand_contractions(text)
    for form in _self_forms() if not text.rstrip().endswith("?") else ():
        if match := form.search(plain[:MAX_CHARACTERS]):
            rest = plain[: match.start()] + plain[match.end() :]
            is_role = _A_ROLE in form.pattern and _POINTER.search(rest)
            name = (match.groupdict().get("name") or "").lower().replace("-", " ")
            if GENERAL_NAMES.isdisjoint(name.split()) and not is_role and not _names_place(rest, project_name):
                return True
    return False
