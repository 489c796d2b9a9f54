"""Access that is taken away is gone: also for a session that asks the broker for nothing."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from bulletin.codes import RefusalCode
from bulletin.ids import CellId, KernelId, LeaseId, RequestId
from bulletin.kept_time import make_kept_cell
from bulletin.wire import messages as wire
from gpu_worker.broker.access_review import AccessReview
from gpu_worker.broker.hub_answers import Hub
from gpu_worker.broker.identity import Identity, Person
from gpu_worker.scheduler import events
from tests.unit.gpu_worker.broker.broker_parts import ANN, EVE, TOKEN, BrokerParts
from tests.unit.gpu_worker.broker.fake_hub import SCOPE, FakeHub

MINUTE_MS = 60_000
EXAM = """\
[projects.maths]
guaranteed = 1
[reservations.exam]
project = "maths"
users = ["ann"]
gpus = 1
from = "2026-01-01T00:00"
until = "2046-01-01T00:00"
time_zone = "UTC"
"""


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    hub = FakeHub()
    hub.users["ann-token"] = {"name": "ann", "kind": "user", "scopes": [SCOPE]}
    hub.groups["ann"] = ["maths"]
    with hub.serving():
        yield hub


@pytest.fixture
def review(broker: BrokerParts, hub: FakeHub) -> AccessReview:
    where = Hub(url=f"http://127.0.0.1:{hub.server_address[1]}/hub/api", token="service")
    return AccessReview(Identity("own", where, SCOPE), broker.shell, broker.kernels, broker.clock_ms)


def look(broker: BrokerParts, review: AccessReview) -> list[wire.Message]:
    """What agents are told a while later."""
    broker.now_ms += 2 * MINUTE_MS
    broker.to_agents.clear()
    asyncio.run(review.review())
    return list(broker.to_agents)


@pytest.fixture
def runs(broker: BrokerParts) -> LeaseId:
    """A cell of ann's."""
    broker.join()
    lease = broker.submit(ANN, "cell-a", token="ann-token")
    broker.step(events.CellStarted(lease, CellId("cell-a")))
    return lease


def test_a_cell_is_interrupted_and_then_ended(
    broker: BrokerParts, hub: FakeHub, review: AccessReview, runs: LeaseId
) -> None:
    assert look(broker, review) == []
    hub.users["ann-token"]["scopes"] = []
    (first,) = look(broker, review)
    assert isinstance(first, wire.CancelCell)
    assert (first.lease, first.hard) == (runs, False)
    (second,) = look(broker, review)
    assert isinstance(second, wire.CancelCell)
    assert second.hard


def test_the_cell_of_a_server_that_has_stopped_ends_as_it_would_and_no_other_begins(
    broker: BrokerParts, hub: FakeHub, review: AccessReview, runs: LeaseId
) -> None:
    del hub.users["ann-token"]
    assert look(broker, review) == []
    broker.step(events.CellEnded(runs, CellId("cell-a")))
    assert look(broker, review) == [wire.Evict(lease=runs)]
    broker.step(events.CellStarted(runs, CellId("cell-b")))
    (said,) = look(broker, review)
    assert isinstance(said, wire.CancelCell)


def test_a_session_without_a_cell_goes(broker: BrokerParts, hub: FakeHub, review: AccessReview, runs: LeaseId) -> None:
    broker.step(events.CellEnded(runs, CellId("cell-a")))
    assert look(broker, review) == []
    del hub.users["ann-token"]
    assert look(broker, review) == [wire.Evict(lease=runs)]
    broker.step(events.CellStarted(runs, CellId("cell-b")))
    (said,) = look(broker, review)
    assert isinstance(said, wire.CancelCell)


def test_who_has_left_a_project_runs_no_further_cell_at_its_expense(
    broker: BrokerParts, hub: FakeHub, review: AccessReview, runs: LeaseId
) -> None:
    hub.groups["ann"] = ["physics"]
    assert look(broker, review) == [], "the cell ends as it would"
    broker.step(events.CellEnded(runs, CellId("cell-a")))
    assert look(broker, review) == [wire.Evict(lease=runs)]
    broker.step(events.CellStarted(runs, CellId("cell-b")))
    (said,) = look(broker, review)
    assert isinstance(said, wire.CancelCell)
    assert "not in the project 'maths'" in said.sentence
    hub.groups["ann"] = ["maths", "physics"]
    assert look(broker, review) == []


