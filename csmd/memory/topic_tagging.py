"""The topics of a project, from the words of its memories."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from csmd.memory.contradiction import WEAK
from csmd.store import topics as stored
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import display, tokens
from csmd.text.similarity import TURNING_WORDS
from csmd.text.tokens import STOP_WORDS

#: Names with a capital inside that are one word all the same.
ONE_WORD = frozenset(
    "github gitlab javascript typescript postgresql mysql sqlite youtube macos ios graphql openai".split()
)
#: What stands before a noun, or before the adjectives before it.
DETERMINERS = frozenset(
    "the a an this that these those my our your its their each every any no some all both another same which existing "
    "current whole new old first second next last".split()
)
#: Verbs that work is told with; they break a phrase, and are a subject only within a name.
VERBS = frozenset(
    """add adds added adding remove removes removed removing fix fixes fixed fixing change changes changed changing update updates
    updated updating create creates created creating check checks checked checking call calls called calling return returns
    returned returning show shows showed shown showing contain contains containing include includes included including need needs
    needed want wants wanted make makes made making work works worked working keep keeps kept keeping set sets setting see sees
    seen look looks looking find finds found finding write writes wrote written writing read reads reading run runs ran running
    move moves moved moving happen happens happened start starts started starting stop stops stopped stopping handle handles
    handled handling implement implements implemented implementing ensure ensures ensuring allow allows allowed allowing mean
    means meant say says said ask asks asked tell tells told think know knows known go goes going went gone come comes coming came give gives
    gave given take takes took taken taking put try tries tried trying let lets support supports supported supporting require requires
    required expect expects expected match matches matched matching fail fails failed failing pass passes passed passing exist
    exists existing appear appears consider considering replace replaces replaced replacing rename renamed skip skips skipped
    avoid avoids prevent prevents preventing preserve preserves preserved follow follows following store stores stored storing
    save saves saved saving load loads loaded get gets getting trigger triggers triggered cause causes caused affect affects
    provide provides provided extract extracts extracted detect detects detected ignore ignores ignored merge merged use uses
    used using do does did done doing be is are was were has have had adjust adjusted improve explain review verify verified
    validate validates print prints printed become becomes became build builds built seem seems miss missed missing point points
    compare compares compared treat treated behave refer refers reuse install installed installs installing delete deletes
    deleted deleting push pushed pushes pushing pull pulled commit commits committed committing open opens opened close closed
    send sends sent generate generates generated rely relies represent clean cleans cleaned cleanup parse parses parsed parsing
    track tracks tracked tracking copy copies copied document documented documents describe described result results end ends
    ended begin begins began turn turns turned test tests tested testing log logs logged hang hangs link links linked wait
    waits attempt attempts reset resets resolve resolves resolved invoke invoked execute executes executed apply applies applied
    leave leaves left stay stays stayed staying remain remains remained remaining enable enables enabled enabling disable disables disabled disabling warn warns warned hit hits point points reference references referenced display displays displayed list lists listed""".split()
)
#: Of them those that are as often things: they break no phrase and are none alone.
ALSO_NOUNS = frozenset(
    """commit commits test tests log logs list document documents reference references point points result results link links
    reset push pull review merge check checks change changes fix update build install setting display track""".split()
)
ADVERBS = frozenset(
    """always often sometimes usually within without across regardless despite around anymore already still even currently previously directly
    properly explicitly automatically completely correctly instead together rather either neither whether though although
    else otherwise however therefore thus hence besides maybe perhaps really actually basically simply likely immediately
    silently separately today yesterday tomorrow recently later soon early back away along unless since yet etc via""".split()
)
#: What a phrase does not go across.
BREAKS = (STOP_WORDS | ADVERBS | TURNING_WORDS | (VERBS - ALSO_NOUNS) | frozenset(WEAK - {"work"})) - DETERMINERS
#: Words of every project: they make a subject only beside another.
GENERIC = (
    frozenset(
        """function method class file files code line lines test tests value values name names field fields type types string
        error errors warning warnings message messages case cases thing things way time user users data default option options command commands
        issue problem bug feature behavior behaviour state status result output input argument parameter variable flag package
        module import config configuration setting settings version directory folder path content text comment comments section
        example number id key list map object array script tool project repo repository branch commit commits change changes
        fix update log logs step part place side kind set item entry point reason approach implementation logic pattern check
        call return cli app api github git hub main non dir ref run running work added session agent prompt response request document documents
        reference references link links pull push review merge build install display track format info summary level root
        operation operations failure failures block blocks caller callers constant constants count date dates flow index note notes
        removal detection convention conventions url doc docs reader handler handlers environment position order limit support
        struct structure interface helper helpers body header parent child node element property attribute parameter params
        process service system level mode range size length amount total page view button request response event callback
        condition loop statement expression assertion check context scope detail details question answer comparison
        scenario workflow usage default defaults fallback edge normal manual auto automatic future past codebase regex
        current previous existing new old first second next last other same different single multiple correct wrong right
        full empty missing available specific general actual real local remote global external internal original final""".split()
    )
    | VERBS
)
#: What a subject neither begins nor ends with: it says which, how many or how, or is the rest of a verb.
GENERIC_HEADS = frozenset(
    """current previous existing new old first second next last other same different single multiple correct wrong right full
    empty missing available specific general actual real original final following above below several many few more less
    whole entire only also already still just even e.g i.e etc via per pr prs one two three four five lot lots bit way ways thing things case
    cases time times part kind reason example instead together currently previously directly properly explicitly automatically
    possible able sure true false null nil none ok yes no able unable clear good better best bad proper simple simply proper
    gone mark edit common staged short long non fix fixed change changed update updated added removed adding removing used using based""".split()
)


#: Tags of one memory, and words of a subject.
MOST_TAGS, MOST_WORDS = 3, 3
#: A subject of fewer memories, or of one session, heads nothing; one of more than this share separates nothing.
LEAST_MEMORIES, LEAST_SESSIONS, MOST_SHARE = 2, 2, 0.2
#: In fewer memories nothing can be told to be shared.
LEAST_KNOWN = 5
#: A shorter subject whose memories mostly say the longer one is left to it.
SAID_LONGER = 0.6
#: Of what is looked at of one memory.
MOST_CHARACTERS, MOST_SUBJECTS = 1200, 120
#: How far a longer subject goes before a shorter one that is as well spread.
WORDS_WEIGHT = {1: 1.0, 2: 1.5, 3: 1.6}
#: A noun closes what an article led, or stands as a name alone, at least so often; what never does is an adjective or verb.
LEAST_CLOSING = 0.3
#: And what was written as code or as a file before what was only said.
NAMED_WEIGHT = 1.15

_TOKEN = re.compile(
    r"`(?P<code>[^`\n]{2,80})`|(?P<url>https?://\S+)|(?P<file>(?:[\w.~-]*/)*[\w-]{1,60}\.(?P<ending>[A-Za-z][a-z0-9]{0,4}))(?![\w(])(?:[:#]\d[\d-]*)?"
    r"|(?P<path>(?:[\w.~@-]+/)+[\w.-]*)|(?P<word>--?[A-Za-z][\w-]*|[^\W\d_][\w]*(?:['\u2019-][^\W_]+)*)|(?P<mark>[^\s\w])"
)
#: What ends a name of a file; `metadata.json` is one, `state.AgentType` and `e.g` are none.
_ENDINGS = frozenset(
    "py go ts tsx js jsx mjs rs md rst txt yml yaml json jsonl toml ini cfg conf sh bash zsh fish sql java kt rb c h cc cpp "
    "hpp cs swift php html css scss vue svelte lock mod sum env xml proto tf dart lua ex exs scala gradle csv ipynb".split()
)
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[^\W\d_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A memory as its subjects are looked for."""

    seq: int
    text: str
    session_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """A memory and what it is about; `weight` is 0-1, `reason` says how many memories share it."""

    seq: int
    topic: str
    weight: float
    reason: str


