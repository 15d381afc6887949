"""Search, brief and recall over a real store: by words, by meaning, within scopes, told once."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csmd.briefs import BriefItem
from csmd.capture import project_identity
from csmd.conversation import Event, Project, Turn
from csmd.embedding import installed_models
from csmd.embedding.worker_client import Embedder
from csmd.errors import EmbeddingUnavailable
from csmd.knowledge import Provenance, Statement
from csmd.memory import remember
from csmd.recall import brief, hybrid_search, loaded_instructions, results, visibility
from csmd.recall import prompt as prompts
from csmd.store import events, projects, receipts, turns, vectors
from csmd.store.core import Store
from csmd.store.sqlite import Rows
from csmd.text import tokens

NOW = "2026-03-01T10:00:00.000Z"
HERE, THERE = "/p/alpha", "/p/beta"


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = Path(__file__).resolve().parent.parent / "onnx_models.py"
    spec = importlib.util.spec_from_file_location("onnx_models", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return Path(module.build_tiny(tmp_path_factory.mktemp("tiny")))


def project(rows: Rows, root: str) -> int:
    place = project_identity.identify_directory(root)
    return projects.ensure(rows, Project(key=place.key, root=root, name=place.name, kind="path"), now=NOW)


def say(store: Store, body: str, number: int, *, root: str = HERE, session: str = "s1") -> str:
    turn = Turn(
        uuid=f"{session}-{number}", session_id=session, kind="user" if number % 2 else "assistant", text=body,
        at=f"2026-03-01T10:{number:02d}:00.000Z", cwd=root,
    )  # fmt: skip
    store.write(
        lambda rows: turns.add_turn(
            rows,
            turn,
            text_hash=tokens.keyed_hash(body, store.hash_key),
            host="claude",
            project=project(rows, root),
            path="",
        )
    )
    return turn.uuid


def save_memory(store: Store, body: str, uuid: str, *, root: str = HERE, origin: str = "stated") -> str:
    said = Statement(text=body, gate="epistemic", category="decision", confidence=0.9, authority="user")
    return store.write(
        lambda rows: remember.remember(
            rows, said, Provenance(uuid=uuid, session_id="s1", at=NOW), project=project(rows, root), origin=origin,
            key=store.hash_key,
        )[0]
    )  # fmt: skip


def find(
    store: Store, query: str, *, root: str | None = HERE, kind: str = "all", embed: hybrid_search.Embed | None = None
):
    return store.read(
        lambda rows: results.find(
            rows, query, projects=visibility.scopes(rows, root) if root else None, kind=kind, limit=10, embed=embed
        )
    )


def test_without_a_model_search_is_by_words_and_complete(store: Store) -> None:
    uuid = say(store, "the staging cluster lives behind the VPN", 1)
    hits, degraded = find(store, "where is the staging cluster?")
    assert [hit.source_uuids for hit in hits] == [(uuid,)]
    assert degraded == []


@pytest.mark.invariant("What fails degrades the answer and is named in it")
def test_a_worker_that_fails_degrades_the_search_and_no_more(store: Store) -> None:
    def broken(query: str) -> tuple[bytes, str]:
        raise EmbeddingUnavailable("the worker has a cold")

    say(store, "the staging cluster lives behind the VPN", 1)
    hits, degraded = find(store, "staging cluster", embed=broken)
    assert len(hits) == 1
    assert degraded == ["vectors: the worker has a cold"]


@pytest.mark.invariant("A project's memories stay in it, unless their words say that they hold everywhere")
def test_another_projects_turns_and_memories_stay_there(store: Store) -> None:
    save_memory(
        store, "alpha always deploys with `make ship` from the release branch", say(store, "alpha deploys so", 1)
    )
    save_memory(
        store,
        "beta always deploys with `just push` from main",
        say(store, "beta deploys so", 1, root=THERE, session="s2"),
        root=THERE,
    )
    assert {hit.project for hit in find(store, "deploys")[0]} == {HERE}
    assert {hit.project for hit in find(store, "deploys", root=None)[0]} == {HERE, THERE}
    told = store.read(
        lambda rows: brief.session_brief(
            rows, places=visibility.scopes(rows, HERE), session_id="", max_tokens=900, key=store.hash_key
        )
    )
    assert "make ship" in told.text
    assert "just push" not in told.text


@pytest.fixture
def checkouts(tmp_path: Path) -> dict[str, str]:
    """The directories of a repository and of two of its worktrees, one of them below it."""
    main, spike, inner = tmp_path / "shop", tmp_path / "shop-spike", tmp_path / "shop" / ".worktrees" / "fix"
    for tree in (main, spike, inner):
        (tree / "src").mkdir(parents=True)
    (main / ".git").mkdir()
    (main / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    for tree in (spike, inner):
        data = main / ".git" / "worktrees" / tree.name
        data.mkdir(parents=True)
        (data / "commondir").write_text("../..\n")
        (tree / ".git").write_text(f"gitdir: {data}\n")
    return {"main": str(main), "spike": str(spike), "inner": str(inner)}


#: What is said in a checkout of a project, and the checkouts in which it is told.
OF_CHECKOUTS = [
    ("In this worktree the importer always writes to sqlite.", "spike", {"spike"}),
    ("This branch must keep the importer on Node 18.", "inner", {"inner"}),
    ("On release/2.4 the importer only gets fixes.", "main", {"main"}),
    ("In ../shop-spike the importer always writes to sqlite.", "main", {"spike"}),
    ("On this worktree the importer only writes to sqlite.", "inner", {"inner"}),
    ("For this branch the importer must write to sqlite.", "spike", {"spike"}),
    ("On feature/import the importer never writes to sqlite.", "spike", {"spike"}),
    ("The importer always writes to sqlite.", "spike", {"main", "spike", "inner"}),
]


@pytest.mark.parametrize("asks", [("brief", "recall"), ("recall",)], ids=["remembered", "only said"])
@pytest.mark.parametrize(("said", "where", "wanted"), OF_CHECKOUTS)
def test_what_is_of_a_worktree_or_branch_is_told_in_no_other_checkout(
    store: Store, checkouts: dict[str, str], said: str, where: str, wanted: set[str], asks: tuple[str, ...]
) -> None:
    def write(rows: Rows) -> None:
        home = projects.ensure_with_directory(
            rows, project_identity.identify_directory(f"{checkouts[where]}/src"), now=NOW
        )
        turn = Turn(uuid="u1", session_id="s1", kind="user", text=said, at=NOW, cwd=checkouts[where])
        turns.add_turn(
            rows, turn, text_hash=tokens.keyed_hash(said, store.hash_key), host="claude", project=home.seq,
            directory=home.directory, path="",
        )  # fmt: skip
        stated = Statement(text=said, gate="epistemic", category="decision", confidence=0.9, authority="user")
        source = Provenance(uuid="u1", session_id="s1", at=NOW)
        if "brief" in asks:
            remember.remember(rows, stated, source, project=home.seq, origin="stated", key=store.hash_key)

    store.write(write)
    for ask in asks:

        def told(rows: Rows, asking: str, ask: str = ask) -> str:
            places = visibility.scopes(rows, asking)
            if ask == "brief":
                return brief.session_brief(
                    rows, places=places, session_id="", max_tokens=900, asking=asking, key=store.hash_key
                ).text
            return prompts.recall(
                rows, places=places, session_id="", prompt="what does the importer write to, only fixes on Node?", floor=0.0,
                max_tokens=400, max_items=5, embed=None, key=store.hash_key, asking=asking,
            ).text  # fmt: skip

        found = {name for name, path in checkouts.items() if store.read(lambda rows, path=path: told(rows, path))}  # type: ignore[misc]
        assert found == wanted, ask


def test_an_unknown_place_sees_only_what_holds_everywhere(store: Store) -> None:
    save_memory(
        store, "alpha always deploys with `make ship` from the release branch", say(store, "alpha deploys so", 1)
    )
    told = store.read(
        lambda rows: brief.session_brief(
            rows, places=visibility.scopes(rows, "/nowhere"), session_id="", max_tokens=900, key=store.hash_key
        )
    )
    assert told.text == ""


def test_hits_carry_the_contracts_fields_best_first(store: Store) -> None:
    uuid = say(store, "let's go with Postgres for the job queue because we need LISTEN/NOTIFY", 1)
    ident = save_memory(store, "let's go with Postgres for the job queue because we need LISTEN/NOTIFY", uuid)
    hits, _ = find(store, "which database for the job queue?")
    assert hits == sorted(hits, key=lambda hit: -hit.score)
    memory = next(hit for hit in find(store, "job queue", kind="memory")[0] if hit.kind == "memory")
    assert (memory.id, memory.source_uuids, memory.gate, memory.authority) == (ident, (uuid,), "epistemic", "user")
    assert find(store, "zzz nothing like it")[0] == []
    assert find(store, "")[0] == []


@pytest.mark.parametrize(
    "query", ['"', "NEAR(", "a OR", "*", "-- ; drop table turns", "' or 1=1", "()", "^x", "col:x", "\\"]
)
def test_no_query_is_syntax(store: Store, query: str) -> None:
    say(store, "or near column drop table turns x", 1)
    find(store, query)


def test_vectors_find_what_words_do_not_and_follow_their_scope(store: Store, tiny: Path) -> None:
    embedder = Embedder(tiny, idle_s=60, environment={"PATH": os.environ["PATH"]})
    try:
        name = installed_models.model_identity(tiny)
        embed: Callable[[str], tuple[bytes, str]] = lambda query: (embedder.embed([query], deadline_s=20)[0], name)  # noqa: E731
        said = ["the staging cluster lives behind the VPN", "tabs are four spaces wide in this code"]
        for number, body in enumerate(said):
            say(store, body, 2 * number + 1, session=f"s{number}")
        made = embedder.embed(said, deadline_s=20)

        def write(rows: Rows) -> None:
            model = vectors.ensure_model(rows, name, len(made[0]), now=NOW)
            waiting = vectors.read_backlog(rows, "passage", model, limit=9)
            rows_made = [(seq, place, 0, len(body), made[said.index(body)]) for seq, place, body in waiting]
            vectors.add_vectors(rows, "passage", model, rows_made, reached=waiting[-1][0])

        store.write(write)
        hits, degraded = find(store, "staging cluster VPN", embed=embed)
        assert degraded == []
        assert said[0] in hits[0].text and hits[0].source_uuids[0] == "s0-1"
        assert {"words", "meaning"} <= set(hits[0].factors)
        assert find(store, "staging cluster VPN", root=THERE, embed=embed)[0] == []
    finally:
        embedder.close()


def start(store: Store, source: str, number: int) -> None:
    event = Event(id=f"e{number}", host="claude", name="session_start", session_id="s9", source=source, payload=str(number),
                  at=f"2026-03-02T10:{number:02d}:00.000Z")  # fmt: skip
    store.write(lambda rows: events.record_event(rows, event, text_hash="", payload_hash=str(number)))


def brief_of(store: Store, number: int) -> str:
    made = store.read(
        lambda rows: brief.session_brief(
            rows, places=visibility.scopes(rows, HERE), session_id="s9", max_tokens=900, key=store.hash_key
        )
    )
    if made.text:
        store.write(
            lambda rows: receipts.add_receipt(
                rows, receipt_id=f"r{number}", session_id="s9", event="session_start", project=1,
                at=f"2026-03-02T10:{number:02d}:30.000Z", tokens=made.tokens, text_hash="", items=made.items,
            )
        )  # fmt: skip
    return made.text


@pytest.mark.invariant("A session is told once what bears on it, and nothing else")
def test_a_session_is_told_once_and_again_after_its_context_was_lost(store: Store) -> None:
    uuid = say(store, "alpha deploys so", 1)
    save_memory(store, "alpha always deploys with `make ship` from the release branch", uuid)
    start(store, "startup", 1)
    first = brief_of(store, 1)
    assert first
    start(store, "resume", 2)
    assert brief_of(store, 2) == "", "resumed: it is in the context still"
    start(store, "compact", 3)
    assert brief_of(store, 3) == first, "compacted: the same bytes again"


def test_what_a_session_said_itself_is_not_told_back_to_it(store: Store) -> None:
    save_memory(store, "the billing service deploys to staging with `make ship`", say(store, "x", 1))
    asked = "how do we deploy the billing service to staging?"
    assert recall(store, asked, session="s1") == []
    assert recall(store, asked, session="s9") != []


def recall(store: Store, prompt: str, session: str = "s9") -> list[BriefItem]:
    made = store.read(
        lambda rows: prompts.recall(
            rows,
            places=visibility.scopes(rows, HERE),
            session_id=session,
            prompt=prompt,
            floor=0.5,
            max_tokens=350,
            max_items=4,
            embed=None,
            key=store.hash_key,
        )
    )
    assert bool(made.text) is bool(made.items)
    return list(made.items)


@pytest.mark.invariant("A session is told once what bears on it, and nothing else")
def test_a_prompt_gets_what_bears_on_it_and_nothing_else(store: Store) -> None:
    ident = save_memory(store, "the billing service deploys to staging with `make ship`", say(store, "x", 1))
    save_memory(store, "the users table has a composite index on organisation", say(store, "y", 3))
    assert [item.id for item in recall(store, "how do we deploy the billing service to staging?")] == [ident]
    assert recall(store, "what is the capital of France?") == []
    assert recall(store, "yes") == []


@pytest.mark.invariant("Authority is set by the path; an assistant cannot raise its own")
def test_what_the_assistant_saved_by_itself_is_found_but_not_told(store: Store) -> None:
    save_memory(
        store, "the billing service deploys to staging with `make ship`", say(store, "x", 1), origin="model_saved"
    )
    assert recall(store, "how do we deploy the billing service to staging?") == []
    assert find(store, "billing service deploy", kind="memory")[0]


def state(store: Store, body: str, number: int, **more: str) -> str:
    """A turn and the memory that it states."""
    uuid = say(store, body, number, **more)
    said = Statement(text=body, gate="epistemic", category="decision", confidence=0.9, authority="user")
    source = Provenance(uuid=uuid, session_id=more.get("session", "s1"), at=f"2026-03-01T10:{number:02d}:00.000Z")
    return store.write(
        lambda rows: remember.remember(
            rows, said, source, project=project(rows, HERE), origin="stated", key=store.hash_key
        )[0]
    )


@pytest.mark.invariant("What was superseded stands behind what replaced it in a search, and says so")
def test_what_was_superseded_stands_behind_what_replaced_it_and_says_so_turns_too(store: Store) -> None:
    state(store, "Use npm in the web client for packages", 1)
    new = state(store, "Use pnpm in the web client for packages, not npm", 3, session="s2")
    for kind in ("memory", "turn", "all"):
        first, second = find(store, "npm packages in the web client", kind=kind)[0]
        assert (first.superseded_by, second.superseded_by) == ("", new)
        assert first.text.startswith("Use pnpm")


def test_what_was_said_under_an_old_name_is_found_by_the_new_one(store: Store) -> None:
    state(store, "`app.toml` was renamed to `settings.yaml`", 3)
    uuid = say(store, "the port is read from app.toml", 1, session="s2")
    hits, _ = find(store, "settings.yaml", kind="turn")
    assert uuid in [hit.source_uuids[0] for hit in hits]


# --- What CLAUDE.md says is not told again; what is more than that, or against it, is.


CLAUDE_MD = """# Shop

