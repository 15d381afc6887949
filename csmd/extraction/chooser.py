"""Chooses the passages of a conversation that are worth remembering.

A candidate is a passage: a sentence and the sentences after it in its section, up to MOST_WORDS content words, without
sentences that state nothing (REFUSED). One regression over FEATURES scores passages of every source alike. A turn gives
its best passage, unless that was said before.

Sources are every prompt, the reply once it is complete, and the work in between: the assistant's latest message after
LONG_MESSAGES and LONG_CALLS, since a diagnosis made during two hours of work is not in the last message, and plans,
commit messages, reports of agents and summaries of compactions. The sources of an exchange depend on its turns alone,
not on when it was read.

Prompts have further rules. Each sentence of a typed prompt that asserts something is a statement (`certainty`), so that
two facts are two memories; in a short prompt so is each that says that it lasts (`_laid_down`). In other languages than
English nothing else is. A short answer takes over a proposal (acceptance.py), and some forms are statements as they are
(verbatim_statements.py). A user's assertion repeats only what the user said.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Literal, NamedTuple, get_args

from csmd import wire
from csmd.cache import cached
from csmd.conversation import StoredTurn
from csmd.extraction import acceptance, classifier, verbatim_statements
from csmd.hosts import adapters, tool_calls
from csmd.knowledge import Statement
from csmd.text import prose, quotations, sentence, sentence_words
from csmd.text.sentence import Speaker, parse, trimmed
from csmd.text.similarity import gist
from csmd.text.switches import changes_mind
from csmd.text.tokens import content_words, words_of
from csmd.vocabulary import PROMPTS, Authority, TurnKind

Role = Literal["prompt", "midway", "reply", "plan", "commit", "report", "summary"]


#: Most distinct content words of a passage.
MOST_WORDS = 45
#: Most characters of a passage.
MAX_CHARACTERS = 600
#: Most statements of one turn. A summary of hours of work states several things, and so may a prompt (`MAX_ASSERTED`).
MOST: dict[Role, int] = {"summary": 3}
MAX_ASSERTED = 3
#: What agents report is what others said, and is repeated where it counts.
SILENT: frozenset[Role] = frozenset({"report"})
#: A passage that names a cause needs only this score, less than the bar: a diagnosis may be short.
DIAGNOSED = 0.28
#: A passage repeats another when it shares more than this of the shorter one's content words.
SAME = 0.3
#: So many of them at least: two preferences share a word and nothing else.
SAME_WORDS = 3
#: An order is a rule from this certainty on.
SURE_ORDER = 0.85
#: How sure it is that a user decided what they accepted in a few words.
ACCEPTED = 0.85
#: A user's assertion is a repeat when the user said this share of its content words before.
OWN_SHARE = 0.7
#: Two statements count as equally long up to this ratio; then a differing word is another value.
ONE_SIZE = 1.5
#: A reply repeats its prompt, where that gave a statement, with this share of its content words.
ASKED_ALREADY = 0.5
#: A statement cites the other half of its exchange when it has this share of its content words from there.
CITES = {"prompt": 0.15, "reply": 0.05}
#: A user's text of this many rows or more was pasted: its sentences are not the user's own assertions.
DOCUMENT_ROWS = 14
#: How sure an assertion must be, by how many sentences stand in its prompt (alone it is the point of it); then how sure
#: one of them where no passage of the prompt reaches the bar.
CERTAIN = ((1, 0.50, 0.50), (3, 0.75, 0.85), (10_000, 0.90, 0.95))
#: In these ways a sentence says that it lasts.
LAID_DOWN = sentence.RULES | {"role"}
#: A prompt of at most this many sentences is short.
FEW_SENTENCES = 6
#: Most words of a value that belongs to the sentence before it.
SHORT_TAIL = 4
#: In a short prompt a rule, ban, taste or choice is kept from this certainty on.
LASTS = 0.25
#: A run of this many words of the assistant's is a quotation.
QUOTED_WORDS = 8
#: A text with this share of quoted words quotes.
QUOTED_SHARE = 0.6
#: What states nothing that lasts, by speaker.
REFUSED: Mapping[Speaker, frozenset[sentence.Kind]] = {
    "user": frozenset({"printed", "reports"}),
    "assistant": frozenset({"printed", "reports", "narrates"}),
}
#: An order of at most this many content words is short.
SHORT_ORDER = 5
#: A short order that lasts less surely than this is of the moment.
LASTING = 0.35
#: Characters of a sentence in a script without spaces that say as much as three words.
MIN_UNSPACED = 6
#: How much of the other half of an exchange is compared with, in characters.
COMPARED = 20_000
#: Most content words of a title that is put before a passage.
TITLE_WORDS = 8


def _re(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_WORDY = re.compile(r"[^\W\d_]{2,}|\bI\b|(?<=\bI['’])m\b")
_CODE_LINE = re.compile(
    r"[{};]\s*$|^[\w.,\[\] ]{1,60} :?= \S{1,80}\(|^from [\w.]{1,80} import |^import [\w.]{1,80}$|^[\w.]{1,80}\([^)]{0,200}\)$"
)
#: What ends a sentence, and what may close after it.
_ENDS, _CLOSERS = tuple(".!?:…。！？"), "\"')`*]"
#: A colon at the end: what the sentence announces comes after it.
_LEADS_ON = re.compile(r"[:：][^\w:：]*+$")
#: A beginning that names the cause of something, and how it comes about.
_CAUSE = _re(
    r"(?:(?:so|and|but|ah|ok(?:ay)?|here|found it)\b[:.!,-]* ){0,2}(?:(?:the|this is the|that['’]s the) )?(?:(?:real|actual|main|underlying) )?"
    r"(?:root cause|cause|culprit|reason|catch|bug|problem|issue)\b[^.:]{0,40}?(?::| (?:is|was)\b).{20,}"
)
#: The words of titles of sections that hold steps, checks and lists of files, and of those that hold what a document is
#: about.
POOR_TITLE = frozenset(
    "verification test tests testing files steps checklist todo next usage example examples implementation".split()
)
GOOD_TITLE = frozenset(
    "context cause causes problem problems decision decisions why background summary finding findings goal goals rationale key"
    " constraint constraints fix fixes fixed".split()
)
#: A title of these words alone, or of a question, names a part of a text and nothing that it is about.
_EMPTY_TITLE = (
    POOR_TITLE
    | GOOD_TITLE
    | frozenset(
        "the main other all new current proposed your my our technical design code file required made and of root overview issue"
        " issues solution solutions approach plan change changes result results conclusion conclusions note notes detail details"
        " step benefit benefits option options recommendation recommendations question questions before after behavior behaviour"
        " analysis review feature features requirement requirements status architecture scope error errors solving".split()
    )
)


# --- sources

#: After this many messages since the last source the assistant's latest words are a source, too.
LONG_MESSAGES = 20
#: And after at least this many tool calls.
LONG_CALLS = 3
#: A call and its result are a message each; of them only the places are known here.
MESSAGES_PER_CALL = 2


class Source(NamedTuple):
    """A turn that statements may come from; `tools` is roughly the number of tool calls since its exchange began.

    What is no prompt is the assistant's own word, whoever it quotes: its turn says so.
    """

    turn: StoredTurn
    role: Role
    tools: int = 0


def sources_of(turns: Sequence[StoredTurn], *, settled: bool, worked: Iterable[Source] = ()) -> list[Source]:
    """The sources of one conversation, in order, with those that its work gave (`worked`).

    A trailing assistant text is the reply when `settled`; otherwise more of the same message may still come.
    Notifications, commands, summaries and tool traffic end nothing.
    """
    sources: list[Source] = []
    last: Source | None = None
    hidden = calls_before = 0
    before = since = turns[0].ordinal - 1 if turns else 0
    for turn in turns:
        hidden += turn.ordinal - before - 1
        before = turn.ordinal
        if turn.kind in PROMPTS:
            if last is not None:
                sources.append(last)
            sources.append(Source(turn, "prompt"))
            last, hidden, calls_before, since = None, 0, 0, turn.ordinal
        elif turn.kind == "assistant" and turn.text.strip():
            if (
                last is not None
                and last.turn.ordinal - since >= LONG_MESSAGES
                and last.tools - calls_before >= LONG_CALLS
            ):
                sources.append(last._replace(role="midway"))
                since, calls_before = last.turn.ordinal, last.tools
            last = Source(turn, "reply", hidden // MESSAGES_PER_CALL)
    if settled and last is not None:
        sources.append(last)
    return sorted([*sources, *worked], key=lambda source: source.turn.ordinal)


def sources_of_notifications(turns: Iterable[StoredTurn]) -> list[Source]:
    """The sources among notifications that report, and summaries."""
    sources = []
    for turn in turns:
        if turn.kind in _BESIDE:
            role, words_in = _BESIDE[turn.kind]
            if text := words_in(turn.text):
                sources.append(Source(replace(turn, kind="assistant", text=text), role))
    return sources


def source_of_call(turn: StoredTurn, tool: str, result: StoredTurn | None) -> Source | None:
    """The source that a tool call with its result gives, at the place of the result; None for none.

    The turn is the one in which the words are.
    """
    if result is None or tool not in tool_calls.CALLS:
        return None
    role, words_in = tool_calls.CALLS[tool]
    text = words_in(turn.text, result.text)
    place = result if role == "report" else replace(turn, ordinal=result.ordinal)
    return Source(replace(place, kind="assistant", text=text), role) if text else None


_BESIDE: dict[TurnKind, tuple[Role, Callable[[str], str]]] = {
    "notification": ("report", tool_calls.read_notified_report),
    "summary": ("summary", tool_calls.extract_learned),
}


# --- choosing


class Passage(NamedTuple):
    """Neighbouring sentences of a turn, from `first` to `last`, as one text with its distinct content words."""

    first: int
    last: int
    text: str
    content: frozenset[str]
    titled: bool = False


class EarlierStatement(NamedTuple):
    """The content words of a statement, whether it is the user's, and the small words that turn its meaning round."""

    content: frozenset[str]
    by_user: bool
    turns: tuple[str, ...] = ()


