"""Two daemons and a server: what one person says arrives at the other, whatever is away or killed meanwhile."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest
from machine import Machine, eventually, temporary_directory
from team_server import PASSWORD, TeamServer

from csmd.cli import forget

REMOTE = "example.org/acme/shop"
RULE = "We never deploy the shop on Fridays, the pager is not staffed."
LATER_RULE = "We never store card numbers in the shop's database, the provider keeps them."
#: How often a daemon is killed.
ROUNDS = 20
#: Rests that a test need not wait for.
QUICK = {f"csmd.daemon.team_exchange.{name}": 0.05 for name in ("SEND_REST_S", "ACTIVE_REST_S", "IDLE_REST_S", "RETRY_S")} | {
    "csmd.daemon.jobs.TICK_S": 0.05, "csmd.daemon.jobs.PASS_EVERY_S": 0.05,
}  # fmt: skip


class Member(Machine):
    """A colleague's machine, with a clone of the project."""

    def __init__(self, name: str, url: str) -> None:
        super().__init__(root=temporary_directory())
        self.name, self.url = name, url

    def begin(self) -> None:
        """Starts the daemon, has one session in the project, and joins the server."""
        (self.project / ".git").mkdir(parents=True, exist_ok=True)
        (self.project / ".git" / "config").write_text(f'[remote "origin"]\n\turl = https://{REMOTE}.git\n')
        (self.project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        self.start(constants=QUICK)
        self.says("Please look at the README.", session=f"first-{self.name}")
        self.work("csm_team_join", url=self.url, by_person=True)

    def share(self) -> None:
        self.call("csm_team_share", project=str(self.project), by_person=True)

    def says(self, *texts: str, session: str = "s1") -> None:
        for text in texts:
            answer = self.line("assistant", "It is done.", session=session)
            self.transcript(self.line("user", text, session=session), answer, session=session)
        self.sync()

    def brief(self) -> str:
        return str(self.call("csm_memory_context", project=str(self.project), asking=str(self.project))["text"])

    def team(self) -> dict[str, Any]:
        found: dict[str, Any] = self.call("csm_team_status")["team"]
        return found

    def received(self) -> int:
        """How many memories of colleagues are here."""
        return sum(row["memories"] for row in self.team()["received"])

    def kill(self) -> None:
        """Kills the daemon as the kernel would, and starts it again."""
        child = self.daemons[-1]
        child.send_signal(signal.SIGKILL)
        child.wait(60)
        self.start(constants=QUICK)


@pytest.fixture
def members(team: TeamServer) -> Iterator[tuple[Member, Member]]:
    """bob comes over the network, cyd with a password, too; ann by a socket."""
    ann, cyd = Member("ann", team.url("ann")), Member("cyd", team.network_url("cyd"))
    (cyd.root / ".pgpass").write_text(f"127.0.0.1:{team.port}:*:cyd:{PASSWORD}\n")
    (cyd.root / ".pgpass").chmod(0o600)
    yield ann, cyd
    for member in (ann, cyd):
        member.end()


def test_a_decision_arrives_at_a_colleagues_start_and_at_a_prompt_with_the_name(
    members: tuple[Member, Member], team: TeamServer
) -> None:
    ann, cyd = members
    ann.begin()
    cyd.begin()
    ann.says(RULE)
    assert "nothing is" not in ann.csmd("team", "status")
    assert f"shared {ann.project} as {REMOTE}, with everybody" in ann.csmd(
        "team", "share", str(ann.project), "--yes"
    ).replace("\n", " ")
    eventually(lambda: cyd.received() == 1)
    (line,) = [line for line in cyd.brief().splitlines() if RULE in line]
    assert "said by ann" in line
    status, said = cyd.event("SessionStart", "s9", source="startup")
    assert status == "ok" and b"said by ann" in said, "as a hook is answered"
    assert "from ann: 1 memory in " in cyd.csmd("team", "status") and "cyd, 0 projects shared" in cyd.csmd("status")
    assert "said by ann" in cyd.csmd("memories") and "by ann, a colleague" in cyd.csmd(
        "show", cyd.call("csm_memory_list", asking=str(cyd.project), project=str(cyd.project))["memories"][0]["id"]
    )
    found = cyd.csmd("search", "--team", "deploy", "on", "Fridays")
    assert RULE in found and "ann  memory" in found and "from the team's server" in found
    held = (cyd.home / "csmd.db").read_bytes() + cyd.csmd("team", "status", "--json").__repr__().encode()
    assert PASSWORD.encode() not in held, "the password is read where it is kept"
    on_server = [row[0] for row in team.rows("ann", "select id from memories")]
    gone = ann.call("csm_memory_delete", id=on_server[0], asking=str(ann.project), by_person=True)
    shown = " ".join(str(line) for line in forget.show_forgotten(gone))
    assert "deleted from the team's server" in shown and "write-ahead log, replicas and backups" in shown
    eventually(lambda: cyd.received() == 0)
    assert RULE not in cyd.brief()
    assert team.rows("ann", "select count(*) from memories where id = %s", on_server[0]) == [(0,)]


@pytest.mark.invariant("A team's server that is away, and a kill at any moment, lose nothing and keep no hook waiting")
def test_a_server_that_is_away_for_a_session_is_told_everything_later(
    members: tuple[Member, Member], team: TeamServer
) -> None:
    ann, cyd = members
    ann.begin()
    cyd.begin()
    ann.share()
    eventually(lambda: not ann.team()["waiting"])
    team.stop()
    try:
        eventually(lambda: ann.team()["failure"])
        began = time.monotonic()
        for number in range(20):
            assert ann.event("UserPromptSubmit", "s2", prompt=f"prompt {number}")[0] == "ok"
        assert time.monotonic() - began < 10, (
            "twenty hooks within ten seconds of a busy machine: none waits for a server"
        )
        ann.says(RULE, LATER_RULE, session="s2")
        ann.kill()
        assert ann.team()["waiting"] >= 2
        status = " ".join(ann.csmd("status").split())
        assert "to be sent" in status and "fails since" in status and "the team's server" in status
        refused = ann.run("search", "--team", "Fridays")
        assert refused.returncode == 1 and "the team's server" in refused.stderr
    finally:
        team.start()
    eventually(lambda: cyd.received() == 2)
    assert RULE in cyd.brief() and LATER_RULE in cyd.brief()
    assert eventually(lambda: not ann.team()["failure"] and not ann.team()["waiting"])


def sent_and_received(ann: Member, cyd: Member, team: TeamServer, texts: list[str]) -> bool:
    """Whether all of these are on the server once, and told to the colleague once, and nothing else is."""
    on_server = sorted(row[0] for row in team.rows("cyd", "select text from memories where authority = 'user'"))
    listed = cyd.call("csm_memory_list", asking=str(cyd.project), project=str(cyd.project))["memories"]
    return on_server == sorted(texts) == sorted(row["text"] for row in listed if row["author"] == "ann")


@pytest.mark.invariant("A team's server that is away, and a kill at any moment, lose nothing and keep no hook waiting")
@pytest.mark.long
def test_daemons_that_are_killed_send_and_receive_everything_once(
    members: tuple[Member, Member], team: TeamServer
) -> None:
    ann, cyd = members
    ann.begin()
    cyd.begin()
    ann.share()
    chance, texts = random.Random(7), [row[0] for row in team.rows("ann", "select text from memories")]
    for number in range(ROUNDS):
        said = [
            f"The port of service number {number * 3 + each} is {8000 + number * 3 + each}, never another one."
            for each in range(3)
        ]
        ann.says(*said, session=f"s{number}")
        texts += said
        if number % 3 == 2:
            team.stop()
        chance.choice([ann, cyd]).kill()
        if number % 3 == 2:
            team.start()
    eventually(lambda: ann.team()["waiting"] == 0)
    held = [
        row["text"]
        for row in ann.call("csm_memory_list", asking=str(ann.project), project=str(ann.project))["memories"]
        if row["authority"] == "user"
    ]
    assert set(texts) <= set(held)
    eventually(lambda: sent_and_received(ann, cyd, team, held))


def test_nothing_is_joined_or_shared_but_by_a_person_and_nothing_is_asked_before(
    members: tuple[Member, Member], team: TeamServer
) -> None:
    ann, _ = members
    ann.start(constants=QUICK)
    ann.says(RULE)
    assert "no team server was joined" in ann.csmd("team", "status") and ann.csmd("status", "--json")["team"] is None
    assert "has joined no team" in ann.run("team", "share", str(ann.project), "--yes").stderr
    assert "has joined no team" in ann.run("search", "--team", "Fridays").stderr
    assert "not a terminal" in ann.run("team", "join", ann.url).stderr
    assert "cannot use --yes" in ann.run("team", "join", ann.url, "--yes", CLAUDECODE="1").stderr
    assert "only a person" in ann.run("tool", "csm_team_join", "--param", f"url={ann.url}").stderr
    typed = ann.run("team", "join", "postgresql://ann:s3cr@127.0.0.1/team", "--yes")
    assert "must not contain a password" in typed.stderr and "s3cr" not in typed.stderr + ann.log()
    assert team.rows("postgres", "select nspname from pg_namespace where nspname = 'csmd'") == [], (
        "nothing was asked of it"
    )
    ann.csmd("team", "join", ann.url, "--yes")
    assert (
        "share on" not in ann.csmd("team", "status")
        and "csmd team leave" in ann.run("team", "join", ann.url.replace("ann@", "bob@"), "--yes").stderr
    )
    assert "no git remote" in ann.run("team", "share", str(ann.project), "--yes").stderr
    shared = ann.csmd("team", "share", str(ann.project), "--as", "the shop", "--private", "--yes", "--json")
    assert (shared["name"], shared["readers"]) == ("the shop", "")
    eventually(lambda: team.rows("ann", "select text from memories") == [(RULE,)])
    assert team.rows("bob", "select text from memories") == []
    assert "deleted 1 project from it" in " ".join(ann.csmd("team", "leave", "--yes").split())
    assert team.rows("ann", "select count(*) from projects") == [(0,)] and ann.csmd("status", "--json")["team"] is None
