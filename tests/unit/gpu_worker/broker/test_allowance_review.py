"""Who has left a project has nothing open there for its leads to decide; a hub that is silent takes back nothing."""

import asyncio
from collections.abc import Iterator

import pytest

from bulletin.ids import ProjectId, UserName
from bulletin.wire.messages.allowance_requests import AskAllowances, DecideAllowance, RequestAllowance
from gpu_worker.broker.allowance_review import AllowanceReview
from gpu_worker.broker.hub_answers import Hub
from gpu_worker.broker.identity import Identity, Person
from gpu_worker.broker.ledger import Ledger
from gpu_worker.scheduler.policy.projects import Project
from tests.unit.gpu_worker.broker.broker_parts import ANN, HOUR_MS, BrokerParts
from tests.unit.gpu_worker.broker.fake_hub import SCOPE, FakeHub

LEAD = Person(user=UserName("liz"), leads=(ProjectId("maths"), ProjectId("default")))
NOBODY = Person(user=UserName("zoe"))
MORE = RequestAllowance(walltime_ms=4 * HOUR_MS, why="my thesis")


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    hub = FakeHub()
    hub.groups["ann"] = ["maths"]
    with hub.serving():
        yield hub


@pytest.fixture
def pool(ledger: Ledger) -> BrokerParts:
    pool = BrokerParts(ledger, (Project(id=ProjectId("maths")), Project(id=ProjectId("default"))))
    pool.now_ms = 1_000 * HOUR_MS
    return pool


def review(pool: BrokerParts, hub: FakeHub) -> None:
    where = Hub(url=f"http://127.0.0.1:{hub.server_address[1]}/hub/api", token="service")
    pool.now_ms += HOUR_MS
    asyncio.run(AllowanceReview(Identity("own", where, SCOPE), pool.console.allowances, pool.clock_ms).review())


def seen(pool: BrokerParts, person: Person = LEAD) -> list[tuple[str, str]]:
    """The state of each request that somebody sees, and what is said of it."""
    return [(one.state, one.sentence) for one in pool.ask(person, AskAllowances()).rows]


GONE = ("withdrawn", "who asked is not in the project any more")


def test_what_a_member_asked_for_stays_open(pool: BrokerParts, hub: FakeHub) -> None:
    pool.ask(ANN, MORE)
    review(pool, hub)
    assert seen(pool) == [("open", "")]


def test_who_has_left_the_project_has_nothing_open_that_its_lead_could_grant(pool: BrokerParts, hub: FakeHub) -> None:
    [asked] = pool.ask(ANN, MORE).rows
    hub.groups["ann"] = ["guests"]
    review(pool, hub)
    assert seen(pool) == seen(pool, ANN) == [GONE]
    assert "is not open" in pool.refusal(LEAD, DecideAllowance(id=asked.id, is_granted=True))
    again = BrokerParts(pool.ledger)
    again.now_ms = pool.now_ms
    asyncio.run(again.console.recall())
    assert again.console.allowances.open_users == ()


def test_so_has_who_has_left_the_hub(pool: BrokerParts, hub: FakeHub) -> None:
    pool.ask(ANN, MORE)
    hub.left.add("ann")
    review(pool, hub)
    assert seen(pool) == [GONE]


def test_a_hub_that_does_not_answer_takes_back_nothing(pool: BrokerParts, hub: FakeHub) -> None:
    pool.ask(ANN, MORE)
    hub.groups["ann"], hub.status = [], 500
    review(pool, hub)
    assert seen(pool) == [("open", "")]


def test_who_had_no_group_and_comes_into_one_still_has_what_they_asked_for(pool: BrokerParts, hub: FakeHub) -> None:
    pool.ask(NOBODY, MORE)
    hub.groups["zoe"] = ["maths"]
    review(pool, hub)
    assert seen(pool) == [("open", "")]


def test_a_hub_that_does_not_show_who_is_in_which_group_takes_back_nothing(pool: BrokerParts, hub: FakeHub) -> None:
    pool.ask(ANN, MORE)
    hub.users["service"]["scopes"] = ["read:users:name"]
    review(pool, hub)
    assert seen(pool) == [("open", "")]