class Chosen(NamedTuple):
    """A statement with its turn, its place there and the content words by which it is known again."""

    turn: StoredTurn
    statement: Statement
    content: frozenset[str]
    passage: Passage


def choose(
    sources: Iterable[Source],
    *,
    earlier: Iterable[EarlierStatement] = (),
    before: str = "",
    weights: Weights | None = None,
) -> list[Chosen]:
    """Chooses the statements of a conversation's sources, in order; a prompt's cites the reply on the same subject.

    `earlier` holds what the session stated before, `before` what the assistant said last; `weights`
    are those that csmd brings along, unless others are judged.
    """
    weights = weights or shipped()
    chosen: list[Chosen] = []
    known_statements = list(earlier)
    prompt: StoredTurn | None = None
    gave = False
    for source in sources:
        if source.role in SILENT or adapters.is_written_for_user(source.turn.text):
            continue
        if source.role == "prompt":
            prompt = source.turn
        other = None if source.role == "prompt" else prompt
        verbatim = verbatim_statements.of_prompt(source.turn) if source.role == "prompt" else []
        new = [_as_it_stands(source.turn, statement) for statement in verbatim]
        new = new or _of_source(source, other, known_statements, weights, before=before, prompt_gave=gave)
        gave = bool(new) if source.role == "prompt" else gave
        if source.role == "reply":
            chosen = [
                _citing(statement, source.turn) if statement.turn is prompt else statement for statement in chosen
            ]
        if source.role == "prompt":
            before = ""  # a later prompt answers nothing of what stood before this one
        if source.role in ("reply", "midway"):
            before = source.turn.text
        chosen += new
        known_statements += map(_as_earlier, new)
    return chosen


