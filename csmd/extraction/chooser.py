"""Chooses the statements of a conversation: the passages of its turns that are worth remembering; pure.

A turn gives its best passage (candidate_passages.py, passage_scores.py), unless that was said before; a prompt also
gives its assertions (prompt_assertions.py). A short answer takes over a proposal (acceptance.py), and some forms are
statements as they are (verbatim_statements.py). A user's assertion repeats only the user's own statements.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, get_args

from csmd.cache import cached
from csmd.conversation import StoredTurn
from csmd.extraction import acceptance, classifier, passage_scores, prompt_assertions, verbatim_statements
from csmd.extraction.candidate_passages import find_passages
from csmd.extraction.exchange_sources import Role, Source
from csmd.extraction.passage_scores import Passage, Weights, load_weights, make_passage
from csmd.hosts import adapters
from csmd.knowledge import Statement
from csmd.text import prose, quotations, sentence, trimming
from csmd.text.sentence import Speaker, parse
from csmd.text.similarity import gist, share
from csmd.text.switches import changes_mind
from csmd.text.tokens import content_words, words_of
from csmd.text.trimming import trim_statement
from csmd.vocabulary import PROMPTS, Authority

#: Most statements of one turn, if not one. A summary of hours of work states several things.
MAX_STATEMENTS: dict[Role, int] = {"summary": 3}
#: Agents' reports quote others; the reply repeats what matters.
SKIPPED_ROLES: frozenset[Role] = frozenset({"report"})
#: A passage that names a cause needs only this score instead of the bar: a diagnosis may be short.
MIN_DIAGNOSIS_SCORE = 0.28
#: A passage repeats another if it shares more than this of the shorter one's content words.
MAX_SHARED = 0.3
#: Fewest words that they share: two preferences share a word and nothing else.
MIN_SHARED_WORDS = 3
#: A user's assertion is a repeat if the user's earlier statement has this share of its content words.
MIN_OWN_SHARED = 0.7
#: Two statements count as equally long up to this ratio; then a differing word is another value.
MAX_SIZE_RATIO = 1.5
#: A reply repeats a prompt that gave a statement if they share this much.
MIN_PROMPT_SHARED = 0.5
#: A statement cites the prompt or reply of its exchange if it has this share of its content words from there.
MIN_CITED_SHARED = {"prompt": 0.15, "reply": 0.05}
#: How sure it is that a user decided what they accepted in a few words.
ACCEPTED_CONFIDENCE = 0.85
#: A run of this many words of the assistant's is a quotation.
QUOTED_WORDS = 8
#: A text with this share of quoted words quotes.
MIN_QUOTED_SHARE = 0.6
#: How much of the other half of an exchange is compared with, in characters.
MAX_COMPARED_CHARACTERS = 20_000
#: A beginning that names the cause of something, and how it comes about.
_CAUSE = re.compile(
    r"(?:(?:so|and|but|ah|ok(?:ay)?|here|found it)\b[:.!,-]* ){0,2}"
    r"(?:(?:the|this is the|that['’]s the) )?(?:(?:real|actual|main|underlying) )?"
    r"(?:root cause|cause|culprit|reason|catch|bug|problem|issue)\b[^.:]{0,40}?(?::| (?:is|was)\b).{20,}",
    re.IGNORECASE,
)


class EarlierStatement(NamedTuple):
    """The content words of a statement, whether it is the user's, and its negations (`Gist.turns`)."""

    content: frozenset[str]
    by_user: bool
    negations: tuple[str, ...] = ()


class Chosen(NamedTuple):
    """A statement with its turn, its passage there and the content words by which it is compared."""

    turn: StoredTurn
    statement: Statement
    content: frozenset[str]
    passage: Passage


