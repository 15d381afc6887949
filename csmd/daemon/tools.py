"""What the daemon can be asked, one registry: name, summary, parameters, whether it changes anything.

The command line, `csmd tool` and later MCP all read TOOLS; nobody lists tools twice. A tool runs
on a reader's thread: it may wait for the writer or the worker, never for the steward.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from csmd import text, wire
from csmd.believe import score
from csmd.believe import stage as believe
from csmd.capture import project
from csmd.capture.redact import redact
from csmd.config import Config
from csmd.daemon.jobs import Job
from csmd.daemon.now import now_iso
from csmd.daemon.steward import Steward
from csmd.distill.classify import classify
from csmd.errors import BadInput, CsmdError
from csmd.model import Brief, Hit, Memory, Provenance, Statement
from csmd.recall import stage as recall
from csmd.store import context, core, counts, files, journal, memories, models, search
from csmd.store.core import Lane, Store
from csmd.store.embed import Embedder
from csmd.store.sqlite import Rows

Params = Mapping[str, Any]
QUERY_VECTOR_S = 8.0
_REDACTED = re.compile(r"\[redacted:[a-z-]+\]")
REQUIRED = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One thing the daemon does when asked; `parameters` name -> (type, default)."""

    summary: str
    mutates: bool
    parameters: Mapping[str, tuple[type, Any]]
    run: Callable[[Tools, Any, Params], Any]
    lane: Lane | None = "main"
    """The reader it runs on; None: it asks the store nothing and is answered at once."""


class Tools:
    """The registry bound to a running daemon's parts."""

    def __init__(
        self, store: Store, config: Config, embedder: Embedder, steward: Steward, status: Callable[[Rows], Any]
    ) -> None:
        self.store = store
        self.config = config
        self.embedder = embedder
        self.steward = steward
        self.status = status

    def lane(self, name: str) -> Lane | None:
        """The reader a tool runs on, None when it needs none; BadInput for an unknown tool."""
        return _tool(name).lane

    def call(self, rows: Rows | None, name: str, params: Params) -> Any:
        """Runs a tool (`rows` None for one without a lane); BadInput names an unknown or wrong parameter."""
        tool = _tool(name)
        return tool.run(self, rows, checked(name, tool, params))

    def query_vector(self, *, deadline_s: float, start: bool) -> recall.Embed | None:
        """How a query becomes a vector, or None when no model is installed."""
        name = self.model_name()
        if name is None:
            return None

        def vector(query: str) -> tuple[bytes, str]:
            return self.embedder.embed([query], deadline_s=deadline_s, start=start)[0], name

        return vector

    def model_name(self) -> str | None:
        """The identity of the embedding model in use, or None."""
        directory = models.installed(self.config.paths.models, self.config.settings.embed_model)
        return None if directory is None else models.model_identity(directory)


def _tool(name: str) -> Tool:
    if name not in TOOLS:
        raise BadInput(f"unknown tool {name[:60]!r}", hint="see `csmd tool list`")
    return TOOLS[name]


def checked(name: str, tool: Tool, params: Params) -> dict[str, Any]:
    """The parameters with defaults; text that looks like a number or truth value is taken as one."""
    unknown = sorted(set(params) - set(tool.parameters))
    if unknown:
        raise BadInput(
            f"{name} has no parameter {unknown[0]!r}", hint=f"it has: {', '.join(tool.parameters) or 'none'}"
        )
    result: dict[str, Any] = {}
    for key, (kind, default) in tool.parameters.items():
        value = params.get(key, default)
        if value is REQUIRED:
            raise BadInput(f"{name} needs the parameter {key!r}")
        if kind is int and isinstance(value, str) and value.lstrip("-").isdigit():
            value = int(value)
        if kind is bool and value in ("true", "false"):
            value = value == "true"
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise BadInput(f"{name}: {key} must be {kind.__name__}, not {value!r}")
        if isinstance(value, str):
            value = wire.clean(value)
            if key in ("project", "path") and value and not value.startswith("/"):
                raise BadInput(f"{name}: {key} must be an absolute path, not {value!r}", hint="begin it with /")
        result[key] = value
    return result


