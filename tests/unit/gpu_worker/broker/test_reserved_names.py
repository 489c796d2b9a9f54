"""What is reserved for users of a project counts under a name of its own, which nobody else's group of the hub gets."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from bulletin.codes import RefusalCode
from bulletin.ids import CellId, KernelId, ProjectId, RequestId, UserName
from bulletin.wire import messages as wire
from bulletin.wire.messages.allowance_requests import RequestAllowance
from gpu_worker.broker.access_review import AccessReview
from gpu_worker.broker.hub_answers import Hub
from gpu_worker.broker.identity import Identity, Person
from gpu_worker.scheduler import events
from tests.unit.gpu_worker.broker.broker_parts import BrokerParts
from tests.unit.gpu_worker.broker.fake_hub import SCOPE, FakeHub

NAME = ProjectId("exam in maths")
TEXT = """\
[projects.maths]
guaranteed = 1
[reservations.exam]
project = "maths"
users = ["bob"]
gpus = 1
from = "2026-01-01T00:00"
until = "2046-01-01T00:00"
time_zone = "UTC"
"""


@pytest.fixture
def reserved(broker: BrokerParts, tmp_path: Path) -> Iterator[BrokerParts]:
    """A reservation that is on, and eve, who is in a group of the hub that is called as what is reserved counts."""
    broker.now_ms = 1_795_000_000_000
    (tmp_path / "quotas.toml").write_text(TEXT)
    broker.use_quota_file(tmp_path / "quotas.toml")
    hub = FakeHub()
    hub.users["eve-token"] = {"name": "eve", "kind": "user", "scopes": [SCOPE]}
    hub.groups["eve"] = [NAME, "guests"]
    with hub.serving():
        where = Hub(url=f"http://127.0.0.1:{hub.server_address[1]}/hub/api", token="service")
        broker.kernels._identity = Identity("own", where, SCOPE)
        yield broker


async def submit(broker: BrokerParts, project: str | None) -> list[wire.Message]:
    """What eve's notebook is told when it asks for a place."""
    hello = wire.Hello(protocol=wire.PROTOCOL, version="1", token="eve-token", kernel=KernelId("k"))
    submitted = wire.Submit(request=RequestId("r"), project=ProjectId(project) if project else None)
    for message in (hello, submitted):
        broker.to_routes.clear()
        await broker.kernels.take(b"eve", message)
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))
    return [said for _, said in broker.to_routes]


@pytest.mark.parametrize("project", [NAME, None], ids=["by its name", "her first group"])
def test_a_group_that_is_called_so_does_not_use_what_is_reserved(reserved: BrokerParts, project: str | None) -> None:
    (said,) = (one for one in asyncio.run(submit(reserved, project)) if isinstance(one, wire.Refusal))
    assert said.code is RefusalCode.NOT_YOUR_PROJECT
    assert "is what is reserved in the project 'maths' for some of its users" in said.sentence


def test_another_group_of_hers_pays_as_ever(reserved: BrokerParts) -> None:
    assert not any(isinstance(one, wire.Refusal) for one in asyncio.run(submit(reserved, "guests")))


def test_once_it_is_over_the_group_is_one_as_any_other(reserved: BrokerParts) -> None:
    reserved.join(slots=1)
    bob = Person(user=UserName("bob"), groups=("maths",))
    lease = reserved.submit(bob, "runs")
    reserved.step(events.CellStarted(lease, CellId("runs")))
    state = reserved.shell.scheduler.state
    assert state.leases[lease].project == NAME
    reserved.now_ms = 2_400_000_000_000  # 2046, some days later
    asyncio.run(reserved.follower.end_reservations(reserved.shell))
    assert NAME not in state.accounts.by_id
    assert state.leases[lease].project == "maths", "what runs goes on"
    assert not any(isinstance(one, wire.Refusal) for one in asyncio.run(submit(reserved, NAME)))
    assert state.accounts.by_id[NAME].parent is None, "it has nothing of the project for which that was"


def test_nor_is_more_of_it_to_be_asked_for(reserved: BrokerParts) -> None:
    eve = Person(user=UserName("eve"), groups=(NAME, "guests"))
    assert "is what is reserved" in reserved.refusal(eve, RequestAllowance(project=NAME, gpus=1, why="more"))


def test_what_such_a_group_had_before_the_reservation_came_uses_nothing_of_it(
    broker: BrokerParts, tmp_path: Path
) -> None:
    """It waits, or is a session without a cell, or runs, when an admin writes the reservation."""
    broker.now_ms = 1_795_000_000_000
    file = tmp_path / "quotas.toml"
    file.write_text("[projects.maths]\nguaranteed = 1\n")
    broker.use_quota_file(file)
    broker.join(slots=2)
    eve = Person(user=UserName("eve"), groups=(NAME, "guests"))
    idle, runs = (broker.submit(eve, cell) for cell in ("idle", "runs"))
    broker.submit(eve, "waits")
    for lease, cell in ((idle, "idle"), (runs, "runs")):
        broker.step(events.CellStarted(lease, CellId(cell)))
    broker.step(events.CellEnded(idle, CellId("idle")))
    broker.to_agents.clear()
    broker.to_sessions.clear()
    file.write_text(TEXT)
    asyncio.run(broker.follower.load(broker.shell))
    refused = [said for _, said in broker.to_sessions if isinstance(said, wire.Refusal)]
    assert [(one.request, one.code) for one in refused] == [("waits", RefusalCode.NOT_YOUR_PROJECT)]
    evicted = [said for said in broker.to_agents if isinstance(said, wire.Evict)]
    assert [said.lease for said in evicted] == [idle], "the cell that runs ends as it would"
    for sentence in (refused[0].sentence, evicted[0].sentence):
        assert "is what is reserved in the project 'maths'" in sentence
    review = AccessReview(broker.identity, broker.shell, broker.kernels, broker.clock_ms)
    asyncio.run(review.review())
    broker.step(events.CellEnded(runs, CellId("runs")))
    broker.step(events.CellStarted(runs, CellId("next")))
    broker.to_agents.clear()
    asyncio.run(review.review())
    (said,) = (one for one in broker.to_agents if isinstance(one, wire.CancelCell))
    assert "is what is reserved in the project 'maths'" in said.sentence