def choose(
    sources: Iterable[Source],
    *,
    earlier: Iterable[EarlierStatement] = (),
    last_reply: str = "",
    weights: Weights | None = None,
) -> list[Chosen]:
    """Chooses the statements of a conversation's sources, in order; a prompt's cites the reply on the same subject.

    `earlier` are the statements of the session before these sources, `last_reply` is what the assistant said last;
    `weights` default to the shipped ones.
    """
    weights = weights or load_weights()
    chosen: list[Chosen] = []
    earlier_statements = list(earlier)
    prompt: StoredTurn | None = None
    prompt_has_statement = False
    for source in sources:
        turn = source.turn
        if source.role in SKIPPED_ROLES or adapters.is_written_for_user(turn.text):
            continue
        if source.role == "prompt":
            new = _choose_from_prompt(turn, earlier_statements, weights, last_reply, prompt.text if prompt else "")
            prompt, prompt_has_statement = turn, bool(new)
            last_reply = ""  # a later prompt does not answer it
        else:
            new = _choose_from_work(
                source, prompt, earlier_statements, weights, prompt_has_statement=prompt_has_statement
            )
        if source.role == "reply":
            chosen = [_cite_reply(choice, turn) if choice.turn is prompt else choice for choice in chosen]
        if source.role in ("reply", "midway"):
            last_reply = turn.text
        chosen += new
        earlier_statements += map(_to_earlier, new)
    return chosen


def choose_from_turn(turn: StoredTurn, *, last_reply: str = "") -> list[Statement]:
    """Chooses the statements of a single turn; `last_reply` is the assistant's message before it."""
    role: Role = "prompt" if turn.kind in PROMPTS else "reply"
    return [choice.statement for choice in choose([Source(turn, role)], last_reply=last_reply)]


def _choose_from_prompt(
    turn: StoredTurn,
    earlier_statements: Sequence[EarlierStatement],
    weights: Weights,
    last_reply: str,
    last_prompt: str,
) -> list[Chosen]:
    if verbatim := verbatim_statements.find_verbatim(turn):
        return [_keep_whole(turn, statement) for statement in verbatim]
    outline = split_turn(turn)
    candidates = _rank_passages(outline, "user", frozenset(), weights)
    asserted = prompt_assertions.find_assertions(outline, weights)
    if not candidates and not prompt_assertions.has_sure_assertion(outline, weights):
        asserted = []
    if len(asserted) == 1:  # keep the sentences that continue it
        asserted = [passage for passage in candidates if passage.first == asserted[0].first] or asserted
    limit = prompt_assertions.MAX_ASSERTED if asserted else MAX_STATEMENTS.get("prompt", 1)
    # Long handed-over text is compared like any text, not as an assertion.
    are_assertions = bool(asserted) and len(outline) <= prompt_assertions.SHORT_PROMPT_SENTENCES
    lasting = [(passage, True) for passage in prompt_assertions.find_lasting_passages(outline, weights)]
    offers = [
        # An announced change of mind says nothing without the sentence that holds from now on.
        *(offer for offer in lasting if changes_mind(outline[offer[0].first].text)),
        *((passage, are_assertions) for passage in asserted or candidates),
        *lasting,
    ]
    chosen: list[Chosen] = []
    for offered, is_assertion in offers:
        passage = prompt_assertions.with_value(offered, outline)
        is_exempt = is_assertion and not asserted
        if (
            (len(chosen) != limit or is_exempt)
            and _is_new(passage, chosen, earlier_statements, is_assertion=is_assertion)
            and not (passage.first == passage.last and sentence.complains(parse(passage.text)))
            and not _is_quotation(passage.text, last_reply)
        ):
            chosen.append(_classify(turn, passage, None))
    chosen.sort(key=lambda choice: choice.passage.first)
    accepted = _find_accepted_proposal(turn, last_reply, last_prompt)
    # A short answer is told with what it answers.
    own = [choice for choice in chosen if not any(choice.statement.text in each.statement.text for each in accepted)]
    return [*accepted, *own]