def statements(turn: StoredTurn, *, before: str = "") -> list[Statement]:
    """Chooses the statements of a single turn; `before` is the assistant's message before it."""
    role: Role = "prompt" if turn.kind in PROMPTS else "reply"
    return [chosen.statement for chosen in choose([Source(turn, role)], before=before)]


def _of_source(
    source: Source,
    prompt: StoredTurn | None,
    known_statements: Sequence[EarlierStatement],
    weights: Weights,
    *,
    before: str,
    prompt_gave: bool,
) -> list[Chosen]:
    """The statements of one source; `prompt_gave`: the prompt that it answers gave some."""
    turn = source.turn
    if turn.kind not in PROMPTS and turn.kind != "assistant":
        return []
    user = turn.kind in PROMPTS  # a program's prompt is worded like a user's
    outline = sentences_of(turn)
    other = _content(prompt)
    asserted = _asserted(outline, weights) if user else []
    taken = _taken(turn, before) if turn.kind == "user" else None
    offered = passages(outline, "user" if user else "assistant")
    weighed = [
        (weigh(features(passage, user=user, other=other, among=len(offered)), weights), passage) for passage in offered
    ]
    weighed.sort(key=lambda pair: (-pair[0], pair[1].first))
    candidates = [
        passage for value, passage in weighed if value >= (DIAGNOSED if _CAUSE.match(passage.text) else weights.bar)
    ]
    if not candidates and not _is_sure(outline, weights):
        asserted = []
    if len(asserted) == 1:  # keep the sentences that continue it
        asserted = [passage for passage in candidates if passage.first == asserted[0].first] or asserted
    most = MAX_ASSERTED if asserted else MOST.get(source.role, 1)
    # What is handed over at length, a plan or a document, repeats what was said like any text does.
    offers = [(passage, bool(asserted) and len(outline) <= FEW_SENTENCES) for passage in asserted or candidates]
    if user:  # what is announced to have changed says nothing without what holds now
        laid_down = [(passage, True) for passage in _laid_down(outline, weights)]
        offers = [*(offer for offer in laid_down if changes_mind(outline[offer[0].first].text)), *offers, *laid_down]
    chosen: list[Chosen] = []
    for passage, is_assertion in offers:
        if len(chosen) == most and not (is_assertion and not asserted):
            continue
        if any(passage.first <= each.passage.last and each.passage.first <= passage.last for each in chosen):
            continue
        if prompt_gave and prompt is not None and len(passage.content & other) >= ASKED_ALREADY * len(passage.content):
            continue
        if _is_repeated(passage, [*known_statements, *map(_as_earlier, chosen)], is_assertion=is_assertion):
            continue
        if user and passage.first == passage.last and sentence.complains(parse(passage.text)):
            continue
        if user and before and _quotes(passage.text, _bare(before)):
            continue
        chosen.append(_chosen(turn, passage, prompt))
    chosen.sort(key=lambda each: each.passage.first)
    return [taken, *chosen] if taken else chosen


