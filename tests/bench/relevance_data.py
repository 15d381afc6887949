"""The homes and labelled prompts that train_relevance.py learns from: carry-over scenarios, questions and real prompts.

A home is a directory made by `prepare`: the carry-over scenarios each alone, ten to a project and all in one project, and
the transcripts of both labelled sets. Of real prompts it keeps copies of a store that grew session by session, one from
before each session that is asked about. Prompts are asked in process, so that features are those of csmd.recall.prompt.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from csmd.config import Settings
from csmd.embedding import worker
from csmd.recall import hybrid_search, prompt, threads, visibility
from csmd.recall.hybrid_search import Embed, ScoredStatement
from csmd.recall.prompt import Line
from csmd.recall.statement_filter import StatementFilter
from csmd.store import passages, sqlite
from csmd.store.sqlite import Rows

#: The homes of carry-over with how many scenarios share a project, and the folder of each labelled set.
CARRY_OVER = {"alone": 1, "ten": 10, "all": 1000}
LABELLED = {"eval": ".", "projects": "projects"}
#: Of an evidence turn a passage is right that covers so much of the quote; a quote of fewer words is always covered.
COVERED, MIN_WORDS = 0.3, 3
#: Seconds that a daemon is waited for.
PATIENCE = 60.0
#: Characters of a real prompt that are asked, as its scorer does.
ASKED = 4_000


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A statement that was scored for a prompt, and whether it is what the prompt needs."""

    features: dict[str, float]
    right: bool


@dataclass(frozen=True, kw_only=True)
class Case:
    """A prompt with its candidates, statements or lines, and the `values` that tell whether it needs any of its lines.

    `kind`: task, foreign (the task in a project that knows nothing of it), silent (work for which nothing is known), idle (no work),
    question, unanswerable, ordinary, or y and n of real prompts. `part`: tune or check of carry-over, else the project.
    """

    kind: str
    part: str
    candidates: list[Candidate] = field(default_factory=list)
    values: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class LabelledPair:
    """The features of an older and a newer passage, and whether the newer one changes what the older one decided."""

    part: str
    features: dict[str, float]
    right: bool


@dataclass
class Sets:
    """The carry-over scenarios and the labelled sets with their scorers, read from one directory."""

    root: Path
    carry: ModuleType = field(init=False)
    replay: ModuleType = field(init=False)
    scenarios: list[dict[str, Any]] = field(init=False)
    prompts: list[dict[str, Any]] = field(init=False)

    def __post_init__(self) -> None:
        self.carry = load_module(self.root / "carryover" / "carry.py")
        self.replay = load_module(self.root / "prompts" / "replay.py")
        self.prompts = rows_of(self.root / "prompts" / "prompts.jsonl")
        self.scenarios = rows_of(self.root / "carryover" / "scenarios.jsonl")

    @property
    def tune(self) -> set[str]:
        """The scenarios of the half that weights are fitted on: every other one by its directory."""
        return {one["id"] for one in sorted(self.scenarios, key=lambda one: one["cwd"])[::2]}

    def scorer(self, name: str) -> ModuleType:
        """The scorer of a labelled set."""
        return load_module(self.root / LABELLED[name] / "score.py")

    def questions(self, name: str) -> list[dict[str, Any]]:
        """The questions of a labelled set, those without an answer included."""
        return rows_of(self.root / LABELLED[name] / "questions.jsonl")

    def ordinary(self) -> list[dict[str, Any]]:
        """Ordinary turns of the first labelled set, which need nothing."""
        return rows_of(self.root / "negatives.jsonl")


