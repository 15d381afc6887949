"""Access to the viewer: only for the browser that opened the one-time link, under this machine's own host names.

Any other request is refused in plain text before it reaches a page or a tool.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "csmd"
#: The path of the one-time link.
ENTRY_PATH = "/open"
#: Most bytes of a form: the wording of one memory, however it is encoded.
MAX_FORM_BYTES = 64 * 1024
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; "
        "base-uri 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-store",
}  # fmt: skip
NEW_LINK_HINT = "Run `csmd web` in a terminal for a new link.\n"


class Access:
    """Middleware before the pages; owns the link's token, the cookie's secret, and the time of the last visit.

    Pages are below the unguessable path `base`: cookies ignore ports, so this keeps the cookie from other servers on
    this machine.
    """

    def __init__(self, port: int, monotonic: Callable[[], float]) -> None:
        self.base = f"/{secrets.token_urlsafe(9)}"
        self.form_token = secrets.token_urlsafe(32)
        self.last_used = monotonic()
        self._monotonic = monotonic
        self._hosts = (f"127.0.0.1:{port}", f"localhost:{port}")
        self._token = secrets.token_urlsafe(32)
        self._cookie = secrets.token_urlsafe(32)

    @property
    def link(self) -> str:
        """The link that lets one browser in, once."""
        return f"http://{self._hosts[0]}{ENTRY_PATH}?token={self._token}"

    def guard(self, app: ASGIApp) -> ASGIApp:
        """Wraps an application; every answer gets the security headers."""

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            async def send_with_headers(message: Message) -> None:
                if message["type"] == "http.response.start":
                    MutableHeaders(scope=message).update(HEADERS)
                await send(message)

            answer = self._answer(Request(scope)) or app
            await answer(scope, receive, send_with_headers)

        return guarded

    def _answer(self, request: Request) -> Response | None:
        """Returns the answer to a request that is refused or brings the token; None if it may reach the pages."""
        if refusal := self._find_refusal(request):
            return refusal
        if request.scope["path"] == ENTRY_PATH:
            return self._enter(request)
        if not hmac.compare_digest(request.cookies.get(COOKIE, "").encode(), self._cookie.encode()):
            return _refuse(403, "This browser was not let in.", NEW_LINK_HINT)
        self.last_used = self._monotonic()
        return None

    def _find_refusal(self, request: Request) -> Response | None:
        """Refuses other host names (DNS rebinding), requests from other sites, and what csmd's pages never send."""
        hosts, site = request.headers.getlist("host"), request.headers.get("sec-fetch-site", "")
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return _refuse(421, "This address is not the viewer's.", "Use the link that `csmd web` printed.\n")
        origin, own = request.headers.get("origin"), f"http://{hosts[0]}"
        # Under no-referrer a browser sends the origin of a form as "null".
        is_foreign = origin not in (None, "null", own) or site not in ("", "none", "same-origin")
        if request.method in ("GET", "HEAD"):
            return _refuse(403, "Another site asked for this page.", NEW_LINK_HINT) if is_foreign else None
        if request.method != "POST":
            return _refuse(405, "Only GET, HEAD and POST are answered.", "")
        if is_foreign or not (origin == own or site == "same-origin"):
            return _refuse(403, "Another site sent this form.", "Nothing was changed.\n")
        length = request.headers.get("content-length", "")
        if not length.isdecimal() or int(length) > MAX_FORM_BYTES:
            return _refuse(413, "This form is too long.", "Nothing was changed.\n")
        return None

    def _enter(self, request: Request) -> Response:
        """Exchanges the token, which is void afterwards, for the cookie."""
        token = request.query_params.get("token", "")
        if request.method != "GET" or not self._token or not hmac.compare_digest(token.encode(), self._token.encode()):
            return _refuse(403, "This link was used before, or belongs to a viewer that has ended.", NEW_LINK_HINT)
        self._token = ""
        self.last_used = self._monotonic()
        answer = RedirectResponse(f"{self.base}/", status_code=303)
        answer.set_cookie(COOKIE, self._cookie, path=self.base, httponly=True, samesite="strict")
        return answer


def _refuse(status: int, problem: str, remedy: str) -> Response:
    return PlainTextResponse(f"csmd: {problem}\n{remedy}", status_code=status)