def _taken(turn: StoredTurn, before: str) -> Chosen | None:
    """The decision that a prompt makes by taking what the assistant proposed."""
    text = acceptance.accepted(quotations.blank_quotations(turn.text), before)
    if not text:
        return None
    return _as_it_stands(
        turn,
        Statement(
            text=text,
            gate="epistemic",
            category="decision",
            confidence=ACCEPTED,
            authority="user",
            reasons=("accepted",),
        ),
    )


def _as_it_stands(turn: StoredTurn, statement: Statement) -> Chosen:
    """A chosen statement whose text is not a passage of its turn."""
    content = frozenset(content_words(statement.text))
    return Chosen(turn, statement, content, Passage(-1, -1, statement.text, content))


def _is_repeated(passage: Passage, known_statements: Iterable[EarlierStatement], *, is_assertion: bool) -> bool:
    """Whether a passage was said before: a user's assertion by the user, in most of its own words; else by anybody."""
    if not is_assertion:
        return any(_same(passage.content, earlier.content) for earlier in known_statements)
    turns = gist(passage.text).turns
    return any(
        earlier.by_user
        and len(passage.content & earlier.content) >= OWN_SHARE * len(passage.content)
        and not _says_another(passage.content, turns, earlier)
        for earlier in known_statements
    )


def _says_another(content: frozenset[str], turns: tuple[str, ...], earlier: EarlierStatement) -> bool:
    """Whether of two statements of one size one has a word in another's place, or turns the other round."""
    is_of_one_size = len(earlier.content) <= ONE_SIZE * len(content)
    return is_of_one_size and (bool(content - earlier.content and earlier.content - content) or turns != earlier.turns)


def as_earlier(text: str, *, by_user: bool) -> EarlierStatement:
    """A statement as what comes after it is compared with it."""
    return EarlierStatement(frozenset(content_words(text)), by_user, gist(text).turns)


def _as_earlier(chosen: Chosen) -> EarlierStatement:
    return as_earlier(chosen.statement.text, by_user=chosen.statement.authority == "user")


