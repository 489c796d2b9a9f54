"""A place that is kept between cells, and may not be any more: it goes once no cell runs there."""

import asyncio

import pytest
from msgspec import structs

from bulletin.ids import CellId, LeaseId, ProjectId
from bulletin.kept_time import make_kept_cell
from bulletin.units import HOUR_MS, MINUTE_MS
from bulletin.wire import messages as wire
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.outdated_places import OutdatedPlaces
from gpu_worker.scheduler import events
from gpu_worker.scheduler.policy.allowances import Allowance
from gpu_worker.scheduler.policy.projects import Project
from tests.unit.gpu_worker.broker.broker_parts import ANN, EVE, BrokerParts

MATHS, GUESTS = ProjectId("maths"), ProjectId("guests")
#: Maths is guaranteed the pool's one GPU, or the guests are.
BEFORE = (Project(id=MATHS, guaranteed_milli=1000), Project(id=GUESTS))
UNCOVERED = "Project 'maths' is not guaranteed your place any more, and somebody waits."
AFTER = (Project(id=MATHS), Project(id=GUESTS, guaranteed_milli=1000))


@pytest.fixture
def broker(ledger: Ledger) -> BrokerParts:
    made = BrokerParts(ledger, BEFORE)
    made.join()
    return made


@pytest.fixture
def places(broker: BrokerParts) -> OutdatedPlaces:
    return OutdatedPlaces(broker.shell, broker.clock_ms)


@pytest.fixture
def kept(broker: BrokerParts) -> LeaseId:
    """A place that a notebook of ann's keeps, in a class that never borrows."""
    lease = broker.submit(ANN, "a", qos="reserved")
    broker.step(events.CellStarted(lease, make_kept_cell()))
    return lease


def change(broker: BrokerParts, **settings: object) -> None:
    now = broker.shell.scheduler.settings
    broker.step(events.SettingsChanged(structs.replace(now, **settings)))


def look(broker: BrokerParts, places: OutdatedPlaces, after_ms: int = 0) -> list[wire.Message]:
    """What agents are told by a review so much later."""
    broker.now_ms += after_ms
    broker.to_agents.clear()
    asyncio.run(places.review())
    return broker.to_agents


def evicted(lease: LeaseId, why: str = UNCOVERED) -> list[wire.Message]:
    return [wire.Evict(lease=lease, sentence=why)]


def test_who_is_guaranteed_it_now_has_a_place_that_idles_after_a_minute(
    broker: BrokerParts, places: OutdatedPlaces, kept: LeaseId
) -> None:
    change(broker, projects=AFTER)
    assert look(broker, places) == []
    broker.submit(EVE, "e")
    assert look(broker, places, MINUTE_MS - 1) == []
    assert look(broker, places, 1) == evicted(kept)


def test_nobody_takes_what_is_covered_and_what_nobody_waits_for(
    broker: BrokerParts, places: OutdatedPlaces, kept: LeaseId
) -> None:
    waiting = broker.submit(EVE, "e")
    assert look(broker, places) == []
    assert look(broker, places, 60 * MINUTE_MS) == [], "it is covered"
    change(broker, projects=AFTER)
    request = next(one.id for one in broker.shell.scheduler.state.pending.values() if one.lease == waiting)
    broker.step(events.RequestHeld(request, "", is_by_admin=False, is_by_lead=False))
    assert look(broker, places) == []
    assert look(broker, places, MINUTE_MS) == [], "who is held takes nothing from anybody"
    broker.step(events.RequestReleased(request))
    assert look(broker, places) == evicted(kept)


def test_a_guarantee_that_comes_back_within_the_minute_takes_nothing(
    broker: BrokerParts, places: OutdatedPlaces, kept: LeaseId
) -> None:
    broker.submit(EVE, "e")
    for _ in range(3):
        change(broker, projects=AFTER)
        assert look(broker, places, MINUTE_MS - 1) == []
        change(broker, projects=BEFORE)
        assert look(broker, places, MINUTE_MS - 1) == []


def test_a_cell_that_runs_there_ends_as_it_would_and_its_place_goes_then(
    broker: BrokerParts, places: OutdatedPlaces, kept: LeaseId
) -> None:
    broker.step(events.CellStarted(kept, CellId("next")))
    change(broker, projects=AFTER)
    broker.submit(EVE, "e")
    assert look(broker, places) == []
    assert look(broker, places, 60 * MINUTE_MS) == []
    broker.step(events.CellStarted(kept, make_kept_cell()))
    assert look(broker, places) == evicted(kept)


def test_a_class_that_keeps_no_place_any_more_keeps_none(
    broker: BrokerParts, places: OutdatedPlaces, kept: LeaseId
) -> None:
    classes = broker.shell.scheduler.settings.qos
    change(broker, qos=tuple(structs.replace(one, keep_ms=0) for one in classes))
    assert look(broker, places) == evicted(kept, "The QoS 'reserved' keeps no place any more.")


def test_who_was_allowed_more_keeps_it_no_longer_than_that(broker: BrokerParts, places: OutdatedPlaces) -> None:
    """As a hot session does: its next cell is asked for anew."""
    change(broker, projects=(structs.replace(BEFORE[0], walltime_ms=30 * MINUTE_MS), BEFORE[1]))
    allowance = Allowance(broker.now_ms + HOUR_MS, walltime_ms=4 * HOUR_MS)
    broker.step(events.AllowanceChanged("a-1", MATHS, ANN.user, allowance))
    lease = broker.submit(ANN, "a", qos="reserved", walltime_ms=4 * HOUR_MS)
    broker.step(events.CellStarted(lease, CellId("first")))
    broker.now_ms += HOUR_MS
    broker.step(events.Tick())
    assert look(broker, places) == [], "what runs goes on"
    broker.step(events.CellStarted(lease, make_kept_cell()))
    why = "Another cell like the last one is not allowed any more in project 'maths'."
    assert look(broker, places) == evicted(lease, why)