def _places(rows: Rows, params: Params) -> list[int] | None:
    return recall.scopes(rows, params["project"]) if params["project"] else None


def _search(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    if params["kind"] not in ("all", "memory", "turn"):
        raise BadInput(f"kind is memory, turn or all, not {params['kind']!r}")
    hits, degraded = recall.find(
        rows,
        params["query"],
        projects=_places(rows, params),
        kind=params["kind"],
        limit=min(max(params["limit"], 1), 200),
        embed=tools.query_vector(deadline_s=QUERY_VECTOR_S, start=True),
    )
    return {
        "query": params["query"],
        "degraded": degraded,
        "hits": [hit_json(hit, explain=params["explain"]) for hit in hits],
    }


def hit_json(hit: Hit, *, explain: bool) -> dict[str, Any]:
    """A hit as `csmd search --json` shows it (design section 8)."""
    row = {key: value for key, value in asdict(hit).items() if key != "factors"}
    row["score"] = round(hit.score, 4)
    row["source_uuids"] = list(hit.source_uuids[:4])
    return {**row, "factors": hit.factors} if explain else row


def _memories(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    days: dict[int, int] = {}
    roots = _roots(rows)
    listed = []
    for memory in memories.listing(rows, projects=_places(rows, params)):
        if memory.project_seq not in days:
            days[memory.project_seq] = journal.active_day(rows, memory.project_seq)
        root = roots.get(memory.project_seq, "")
        listed.append(memory_json(memory, today=days[memory.project_seq], root=root))
    return {"memories": listed}


def _roots(rows: Rows) -> dict[int, str]:
    return {seq: root for seq, root, *_ in counts.projects(rows)}


def memory_json(memory: Memory, *, today: int, root: str) -> dict[str, Any]:
    """A memory as `csmd memories --json` shows it (design section 8); `root` is its project's, "" for everywhere."""
    return {
        "id": memory.id,
        "text": memory.text,
        "gate": memory.gate,
        "type": memory.type,
        "category": memory.category,
        "tier": memory.tier,
        "decay": memory.decay,
        "authority": memory.authority,
        "confidence": memory.confidence,
        "attention": score.attention(today=today, hot_until=memory.hot_until, warm_until=memory.warm_until),
        "pinned": memory.pinned,
        "scope": memory.scope,
        "project": root,
        "source_uuids": [source.uuid for source in memory.provenance[:4]],
        "session_id": memory.session_id,
        "sessions": list(dict.fromkeys(source.session_id for source in memory.provenance)),
        "created_at": memory.created_at,
        "confirmed_at": memory.confirmed_at,
        "superseded_by": memory.superseded_by,
    }


def _one(rows: Rows, ident: str) -> Memory:
    """A memory by its id or the beginning of it."""
    found = memories.ids_like(rows, ident) if ident else []
    if len(found) > 1 and ident not in found:
        raise BadInput(f"{ident!r} begins several ids: {', '.join(found)}", hint="type some more of it")
    memory = memories.by_id(rows, ident if ident in found else found[0]) if found else None
    if memory is None:
        raise BadInput(f"there is no memory {ident!r}", hint="`csmd memories` lists them with their ids")
    return memory


def _show(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    memory = _one(rows, params["id"])
    turns = search.turns_of_uuids(rows, [source.uuid for source in memory.provenance])
    texts = search.turns_by_seq(rows, list(turns.values()))
    return {
        **memory_json(
            memory,
            today=journal.active_day(rows, memory.project_seq),
            root=_roots(rows).get(memory.project_seq, ""),
        ),
        "origin": memory.origin,
        "version": memory.version,
        "sources": [
            {
                "uuid": source.uuid,
                "session_id": source.session_id,
                "at": source.at,
                "role": source.role,
                "speaker": texts[turns[source.uuid]].kind if source.uuid in turns else "",
                "text": text.passage(texts[turns[source.uuid]].text, text.query_terms(memory.text), limit=600)
                if source.uuid in turns
                else "",
            }
            for source in memory.provenance
        ],
        "links": [asdict(link) for link in memories.links_of(rows, memory.id)],
    }


def _remember(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    from collections import Counter

    body = text.squeeze(redact(params["text"], Counter()))
    if not text.content_words(_REDACTED.sub("", body)):
        raise BadInput("there is nothing to remember in that text", hint="say it in a sentence")
    by_person = params["by_person"]
    found = classify(body, kind="user")
    statement = Statement(
        text=text.cut(body, 600),
        gate=found.gate if found else "epistemic",
        category=found.category if found else "fact",
        confidence=max(found.confidence if found else 0.0, 0.95 if by_person else 0.8),
        authority="user" if by_person else "assistant",
        reasons=("remember",),
    )
    now = now_iso()
    uuid = f"cli:{secrets.token_hex(8)}"
    place = project.identify(params["project"], read=files.read_small) if params["project"] else None

    def write(writing: Rows) -> tuple[str, bool]:
        home = journal.ensure_project(writing, place, now=now) if place else 0
        if by_person:
            memories.unforget(writing, text.keyed_hash(statement.text, tools.store.hash_key))
        # What a model saves by itself confirms nothing: each call is a new source, so it could make anything sure.
        return believe.remember(
            writing,
            statement,
            Provenance(uuid=uuid, session_id=params["session"], at=now),
            project=home,
            origin="stated" if by_person else "model_saved",
            key=tools.store.hash_key,
            pinned=params["pin"] and by_person,
        )

    ident, new = tools.store.write(write)
    tools.steward.poke()
    if not ident:
        raise CsmdError("the user made csmd forget this text", hint="say it again with `csmd remember` in a terminal")
    return {"id": ident, "new": new, "text": statement.text, "authority": statement.authority}


def _forget(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    found = _one(rows, params["id"])

    def write(writing: Rows) -> Memory:
        memory = _one(writing, found.id)  # as it is now: the user may have stated it meanwhile
        if memory.authority == "user" and not params["by_person"]:
            raise CsmdError(
                f"{memory.id} was said by the user, and only a person at a terminal can make csmd forget it",
                hint=f"type `csmd forget {memory.id}` in a terminal",
            )
        believe.forget(writing, memory, key=tools.store.hash_key, now=now_iso())
        return memory

    memory = tools.store.write(write)
    return {"id": memory.id, "text": memory.text, "forgotten": True}


def _brief(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    made = recall.session_brief(
        rows,
        places=recall.scopes(rows, params["project"]),
        session_id="",
        max_tokens=tools.config.settings.brief_max_tokens,
    )
    return tools_brief(tools, made)


def _recall(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    settings = tools.config.settings
    made = recall.prompt_recall(
        rows,
        places=recall.scopes(rows, params["project"]),
        session_id="",
        prompt=params["prompt"],
        floor=settings.recall_floor,
        max_tokens=settings.recall_max_tokens,
        max_items=settings.recall_max_items,
        embed=tools.query_vector(deadline_s=QUERY_VECTOR_S, start=True),
    )
    return tools_brief(tools, made)


def tools_brief(tools: Tools, made: Brief) -> dict[str, Any]:
    """An injection as `--json` shows it; its tokens counted exactly where the tokenizer's data is there."""
    exact = tools.embedder.count_tokens([made.text]) if made.text and tools.embedder.ready else None
    tokens = exact[0] if exact and exact[0] >= 0 else made.tokens
    return {
        "text": made.text,
        "tokens": tokens,
        "items": [asdict(item) for item in made.items],
        "degraded": list(made.degraded),
    }


def _import(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    path = Path(params["path"])
    if not path.is_absolute() or not path.exists():
        raise BadInput(f"{path}: no such file or directory")
    return _job(tools, Job(id=secrets.token_hex(8), kind="import", path=str(path), with_vectors=params["vectors"]))


def _sync(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    return _job(tools, Job(id=secrets.token_hex(8), kind="sync", with_vectors=params["vectors"]))


def _job(tools: Tools, job: Job) -> dict[str, Any]:
    tools.steward.submit(job)
    return {"job": job.id}


def _look_at_job(tools: Tools, rows: None, params: Params) -> dict[str, Any]:
    job = tools.steward.jobs.get(params["id"])
    if job is None:
        raise BadInput(f"there is no job {params['id']!r}; the daemon may have been restarted", hint="run it again")
    return {
        "state": job.state,
        "progress": dict(job.progress),
        "result": dict(job.result),
        "error": job.error,
        "hint": job.hint,
    }


def _model_add(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    source = Path(params["path"])
    models.check_model_dir(source)
    return _job(tools, Job(id=secrets.token_hex(8), kind="model", path=str(source)))


def _receipts(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    names = ("id", "session_id", "event", "at", "tokens", "items")
    found = context.receipts(rows, limit=min(max(params["limit"], 1), 1000))
    return {"receipts": [dict(zip(names, row, strict=True)) for row in found]}


def _check(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    # FTS5's own check is a statement that writes nothing but wants the writer.
    return {"problems": tools.store.write(core.integrity)}


def _status(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    result: dict[str, Any] = tools.status(rows)
    return result


_PLACE = {"project": (str, "")}
TOOLS: dict[str, Tool] = {
    "csm_memory_search": Tool(
        summary="Search memories and conversations", mutates=False, run=_search,
        parameters={"query": (str, REQUIRED), **_PLACE, "limit": (int, 10), "kind": (str, "all"), "explain": (bool, False)},
    ),
    "csm_memory_list": Tool(summary="List memories", mutates=False, run=_memories, parameters=_PLACE),
    "csm_memory_show": Tool(
        summary="Show one memory with its sources", mutates=False, run=_show, parameters={"id": (str, REQUIRED)}
    ),
    "csm_memory_save": Tool(
        summary="Remember a statement", mutates=True, run=_remember,
        parameters={"text": (str, REQUIRED), **_PLACE, "session": (str, ""), "pin": (bool, False), "by_person": (bool, False)},
    ),
    "csm_memory_delete": Tool(
        summary="Forget a memory for good", mutates=True, run=_forget,
        parameters={"id": (str, REQUIRED), "by_person": (bool, False)},
    ),
    "csm_memory_context": Tool(
        summary="The brief a new session would get", mutates=False, run=_brief, parameters={"project": (str, REQUIRED)}
    ),
    "csm_memory_recall": Tool(
        summary="What would be added to a prompt", mutates=False, run=_recall,
        parameters={"project": (str, REQUIRED), "prompt": (str, REQUIRED)},
    ),
    "csm_import": Tool(
        summary="Import transcripts; gives a job", mutates=True, run=_import,
        parameters={"path": (str, REQUIRED), "vectors": (bool, True)},
    ),
    "csm_sync": Tool(
        summary="Take in everything on disk; gives a job", mutates=True, run=_sync, parameters={"vectors": (bool, True)}
    ),
    "csm_job": Tool(
        summary="How far a job is", mutates=False, run=_look_at_job, parameters={"id": (str, REQUIRED)}, lane=None
    ),
    "csm_model_add": Tool(
        summary="Install an embedding model from a folder; gives a job", mutates=True, run=_model_add, parameters={"path": (str, REQUIRED)}
    ),
    "csm_receipts": Tool(
        summary="What was injected, when and into which session", mutates=False, run=_receipts, parameters={"limit": (int, 20)}
    ),
    "csm_store_check": Tool(summary="Check that the database is sound", mutates=False, run=_check, parameters={}),
    "csm_runtime_status": Tool(summary="The daemon's state", mutates=False, run=_status, parameters={}, lane="status"),
}  # fmt: skip


def _list_tools(tools: Tools, rows: Rows, params: Params) -> dict[str, Any]:
    return {"tools": [{"name": name, "summary": tool.summary, "mutates": tool.mutates} for name, tool in TOOLS.items()]}


TOOLS["csm_tools"] = Tool(summary="List what can be asked", mutates=False, run=_list_tools, parameters={})
