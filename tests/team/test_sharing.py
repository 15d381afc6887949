"""Two people share memories of a project on one server: what one says is told to the other, with the name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from machine import Machine, eventually, temporary_directory
from team_server import TeamServer

REMOTE = "example.org/acme/shop"
RULE = "We never deploy the shop on Fridays, the pager is not staffed."
#: Rests of the exchange that a test need not wait for.
QUICK = {f"csmd.daemon.team_exchange.{name}": 0.05 for name in ("SOON_S", "AT_WORK_S", "IDLE_S", "FAILED_S")} | {
    "csmd.daemon.jobs.TICK_S": 0.05,
    "csmd.daemon.jobs.TOGETHER_S": 0.05,
}


class Member(Machine):
    """A colleague's machine, with a clone of the project."""

    def __init__(self, name: str) -> None:
        super().__init__(root=temporary_directory())
        self.name = name

    def begin(self) -> None:
        (self.project / ".git").mkdir(parents=True, exist_ok=True)
        (self.project / ".git" / "config").write_text(f'[remote "origin"]\n\turl = https://{REMOTE}.git\n')
        (self.project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        self.start(constants=QUICK)

    def join(self, server: TeamServer) -> None:
        self.csmd("team", "join", server.url(self.name), "--yes")

    def says(self, text: str, session: str = "s1") -> None:
        self.transcript(
            self.line("user", text, session=session),
            self.line("assistant", "It is done.", session=session),
            session=session,
        )
        self.sync()

    def brief(self) -> str:
        return str(self.call("csm_memory_context", project=str(self.project), asking=str(self.project))["text"])


@pytest.fixture
def members() -> Iterator[tuple[Member, Member]]:
    ann, bob = Member("ann"), Member("bob")
    yield ann, bob
    for member in (ann, bob):
        member.end()


def test_a_decision_of_one_person_arrives_at_a_colleagues_start_with_the_name(
    members: tuple[Member, Member], team: TeamServer
) -> None:
    ann, bob = members
    for member in members:
        member.begin()
        member.says("Please look at the README.", session=f"first-{member.name}")
        member.join(team)
    ann.says(RULE)
    assert "shared" in ann.csmd("team", "share", str(ann.project), "--yes")
    eventually(lambda: RULE in bob.brief())
    (line,) = [line for line in bob.brief().splitlines() if RULE in line]
    assert "said by ann" in line