class Asker:
    """Asks prompts of homes as csmd does; owns the embedding model and what it has embedded. Without a model, words alone."""

    def __init__(self, model: Path | None) -> None:
        self._encode = worker.load_encoder(model) if model else None
        self._vectors: dict[str, bytes] = {}

    def embed(self, rows: Rows) -> Embed | None:
        """The embedding of a home's prompts."""
        if self._encode is None:
            return None
        encode = self._encode
        name = str(rows.value("SELECT name FROM vector_models ORDER BY seq DESC LIMIT 1"))

        def embedded(said: str) -> tuple[bytes, str]:
            if said not in self._vectors:
                self._vectors[said] = encode([said])[0]
            return self._vectors[said], name

        return embedded

    def bearing(self, rows: Rows, cwd: str, said: str) -> list[ScoredStatement]:
        """The candidates of a prompt in a directory, best first."""
        rows.read_cache = {}
        places = visibility.scopes(rows, cwd)
        return prompt.find_relevant(rows, places=places, prompt=said, embed=self.embed(rows), degraded=[])

    def lines(self, rows: Rows, cwd: str, said: str) -> tuple[list[Line], dict[str, float]] | None:
        """The lines that recall finds for a prompt, and what tells whether it needs any; None where nothing is looked for."""
        rows.read_cache = {}
        places = visibility.scopes(rows, cwd)
        asked = prompt.make_query(rows, said, places, self.embed(rows), [])
        terms = hybrid_search.weigh_terms(rows, asked, [])
        hits = hybrid_search.find(rows, asked, [])[: prompt.MAX_HITS] if prompt.rate_subject(terms) else []
        if not hits:
            return None
        visible = StatementFilter(rows, places=places, session_id="", prompt=said, key=b"x" * 32, asking=cwd)
        lines = prompt.find_lines(rows, hits, asked, terms, visible)
        return lines, prompt.measure_need(hits, lines, terms)

    def recall(self, rows: Rows, cwd: str, said: str) -> str:
        """What a prompt is told in a directory; "" for nothing, and without one."""
        rows.read_cache = {}
        settings = Settings()
        made = prompt.recall(
            rows, places=visibility.scopes(rows, cwd), session_id="", prompt=said[:ASKED], floor=settings.recall_floor,
            max_tokens=settings.recall_max_tokens, max_items=settings.recall_max_items, embed=self.embed(rows), key=b"x" * 32,
            asking=cwd,
        )  # fmt: skip
        return made.text if cwd else ""


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def load_module(path: Path) -> ModuleType:
    """A scorer that lies beside a labelled set."""
    spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def project_of(question: dict[str, Any], home: str) -> str:
    """The project that a question is of: by this a set is left out."""
    return "eval" if home == "eval" else str(question["repo"]).rpartition("/")[2]


@contextlib.contextmanager
def opened(home: Path) -> Iterator[Rows]:
    """A home's database, read-only."""
    with sqlite.open_rows(home / "csmd" / "csmd.db", readonly=True) as rows:
        yield rows


# --- making the homes


def prepare(sets: Sets, homes: Path, *, csmd: str, model: Path) -> None:
    """Imports every set into a home of its own; a home that exists is left as it is."""
    for name, together in CARRY_OVER.items():
        home = homes / name
        if home.exists():
            continue
        scenarios = [dict(one) for one in sets.scenarios]
        if together > 1:
            for place, one in enumerate(scenarios):
                one["cwd"] = f"/home/dev/shared{place // together}"
        uuids = sets.carry.write(scenarios, home / "tree" / "projects")
        (home / "uuids.json").write_text(json.dumps({"|".join(key): value for key, value in uuids.items()}))
        (home / "cwds.json").write_text(json.dumps({one["id"]: one["cwd"] for one in scenarios}))
        _import(home, home / "tree" / "projects", csmd=csmd, model=model)
    for name, folder in LABELLED.items():
        if not (homes / name).exists():
            _import(homes / name, sets.root / folder / "transcripts", csmd=csmd, model=model)
    for repo in sorted({one["repo"] for one in sets.prompts}):
        if not (homes / "prompts" / repo.replace("/", "__")).exists():
            _keep_stores(sets, repo, homes / "prompts" / repo.replace("/", "__"), csmd=csmd, model=model)