def sentences_of(turn: StoredTurn) -> list[prose.Sentence]:
    """The sentences of a turn; of a prompt without its quotations, and cut where a rule follows an order."""
    if turn.kind not in PROMPTS:
        return prose.outline(turn.text)
    own = prose.outline(quotations.blank_quotations(turn.text))
    return [each._replace(text=clause) for each in own for clause in sentence.clauses(each.text)]


def _chosen(turn: StoredTurn, passage: Passage, prompt: StoredTurn | None) -> Chosen:
    speaker: Speaker = "user" if turn.kind in PROMPTS else "assistant"
    authority: Authority = "user" if turn.kind == "user" else "assistant"
    what = classifier.classify(passage.text, speaker=speaker)
    # Only the user corrects, and not while thinking aloud.
    if what.gate == "correction" and (authority != "user" or parse(passage.text).is_musing):
        what = classifier.classify(passage.text, speaker="assistant")
    if speaker == "user" and what.category == "preference" and _only_orders(passage.text):
        what = replace(what, gate="epistemic", category="fact")
    if what.gate == "relational" and sentence.is_of_program(parse(passage.text, speaker).words):
        what = replace(what, gate="epistemic", category="fact")
    wording = trimmed(passage.text)
    statement = Statement(
        text=wording, gate=what.gate, category=what.category, confidence=what.confidence, authority=authority,
        reasons=what.reasons or ("passage",), also=cited(passage.content, prompt, "reply"),
    )  # fmt: skip
    return Chosen(turn, statement, frozenset(content_words(wording)), passage)


def _only_orders(text: str) -> bool:
    """Whether a text only orders something for now; such a text is not a preference."""
    sentences = prose.split_sentences(text)
    return all(parse(each).kind == "orders" and not sentence.states_something(each) for each in sentences)


def _citing(chosen: Chosen, reply: StoredTurn) -> Chosen:
    """Cites the reply in a prompt's statement, if it is on the same subject."""
    also = cited(chosen.content, reply, "prompt")
    return chosen._replace(statement=replace(chosen.statement, also=also)) if also else chosen


def cited(content: frozenset[str], other: StoredTurn | None, role: str) -> tuple[str, ...]:
    """The uuid of the other half of an exchange, if it is on the same subject as a statement."""
    if other is None or _share(content, _content(other)) < CITES[role]:
        return ()
    return (other.uuid,)


# --- candidates


def passages(outline: Sequence[prose.Sentence], speaker: Speaker) -> list[Passage]:
    """The candidate passages of a turn, in order: the longest from each sentence that may begin one."""
    stands = [_is_usable(sentence, speaker) for sentence in outline]
    content = [
        frozenset(content_words(sentence.text)) if stand else frozenset()
        for sentence, stand in zip(outline, stands, strict=True)
    ]
    by_start = (_from(outline, start, stands, content) for start in range(len(outline)))
    return [passage for passage in by_start if passage is not None]


def _is_usable(stated: prose.Sentence, speaker: Speaker) -> bool:
    """Whether a sentence may be part of a passage: prose that states something, outside sections of steps."""
    text = stated.text
    parsed = parse(text, speaker)
    if (
        speaker == "user"
        and parsed.language != "en"
        and (not parsed.lasting or parsed.kind != "states" or parsed.is_of_moment)
    ):
        return False
    if speaker == "assistant" and sentence.has("proposes", parsed.language, text):
        return False  # the user decides; see acceptance.py
    has_words = len(_WORDY.findall(text)) >= 3 or (
        parsed.language in sentence_words.UNSPACED and len(text) >= MIN_UNSPACED
    )
    if len(text) >= prose.MAX_LINE_CHARACTERS or not has_words or _CODE_LINE.search(text):
        return False
    kind = parsed.kind
    if (
        kind in REFUSED[speaker]
        or sentence.holds_only_redacted(text)
        or not POOR_TITLE.isdisjoint(words_of(stated.title))
    ):
        return False
    if (
        kind == "asks"
        and (speaker == "user" or parsed.opens_with_question)
        and not _is_told_with_a_question(text, parsed)
    ):
        return False
    if speaker == "user" and kind == "orders" and parsed.is_of_moment and not sentence.is_of_several(parsed):
        return False
    is_short = speaker == "user" and kind == "orders" and len(content_words(text)) <= SHORT_ORDER
    return not (is_short and certainty(text, shipped()) < LASTING)