@dataclass(slots=True)
class _Subject:
    """What is known of a subject: whose it is, how it was written, how it stood in its sentences."""

    memories: set[int]
    sessions: set[str]
    written: Counter[str]
    named: int = 0
    closing: int = 0


#: A subject's words, by their stems; a file is one word with its dot.
Key = tuple[str, ...]


class Phrase(NamedTuple):
    """Words that a text may be about, as they stand in it.

    `is_led`: an article or the like led them, or they are a name. `closes`: they stand where the noun of a phrase stands.
    """

    key: Key
    written: str
    is_name: bool
    is_led: bool
    closes: bool


def tags_of(told: Sequence[Told]) -> list[Tag]:
    """At most three tags for each of the memories of one project, the most telling first, by memory."""
    if len(told) < LEAST_KNOWN:
        return []
    found: dict[Key, _Subject] = {}
    of: dict[int, list[Key]] = {}
    nouns: set[str] = set()
    for memory in sorted(told, key=lambda one: one.seq):
        said = subjects(memory.text)
        of[memory.seq] = sorted({phrase.key for phrase in said})
        nouns |= {phrase.key[-1] for phrase in said if phrase.is_led}
        for phrase in said:
            one = found.setdefault(phrase.key, _Subject(set(), set(), Counter()))
            one.memories.add(memory.seq)
            one.sessions.add(memory.session_id)
            one.written[phrase.written] += 1
            one.named += phrase.is_name
            one.closing += phrase.closes
    # What no article ever led is an adverb, a verb, or a word of another language.
    kept = {key: one for key, one in found.items() if key[-1] in nouns and _heads(one, len(told))}
    score = {key: _score(key, one, len(told)) for key, one in kept.items()}
    score = {key: score[key] for key in _distinct(kept, score)}
    for _ in range(3):  # what too few memories chose is no heading: those choose again
        chosen = {seq: _best(keys, score) for seq, keys in of.items()}
        members = Counter(key for keys in chosen.values() for key in keys)
        few = [key for key in score if members[key] < _least(len(told))]
        if not few:
            break
        for key in few:
            del score[key]
    chosen = {seq: _best(keys, score) for seq, keys in of.items()}
    names = _names({key: kept[key] for key in score})
    top = max(score.values(), default=1.0)
    return [
        Tag(
            seq=seq, topic=names[key], weight=round(score[key] / top, 3),
            reason=f"shared by {len(kept[key].memories)} of {len(told)} memories, in {len(kept[key].sessions)} sessions",
        )
        for seq, keys in sorted(chosen.items())
        for key in keys
    ]  # fmt: skip