@pytest.mark.parametrize("knows_her", [True, False], ids=["before", "since-a-restart"])
def test_a_hub_that_does_not_show_groups_takes_nothing_from_who_is_in_one(
    broker: BrokerParts, hub: FakeHub, review: AccessReview, runs: LeaseId, knows_her: bool
) -> None:
    if knows_her:
        assert look(broker, review) == []
    hub.users["service"]["scopes"] = ["read:users:name"]
    assert look(broker, review) == []
    broker.step(events.CellEnded(runs, CellId("cell-a")))
    assert look(broker, review) == [], "her hot session stays"
    broker.step(events.CellStarted(runs, CellId("cell-b")))
    assert look(broker, review) == [], "and its next cell runs"
    hub.users["service"]["scopes"] = ["read:users:name", "read:users:groups"]
    hub.groups["ann"] = ["physics"]
    broker.step(events.CellEnded(runs, CellId("cell-b")))
    assert look(broker, review) == [wire.Evict(lease=runs)], "what is shown holds again"


def test_who_runs_inside_a_reservation_for_users_goes_on_as_long_as_they_are_in_its_project(
    broker: BrokerParts, hub: FakeHub, review: AccessReview, tmp_path: Path
) -> None:
    """It counts under a name of its own, which is no group of the hub."""
    broker.now_ms = 1_795_000_000_000
    (tmp_path / "quotas.toml").write_text(EXAM)
    broker.use_quota_file(tmp_path / "quotas.toml")
    broker.join()
    lease = broker.submit(ANN, "cell-a", token="ann-token")
    assert broker.shell.scheduler.state.leases[lease].project == "exam in maths"
    broker.step(events.CellStarted(lease, CellId("cell-a")))
    assert look(broker, review) == []
    broker.step(events.CellEnded(lease, CellId("cell-a")))
    assert look(broker, review) == [], "her hot session stays"
    broker.step(events.CellStarted(lease, CellId("cell-b")))
    assert look(broker, review) == [], "and its next cell runs"
    hub.groups["ann"] = ["physics"]
    look(broker, review)
    broker.step(events.CellEnded(lease, CellId("cell-b")))
    broker.step(events.CellStarted(lease, CellId("cell-c")))
    (said,) = look(broker, review)
    assert isinstance(said, wire.CancelCell)
    assert "not in the project 'maths'" in said.sentence


@pytest.mark.parametrize("taken", ["groups", "server"])
def test_a_place_that_is_kept_is_given_up_at_once(
    broker: BrokerParts, hub: FakeHub, review: AccessReview, runs: LeaseId, taken: str
) -> None:
    broker.step(events.CellStarted(runs, make_kept_cell()))
    broker.step(events.CellEnded(runs, CellId("cell-a")))
    assert look(broker, review) == []
    if taken == "groups":
        hub.groups["ann"] = ["physics"]
    else:
        del hub.users["ann-token"]
    assert look(broker, review) == [wire.Evict(lease=runs)]


def test_a_place_that_an_idle_notebook_keeps_outlives_the_broker(
    broker: BrokerParts, hub: FakeHub, review: AccessReview, runs: LeaseId
) -> None:
    broker.step(events.CellStarted(runs, make_kept_cell()))
    broker.step(events.CellEnded(runs, CellId("cell-a")))
    broker.shell.active_leases[runs].token = ""
    assert look(broker, review) == []
    assert look(broker, review) == [], "it speaks when it has a cell"


def test_who_has_come_into_a_project_keeps_what_none_pays_for(
    broker: BrokerParts, hub: FakeHub, review: AccessReview
) -> None:
    broker.join()
    lease = broker.submit(Person(user=ANN.user), "cell-a", token="ann-token")
    broker.step(events.CellStarted(lease, CellId("cell-a")))
    assert look(broker, review) == []


@pytest.mark.parametrize(
    ("taken", "code"), [("scopes", RefusalCode.NOT_ALLOWED), ("groups", RefusalCode.NOT_YOUR_PROJECT)]
)
def test_who_waits_is_asked_about_too(
    broker: BrokerParts, hub: FakeHub, review: AccessReview, runs: LeaseId, taken: str, code: RefusalCode
) -> None:
    hub.users["second-token"] = {"name": "ann", "kind": "user", "scopes": [SCOPE]}
    broker.submit(ANN, "cell-b", token="second-token")
    look(broker, review)
    assert broker.shell.pending_requests
    if taken == "scopes":
        hub.users["second-token"]["scopes"] = []
    else:
        hub.groups["ann"] = []
    broker.to_sessions.clear()
    look(broker, review)
    assert not broker.shell.pending_requests
    (told,) = [message for _, message in broker.to_sessions if isinstance(message, wire.Refusal)]
    assert (told.request, told.code) == ("cell-b", code)


