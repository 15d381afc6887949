"""The viewer's process: its routes, how an answer becomes a page, and when it ends."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote

import uvicorn
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

import csmd
from csmd import client
from csmd.cli.render import many, percent, tilde
from csmd.config import user_home
from csmd.errors import CsmdError, DaemonBusy, DaemonUnreachable
from csmd.paths import Paths
from csmd.text import display
from csmd.text.ages import ago, when
from csmd.vocabulary import OWNER, REVIEW_KEYS, REVIEW_LATER, REVIEW_UNDO
from csmd.web import changes, pages
from csmd.web.access import Access
from csmd.web.pages import Page, Visit

#: Idle seconds after which the viewer ends.
IDLE_S = 1800.0
#: Seconds between two checks for that.
IDLE_CHECK_S = 1
#: Requests that are answered at the same time.
MAX_CONNECTIONS = 32
#: How many fields a form has at most.
MAX_FORM_FIELDS = 20
Answer = Callable[[Visit], Page | str]


def serve(paths: Paths, *, port: int, announce: Callable[[str], None]) -> None:
    """Serves the pages on 127.0.0.1 until they are no longer used; `announce` gets the link when it can be opened."""
    server_socket = _listen(port)
    with server_socket:
        access = Access(server_socket.getsockname()[1], time.monotonic)

        async def end_when_idle() -> None:
            if time.monotonic() - access.last_used > IDLE_S:
                server.should_exit = True

        server = uvicorn.Server(
            uvicorn.Config(
                access.guard(build_application(paths, access)), http="h11", ws="none", lifespan="off", log_config=None,
                access_log=False,
                server_header=False, proxy_headers=False, limit_concurrency=MAX_CONNECTIONS, timeout_graceful_shutdown=1,
                callback_notify=end_when_idle, timeout_notify=IDLE_CHECK_S,
            )
        )  # fmt: skip
        announce(access.link)  # an early browser waits in the socket's queue
        with contextlib.suppress(KeyboardInterrupt):  # ^C ends the viewer
            server.run(sockets=[server_socket])


def _listen(port: int) -> socket.socket:
    server_socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        server_socket.bind(("127.0.0.1", port))
        server_socket.listen(MAX_CONNECTIONS)
    except OSError as error:
        server_socket.close()
        raise CsmdError(f"port {port}: {os.strerror(error.errno or 0)}", hint="leave out --port") from None
    return server_socket


def build_application(paths: Paths, access: Access) -> Starlette:
    """Returns every page, below the base path."""
    templates = _build_templates(access)

    def ask(tool: str, **params: Any) -> Any:
        return client.call(paths, tool, {**params, "asking": OWNER})

    def work(tool: str, **params: Any) -> Any:
        return client.run_job(paths, tool, {**params, "asking": OWNER}, watch=lambda _: None)

    def answer(make: Answer, request: Request, form: Mapping[str, str]) -> Response:
        path = request.scope["path"].removeprefix(f"{access.base}/") or "./"
        query = dict(request.query_params)
        visit = Visit(ask=ask, work=work, query=query, form=form, id=request.path_params.get("id", ""))
        sentence = changes.DONE_SENTENCES.get(query.get("did", ""), "")
        page_values = {"here": path, "query": defaultdict(str, query), "done": sentence}
        status = 200
        try:
            if request.method == "POST" and form.get("token") != access.form_token:
                hint = "close this page and open the link of `csmd web`"
                raise CsmdError("this form is of an earlier page", hint=hint)
            result = make(visit)
            if isinstance(result, str):
                return RedirectResponse(f"{access.base}/{result}", status_code=303)
        except CsmdError as error:
            is_down = isinstance(error, DaemonUnreachable | DaemonBusy)
            status = 503 if is_down else 400
            result = Page("problem.html", {"what": error.what, "hint": error.hint, "is_down": is_down})
        html = templates.get_template(result.template).render(**page_values, **result.values)
        return HTMLResponse(html, status_code=status)

    async def endpoint(make: Answer, request: Request) -> Response:
        form: Mapping[str, str] = {}
        if request.method == "POST":
            body = (await request.body()).decode("utf-8", "replace")
            try:
                form = dict(parse_qsl(body, keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS))
            except ValueError:
                form = {}
        return await run_in_threadpool(answer, make, request, form)

    def raise_not_found(_: Visit) -> Page:
        raise CsmdError("there is no such page", hint="choose one above")

    def route(path: str, make: Answer, method: str) -> Route:
        handler: Callable[[Request], Awaitable[Response]] = partial(endpoint, make)
        return Route(path, handler, methods=[method])

    static = StaticFiles(directory=Path(__file__).parent / "static")
    routes = [
        Mount("/static", static),
        *(route(path, make, "GET") for path, make in changes.QUESTION_PAGES.items()),
        *(route(path, make, "POST") for path, make in changes.FORMS.items()),
        *(route(path, make, "GET") for path, make in pages.PAGES.items()),
        route("/{id:path}", raise_not_found, "GET"),
    ]
    return Starlette(routes=[Mount(access.base, routes=routes)])


def _build_templates(access: Access) -> Environment:
    """Returns the templates, which escape every value, with csmd's words for times and amounts."""
    templates = Environment(
        loader=PackageLoader("csmd.web"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: display.remove_unseen(value) if type(value) is str else value,  # markup is not text
    )  # fmt: skip
    home = str(user_home())
    templates.filters |= {
        "when": when, "ago": ago, "percent": percent, "cut": display.cut, "squeeze": display.squeeze,
        "many": many, "tilde": lambda path: tilde(path, home), "name": lambda path: Path(path).name or path,
        "path": lambda ident: quote(ident, safe=""), "parts": split_marked,
        "sentence": lambda text: text[:1].upper() + text[1:],
    }  # fmt: skip
    templates.globals |= {
        "base": access.base, "form_token": access.form_token, "navigation": pages.NAVIGATION,
        "version": csmd.__version__,
        "address": changes.build_address, "kinds": pages.GATE_LABELS, "source_words": pages.describe_source,
        "answers": REVIEW_KEYS, "later": REVIEW_LATER, "undo": REVIEW_UNDO,
    }  # fmt: skip
    return templates


def split_marked(text: str, marked: list[str]) -> list[tuple[str, bool]]:
    """Splits a text into (part, whether it is marked); marked texts that do not occur are ignored."""
    parts = [(text, False)]
    for words in filter(None, marked):
        for place, (part, is_marked) in enumerate(parts):
            before, match, after = part.partition(words)
            if match and not is_marked:
                parts[place : place + 1] = [(before, False), (words, True), (after, False)]
                break
    return [part for part in parts if part[0]]