def name_of(typed: str) -> str:
    """A topic's name as it is kept: on one line, small, without marks around it; "" for nothing."""
    return display.cut(tokens.normalise(typed), 60)


# --- what a text speaks of


def subjects(said: str) -> list[Phrase]:
    """What a text may be about, in order."""
    found: list[Phrase] = []
    run: list[tuple[str, bool]] = []
    led, opens = False, True

    def end() -> None:
        found.extend(_phrases(run, led))
        run.clear()

    for token in _TOKEN.finditer(said[:MOST_CHARACTERS]):
        kind, value = token.lastgroup, token.group()
        if kind in ("file", "ending") and token["ending"].casefold() in _ENDINGS:
            end()
            led = False
            name = token["file"].rsplit("/", 1)[-1].casefold()
            found.append(_file(name))
        elif kind == "code":
            end()
            led = False
            found.extend(_of_code(token["code"]))
        elif kind == "word":
            small = value.casefold().replace("\u2019", "'")
            if small in DETERMINERS:
                end()
                led = True
            elif small in BREAKS or "'" in small:
                end()
                led = False
            else:
                named = (
                    any(mark in value for mark in "_-")
                    or value[1:] != value[1:].lower()
                    or (value[0].isupper() and not opens)
                )
                run.extend((part, named) for part in _parts(value))
        else:
            end()
            led = False
        opens = kind == "mark" and value not in "(/'\""
    end()
    return found[:MOST_SUBJECTS]


def _file(name: str) -> Phrase:
    return Phrase((name,), name, is_name=True, is_led=True, closes=True)


def _of_code(code: str) -> list[Phrase]:
    """What a code span names: a file, a path's last part, an identifier, the beginning of a command."""
    found: list[Phrase] = []
    words = code.split()
    if not words:
        return found
    last = words[0].rstrip("/,;").rsplit("/", 1)[-1]
    stem, dot, ending = last.partition(":")[0].rpartition(".")
    if len(words) == 1 and dot and ending.casefold() in _ENDINGS:
        return [_file(f"{stem}.{ending}".casefold())]
    run = [(part, True) for word in words[:MOST_WORDS] for part in _parts(word.partition("(")[0].rsplit(".", 1)[-1])]
    return list(_phrases(run, led=False))


def _parts(value: str) -> list[str]:
    if value.casefold() in ONE_WORD:
        return [value.casefold()]
    return [part.casefold() for part in _PART.findall(value) if len(part) > 1]


def _phrases(run: Sequence[tuple[str, bool]], led: bool) -> Iterable[Phrase]:
    """The phrases of up to three words in a run of words that nothing breaks."""
    for start in range(len(run)):
        for size in range(1, MOST_WORDS + 1):
            part = run[start : start + size]
            if len(part) < size or len({word for word, _ in part}) < size:
                break
            said = [word for word, _ in part]
            named = all(name for _, name in part)
            if _is_generic(said, named=named):
                continue
            ends = start + size == len(run)  # there the noun stands of which the rest is told
            key = tuple(_stem(word) for word in said)
            is_led = ends and (led or (named and start == 0))
            yield Phrase(key, " ".join(said), named, is_led, is_led or (ends and size == 1 and start > 0))


