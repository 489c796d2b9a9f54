"""A place that is kept between cells, and may not be any more: it goes once no cell runs there."""

import asyncio
from typing import Any

import pytest
from msgspec import structs

from bulletin.ids import CellId, LeaseId, ProjectId, SlotId, UserName
from bulletin.kept_time import make_kept_cell
from bulletin.units import HOUR_MS, MINUTE_MS
from bulletin.wire import messages as wire
from gpu_worker.broker.identity import Person
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.outdated_places import OutdatedPlaces
from gpu_worker.scheduler import events
from gpu_worker.scheduler.policy.allowances import Allowance
from gpu_worker.scheduler.policy.projects import Budget, Project
from tests.unit.gpu_worker.broker.broker_parts import ANN, EVE, BrokerParts

HALF_MS = 30 * MINUTE_MS
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


def keep(broker: BrokerParts, *users: str) -> list[LeaseId]:
    """Places that these keep, one each, in a class that never borrows; each a second younger than the one before."""
    kept: list[LeaseId] = []
    for user in users:
        broker.now_ms += 1_000
        person = Person(user=UserName(user), groups=("maths",))
        kept.append(broker.submit(person, user, qos="reserved", keep_ms=HALF_MS))
        broker.step(events.CellStarted(kept[-1], make_kept_cell()))
    return kept


def three_places(ledger: Ledger, **guests: Any) -> tuple[BrokerParts, OutdatedPlaces, list[LeaseId]]:
    """A node of three GPUs, all of them kept, which nobody is guaranteed any more but the guests: two of them."""
    broker = BrokerParts(ledger, (Project(id=MATHS, guaranteed_milli=3000), Project(id=GUESTS)))
    broker.join(slots=3)
    places, kept = OutdatedPlaces(broker.shell, broker.clock_ms), keep(broker, "ann", "amy", "abe")
    after = Project(**{"id": GUESTS, "guaranteed_milli": 2000} | guests)
    change(broker, projects=(Project(id=MATHS), after, Project(id=ProjectId("others"))))
    assert look(broker, places) == []
    return broker, places, kept


@pytest.mark.parametrize(
    ("asked", "guaranteed", "are_gone"), [((1,), 1, 1), ((1, 1), 1, 1), ((1, 1), 2, 2), ((2,), 2, 2), ((3,), 2, 0)]
)
def test_as_many_places_go_as_who_is_guaranteed_them_lacks_and_the_youngest_first(
    ledger: Ledger, asked: tuple[int, ...], guaranteed: int, are_gone: int
) -> None:
    broker, places, kept = three_places(ledger, guaranteed_milli=1000 * guaranteed)
    for number, gpus in enumerate(asked):
        broker.submit(EVE, f"e{number}", gpus=gpus)
    expected = [message for lease in kept[::-1][:are_gone] for message in evicted(lease)]
    assert look(broker, places, MINUTE_MS) == expected
    assert look(broker, places, MINUTE_MS) == expected, "until the first ones are gone no others go"


def test_nobody_loses_a_place_for_who_has_no_use_of_it_alone(ledger: Ledger) -> None:
    broker, places, kept = three_places(ledger)
    for lease in kept[:2]:
        broker.step(events.CellStarted(lease, CellId(f"of-{lease}")))
    broker.submit(EVE, "e", gpus=2)
    assert look(broker, places, MINUTE_MS) == []
    broker.step(events.CellStarted(kept[0], make_kept_cell()))
    assert look(broker, places) == [*evicted(kept[2]), *evicted(kept[0])]


def test_nobody_loses_a_place_while_there_is_room_that_others_borrow(ledger: Ledger) -> None:
    """It is taken back for who is guaranteed it, if not at once."""
    broker, places, kept = three_places(ledger)
    broker.join("n2")
    borrowed = broker.run(Person(user=UserName("leo"), groups=("others",)), "l")
    broker.submit(EVE, "e")
    assert look(broker, places, MINUTE_MS) == []
    broker.submit(EVE, "e2")
    assert look(broker, places) == evicted(kept[2])
    broker.step(events.LeaseEnded(borrowed))


@pytest.mark.parametrize("why", ["the users limit", "the budget", "another GPU", "no GPU", "no guarantee"])
def test_nobody_loses_a_place_for_who_waits_for_something_else(ledger: Ledger, why: str) -> None:
    terms: dict[str, dict[str, Any]] = {
        "the users limit": {"user_limit_milli": 1000},
        "the budget": {"budget": Budget(HALF_MS, "week")},
    }
    broker, places, _ = three_places(ledger, **terms.get(why, {}))
    offers = (
        wire.SlotOffer(slot=SlotId("gpu-0"), kind="gpu", name="V100"),
        wire.SlotOffer(slot=SlotId("cpu-0"), kind="cpu", name="CPU"),
    )
    broker.report("n2", structs.replace(broker.registration("n2"), slots=offers))
    asked = {"another GPU": {"gpu_type": "V100"}, "no GPU": {"gpus": 0}}.get(why, {})
    broker.step(events.CellStarted(broker.submit(EVE, "first", walltime_ms=HALF_MS, **asked), CellId("first")))
    who = Person(user=UserName("leo"), groups=("others",)) if why == "no guarantee" else EVE
    waiting = broker.submit(who, "waits", walltime_ms=HALF_MS, **asked)
    assert waiting in {one.lease for one in broker.shell.scheduler.state.pending.values()}
    assert look(broker, places, MINUTE_MS) == []
    assert look(broker, places, MINUTE_MS) == []


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