def _import(home: Path, tree: Path, *, csmd: str, model: Path) -> None:
    with _daemon(home, csmd=csmd, model=model) as call:
        call("import", str(tree))
        call("sync")


def _keep_stores(sets: Sets, repo: str, out: Path, *, csmd: str, model: Path) -> None:
    """Lets a store grow session by session, and keeps a copy from before each one of which prompts are labelled."""
    name = repo.replace("/", "__")
    tree = sets.root / "more" / "transcripts" / name
    files = (tree if tree.exists() else sets.root / "transcripts").rglob("*.jsonl")
    asked = {one["session"] for one in sets.prompts if one["repo"] == repo}
    stores: list[dict[str, str]] = []
    with tempfile.TemporaryDirectory(prefix="csmd") as folder:
        home, kept = Path(folder), Path(folder, "kept")
        kept.mkdir()
        with _daemon(home, csmd=csmd, model=model) as call:
            for file in sorted(files, key=lambda file: _first(file, "timestamp")):
                cwd = _first(file, "cwd")
                if file.stem in asked:
                    call("sync")
                    stores.append({"file": f"{file.stem}.db", "repo": repo, "session": file.stem, "cwd": cwd})
                    with contextlib.closing(sqlite3.connect(home / "csmd" / "csmd.db")) as store:
                        store.execute("VACUUM INTO ?", (str(kept / f"{file.stem}.db"),))
                project = home / "claude" / "projects" / re.sub(r"[^A-Za-z0-9]", "-", cwd)
                project.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, project)
        (kept / "index.json").write_text(json.dumps(stores, indent=1))
        shutil.copytree(kept, out)


def _first(file: Path, key: str) -> str:
    """The first value of a key in a transcript, "" for none."""
    with file.open(encoding="utf-8", errors="replace") as lines:
        found = (re.search(rf'"{key}":\s*("[^"]+")', line) for line in lines)
        return next((str(json.loads(one[1])) for one in found if one), "")


