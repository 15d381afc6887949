"""What was said later stands first where it says that something is otherwise by now, and of what."""

from __future__ import annotations

import pytest

from csmd.recall import otherwise

#: (said earlier, said later): the later one says that something in the earlier is otherwise.
CHANGED = [
    ("the booth must be ordered by june 4", "they moved the date, it's june 11 now"),
    ("the api listens on port 8080", "the api port is 8443 now"),
    ("we stay on ruby 2.7, the servers have nothing newer", "servers are upgraded, from today we use ruby 3.2"),
    ("The queue runs on Postgres.", "We switched to Redis for the queue."),
    ("Deploys go through Jenkins", "forget Jenkins, the deploys start by hand"),
    ("Reports go through Looker", "reports no longer go through Looker"),
    ("We take Redis as broker", "the free plan is enough. So the broker is now RabbitMQ"),
    ("let's standardise on DuckDB for big files", "DuckDB is out, everything goes through Snowflake from now on"),
]
#: (said earlier, said later) of which the later one leaves the earlier as it is.
BOTH_HOLD = [
    ("the api listens on port 8080", "the api has 3 replicas now"),
    ("the api listens on port 8080", "the api port is 8080 now as before"),
    ("the api listens on port 8080", "the api port is 8443"),
    ("Deploys go through Jenkins", "Jenkins is slow now, deploys wait"),
    ("fixed in 9ae2d71ae8a2", "now it is fixed in 991c62f11ee3"),
    ("We take Redis as broker", "Is the broker now RabbitMQ?"),
    ("We take Redis as broker", "the broker is now Redis as well"),
    ("The broker keeps its data in Redis", "the broker is now much faster"),
    ("Deploys go through Jenkins", "the Jenkins logs are out now"),
    ("retry after 30 seconds", "should we retry after 60 seconds now?"),
]


@pytest.mark.parametrize(("earlier", "later"), CHANGED)
def test_a_later_passage_that_says_what_changed_overtakes_and_never_the_other_way_round(
    earlier: str, later: str
) -> None:
    assert otherwise.by_now(earlier, later)
    assert not otherwise.by_now(later, earlier)


@pytest.mark.parametrize(("earlier", "later"), BOTH_HOLD)
def test_what_gives_nothing_another_value_or_does_not_say_that_it_changed_overtakes_nothing(
    earlier: str, later: str
) -> None:
    assert not otherwise.by_now(earlier, later)