def _is_told_with_a_question(text: str, parsed: sentence.Sentence) -> bool:
    """Whether a sentence tells something, and only its end asks."""
    return (
        sentence.ends_with_question(text)
        and (not parsed.opens_with_question or "." in text)
        and parsed.language == "en"
    )


def _from(
    outline: Sequence[prose.Sentence], start: int, stands: Sequence[bool], content: Sequence[frozenset[str]]
) -> Passage | None:
    first = outline[start]
    if not stands[start] or (start and parse(first.text).goes_on):
        return None
    text, held, last = first.text, content[start], start
    for at in range(start + 1, len(outline)):
        sentence = outline[at]
        if sentence.section != first.section:
            break
        if stands[at]:
            between = " " if sentence.row == outline[last].row or _has_end(text) else "; "
            if len(held | content[at]) > MOST_WORDS or len(text) + len(sentence.text) > MAX_CHARACTERS:
                break
            text, held, last = f"{text}{between}{sentence.text}", held | content[at], at
    if not held or len(held) > MOST_WORDS:
        return None
    title = first.title
    named = frozenset(content_words(title))
    titled = not GOOD_TITLE.isdisjoint(words_of(title))
    if named - held and len(named) <= TITLE_WORDS and len(held | named) <= MOST_WORDS and not _is_empty_title(title):
        text, held = f"{title}: {text}", held | named
    return Passage(start, last, text, held, titled)


def _has_end(text: str) -> bool:
    """Whether a text ends with the mark of a sentence."""
    return text.rstrip(_CLOSERS).endswith(_ENDS)


def _is_empty_title(title: str) -> bool:
    """Whether a title names a part of a text and nothing that it is about: "The main changes", "How it works"."""
    words = words_of(title)
    return words[:1] in (["what"], ["why"], ["how"]) or _EMPTY_TITLE.issuperset(words)


def _assurance(stated: prose.Sentence, weights: Weights) -> float:
    """How surely a sentence of a prompt asserts something that lasts, 0-1."""
    parsed = parse(stated.text)
    if not _is_usable(stated, "user") or (parsed.is_of_moment and parsed.lasting not in sentence.RULES):
        return 0.0
    asks_for_something = sentence.request_in(stated.text) and not (parsed.lasting or parsed.remembers)
    if sentence.refers_back(parsed) and not parsed.lasting:
        return 0.0
    if parsed.kind != "states" or asks_for_something or _LEADS_ON.search(stated.text):
        return 0.0
    if sentence.has("trouble", parsed.language, stated.text) and (parsed.language != "en" or not parsed.lasting):
        return 0.0  # a report of a failure asks for a fix
    # What is lasting in another language says so (`_is_usable`).
    return 1.0 if parsed.remembers or parsed.language != "en" else certainty(stated.text, weights)


def _bars(outline: Sequence[prose.Sentence]) -> tuple[float, float]:
    """How sure the assertions of a prompt must be, and how sure one must be if no passage reaches the bar."""
    return next((in_prompt, alone) for size, in_prompt, alone in CERTAIN if len(outline) <= size)


def _is_sure(outline: Sequence[prose.Sentence], weights: Weights) -> bool:
    """Whether one sentence of a prompt asserts something as surely as it must alone."""
    return any(_assurance(stated, weights) >= _bars(outline)[1] for stated in outline)