def _is_generic(said: Sequence[str], *, named: bool) -> bool:
    """Whether words head nothing; several that are written as one name do, however common each is."""
    if said[0] in GENERIC_HEADS or said[-1] in GENERIC_HEADS:
        return True
    if named and len(said) > 1:
        return False
    return all(word in GENERIC or _stem(word) in GENERIC or len(word) < 3 for word in said)


def _stem(word: str) -> str:
    """The singular, roughly: other endings make other words."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("sses", "shes", "ches", "xes")):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


# --- which of them are headings


def _least(known: int) -> int:
    """How many memories a heading has at least: more, where there are many."""
    return max(LEAST_MEMORIES, math.ceil(math.log2(known) / 3))


def _heads(one: _Subject, known: int) -> bool:
    number = len(one.memories)
    if not _least(known) <= number <= max(LEAST_MEMORIES + 1, MOST_SHARE * known):
        return False
    return len(one.sessions) >= LEAST_SESSIONS and one.closing >= LEAST_CLOSING * number


def _distinct(found: dict[Key, _Subject], score: Mapping[Key, float]) -> list[Key]:
    """Without what is mostly another one, longer or better, that shares a word with it."""
    kept: list[Key] = []
    by_word: dict[str, list[Key]] = {}
    for key in sorted(score, key=lambda key: (-score[key], key)):
        own = found[key].memories
        rivals = {other for word in key for other in by_word.get(word, ())}
        if any(_is_of(own, found[other].memories, part=set(key) < set(other)) for other in rivals):
            continue
        kept.append(key)
        for word in key:
            by_word.setdefault(word, []).append(key)
    return kept


def _is_of(own: set[int], others: set[int], *, part: bool) -> bool:
    """Whether memories are mostly those of another subject; of a longer one, whether most of these say it."""
    return len(own & others) >= SAID_LONGER * (len(own) if part else len(own | others))


def _score(key: Key, one: _Subject, known: int) -> float:
    number = len(one.memories)
    spread = math.log(1 + number) * math.log(1 + known / number)
    named = NAMED_WEIGHT if one.named * 2 >= number else 1.0
    return spread * WORDS_WEIGHT[len(key)] * named


def _best(keys: Sequence[Key], score: Mapping[Key, float]) -> list[Key]:
    """The best subjects of one memory, none a part of another."""
    best: list[Key] = []
    for key in sorted((key for key in keys if key in score), key=lambda key: (-score[key], key)):
        if len(best) < MOST_TAGS and not any(set(key) <= set(other) or set(other) <= set(key) for other in best):
            best.append(key)
    return best


def _names(found: Mapping[Key, _Subject]) -> dict[Key, str]:
    """What each subject is called: the shortest of the ways it was written, which more memories seldom change."""
    return {key: min(one.written, key=lambda written: (len(written), written)) for key, one in found.items()}


#: Unasked, a project is looked at again when one of so many memories is new; while more is on its way, of so many.
WHEN_AT_REST, WHEN_READING = 200, 4
#: Memories of one project that are looked at, the newest: each takes a millisecond of a processor that hooks need, too.
MOST = 5000
#: Tags of one write: hooks wait behind it.
PART = 200


def step(store: Store, *, force: bool, reading: bool) -> int:
    """Tags the memories of the next project that has changed enough, with `force` at all; how many, 0 for none is left.

    Finding them takes seconds of the caller's time, and neither a reader's nor the writer's; `reading` is whether more
    of the past is being read in, or changed.
    """
    found = store.read(lambda rows: _look(rows, force=force, reading=reading))
    if found is None:
        return 0
    project, told = found
    tags = [(tag.seq, tag.topic, tag.weight) for tag in tags_of(told)]
    since = told[0].seq if len(told) == MOST else 0
    other = store.read(lambda rows: stored.other(rows, project.project_seq, tags, since=since))
    for start in range(0, len(other), PART):
        part = other[start : start + PART]
        store.write(lambda rows, part=part: stored.put(rows, project.project_seq, part))  # type: ignore[misc]
    store.write(lambda rows: stored.looked_at(rows, project))
    return max(1, project.memories)


def _look(rows: Rows, *, force: bool, reading: bool) -> tuple[stored.Due, list[Told]] | None:
    share = WHEN_READING if reading else WHEN_AT_REST
    for project in stored.due(rows):
        if force or project.changes * share >= project.memories:
            return project, [
                Told(seq=seq, text=said, session_id=session)
                for seq, said, session in stored.told(rows, project.project_seq, limit=MOST)
            ]
    return None