def test_a_lease_of_before_a_restart_is_asked_about_once_its_kernel_has_said_hello(broker: BrokerParts) -> None:
    async def say(message: wire.Hello | wire.Submit) -> None:
        await broker.kernels.take(b"r", message)
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))

    broker.join()
    hello = wire.Hello(protocol=wire.PROTOCOL, version="1", token=TOKEN, kernel=KernelId("k"))
    asyncio.run(say(hello))
    asyncio.run(say(wire.Submit(request=RequestId("cell-a"))))
    (active,) = broker.shell.active_leases.values()
    active.token = ""  # as one is learned again from its agent
    asyncio.run(say(hello))
    assert active.token == TOKEN


@pytest.mark.parametrize("has_token", [True, False], ids=["its server has stopped", "the broker was restarted"])
def test_the_cell_of_who_has_left_the_hub_is_ended(
    broker: BrokerParts, hub: FakeHub, review: AccessReview, runs: LeaseId, has_token: bool
) -> None:
    """Without their token, whom else should the hub be asked about?"""
    if not has_token:
        broker.shell.active_leases[runs].token = ""
    assert look(broker, review) == []
    del hub.users["ann-token"]
    assert look(broker, review) == [], "a server that has stopped"
    hub.left.add("ann")
    (first,), (second,) = look(broker, review), look(broker, review)
    assert isinstance(first, wire.CancelCell)
    assert isinstance(second, wire.CancelCell)
    assert (first.hard, second.hard) == (False, True)
    assert "no user of this hub any more" in first.sentence


def test_a_lease_of_before_a_restart_is_not_paid_for_by_a_project_that_its_user_has_left(
    broker: BrokerParts, hub: FakeHub, review: AccessReview, runs: LeaseId
) -> None:
    broker.shell.active_leases[runs].token = ""
    hub.groups["ann"] = ["physics"]
    assert look(broker, review) == [], "the cell ends as it would"
    broker.step(events.CellEnded(runs, CellId("cell-a")))
    assert look(broker, review) == [wire.Evict(lease=runs)]


@pytest.mark.parametrize("long", ["ann-token", "eve-token"])
def test_what_the_hub_cannot_say_of_one_keeps_it_from_saying_nothing_of_others(
    broker: BrokerParts, hub: FakeHub, review: AccessReview, long: str
) -> None:
    """What it says of a user's own servers, that user can make as long as they like."""
    broker.join(slots=2)
    hub.users["ann-token"]["scopes"] = []
    leases = {
        token: broker.submit(person, f"cell-{token}", token=token)
        for person, token in ((ANN, "ann-token"), (EVE, "eve-token"))
    }
    hub.long.add(long)
    del leases[long]
    assert look(broker, review) == [wire.Evict(lease=lease) for lease in leases.values()]


def test_a_session_whose_notebook_is_silent_after_a_restart_runs_no_further_cell(
    broker: BrokerParts, hub: FakeHub, review: AccessReview, runs: LeaseId
) -> None:
    """Who was taken the scope, and not the account, need only say nothing to a broker that does not know the token."""
    broker.shell.active_leases[runs].token = ""
    assert look(broker, review) == [], "its notebook may be about to speak"
    assert look(broker, review) == [], "the cell ends as it would"
    broker.step(events.CellEnded(runs, CellId("cell-a")))
    broker.step(events.CellStarted(runs, CellId("cell-b")))
    (said,) = look(broker, review)
    assert isinstance(said, wire.CancelCell)
    assert "has not said since then who it is" in said.sentence
    broker.step(events.CellEnded(runs, CellId("cell-b")))
    assert look(broker, review) == [wire.Evict(lease=runs)]


def test_a_session_whose_notebook_speaks_after_a_restart_goes_on(
    broker: BrokerParts, hub: FakeHub, review: AccessReview, runs: LeaseId
) -> None:
    active = broker.shell.active_leases[runs]
    active.token = ""
    broker.step(events.CellEnded(runs, CellId("cell-a")))
    assert look(broker, review) == []
    broker.shell.note_token(active.session, "ann-token")
    assert look(broker, review) == []
    assert look(broker, review) == []


@pytest.mark.parametrize(
    ("scopes", "status"), [([], 200), (["read:users:name!group=maths"], 200), (["read:users:name"], 503)]
)
def test_a_hub_that_does_not_say_who_its_users_are_takes_nothing_from_anybody(
    broker: BrokerParts, hub: FakeHub, review: AccessReview, runs: LeaseId, scopes: list[str], status: int
) -> None:
    broker.shell.active_leases[runs].token = ""
    hub.left.add("ann")
    hub.users["service"]["scopes"], hub.status = scopes, status
    assert look(broker, review) == []


def test_a_hub_that_does_not_answer_takes_nothing_from_anybody(
    broker: BrokerParts, hub: FakeHub, review: AccessReview, runs: LeaseId
) -> None:
    assert runs in broker.shell.active_leases
    hub.status = 503
    assert look(broker, review) == []
