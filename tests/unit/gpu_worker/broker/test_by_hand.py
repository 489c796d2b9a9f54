"""What people change by hand at the command line: who may, what its notebook is told, what the ledger keeps."""

import asyncio

import msgspec
import pytest

from bulletin.codes import RefusalCode
from bulletin.ids import CellId, LeaseId, ProjectId, UserName
from bulletin.wire import console, messages as wire
from gpu_worker.broker.admin_requests import BY_HAND
from gpu_worker.broker.identity import Person
from gpu_worker.scheduler import events
from tests.unit.gpu_worker.broker.broker_parts import ADMIN, ANN, EVE, HOUR_MS, BrokerParts

BOSS = Person(user=UserName("boss"), is_admin=True)


@pytest.fixture
def waits(broker: BrokerParts) -> LeaseId:
    """A request of ann's, behind a cell of eve's."""
    broker.join()
    broker.run(EVE, "cell-e")
    return broker.submit(ANN, "cell-a")


def reason(broker: BrokerParts, lease: LeaseId) -> str:
    found: str = broker.ask(ADMIN, console.AskAbout(id=lease)).request.reason
    return found


def noted(broker: BrokerParts) -> list[tuple[str, ...]]:
    """What the ledger has: what was done to whose, by whom and why."""
    return [
        tuple(note[name] for name in ("what", "user", "by", "why")) for note in broker.ledger.event_payloads(BY_HAND)
    ]


def test_what_an_admin_holds_waits_for_an_admin(broker: BrokerParts, waits: LeaseId) -> None:
    answer = broker.ask(ADMIN, console.Hold(id=waits, why="the exam\nis at ten\x1b[2J"))
    assert (answer.lease, answer.user, answer.what, answer.why) == (waits, "ann", "held", "the exam is at ten [2J")
    assert reason(broker, waits) == "held by an admin: the exam is at ten [2J"
    said = broker.refusal(ANN, console.Release(id=waits))
    assert said.startswith(f"{waits} is held by an admin: the exam is at ten [2J. Only an admin releases it")
    assert "Only an admin changes that" in broker.refusal(ANN, console.Hold(id=waits, why="mine"))
    assert broker.ask(BOSS, console.Release(id=waits, why="it is over")).what == "released"
    assert reason(broker, waits).endswith("the only GPU is busy")
    assert noted(broker) == [
        ("held", "ann", "root", "the exam is at ten [2J"),
        ("released", "ann", "boss", "it is over"),
    ]


def test_the_kernel_of_what_is_held_hears_it_and_no_estimate(broker: BrokerParts, waits: LeaseId) -> None:
    broker.ask(ADMIN, console.Hold(id=waits, why="later"))
    broker.to_sessions.clear()
    pending = next(iter(broker.shell.pending_requests.values()))
    assert pending.told is None
    asyncio.run(broker.shell.teller.tell_front(everybody=False))
    ((_, told),) = broker.to_sessions
    assert isinstance(told, wire.Queued)
    assert (told.reason, told.wait_ms, told.usual_ms) == ("held by an admin: later", None, None)


def test_owners_hold_and_release_their_own_and_the_ledger_has_none_of_it(broker: BrokerParts, waits: LeaseId) -> None:
    assert broker.ask(ANN, console.Hold(id="cell-a")).what == "held"
    assert reason(broker, waits) == "you hold it until you release it"
    broker.step(events.CellEnded(LeaseId(broker.ask(ADMIN, console.AskQueue()).running[0].lease), CellId("cell-e")))
    assert broker.ask(ANN, console.AskQueue()).waiting_count == 1
    assert broker.ask(ANN, console.Release(id="cell-a")).what == "released"
    assert "is not held" in broker.refusal(ANN, console.Release(id="cell-a"))
    assert noted(broker) == []


def test_an_admin_holds_what_its_owner_held_and_releases_both(broker: BrokerParts, waits: LeaseId) -> None:
    broker.ask(ANN, console.Hold(id=waits))
    broker.ask(ADMIN, console.Hold(id=waits, why="x"))
    assert "Only an admin" in broker.refusal(ANN, console.Release(id=waits))
    broker.ask(ADMIN, console.Release(id=waits))
    assert "is not held" in broker.refusal(ANN, console.Release(id=waits))