def _asserted(outline: Sequence[prose.Sentence], weights: Weights) -> list[Passage]:
    """The assertions of a typed prompt: sentences that state something by themselves, in order.

    Of a list most of whose items do, each needs to be no surer than a single one. More than a turn may give are
    kept together with their neighbours.
    """
    if not outline or outline[-1].row >= DOCUMENT_ROWS:
        return []
    sure = [_assurance(stated, weights) for stated in outline]
    bar, _ = _bars(outline)
    listed = sum(stated.item >= 0 for stated in outline)
    if 2 * listed > len(outline) and 2 * sum(value >= CERTAIN[0][1] for value in sure) > listed:
        bar = CERTAIN[0][1]
    asserted = [
        Passage(at, at, stated.text, frozenset(content_words(stated.text)))
        for at, (stated, value) in enumerate(zip(outline, sure, strict=True))
        if value >= bar
    ]
    while len(asserted) > MAX_ASSERTED:
        at = min(range(1, len(asserted)), key=lambda at: len(asserted[at - 1].content | asserted[at].content))
        passage, other = asserted[at - 1 : at + 1]
        if len(passage.content | other.content) > MOST_WORDS:
            break
        between = " " if _has_end(passage.text) else "; "
        asserted[at - 1 : at + 1] = [
            Passage(
                passage.first,
                other.last,
                f"{passage.text}{between}{trimmed(other.text)}",
                passage.content | other.content,
            )
        ]
    return [passage for passage in asserted if len(passage.content) <= MOST_WORDS][:MAX_ASSERTED]


def _laid_down(outline: Sequence[prose.Sentence], weights: Weights) -> list[Passage]:
    """The sentences of a short prompt that say that they last, sure enough."""
    if len(outline) > FEW_SENTENCES:
        return []
    return [
        *_settled(outline),
        *(
            Passage(at, at, stated.text, frozenset(content_words(stated.text)))
            for at, stated in enumerate(outline)
            if (parse(stated.text).lasting in LAID_DOWN and _assurance(stated, weights) >= LASTS)
            or _is_sure_order(stated, weights)
        ),
    ]


def _settled(outline: Sequence[prose.Sentence]) -> list[Passage]:
    """The sentences that settle how things are to be or hold at all times, and pairs of sentences that do so only
    together."""
    texts = [stated.text for stated in outline]
    rows = [(at, at, text) for at, text in enumerate(texts)]
    rows += [(at, at + 1, f"{text} {texts[at + 1]}") for at, text in enumerate(texts[:-1]) if _has_end(text)]
    passages: list[Passage] = []
    for first, last, text in rows:
        if last + 1 < len(texts) and _is_bare_value(texts[last + 1]):
            last, text = last + 1, f"{text} {texts[last + 1]}"
        reads = [parse(each) for each in texts[first : last + 1]]
        is_plain = all(
            read.kind in ("states", "orders") and not (read.is_musing or read.is_of_moment) for read in reads
        )
        read = parse(text)
        settles = read.settles or (read.lasting in sentence.RULES and sentence.has("at_all_times", "en", read.core))
        is_announced = last > first and changes_mind(texts[first])
        if is_plain and settles and (last == first or is_announced or not any(each.settles for each in reads)):
            passages.append(Passage(first, last, text, frozenset(content_words(text))))
    return passages


def _is_bare_value(text: str) -> bool:
    """Whether a few words only give the number of what was said before them: "40, please"."""
    words = parse(text).words
    return len(words) <= SHORT_TAIL and any(map(str.isdigit, words))


def _is_sure_order(stated: prose.Sentence, weights: Weights) -> bool:
    """Whether an order lays something down: "use British spelling", not "add a test"."""
    parsed = parse(stated.text)
    is_order = parsed.kind == "orders" and parsed.language == "en" and not parsed.is_of_moment
    return is_order and _is_usable(stated, "user") and certainty(stated.text, weights) >= SURE_ORDER


def wordings(text: str) -> list[str]:
    """All wordings that a statement of a text may have: its sentences and passages, whole and trimmed."""
    outline = prose.outline(text)
    texts = [each.text for each in outline]
    texts += [each.text for speaker in get_args(Speaker) for each in passages(outline, speaker)]
    return list(dict.fromkeys([*texts, *map(trimmed, texts), *verbatim_statements.picks(text)]))


# --- weighing

