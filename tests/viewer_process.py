"""A viewer of a machine: its process, and a browser without a window that speaks HTTP word by word.

Not a test: found through tests/conftest.py.
"""

from __future__ import annotations

import http.client
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode, urlsplit

from machine import LIMIT_S, Machine


@dataclass(slots=True)
class Answer:
    """A response as it came."""

    status: int
    headers: Mapping[str, str]
    data: bytes

    @property
    def text(self) -> str:
        return self.data.decode()

    @property
    def words(self) -> str:
        """The text of a page without its tags."""
        return " ".join(re.sub(r"<[^>]*>", " ", self.text).split())


@dataclass(slots=True)
class Viewer:
    """A viewer's process and what a browser that it let in knows."""

    process: subprocess.Popen[str]
    link: str
    base: str = ""
    cookie: str = ""
    form_token: str = ""
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def host(self) -> str:
        return urlsplit(self.link).netloc

    def send(self, method: str, path: str, *, body: str | None = None, **headers: str) -> Answer:
        """One request as it is written; header names have _ for -."""
        connection = http.client.HTTPConnection(self.host, timeout=LIMIT_S)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body=body, headers=named)
        response = connection.getresponse()
        answer = Answer(
            response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
        )
        connection.close()
        return answer

    def enter(self) -> Answer:
        """Opens the link."""
        parts = urlsplit(self.link)
        answer = self.send("GET", f"{parts.path}?{parts.query}")
        if answer.status == 303:
            self.base = answer.headers["location"].rstrip("/")
            self.cookie = answer.headers["set-cookie"].partition(";")[0]
            token = re.search(r'name="token" value="([^"]+)"', self.get("dreams?did=undo&undo=x").text)
            assert token is not None
            self.form_token = token[1]
        return answer

    def get(self, page: str, **headers: str) -> Answer:
        """A page below the base, as the browser that was let in asks for it."""
        return self.send("GET", f"{self.base}/{page}", cookie=self.cookie, **headers)

    def post(self, page: str, fields: Mapping[str, str], **headers: str) -> Answer:
        """Sends a form of a page."""
        sent = {
            "cookie": self.cookie, "origin": f"http://{self.host}", "sec_fetch_site": "same-origin",
            "content_type": "application/x-www-form-urlencoded", **headers,
        }  # fmt: skip
        body = urlencode({"token": self.form_token, **fields})
        return self.send(
            "POST", f"{self.base}/{page}", body=body, **{name: value for name, value in sent.items() if value}
        )


#: Opens a viewer of a machine that ends with its test.
Opens = Callable[..., Viewer]


def open_viewer(machine: Machine, **constants: float) -> Viewer:
    """Starts the viewer's process; `constants` are other values of its module's."""
    program = (
        "from csmd.web import viewer; from csmd.config import default_paths\n"
        + "".join(f"viewer.{name} = {value}\n" for name, value in constants.items())
        + "viewer.serve(default_paths(), port=0, announce=lambda link: print(link, flush=True))"
    )
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", program], cwd=machine.root, env=machine.environment(), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    return Viewer(process, process.stdout.readline().strip())


def end_viewer(viewer: Viewer) -> None:
    """Ends a viewer's process."""
    if viewer.process.poll() is None:
        viewer.process.terminate()
        viewer.process.wait(LIMIT_S)
    assert viewer.process.stdout is not None
    viewer.process.stdout.close()