@pytest.mark.parametrize(
    "question", [console.Hold(id=""), console.Release(id=""), console.PutFirst(id=""), console.Requeue(id="")]
)
def test_other_peoples_are_as_if_they_were_not_there(
    broker: BrokerParts, waits: LeaseId, question: console.FromConsole
) -> None:
    for name in (waits, "cell-a", waits[:8], "nothing-of-anybody", "l-", "%", "x" * 256):
        said = broker.refusal(EVE, msgspec.structs.replace(question, id=name))
        assert "ann" not in said
        assert said.startswith(
            ("No request, lease or cell of yours with the id", "Only admins", f"{name!r} is too short")
        )


def test_what_is_held_can_be_cancelled(broker: BrokerParts, waits: LeaseId) -> None:
    broker.ask(ADMIN, console.Hold(id=waits))
    assert broker.ask(ANN, console.Cancel(id=waits)).what == "withdrawn"
    assert broker.shell.scheduler.state.on_hold == {}


def test_what_runs_is_not_held_and_what_waits_is_not_run_again(broker: BrokerParts, waits: LeaseId) -> None:
    running = broker.ask(ADMIN, console.AskQueue()).running[0].lease
    for question in (console.Hold(id=running), console.Release(id=running), console.PutFirst(id=running)):
        answer = broker.ask(ADMIN, question)
        assert answer.code is RefusalCode.NOT_WAITING
        assert f"bulletin requeue {running}" in answer.sentence
    assert "requeue" not in broker.refusal(EVE, console.Hold(id=running))
    assert "still waits" in broker.refusal(ADMIN, console.Requeue(id=waits))


def test_an_admin_puts_a_request_first_of_its_project(broker: BrokerParts, waits: LeaseId) -> None:
    last = broker.submit(ANN, "cell-b")
    assert "Only admins" in broker.refusal(ANN, console.PutFirst(id=last))
    answer = broker.ask(ADMIN, console.PutFirst(id=last, why="a demo"))
    assert (answer.what, answer.project) == ("put-first", "maths")
    assert [row.lease for row in broker.ask(ADMIN, console.AskQueue()).waiting] == [last, waits]
    assert noted(broker) == [("put-first", "ann", "root", "a demo")]


def test_an_admin_has_a_cell_run_again_and_its_notebook_hears_why(broker: BrokerParts) -> None:
    broker.join()
    lease = broker.submit(EVE, "cell-e")
    assert "No cell runs" in broker.refusal(ADMIN, console.Requeue(id=lease))
    broker.step(events.CellStarted(lease, CellId("cell-e")))
    assert "Only admins" in broker.refusal(EVE, console.Requeue(id=lease))
    answer = broker.ask(ADMIN, console.Requeue(id="cell-e", why="the node must go"))
    assert (answer.what, answer.grace_ms) == ("requeued", 30_000)
    assert broker.to_agents[-1] == wire.Reclaim(lease=lease, grace_ms=30_000, is_by_admin=True)
    assert "already" in broker.refusal(ADMIN, console.Requeue(id=lease))
    assert noted(broker) == [("requeued", "eve", "root", "the node must go")]


def test_an_admin_gives_a_cell_more_time_and_its_agent_and_its_ledger_have_it(broker: BrokerParts) -> None:
    broker.join()
    lease = broker.run(ANN, "cell-a")
    assert "Only admins" in broker.refusal(ANN, console.Extend(id=lease, more_ms=1000))
    broker.now_ms = 60_000
    answer = broker.ask(ADMIN, console.Extend(id="cell-a", more_ms=600_000, why="it converges"))
    assert (answer.what, answer.walltime_ms, answer.left_ms) == ("extended", 40 * 60_000, 39 * 60_000)
    told = broker.to_agents[-1]
    assert isinstance(told, wire.ExtendCell)
    assert (told.cell, told.more_ms, told.sentence) == (
        "cell-a",
        600_000,
        "An admin (root) gave this cell 10 min more.",
    )
    broker.ask(ADMIN, console.Extend(id="cell-a", more_ms=300_000))
    assert broker.to_agents[-1].more_ms == 900_000  # type: ignore[attr-defined]  # in all, so said twice it is the same
    assert broker.ask(ADMIN, console.AskQueue()).running[0].walltime_ms == 45 * 60_000
    assert noted(broker)[0] == ("extended", "ann", "root", "it converges")