@contextlib.contextmanager
def _daemon(home: Path, *, csmd: str, model: Path) -> Iterator[Callable[..., None]]:
    """A daemon of a home of its own, and how its commands are called."""
    (home / "claude").mkdir(parents=True)
    places = {"HOME": str(home), "CSMD_HOME": str(home / "csmd"), "CLAUDE_CONFIG_DIR": str(home / "claude")}
    env = {**os.environ, **places}

    def call(*words: str) -> None:
        subprocess.run([csmd, *words], env=env, check=True, stdout=subprocess.DEVNULL)

    daemon = subprocess.Popen([csmd, "daemon"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + PATIENCE
        while subprocess.run([csmd, "status", "--json"], env=env, capture_output=True).returncode:
            if time.monotonic() > until:
                raise TimeoutError(f"no daemon in {home}")
            time.sleep(0.2)
        call("model", "add", str(model))
        yield call
    finally:
        daemon.terminate()
        daemon.wait(PATIENCE)


# --- reading them


def carry_over_cases(sets: Sets, homes: Path, name: str, asker: Asker) -> Iterator[Case]:
    """The prompts of the carry-over scenarios in one of their homes, each task also in a foreign project."""
    uuids, directories = _named(homes / name)
    with opened(homes / name) as rows:
        for one in sets.scenarios:
            part, own = part_of(sets, one), directories[one["id"]]
            foreign = foreign_directory(directories, own)
            for task in one["prompts"]:
                needed = {uuids[f"{one['id']}|{ref}"] for ref in task["needs"]}
                found = asker.bearing(rows, own, task["text"])
                yield _case("task", part, found, lambda each: _decisive(sets, each, task, needed))  # noqa: B023
                if foreign:
                    yield _case("foreign", part, asker.bearing(rows, foreign, task["text"]))
            for each in one["silent"]:
                kind = "silent" if each.get("work", True) else "idle"
                yield _case(kind, part, asker.bearing(rows, own, each["text"]))


def labelled_cases(sets: Sets, homes: Path, name: str, asker: Asker) -> Iterator[Case]:
    """The questions of a labelled set, and of the first its ordinary turns."""
    words = sets.scorer(name).words
    questions = sets.questions(name)
    with opened(homes / name) as rows:
        for one in questions:
            quotes: dict[str, list[set[str]]] = {}
            for each in one["evidence"]:
                said = set(each["quote_words"]) if "quote_words" in each else words(each.get("quote"))
                quotes.setdefault(each["uuid"], []).append(said)
            kind = "question" if one["evidence"] else "unanswerable"
            found = asker.bearing(rows, one["cwd"], one["question"])
            yield _case(kind, project_of(one, name), found, lambda each: covers(each, quotes, words))  # noqa: B023
        if name == "eval":
            for one in sets.ordinary():
                found = asker.bearing(rows, one.get("cwd", questions[0]["cwd"]), one["text"])
                yield _case("ordinary", "eval", found)


def recall_cases(sets: Sets, homes: Path, name: str, asker: Asker) -> Iterator[Case]:
    """The prompts of carry-over in one of its homes, with what recall finds for each, own and in a foreign project."""
    uuids, directories = _named(homes / name)
    with opened(homes / name) as rows:
        for one in sets.scenarios:
            own = directories[one["id"]]
            asked = [("task", task, own) for task in one["prompts"]]
            asked += [("foreign", task, foreign_directory(directories, own)) for task in one["prompts"]]
            asked += [("silent" if each.get("work", True) else "idle", each, own) for each in one["silent"]]
            for kind, task, cwd in asked:
                found = asker.lines(rows, cwd, task["text"]) if cwd else None
                needed = {uuids[f"{one['id']}|{ref}"] for ref in task["needs"]} if kind == "task" else set()
                if found:
                    lines = [
                        Candidate(features=dict(line.values), right=_is_needed(sets, line, task, needed))
                        for line in found[0]
                    ]
                    yield Case(kind=kind, part=part_of(sets, one), candidates=lines, values=found[1])


def _is_needed(sets: Sets, line: Line, task: dict[str, Any], needed: set[str]) -> bool:
    passage = line.statement.passage
    said_there = passage is not None and passage.uuid in needed
    return said_there and any(sets.carry.first(line.text, group) >= 0 for group in task["says"])


def prompt_cases(sets: Sets, homes: Path, asker: Asker) -> Iterator[Case]:
    """Real prompts that need something findable or nothing, with what recall finds for each."""
    for rows, store, asked in snapshots(sets, homes):
        for one in asked:
            if one["need"] == "n" or any(each["label"] == 2 for each in one["candidates"]):
                found = asker.lines(rows, store["cwd"], one["prompt"][:ASKED])
                if found:
                    yield Case(kind=one["need"], part=store["repo"], values=found[1])


def snapshots(sets: Sets, homes: Path) -> Iterator[tuple[Rows, dict[str, str], list[dict[str, Any]]]]:
    """The kept stores, each with its row of the index and the labelled prompts of the session that came next."""
    asked: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for one in sets.prompts:
        asked[one["session"]].append(one)
    for index in sorted((homes / "prompts").glob("*/index.json")):
        for store in json.loads(index.read_text(encoding="utf-8")):
            with sqlite.open_rows(index.parent / store["file"], readonly=True) as rows:
                yield rows, store, asked[store["session"]]


def labelled_pairs(sets: Sets, homes: Path, name: str) -> Iterator[LabelledPair]:
    """Every pair that a thread could join whose older passage is decisive for a carry-over prompt, each once."""
    uuids, _ = _named(homes / name)
    with opened(homes / name) as rows:
        parts, right = _changed(sets, rows, uuids)
        model = rows.value("SELECT seq FROM vector_models ORDER BY seq DESC LIMIT 1")
        seen: set[tuple[int, int]] = set()
        every = [seq for (seq,) in rows.all("SELECT seq FROM passages ORDER BY seq")]
        for at in range(0, len(every), threads.BATCH):
            rows.read_cache = {}
            looking = threads.PairFinder(rows, int(model) if model is not None else None)
            for seq in every[at : at + threads.BATCH]:
                for pair, rarity in looking.find_pairs(seq):
                    key = (pair.older.seq, pair.newer.seq)
                    if pair.older.seq in parts and key not in seen:
                        seen.add(key)
                        found = threads.features(pair, rarity)
                        yield LabelledPair(part=parts[key[0]], features=found, right=key in right)


def _changed(sets: Sets, rows: Rows, uuids: dict[str, str]) -> tuple[dict[int, str], set[tuple[int, int]]]:
    """The part of each decisive passage, and which pairs of them are an old rule and the one that changed it."""
    by_uuid: dict[str, list[int]] = {}
    for seq, name in rows.all("SELECT p.seq, t.uuid FROM passages p JOIN turns t ON t.seq = p.turn_seq"):
        by_uuid.setdefault(name, []).append(seq)

    def holding(one: dict[str, Any], refs: Sequence[str], groups: Sequence[Sequence[str]]) -> list[int]:
        seqs = [seq for ref in refs for seq in by_uuid.get(uuids[f"{one['id']}|{ref}"], [])]
        read = passages.by_seqs(rows, seqs)
        return [seq for seq in seqs if any(sets.carry.first(read[seq].text, group) >= 0 for group in groups)]

    parts: dict[int, str] = {}
    right: set[tuple[int, int]] = set()
    for one in sets.scenarios:
        for task in one["prompts"]:
            new = holding(one, task["needs"], task["says"])
            old = holding(one, task["stale"], [task["stale_says"]]) if task.get("stale") else []
            parts |= dict.fromkeys(old or new, part_of(sets, one))
            right |= {(older, newer) for older in old for newer in new}
    return parts, right


def foreign_directory(directories: dict[str, str], own: str) -> str:
    """The next project in order, which knows nothing of this one; "" where there is one project only."""
    places = sorted(set(directories.values()))
    return places[(places.index(own) + 1) % len(places)] if len(places) > 1 else ""


def directories_of(home: Path) -> dict[str, str]:
    """The directory of each carry-over scenario in a home."""
    return _named(home)[1]


def _named(home: Path) -> tuple[dict[str, str], dict[str, str]]:
    return json.loads((home / "uuids.json").read_text()), json.loads((home / "cwds.json").read_text())


def part_of(sets: Sets, scenario: dict[str, Any]) -> str:
    """The half of carry-over that a scenario is in."""
    return "tune" if scenario["id"] in sets.tune else "check"


def _case(
    kind: str, part: str, found: Sequence[ScoredStatement], is_right: Callable[[ScoredStatement], bool] | None = None
) -> Case:
    candidates = [Candidate(features=dict(one.features), right=bool(is_right and is_right(one))) for one in found]
    return Case(kind=kind, part=part, candidates=candidates)


def _decisive(sets: Sets, one: ScoredStatement, task: dict[str, Any], needed: set[str]) -> bool:
    if one.passage is None or one.passage.uuid not in needed:
        return False
    return any(sets.carry.first(one.text, group) >= 0 for group in task["says"])


def covers(one: ScoredStatement, quotes: dict[str, list[set[str]]], words: Callable[[str], set[str]]) -> bool:
    """Whether a statement is of an evidence turn and shows enough of what is quoted from it."""
    said = words(one.text)
    turn = one.passage.uuid.split("/")[0] if one.passage else ""
    return any(len(quote) < MIN_WORDS or len(quote & said) >= COVERED * len(quote) for quote in quotes.get(turn, ()))