def _choose_from_work(
    source: Source,
    prompt: StoredTurn | None,
    earlier_statements: Sequence[EarlierStatement],
    weights: Weights,
    *,
    prompt_has_statement: bool,
) -> list[Chosen]:
    """Chooses the statements of a source that is not a prompt; `prompt` is that of its exchange."""
    if source.turn.kind != "assistant":
        return []
    prompt_content = read_content(prompt)
    chosen: list[Chosen] = []
    for passage in _rank_passages(split_turn(source.turn), "assistant", prompt_content, weights):
        repeats_prompt = prompt_has_statement and share(passage.content, prompt_content) >= MIN_PROMPT_SHARED
        if not repeats_prompt and _is_new(passage, chosen, earlier_statements, is_assertion=False):
            chosen.append(_classify(source.turn, passage, prompt))
        if len(chosen) == MAX_STATEMENTS.get(source.role, 1):
            break
    return sorted(chosen, key=lambda choice: choice.passage.first)


def _rank_passages(
    outline: Sequence[prose.Sentence], speaker: Speaker, prompt_content: frozenset[str], weights: Weights
) -> list[Passage]:
    """Returns the passages of a turn that reach the bar, best first."""
    passages = find_passages(outline, speaker)
    measure = partial(
        passage_scores.measure_features, user=speaker == "user", prompt_content=prompt_content, among=len(passages)
    )
    scores = [passage_scores.score_features(measure(passage), weights) for passage in passages]
    ranked = sorted(zip(scores, passages, strict=True), key=lambda scored: (-scored[0], scored[1].first))
    bars = (MIN_DIAGNOSIS_SCORE if _CAUSE.match(passage.text) else weights.bar for _, passage in ranked)
    return [passage for (score, passage), bar in zip(ranked, bars, strict=True) if score >= bar]


def split_turn(turn: StoredTurn) -> list[prose.Sentence]:
    """Splits a turn into sentences; a prompt without its quotations, and also where a rule follows an order."""
    if turn.kind not in PROMPTS:
        return prose.outline(turn.text)
    own = prose.outline(quotations.blank_quotations(turn.text))
    return [each._replace(text=clause) for each in own for clause in trimming.split_clauses(each.text)]


def _find_accepted_proposal(turn: StoredTurn, last_reply: str, last_prompt: str) -> list[Chosen]:
    """Returns the decision that a typed prompt makes by accepting what the assistant proposed; [] for none.

    A correction of a value counts as one; it may also correct the user's last prompt.
    """
    if turn.kind != "user":
        return []
    own = quotations.blank_quotations(turn.text)
    text = acceptance.accepted(own, last_reply) or acceptance.corrected(own, last_prompt, "user", since=last_reply)
    if not text:
        return []
    statement = Statement(
        text=text, gate="epistemic", category="decision", confidence=ACCEPTED_CONFIDENCE, authority="user",
        reasons=("accepted",),
    )  # fmt: skip
    return [_keep_whole(turn, statement)]


def _keep_whole(turn: StoredTurn, statement: Statement) -> Chosen:
    """Returns a statement whose text is not a passage of its turn."""
    passage = make_passage(-1, -1, statement.text)
    return Chosen(turn, statement, passage.content, passage)


def _classify(turn: StoredTurn, passage: Passage, prompt: StoredTurn | None) -> Chosen:
    speaker: Speaker = "user" if turn.kind in PROMPTS else "assistant"
    authority: Authority = "user" if turn.kind == "user" else "assistant"
    read = parse(passage.text, speaker)
    what = classifier.classify(passage.text, speaker=speaker)
    # Only the user corrects, and not while thinking aloud.
    if what.gate == "correction" and (authority != "user" or read.is_musing):
        what = classifier.classify(passage.text, speaker="assistant")
    is_order = speaker == "user" and what.category == "preference" and _has_only_orders(passage.text)
    if is_order or (what.gate == "relational" and sentence.is_of_program(read.words)):
        what = replace(what, gate="epistemic", category="fact")
    text = trim_statement(passage.text)
    statement = Statement(
        text=text, gate=what.gate, category=what.category, confidence=what.confidence, authority=authority,
        reasons=what.reasons or ("passage",), also=cite(passage.content, prompt, "reply"),
    )  # fmt: skip
    return Chosen(turn, statement, frozenset(content_words(text)), passage)