def test_a_cell_has_no_more_time_than_its_budget(broker: BrokerParts) -> None:
    broker.join()
    lease = broker.run(ANN, "cell-a")
    said = broker.refusal(ADMIN, console.Extend(id=lease, more_ms=10 * HOUR_MS))
    assert said.startswith("The budget of project 'school' is enough for 9 h more")
    assert "may have 30 days more" in broker.refusal(
        ADMIN, console.Extend(id=broker_of_guests(broker), more_ms=1000 * HOUR_MS)
    )
    broker.step(events.CellEnded(lease, CellId("cell-a")))
    assert "No cell runs" in broker.refusal(ADMIN, console.Extend(id=lease, more_ms=1000))
    assert broker.to_agents[-1].__class__ is not wire.ExtendCell


def broker_of_guests(broker: BrokerParts) -> LeaseId:
    """A cell of a project without a budget."""
    broker.join("n2")
    return broker.run(EVE, "cell-e")


def test_a_boost_is_seen_and_given_by_admins_has_an_end_and_holds_for_the_next_broker(broker: BrokerParts) -> None:
    broker.join()
    broker.run(EVE, "cell-e")
    for question in (
        console.AskBoosts(),
        console.Boost(user=UserName("ann"), project=ProjectId("maths"), for_ms=HOUR_MS),
    ):
        assert "Only admins" in broker.refusal(ANN, question)
    boost = console.Boost(user=UserName("ann"), project=ProjectId("maths"), for_ms=HOUR_MS, why="her thesis")
    assert "within a year" in broker.refusal(ADMIN, msgspec.structs.replace(boost, for_ms=None))
    assert "within a year" in broker.refusal(ADMIN, msgspec.structs.replace(boost, for_ms=400 * 24 * HOUR_MS))
    assert "There is no project 'x'" in broker.refusal(ADMIN, msgspec.structs.replace(boost, project=ProjectId("x")))
    assert "is not boosted" in broker.refusal(ADMIN, msgspec.structs.replace(boost, is_undone=True))
    (row,) = broker.ask(ADMIN, boost).boosts
    assert (row.user, row.project, row.for_ms, row.by, row.why) == ("ann", "maths", HOUR_MS, "root", "her thesis")

    after = BrokerParts(broker.ledger)
    after.now_ms = HOUR_MS // 2
    asyncio.run(after.console.recall())
    assert [row.for_ms for row in after.ask(ADMIN, console.AskBoosts()).boosts] == [HOUR_MS // 2]
    assert after.shell.scheduler.state.boosts.until_ms == {("maths", "ann"): HOUR_MS}
    assert after.ask(ADMIN, msgspec.structs.replace(boost, is_undone=True)).boosts == ()

    last = BrokerParts(broker.ledger)
    asyncio.run(last.console.recall())
    assert last.ask(ADMIN, console.AskBoosts()).boosts == ()


def test_no_more_users_are_boosted_than_can_be_seen(broker: BrokerParts) -> None:
    boost = console.Boost(user=UserName("ann"), project=ProjectId("maths"), for_ms=HOUR_MS)
    for number in range(100):
        broker.ask(ADMIN, msgspec.structs.replace(boost, user=UserName(f"u{number}")))
    assert "100 users are boosted" in broker.refusal(ADMIN, boost)
    assert len(broker.ask(ADMIN, msgspec.structs.replace(boost, user=UserName("u7"), for_ms=1)).boosts) == 100
    broker.now_ms = 1
    assert len(broker.ask(ADMIN, boost).boosts) == 100