Run `npm test` before every commit. Never push to main directly.

## Style
- Prefer pathlib over os.path in this code.
- Use four spaces for indentation, never tabs.
- The config key is `database_url`, not `db_url`.
* Keep functions short; write a docstring for each public function, in one sentence.
- We moved the job queue from Redis to Postgres because of LISTEN/NOTIFY.
- Write **all** dates as ISO-8601 in UTC.

Hard-wrapped lines are joined into paragraphs here, and the deployment of the staging
environment needs the VPN to be connected first.

```sh
make release VERSION=patch
```
"""

SAID = [
    "Prefer pathlib over os.path in this code.",
    "prefer pathlib over os.path in this code",
    "Use four spaces for indentation, never tabs",
    "the config key is database_url, not db_url",
    "Run npm test before every commit.",
    "Run npm test before each commit",
    "Write all dates as ISO-8601 in UTC",
    "The deployment of the staging environment needs the VPN to be connected first.",
    "We moved the job queue from Redis to Postgres",
    "Write a docstring for each public function.",
    "Run npm test before every commit. Never push to main directly.",
]
NOT_SAID = [
    # against it
    "Use two spaces for indentation, never tabs",
    "Use tabs for indentation, never four spaces",
    "The config key is `db_url`, not `database_url`.",
    "Prefer os.path over pathlib in this code.",
    "We moved the job queue from Postgres to Redis because of LISTEN/NOTIFY.",
    "Run npm test after every commit.",
    "Push to main directly.",
    "Do not write a docstring for each public function.",
    "No, that's wrong: don't prefer pathlib over os.path in this code.",
    "Run pnpm test before every commit.",
    # more than it
    "Prefer pathlib over os.path in this code, but the vendored scripts keep os.path because they run on Python 2.",
    "Run npm test before every commit. The integration tests need Docker.",
    # perhaps: where words turn a sentence round, their order counts, and what is not sure is told
    "Never push directly to main.",
    # too little of it to be sure
    "Prefer pathlib",
    "Use spaces",
    # something else
    "make release VERSION=patch",
    "The staging environment is in Frankfurt.",
    "",
    "the and of",
]


def check(statement: str, *, told: bool) -> None:
    assert (
        loaded_instructions.index_sentences((CLAUDE_MD, "- [VPN](vpn.md) — how to connect")).says(statement) == told
    ), statement


@pytest.mark.parametrize("statement", SAID)
def test_what_stands_there_is_known(statement: str) -> None:
    check(statement, told=True)


@pytest.mark.parametrize("statement", NOT_SAID)
def test_what_does_not_stand_there_is_told(statement: str) -> None:
    check(statement, told=False)


@given(st.lists(st.text(max_size=200), max_size=4), st.text(max_size=200))
def test_any_text_can_be_asked_for_in_any_other(texts: list[str], statement: str) -> None:
    assert loaded_instructions.index_sentences(tuple(texts)).says(statement) in (True, False)
    assert not loaded_instructions.index_sentences(()).says(statement)


def test_the_same_texts_are_taken_apart_once() -> None:
    assert loaded_instructions.index_sentences((CLAUDE_MD,)) is loaded_instructions.index_sentences((CLAUDE_MD,))


def test_what_a_session_said_is_its_own_though_its_start_was_heard_later(store: Store) -> None:
    say(store, "the invoice renderer keeps fonts embedded, because the printers are old", 1, session="s9")
    start(store, "startup", 30)
    asked = "does the invoice renderer keep fonts embedded for the printers?"
    assert recall(store, asked) == []
    assert recall(store, asked, session="s1") != []
