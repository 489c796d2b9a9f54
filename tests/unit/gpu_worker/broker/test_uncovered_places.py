"""A place that is kept between cells, and that its project is not guaranteed any more: who waits has it."""

import asyncio

import pytest
from msgspec import structs

from bulletin.ids import CellId, LeaseId, ProjectId
from bulletin.kept_time import make_kept_cell
from bulletin.units import MINUTE_MS
from bulletin.wire import messages as wire
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.uncovered_places import UncoveredPlaces
from gpu_worker.scheduler import events
from gpu_worker.scheduler.policy.projects import Project
from tests.unit.gpu_worker.broker.broker_parts import ANN, EVE, BrokerParts

MATHS, GUESTS = ProjectId("maths"), ProjectId("guests")
#: Maths is guaranteed the pool's one GPU, or the guests are.
BEFORE = (Project(id=MATHS, guaranteed_milli=1000), Project(id=GUESTS))
AFTER = (Project(id=MATHS), Project(id=GUESTS, guaranteed_milli=1000))


@pytest.fixture
def broker(ledger: Ledger) -> BrokerParts:
    made = BrokerParts(ledger, BEFORE)
    made.join()
    return made


@pytest.fixture
def places(broker: BrokerParts) -> UncoveredPlaces:
    return UncoveredPlaces(broker.shell, broker.clock_ms)


@pytest.fixture
def kept(broker: BrokerParts) -> LeaseId:
    """A place that a notebook of ann's keeps, in a class that never borrows."""
    lease = broker.submit(ANN, "a", qos="reserved")
    broker.step(events.CellStarted(lease, make_kept_cell()))
    return lease


def set_guarantees(broker: BrokerParts, projects: tuple[Project, ...]) -> None:
    settings = broker.shell.scheduler.settings
    broker.step(events.SettingsChanged(structs.replace(settings, projects=projects)))


def look(broker: BrokerParts, places: UncoveredPlaces, after_ms: int = 0) -> list[wire.Message]:
    """What agents are told by a review so much later."""
    broker.now_ms += after_ms
    broker.to_agents.clear()
    asyncio.run(places.review())
    return broker.to_agents


def test_who_is_guaranteed_it_now_has_a_place_that_idles_after_a_minute(
    broker: BrokerParts, places: UncoveredPlaces, kept: LeaseId
) -> None:
    set_guarantees(broker, AFTER)
    assert look(broker, places) == []
    broker.submit(EVE, "e")
    assert look(broker, places, MINUTE_MS - 1) == []
    assert look(broker, places, 1) == [wire.Evict(lease=kept)]


def test_nobody_takes_what_is_covered_and_what_nobody_waits_for(
    broker: BrokerParts, places: UncoveredPlaces, kept: LeaseId
) -> None:
    waiting = broker.submit(EVE, "e")
    assert look(broker, places) == []
    assert look(broker, places, 60 * MINUTE_MS) == [], "it is covered"
    set_guarantees(broker, AFTER)
    request = next(one.id for one in broker.shell.scheduler.state.pending.values() if one.lease == waiting)
    broker.step(events.RequestHeld(request, "", is_by_admin=False, is_by_lead=False))
    assert look(broker, places) == []
    assert look(broker, places, MINUTE_MS) == [], "who is held takes nothing from anybody"
    broker.step(events.RequestReleased(request))
    assert look(broker, places) == [wire.Evict(lease=kept)]


def test_a_guarantee_that_comes_back_within_the_minute_takes_nothing(
    broker: BrokerParts, places: UncoveredPlaces, kept: LeaseId
) -> None:
    broker.submit(EVE, "e")
    for _ in range(3):
        set_guarantees(broker, AFTER)
        assert look(broker, places, MINUTE_MS - 1) == []
        set_guarantees(broker, BEFORE)
        assert look(broker, places, MINUTE_MS - 1) == []


def test_a_cell_that_runs_there_ends_as_it_would_and_its_place_goes_then(
    broker: BrokerParts, places: UncoveredPlaces, kept: LeaseId
) -> None:
    broker.step(events.CellStarted(kept, CellId("next")))
    set_guarantees(broker, AFTER)
    broker.submit(EVE, "e")
    assert look(broker, places) == []
    assert look(broker, places, 60 * MINUTE_MS) == []
    broker.step(events.CellStarted(kept, make_kept_cell()))
    assert look(broker, places) == [wire.Evict(lease=kept)]
