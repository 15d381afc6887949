"""Who may talk to the viewer, asked over its socket: every request that is refused, and the few that are not."""

from __future__ import annotations

import socket

import psutil
import pytest
from machine import Machine
from viewer_process import Opens, Viewer

from csmd.web.access import HEADERS, MAX_FORM_BYTES, Access


@pytest.fixture
def viewer(closed_viewer: Viewer) -> Viewer:
    """The module's viewer, with the browser let in."""
    if not closed_viewer.cookie:
        assert closed_viewer.enter().status == 303
    return closed_viewer


@pytest.mark.invariant("The viewer answers one browser on this machine, and no other site, host or program")
def test_the_link_works_once_and_gives_a_cookie_that_no_script_and_no_other_path_gets(
    opened: Opens, machine: Machine
) -> None:
    viewer = opened(machine, enters=False)
    assert viewer.send("GET", "/open?token=wrong").status == 403
    entered = viewer.enter()
    assert entered.status == 303 and entered.headers["location"].startswith("/")
    crumbs = {part.strip().lower() for part in entered.headers["set-cookie"].split(";")[1:]}
    assert crumbs == {"httponly", "samesite=strict", f"path={viewer.base.lower()}"}
    again = viewer.send("GET", viewer.link.partition(viewer.host)[2])
    assert again.status == 403 and "used before" in again.text and "csmd web" in again.text
    assert "set-cookie" not in again.headers


def test_a_browser_that_was_not_let_in_sees_nothing(viewer: Viewer) -> None:
    for path in ("/", f"{viewer.base}/", f"{viewer.base}/memories", f"{viewer.base}/static/keys.js", "/favicon.ico"):
        for cookie in ("", "csmd=", "csmd=wrong", "other=1"):
            answer = viewer.send("GET", path, **({"cookie": cookie} if cookie else {}))
            assert answer.status == 403 and b"<" not in answer.data, (path, cookie)


@pytest.mark.invariant("The viewer answers one browser on this machine, and no other site, host or program")
@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:{port}", "[::1]:{port}"]
)
def test_another_host_is_refused_whatever_it_resolves_to(viewer: Viewer, host: str) -> None:
    port = viewer.host.partition(":")[2]
    answer = viewer.get("static/style.css", host=host.format(port=port))
    assert answer.status == 421
    assert viewer.get("static/style.css", host=f"localhost:{port}").status == 200


def test_two_hosts_in_one_request_are_refused(viewer: Viewer) -> None:
    name, _, port = viewer.host.partition(":")
    with socket.create_connection((name, int(port))) as connection:
        request = f"GET {viewer.base}/ HTTP/1.1\r\nHost: {viewer.host}\r\nHost: evil.example\r\nCookie: {viewer.cookie}\r\n\r\n"
        connection.sendall(request.encode())
        assert connection.recv(64).split()[1] in (b"400", b"421")


@pytest.mark.invariant("The viewer answers one browser on this machine, and no other site, host or program")
def test_another_sites_request_is_refused_though_the_cookie_comes_with_it(viewer: Viewer) -> None:
    for headers in (
        {"sec_fetch_site": "cross-site"}, {"sec_fetch_site": "same-site"}, {"origin": "http://evil.example"},
        {"origin": f"http://{viewer.host}", "sec_fetch_site": "cross-site"}, {"origin": f"https://{viewer.host}"},
    ):  # fmt: skip
        assert viewer.get("static/style.css", **headers).status == 403, headers
    for headers in (
        {"sec_fetch_site": "none"},
        {"sec_fetch_site": "same-origin"},
        {"origin": f"http://{viewer.host}"},
        {},
    ):
        assert viewer.get("static/style.css", **headers).status == 200, headers


def test_a_form_is_taken_from_the_viewers_own_pages_only(viewer: Viewer) -> None:
    refused = (
        {"origin": "http://evil.example"}, {"sec_fetch_site": "cross-site"}, {"origin": "null", "sec_fetch_site": ""},
        {"origin": "", "sec_fetch_site": ""}, {"origin": "", "sec_fetch_site": "none"}, {"origin": "null", "sec_fetch_site": "same-site"},
    )  # fmt: skip
    for headers in refused:
        assert viewer.post("undo", {}, **headers).status == 403, headers
    for headers in ({}, {"origin": "null"}, {"sec_fetch_site": ""}):  # reaches the page, which finds no daemon
        assert viewer.post("undo", {}, **headers).status == 503, headers
    wrong = viewer.post("undo", {"token": "another"})
    assert wrong.status == 400 and "an earlier page" in wrong.text
    assert viewer.post("undo", {}, cookie="csmd=wrong").status == 403


def test_other_methods_and_long_forms_are_refused(viewer: Viewer) -> None:
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        assert viewer.send(method, f"{viewer.base}/", cookie=viewer.cookie).status == 405, method
    assert viewer.post("undo", {"text": "x" * MAX_FORM_BYTES}).status == 413
    assert viewer.post("undo", {}, content_length="many").status in (400, 413)


def test_every_answer_forbids_scripts_frames_and_keeping(viewer: Viewer) -> None:
    answers = [viewer.get(page) for page in ("", "static/keys.js", "nowhere")]
    answers += [viewer.send("GET", "/"), viewer.get("", host="evil.example"), viewer.send("GET", "/open?token=x")]
    for answer in answers:
        assert {name: answer.headers[name.lower()] for name in HEADERS} == HEADERS
        assert "access-control-allow-origin" not in answer.headers and "server" not in answer.headers
    policy = HEADERS["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy and "http" not in policy


def test_only_this_machine_is_listened_to(viewer: Viewer) -> None:
    process = psutil.Process(viewer.process.pid)
    listening = [one.laddr.ip for one in process.net_connections() if one.status == psutil.CONN_LISTEN]
    assert listening == ["127.0.0.1"]


def test_every_viewer_has_secrets_of_its_own() -> None:
    def clock() -> float:
        return 0.0

    one, other = Access(80, clock), Access(80, clock)
    assert len({one.base, other.base, one.link, other.link, one.form_token, other.form_token}) == 6
    assert one.base not in one.link and one.form_token not in one.link