_RAMPS = ((0, 8), (8, 16), (16, 28), (28, 45))
#: What is counted in a passage, up to three times.
_COUNTED: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("binding", _re(r"\b(?:must|never|always|only|every|required?|(?:has|have|needs?) to|cannot|can['’]t|don['’]t|do not|no longer)\b")),
    ("choice", _re(r"\b(?:instead|rather than|prefer\w*|decided|decision|chose|used?|uses|should|keep|not)\b")),
    ("done", _re(r"\b(?:added|updated|fixed|created|removed|changed|implemented|moved|refactored|renamed|replaced)\b")),
    ("person", _re(r"\b(?:i|we|our|my)\b")),
    ("condition", _re(r"\b(?:if|when|whenever|unless|until|before|after|while)\b")),
    ("request", _re(r"\b(?:please|can you|could you|can we|would you|make sure|check|add|fix|implement|run|create)\b")),
    ("number", _re(r"\b\d+\b")),
)  # fmt: skip
FEATURES = (
    "any", "user", *(f"to {high} words" for _, high in _RAMPS), *(name for name, _ in _COUNTED),
    "dense", "of the prompt", "quotation", "long turn", "long turn's point",
)  # fmt: skip
#: A turn with this many candidates counts as long; more make no difference.
LONG_TURN = 30


def features(passage: Passage, *, user: bool, other: frozenset[str], among: int) -> list[float]:
    """The values of FEATURES, each 0-1, of a candidate of `among` in its turn; `other` is its prompt's content."""
    count, long = len(passage.content), min(among, LONG_TURN) / LONG_TURN
    return [
        1.0,
        float(user),
        *((min(count, high) - low) / (high - low) if count > low else 0.0 for low, high in _RAMPS),
        *(min(3, len(pattern.findall(passage.text))) / 3 for _, pattern in _COUNTED),
        count / max(1, len(words_of(passage.text))),
        _share(passage.content, other),
        float('"' in passage.text),
        long,
        long * passage.titled,
    ]


def weigh(measured: Sequence[float], weights: Weights) -> float:
    """The score of a candidate, 0-1."""
    return squashed(sum(weights.passage[name] * value for name, value in zip(FEATURES, measured, strict=True)))


@dataclass(frozen=True, slots=True)
class Weights:
    """The least score of a passage (`bar`, 0-1), the weights of its features, and those of a sentence's signs."""

    bar: float
    passage: Mapping[str, float]
    assertion: Mapping[str, float]


@cache
def shipped() -> Weights:
    """The weights shipped with csmd."""
    held = wire.loads(resources.files("csmd.data").joinpath("chooser.json").read_bytes())
    return Weights(float(held["bar"]), dict(held["passage"]), dict(held["assertion"]))


def squashed(total: float) -> float:
    """The logistic function of a sum of weights, 0-1."""
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, total))))


#: How many words of a sentence are read.
MAX_WORDS = 40
#: The lengths in words that the signs tell apart.
LENGTHS = (4, 8, 12, 18, 26)

_WORD = re.compile(r"[a-z][a-z']*|\d+|[?`]")


def signs(sentence: str) -> set[str]:
    """The features of a sentence: its words, its first word, and its length."""
    words = _WORD.findall(sentence.lower().replace("’", "'"))[:MAX_WORDS]
    first = f"^{words[0]}" if words else "^"
    return (
        {"0" if word.isdigit() else word for word in words}
        | {first}
        | {f">{size}" for size in LENGTHS if len(words) > size}
    )


def certainty(sentence: str, weights: Weights) -> float:
    """How likely, 0-1, the sentence states something that lasts."""
    held = weights.assertion
    return squashed(held[""] + sum(held.get(sign, 0.0) for sign in signs(sentence)))


# --- sameness


def _share(content: frozenset[str], other: frozenset[str]) -> float:
    return len(content & other) / max(1, len(content))


def _same(left: frozenset[str], right: frozenset[str]) -> bool:
    shared, fewer = len(left & right), min(len(left), len(right))
    return shared > SAME * fewer and shared >= min(SAME_WORDS, fewer)


@cached(64)
def _content(turn: StoredTurn | None) -> frozenset[str]:
    return frozenset(content_words(turn.text[:COMPARED])) if turn is not None else frozenset()


@cached(8)
def _bare(text: str) -> str:
    """A text reduced to its words, to find one text in another."""
    return " ".join(["", *words_of(text), ""])


def _quotes(text: str, other: str) -> bool:
    """Whether most of a text occurs word for word in another, which is bare."""
    own = words_of(text)
    runs = range(len(own) - QUOTED_WORDS + 1)
    taken = {
        at + step
        for at in runs
        if _bare(" ".join(own[at : at + QUOTED_WORDS])) in other
        for step in range(QUOTED_WORDS)
    }
    return len(taken) > QUOTED_SHARE * len(own)