def _has_only_orders(text: str) -> bool:
    """Whether a text only orders something for now; such a text is not a preference."""
    sentences = prose.split_sentences(text)
    return all(parse(each).kind == "orders" and not sentence.states_something(each) for each in sentences)


def _cite_reply(chosen: Chosen, reply: StoredTurn) -> Chosen:
    """Cites the reply in a prompt's statement, if it is on the same subject."""
    also = cite(chosen.content, reply, "prompt")
    return chosen._replace(statement=replace(chosen.statement, also=also)) if also else chosen


def cite(content: frozenset[str], other: StoredTurn | None, role: str) -> tuple[str, ...]:
    """Returns the uuid of the other half of an exchange, if it is on the same subject as a statement in `role`."""
    return (other.uuid,) if other and share(content, read_content(other)) >= MIN_CITED_SHARED[role] else ()


def find_wordings(text: str) -> list[str]:
    """Finds all wordings that a statement of a text may have: its sentences and passages, whole and trimmed."""
    outline = prose.outline(text)
    texts = [each.text for each in outline]
    texts += [passage.text for speaker in get_args(Speaker) for passage in find_passages(outline, speaker)]
    return list(dict.fromkeys([*texts, *map(trim_statement, texts), *verbatim_statements.find_picks(text)]))


# --- repetition


def to_earlier(text: str, *, by_user: bool) -> EarlierStatement:
    """Returns the form in which a statement is compared with later ones."""
    return EarlierStatement(frozenset(content_words(text)), by_user, gist(text).turns)


def _to_earlier(chosen: Chosen) -> EarlierStatement:
    return to_earlier(chosen.statement.text, by_user=chosen.statement.authority == "user")


def _is_new(
    passage: Passage, chosen: Sequence[Chosen], earlier_statements: Sequence[EarlierStatement], *, is_assertion: bool
) -> bool:
    """Whether a passage overlaps none that was chosen of its turn, and repeats no statement.

    An assertion repeats only the user's own statements, with most of its words; other passages repeat anybody's.
    """
    if any(passage.first <= choice.passage.last and choice.passage.first <= passage.last for choice in chosen):
        return False
    statements = [*earlier_statements, *map(_to_earlier, chosen)]
    if is_assertion:
        negations = gist(passage.text).turns
        return not any(earlier.by_user and _is_repeat(passage.content, negations, earlier) for earlier in statements)
    return not any(_is_similar(passage.content, earlier.content) for earlier in statements)


def _is_repeat(content: frozenset[str], negations: tuple[str, ...], earlier: EarlierStatement) -> bool:
    """Whether an assertion repeats an earlier one.

    Of two of one size none has a word in another's place, and none negates the other.
    """
    if len(content & earlier.content) < MIN_OWN_SHARED * len(content):
        return False
    has_other_word = content - earlier.content and earlier.content - content
    is_longer = len(earlier.content) > MAX_SIZE_RATIO * len(content)
    return is_longer or not (has_other_word or negations != earlier.negations)


def _is_similar(content: frozenset[str], other: frozenset[str]) -> bool:
    shared, shorter = len(content & other), min(len(content), len(other))
    return shared > MAX_SHARED * shorter and shared >= min(MIN_SHARED_WORDS, shorter)


@cached(64)
def read_content(turn: StoredTurn | None) -> frozenset[str]:
    """Returns the content words by which a turn is compared with statements; none if there is no turn."""
    return frozenset(content_words(turn.text[:MAX_COMPARED_CHARACTERS])) if turn is not None else frozenset()


@cached(8)
def _join_words(text: str) -> str:
    """Reduces a text to its words, to find one text in another."""
    return " ".join(["", *words_of(text), ""])


def _is_quotation(text: str, message: str) -> bool:
    """Whether most of a text occurs word for word in a message."""
    words, message_words = words_of(text), _join_words(message)
    quoted = {
        at + step
        for at in range(len(words) - QUOTED_WORDS + 1)
        if f" {' '.join(words[at : at + QUOTED_WORDS])} " in message_words
        for step in range(QUOTED_WORDS)
    }
    return len(quoted) > MIN_QUOTED_SHARE * len(words)
