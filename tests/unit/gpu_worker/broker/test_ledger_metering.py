"""Brokers that are killed, links that break, agents that are lost and come back: every lease and cell once."""

import itertools
import random
import shutil
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bulletin.codes import CellOutcome, LeaseEnd
from bulletin.ids import AgentId, CellId, LeaseId, ProjectId, RequestId, SessionId, SlotId, UserName
from gpu_worker.broker import recall
from gpu_worker.broker.credit_book import CreditBook
from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.metering import PATIENCE_MS, Metering, Stretch, stray
from gpu_worker.broker.records import CellRecord, Record, first_name
from gpu_worker.broker.run_notes import RunNotes
from gpu_worker.broker.translate import LEASE_ENDS
from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.actions import Action, EndLease, Evict, Grant, Reclaim
from gpu_worker.scheduler.machine import Scheduler
from gpu_worker.scheduler.policy.credits import Credits
from gpu_worker.scheduler.policy.prices import Price
from gpu_worker.scheduler.policy.projects import GPU_MILLI, Budget, Project, QoS, SchedulerSettings
from tests.unit.gpu_worker.broker.ledger_records import rows as sql

LAB, GUESTS = ProjectId("lab"), ProjectId("guests")
CAUSES = ("lent", "borrowed", "forgotten", "forgiven")
#: Never spent: it counts.
BUDGET = Budget(10**12, "month")
SETTINGS = SchedulerSettings(
    qos=(
        QoS(name="interactive", priority=1, walltime_ms=1_800_000, queued_per_user=20, min_runtime_ms=0, grace_ms=500),
    ),
    projects=(
        Project(id=LAB, guaranteed_milli=2000, budget=BUDGET),
        Project(id=GUESTS, budget=BUDGET),
    ),
    back_off_ms=100,
    longest_back_off_ms=1_000,
)
#: What a pool without a whole GPU may have.
SLICES = tuple(ev.Slot(SlotId(f"gpu-{n}"), "mig", "slice", 1, milli) for n, milli in enumerate((125, 125, 375, 500)))
#: Shorter cells are only told when they are done.
BEGAN_MS = 30


class Held(msgspec.Struct):
    """A lease on its node, as it is there."""

    asked: ev.RequestSubmitted
    slots: tuple[SlotId, ...]
    since_ms: int
    cell: CellId | None = None
    began_ms: int = 0
    is_told: bool = False  #: that its cell began


class Done(msgspec.Struct, frozen=True):
    """A cell that is over, until the ledger has it."""

    lease: LeaseId
    cell: CellId
    held: Held
    outcome: CellOutcome
    began_ms: int
    ended_ms: int


class World:
    """One agent, one broker at a time, and the ledger that outlives them. What a broker is told, it is told at once."""

    def __init__(self, ledger: Ledger, url: str) -> None:
        self.ledger, self.url, self.now_ms, self.number = ledger, url, 1_700_000_000_000, itertools.count(1)
        self.settings = SETTINGS
        self.slots = tuple(ev.Slot(SlotId(f"gpu-{n}"), "gpu", "model", 1) for n in range(4))
        self.leases: dict[LeaseId, Held] = {}
        self.unrecorded: dict[tuple[LeaseId, CellId], Done] = {}
        self.ran: list[Done] = []  #: all that ever ended
        self.asked: dict[RequestId, ev.RequestSubmitted] = {}
        self.is_linked = self.is_registered = self.keeps = False
        self.unseen: list[Stretch] = []  #: all that a scheduler was told later
        self.unsaid: list[tuple[ev.Event | Done, LeaseEnd | None]] = []  #: until the broker knows the agent
        self.new_broker()

    # --- the broker

    def new_broker(self) -> None:
        """The one before is gone, with all that it had not written."""
        self.scheduler = Scheduler(self.settings)
        balances = self.ledger.past_credits()
        for event, at_ms in recall.past(self.ledger, self.settings, balances, self.now_ms):
            self.scheduler.step(event, at_ms)
        self.credit_book = CreditBook(self.scheduler.state, f"r{next(self.number)}", balances, self.now_ms)
        given_up = self.ledger.given_up(since_ms=0)
        self.metering = Metering(self.scheduler.state, self.ledger.open_leases(), given_up, self.now_ms)
        self.run_notes = RunNotes()
        self.queue: list[tuple[Sequence[Record], CellRecord | None, tuple[LeaseId, CellId] | None]] = []
        self.is_registered = False
        self.asked.clear()

    def step(self, event: ev.Event, why: LeaseEnd | None = None) -> None:
        if isinstance(event, ev.AgentJoined):
            self.metering.expect_leases({held.lease: held.held_ms for held in event.held})
        actions = self.scheduler.step(event, self.now_ms)
        ends = {action.lease: LEASE_ENDS[action.why] for action in actions if isinstance(action, EndLease)}
        if isinstance(event, ev.LeaseEnded) and why is not None:
            ends[event.lease] = why
        self.queue.append((self.metering.follow_step(ends, self.now_ms), None, None))
        self.queue.append((self.credit_book.take_period(self.now_ms), None, None))
        self.refund(self.metering.take_refunded())
        if isinstance(event, ev.Tick | ev.AgentJoined):
            self.tell_unseen()
        for action in actions:
            self.perform(action)

    def tell_unseen(self) -> None:
        unseen = self.metering.take_unseen()
        self.unseen += unseen
        if unseen:
            self.step(recall.unseen(unseen, self.scheduler.state.accounts, self.now_ms))

    def refund(self, stretches: list[Stretch]) -> None:
        if stretches:
            self.tell_unseen()
            self.step(recall.refunded(stretches, self.scheduler.state.accounts, self.now_ms))

    def spent(self, project: ProjectId) -> Fraction:
        """Of its budget, in GPU-milliseconds, as the scheduler has it."""
        left = self.scheduler.state.accounts.of(project).left(self.now_ms)
        assert left is not None
        return BUDGET.gpu_ms - Fraction(left, GPU_MILLI)

    def charged(self, project: ProjectId, user: UserName | None = None) -> Fraction:
        """The same as the rows of the ledger have it, one by one; or of one user there."""
        rows = [row for row in self.ledger.each_cell() if row["project"] == project and user in (None, row["user"])]
        charged = [(row["held_ms"] - row["refunded_ms"]) * (row["charged_milli"] or self.milli(row)) for row in rows]
        return Fraction(sum(charged), GPU_MILLI)

    def milli(self, row: dict[str, Any]) -> int:
        milli = {slot.id: slot.milli for slot in self.slots}
        return sum(milli[slot] for slot in msgspec.json.decode(row["slots"]))

    def write(self, number: int | None = None) -> None:
        """Write the first so many of what waits, or all of it."""
        batch, self.queue = self.queue[:number], self.queue[len(self.queue[:number]) :]
        for records, lone, done in batch:
            found = list(records)
            if lone is not None and not self.ledger.has_run(lone.cell, lone.lease):
                found = stray(lone, self.ledger.ended_ms(lone.lease))
            self.ledger.record(found, self.now_ms)
            if done is not None and self.is_linked:
                self.unrecorded.pop(done, None)

    def perform(self, action: Action) -> None:
        match action:
            case Grant() if self.is_linked and action.lease not in self.leases:
                self.leases[action.lease] = Held(self.asked.pop(action.request), action.slots, self.now_ms)
            case Evict() | EndLease() if self.is_linked:
                held = self.leases.get(action.lease)
                if held is None:
                    self.step(ev.LeaseEnded(action.lease), LeaseEnd.NO_SUCH_LEASE)
                elif held.cell is None or isinstance(action, EndLease):
                    self.leave(action.lease, LeaseEnd.EVICTED)
                else:
                    self.tell(ev.CellStarted(action.lease, held.cell, self.now_ms - held.began_ms))
            case Reclaim() if self.is_linked:
                if action.lease in self.leases:
                    self.leave(action.lease, LeaseEnd.RECLAIMED)
                else:
                    self.step(ev.LeaseEnded(action.lease), LeaseEnd.NO_SUCH_LEASE)

    # --- the agent

    def tell(self, event: ev.Event, why: LeaseEnd | None = None) -> None:
        if self.is_registered:
            self.step(event, why)
        elif self.is_linked:
            self.unsaid.append((event, why))

    def report(self, done: Done) -> None:
        ago_ms = self.now_ms - done.ended_ms
        record = CellRecord(
            cell=done.cell, lease=done.lease, session=done.held.asked.session, user=done.held.asked.user,
            project=done.held.asked.project, qos="interactive", node="n", slots=done.held.slots, kind="gpu", attempt=0,
            gpus=len(done.held.slots), started_at_ms=done.began_ms, ended_at_ms=self.now_ms - ago_ms,
            held_ms=done.ended_ms - done.began_ms, ran_ms=done.ended_ms - done.began_ms, outcome=done.outcome,
        )  # fmt: skip
        told = self.metering.end_cell(record, ago_ms, self.now_ms)
        lone = record if told is None else None
        self.queue.append((told or [], lone, (done.lease, done.cell)))
        refunded = self.metering.take_refunded()
        self.step(ev.CellEnded(done.lease, done.cell))
        self.refund(refunded)

    def register(self) -> None:
        """Say what is held, then all that was missed, then what comes meanwhile."""
        self.is_linked, self.is_registered, self.unsaid = True, False, []
        held = tuple(
            ev.ReportedLease(
                lease, one.asked.session, one.asked.user, one.asked.project, "interactive", one.slots, one.cell,
                1_800_000, self.now_ms - one.began_ms if one.cell else 0, self.now_ms - one.since_ms,
                charged=self.metering.agreed(lease, None if self.keeps else one.cell) if one.cell else None,
                is_kept=self.keeps,
            )
            for lease, one in self.leases.items()
        )  # fmt: skip
        missed = list(self.unrecorded.values())
        self.step(ev.AgentJoined(AgentId("a"), "n", self.slots, held))
        self.unsaid[:0] = [(done, None) for done in missed]
        self.is_registered = True
        for said, why in self.unsaid:
            if isinstance(said, Done):
                self.report(said)
            else:
                self.step(said, why)

    def begin(self, lease: LeaseId, cell: str = "") -> None:
        held = self.leases[lease]
        held.cell, held.began_ms, held.is_told = CellId(cell or f"c{next(self.number)}"), self.now_ms, False

    def pass_ms(self, ms: int) -> None:
        """Time passes; longer cells are told of."""
        self.now_ms += ms
        for lease, held in list(self.leases.items()):
            ran_ms = self.now_ms - held.began_ms
            if held.cell is not None and not held.is_told and ran_ms >= BEGAN_MS:
                held.is_told = True
                self.tell(ev.CellStarted(lease, held.cell, ran_ms))
        self.step(ev.Tick())
        self.queue.append((self.run_notes.take(self.metering.running(), self.now_ms), None, None))

    def end(self, lease: LeaseId, outcome: CellOutcome = CellOutcome.RETURNED) -> None:
        held = self.leases[lease]
        assert held.cell is not None
        done = Done(lease, held.cell, held, outcome, held.began_ms, self.now_ms)
        held.cell = None
        self.unrecorded[lease, done.cell] = done
        self.ran.append(done)
        if self.is_registered:
            self.report(done)
        elif self.is_linked:
            self.unsaid.append((done, None))

    def go_on(self, lease: LeaseId, cell: str, told_after_ms: int = 0) -> None:
        """Another cell begins, which is told before the end of the one before: so it is where the slots are kept."""
        held = self.leases[lease]
        assert held.cell is not None
        done = Done(lease, held.cell, held, CellOutcome.RETURNED, held.began_ms, self.now_ms)
        self.unrecorded[lease, done.cell] = done
        self.ran.append(done)
        self.begin(lease, cell)
        held.is_told = True
        self.now_ms += told_after_ms
        self.tell(ev.CellStarted(lease, held.cell, told_after_ms))
        self.report(done)

    def leave(self, lease: LeaseId, why: LeaseEnd = LeaseEnd.LEFT) -> None:
        if self.leases[lease].cell is not None:
            self.end(lease, why.outcome)
        if self.leases.pop(lease, None) is not None:  # its end may have had it evicted
            self.tell(ev.LeaseEnded(lease), why)

    def ask(self, session: str, project: str = "guests", gpus: int = 1) -> LeaseId:
        number = next(self.number)
        request = ev.RequestSubmitted(
            RequestId(f"r{number}"), LeaseId(f"l{number}"), SessionId(session), UserName(session), ProjectId(project),
            "interactive", gpus, is_kept=self.keeps,
        )  # fmt: skip
        self.asked[request.request] = request
        self.step(request)
        return request.lease

    def knows_the_ledger(self) -> None:
        """A broker that begins has what the rows of the ledger come to, and nothing else."""
        self.new_broker()
        accounts = self.scheduler.state.accounts
        rows = list(self.ledger.each_cell())
        assert all(row["ended_at_ms"] > self.now_ms - 3_600_000 for row in rows), "in an hour all use counts alike"
        for project in (LAB, GUESTS):
            assert self.spent(project) == self.charged(project)
            account = accounts.of(project)
            assert Fraction(account.history.amount, GPU_MILLI << 16) == self.charged(project)
            for user in account.users.values():
                assert Fraction(user.history.amount, GPU_MILLI << 16) == self.charged(project, user.name)
            entries = [(one.gpu_ms, one.cause) for one in self.ledger.credits(project)]
            sums = [sum(abs(gpu_ms) for gpu_ms, cause in entries if cause == one) for one in CAUSES]
            assert accounts.credits(project) == Credits(*sums)

    # --- in the end

    def settle(self) -> None:
        """All cells and leases end, and everything is written."""
        for lease, held in list(self.leases.items()):
            if held.cell is not None:
                self.end(lease)
        for request in list(self.asked):
            self.step(ev.RequestWithdrawn(request))
        if not self.is_registered:
            self.register()
        while self.leases:
            self.leave(next(iter(self.leases)))
        self.pass_ms(PATIENCE_MS)
        self.write()
        assert self.unrecorded == {}
        assert self.ledger.open_leases() == []

    def holds(self) -> dict[tuple[str, str], list[dict[str, object]]]:
        """The promises of the ledger; its rows by cell and lease."""
        assert list(self.ledger.audit()) == []
        rows: dict[tuple[str, str], list[dict[str, object]]] = {}
        for row in self.ledger.each_cell():
            rows.setdefault((str(row["cell"]), first_name(LeaseId(str(row["lease"])))), []).append(row)
        assert all(len(found) == 1 for found in rows.values()), "a run was counted twice"
        attempts = Counter(cell for cell, _ in rows)
        assert all(int(row["attempt"]) <= attempts[cell] for (cell, _), (row,) in rows.items())  # type: ignore[call-overload]
        return rows


@pytest.fixture
def world(tmp_path: Path, sqlite_template: Path):  # type: ignore[no-untyped-def]
    shutil.copy(sqlite_template, tmp_path / "ledger.db")
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    with Ledger.open(url) as ledger:
        yield World(ledger, url)


def only(rows: dict[tuple[str, str], list[dict[str, object]]]) -> dict[str, object]:
    ((row,),) = rows.values()
    return row


def test_a_cell_is_metered_from_its_beginning_to_its_end_by_the_broker(world: World) -> None:
    world.register()
    lease = world.ask("ann", "lab")
    began_ms = world.now_ms + 70
    world.pass_ms(70)
    world.begin(lease)
    world.pass_ms(40)
    world.pass_ms(1_000)
    world.end(lease)
    world.pass_ms(200)
    world.settle()
    row = only(world.holds())
    assert (row["started_at_ms"], row["held_ms"], row["in_quota_ms"], row["attempt"]) == (began_ms, 1_040, 1_040, 1)
    (used,) = world.ledger.usage("user")
    assert (used.slot_ms, used.hot_ms) == (1_040, 270)


def test_a_cell_so_short_that_its_beginning_was_not_told_is_counted_all_the_same(world: World) -> None:
    world.register()
    lease = world.ask("ann", "lab")
    for _ in range(2):
        world.begin(lease)
        world.pass_ms(20)
        world.end(lease)
        world.pass_ms(100)
    world.settle()
    assert [row["in_quota_ms"] for (row,) in world.holds().values()] == [20, 20]


def test_cells_of_which_a_broker_hears_late_were_held_for_as_long_as_their_agent_says(world: World) -> None:
    world.register()
    lease = world.ask("ann", "lab")
    world.begin(lease, "one")
    world.pass_ms(100)
    world.is_registered = False  # the broker stands still: what it is told waits
    world.pass_ms(900)
    world.end(lease)
    for cell in ("two", "three"):
        world.pass_ms(50)
        world.begin(lease, cell)
        world.pass_ms(40)
        world.pass_ms(1_960)
        world.end(lease)
    world.pass_ms(3_000)
    world.is_registered = True
    for said, why in world.unsaid:
        world.report(said) if isinstance(said, Done) else world.step(said, why)
    world.settle()
    rows = world.holds()
    assert [rows[cell, lease][0]["held_ms"] for cell in ("one", "two", "three")] == [1_000, 2_000, 2_000]
    assert world.ledger.usage("user")[0].hot_ms == 3_100
    assert world.spent(LAB) == world.charged(LAB) == 5_000


def test_a_cell_turns_when_another_of_its_project_ends(world: World) -> None:
    world.register()
    first, second = world.ask("ann", "lab"), world.ask("bob", "lab", gpus=2)
    for lease in (first, second):
        world.begin(lease)
    world.pass_ms(50)
    world.pass_ms(50)
    world.end(first)
    world.pass_ms(300)
    world.end(second)
    world.settle()
    rows = [row for (row,) in world.holds().values()]
    assert [(row["borrowed_ms"], row["in_quota_ms"]) for row in rows] == [(0, 100), (100, 300)]


def test_what_a_reclaim_ended_is_refunded_and_its_next_run_is_its_second_attempt(world: World) -> None:
    world.register()
    lease = world.ask("eve", gpus=4)
    world.begin(lease, "x")
    world.pass_ms(500)
    owner = world.ask("ann", "lab")
    assert owner in world.leases
    world.pass_ms(5_000)
    again = world.ask("eve")
    world.begin(again, "x")
    world.pass_ms(100)
    world.end(again)
    world.settle()
    rows = world.holds()
    lost, second = rows["x", lease][0], rows["x", again][0]
    assert (lost["attempt"], lost["outcome"], lost["borrowed_ms"], lost["refunded_ms"]) == (1, "reclaimed", 500, 500)
    assert (second["attempt"], second["refunded_ms"], second["borrowed_ms"]) == (2, 0, 100)


def test_what_ended_and_began_while_there_was_no_broker_is_told_when_there_is_one(world: World) -> None:
    world.register()
    lease = world.ask("ann", "lab")
    world.begin(lease, "one")
    world.pass_ms(100)
    world.write()
    world.is_linked = False
    world.pass_ms(100)
    world.end(lease)
    world.pass_ms(50)
    world.begin(lease, "two")
    world.pass_ms(50)
    world.new_broker()
    world.register()
    world.pass_ms(70)
    world.end(lease)
    world.settle()
    rows = world.holds()
    assert [rows[cell, lease][0]["held_ms"] for cell in ("one", "two")] == [200, 120]
    assert world.ledger.usage("user")[0].hot_ms == 50


def test_a_cell_that_is_said_again_to_the_next_broker_is_not_counted_again(world: World) -> None:
    world.register()
    lease = world.ask("ann", "lab")
    world.begin(lease, "one")
    world.pass_ms(100)
    world.end(lease)
    said = dict(world.unrecorded)
    world.write()
    world.unrecorded = said  # the broker was killed before the agent heard of it
    world.new_broker()
    world.register()
    world.settle()
    assert only(world.holds())["held_ms"] == 100


def test_a_lease_that_was_over_before_it_was_written_still_has_its_cells(world: World) -> None:
    world.register()
    lease = world.ask("ann", "lab")
    for cell in ("one", "two"):
        world.begin(lease, cell)
        world.pass_ms(100)
        world.end(lease)
    world.leave(lease)
    world.new_broker()
    world.register()
    world.settle()
    assert [row["held_ms"] for (row,) in world.holds().values()] == [100, 100]


def test_a_node_that_was_lost_and_comes_back_late_goes_on_as_another_lease(world: World) -> None:
    world.register()
    lease = world.ask("ann", "lab")
    world.begin(lease, "one")
    world.pass_ms(100)
    world.is_linked = world.is_registered = False
    world.step(ev.AgentLost(AgentId("a")))
    world.pass_ms(PATIENCE_MS)
    world.write()
    assert world.ledger.open_leases() == []
    world.pass_ms(50)
    world.register()
    world.pass_ms(60)
    world.end(lease)
    world.pass_ms(10)
    world.begin(lease, "two")
    world.pass_ms(30)
    world.end(lease)
    world.settle()
    rows = world.holds()
    assert (rows["one", lease][0]["outcome"], rows["one", lease][0]["held_ms"]) == ("node-lost", 100)
    assert rows["two", lease][0]["held_ms"] == 30


def test_an_end_that_is_told_soon_after_its_node_was_lost_is_the_cells_own(world: World) -> None:
    world.register()
    lease = world.ask("ann", "lab")
    world.begin(lease, "one")
    world.pass_ms(100)
    world.is_linked = world.is_registered = False
    world.pass_ms(40)
    world.end(lease)
    world.pass_ms(40)
    world.step(ev.AgentLost(AgentId("a")))
    world.pass_ms(40)
    world.register()
    world.settle()
    row = only(world.holds())
    assert (row["outcome"], row["held_ms"]) == ("returned", 140)


def test_a_cell_that_is_lost_with_its_agent_and_its_broker_ran_until_it_was_last_known_to(world: World) -> None:
    world.register()
    lease = world.ask("ann", "lab")
    world.begin(lease, "one")
    for _ in range(70):
        world.pass_ms(1_000)
    world.write()
    world.leases.clear()
    world.new_broker()
    world.register()
    world.pass_ms(PATIENCE_MS)
    world.settle()
    row = only(world.holds())
    assert (row["outcome"], row["held_ms"]) == ("not-held", 61_000)
    assert world.spent(LAB) == world.charged(LAB) == 61_000


def test_a_cell_that_outlived_its_broker_is_counted_once_however_it_was_noted(world: World) -> None:
    world.register()
    first, second = world.ask("ann", "lab"), world.ask("bob", "lab")
    world.begin(first, "ends unseen")
    world.begin(second, "runs on")
    world.pass_ms(500)
    world.pass_ms(5_000)
    world.write()
    world.is_linked = False
    world.end(first)
    world.pass_ms(500)
    world.new_broker()
    world.register()
    world.pass_ms(1_000)
    world.end(second)
    world.settle()
    rows = world.holds()
    assert rows["ends unseen", first][0]["held_ms"] == 5_500
    assert rows["runs on", second][0]["held_ms"] == 7_000
    assert world.spent(LAB) == world.charged(LAB) == 12_500


def test_a_cell_that_is_lost_with_its_agent_is_told_as_soon_as_another_agent_has_come(world: World) -> None:
    world.register()
    lease = world.ask("ann", "lab")
    world.begin(lease, "one")
    world.pass_ms(100)
    heard_ms = world.now_ms
    world.pass_ms(9_000)
    del world.leases[lease]
    joined = ev.AgentJoined(AgentId("a"), "n", world.slots)
    ends = {
        one.lease: LEASE_ENDS[one.why]
        for one in world.scheduler.step(joined, world.now_ms)
        if isinstance(one, EndLease)
    }
    told = world.metering.follow_step(ends, world.now_ms, lost_ms=heard_ms)
    cell, over = told
    assert isinstance(cell, CellRecord)
    assert (cell.outcome, cell.held_ms) == (CellOutcome.NOT_HELD, 100)
    assert over.ended_at_ms == heard_ms  # type: ignore[union-attr]
    world.queue.append((told, None, None))
    world.refund(world.metering.take_refunded())
    world.write()
    world.holds()
    assert world.spent(LAB) == world.charged(LAB) == 100, "what nobody used after that is given back"


def test_a_clock_that_was_put_back_between_two_brokers_takes_nothing_back(world: World) -> None:
    world.register()
    lease = world.ask("ann", "lab")
    world.begin(lease, "one")
    world.pass_ms(100)
    world.end(lease)
    world.write()
    world.now_ms -= 60_000
    world.new_broker()
    world.leases[lease].since_ms -= 60_000
    world.register()
    world.begin(lease, "two")
    world.pass_ms(100)
    world.end(lease)
    world.settle()
    rows = world.holds()
    assert [rows[cell, lease][0]["held_ms"] for cell in ("one", "two")] == [100, 0]


def test_a_clock_that_was_put_forward_between_two_brokers_counts_nothing_again(world: World) -> None:
    world.register()
    lease = world.ask("ann", "lab")
    world.begin(lease, "one")
    world.pass_ms(100)
    world.end(lease)
    said = {
        name: msgspec.structs.replace(done, began_ms=done.began_ms + 60_000, ended_ms=done.ended_ms + 60_000)
        for name, done in world.unrecorded.items()
    }
    world.write()
    world.unrecorded = said
    world.now_ms += 60_000
    world.new_broker()
    world.register()
    world.settle()
    assert only(world.holds())["held_ms"] == 100


def test_a_cell_is_charged_until_its_node_was_lost_and_no_longer(world: World) -> None:
    world.register()
    lease = world.ask("ann", "lab")
    world.begin(lease, "one")
    world.pass_ms(100)
    world.is_linked = world.is_registered = False
    world.step(ev.AgentLost(AgentId("a")))
    world.pass_ms(40)
    world.end(lease)
    world.leave(lease)
    world.pass_ms(40)
    world.register()
    world.settle()
    row = only(world.holds())
    assert (row["outcome"], row["held_ms"]) == ("returned", 100)


def test_a_cell_that_nobody_heard_of_before_its_lease_was_given_up_is_counted_from_then_on(world: World) -> None:
    world.register()
    lease = world.ask("ann", "lab")
    world.begin(lease, "one")
    world.pass_ms(20)
    world.is_linked = world.is_registered = False
    world.step(ev.AgentLost(AgentId("a")))
    world.pass_ms(300)
    world.leave(lease)
    world.pass_ms(PATIENCE_MS)
    world.register()
    world.settle()
    row = only(world.holds())
    assert (row["outcome"], row["held_ms"]) == ("left", 300)


def test_a_cell_that_comes_back_is_in_quota_where_the_one_before_it_is_gone(world: World) -> None:
    world.register()
    first, second = world.ask("ann", "lab"), world.ask("bob", "lab", gpus=2)
    for lease in (first, second):
        world.begin(lease)
    world.pass_ms(50)
    world.is_linked = world.is_registered = False
    world.step(ev.AgentLost(AgentId("a")))
    world.leave(first)
    world.pass_ms(50)
    world.register()
    world.pass_ms(70)
    world.end(second)
    world.settle()
    (row,) = next(found for (_, lease), found in world.holds().items() if lease == second)
    assert (row["borrowed_ms"], row["in_quota_ms"]) == (100, 70)


def test_what_the_scheduler_did_not_see_is_told_apart(world: World) -> None:
    world.register()
    lease = world.ask("ann", "lab", gpus=2)
    world.begin(lease, "one")
    world.pass_ms(1_000)
    assert world.unseen == [], "it was told of"
    world.end(lease)
    began_ms = world.now_ms + 100
    world.pass_ms(100)
    world.write()
    world.is_linked = world.is_registered = False
    world.begin(lease, "two")
    world.pass_ms(200)
    world.end(lease)
    world.begin(lease, "three")
    world.pass_ms(300)
    world.new_broker()
    world.register()
    world.pass_ms(0)
    of = {"project": LAB, "user": UserName("ann"), "qos": "interactive", "charged": 2_000}
    assert world.unseen == [
        Stretch(**of, from_ms=began_ms + 200, until_ms=began_ms + 500),  # type: ignore[arg-type]
        Stretch(**of, from_ms=began_ms, until_ms=began_ms + 200),  # type: ignore[arg-type]
    ]
    world.settle()
    world.holds()
    assert len(world.unseen) == 2
    assert world.spent(LAB) == world.charged(LAB) == 2 * 1_500


def test_what_ran_while_its_node_was_lost_is_told_when_it_is_back(world: World) -> None:
    world.register()
    lease = world.ask("ann", "lab")
    world.begin(lease)
    world.pass_ms(100)
    world.is_linked = world.is_registered = False
    world.step(ev.AgentLost(AgentId("a")))
    world.pass_ms(300)
    world.register()
    world.pass_ms(50)
    assert world.spent(LAB) == 450
    world.is_linked = world.is_registered = False
    world.step(ev.AgentLost(AgentId("a")))
    world.pass_ms(20)
    world.end(lease)
    world.pass_ms(1_000)
    world.register()
    world.settle()
    world.holds()
    assert world.spent(LAB) == world.charged(LAB) == 470


def test_what_a_reclaim_made_worthless_is_charged_to_no_budget_at_once(world: World) -> None:
    world.register()
    lease = world.ask("eve", gpus=4)
    for ms in (10, 100, 500):
        world.begin(lease)
        world.pass_ms(BEGAN_MS if ms > BEGAN_MS else 0)  # it is told of
        world.pass_ms(ms)
        if ms < 500:
            world.end(lease)
    world.pass_ms(0)
    assert world.spent(GUESTS) == 4 * (10 + 130 + 530)
    world.ask("ann", "lab")
    assert world.spent(GUESTS) == 4 * 140, "the first ones are worth what they were"
    history = world.scheduler.state.accounts.of(GUESTS).history
    assert Fraction(history.amount, GPU_MILLI << 16) == 4 * 130, "of the first one the scheduler saw the grant alone"
    world.write()
    world.knows_the_ledger()
    assert world.spent(GUESTS) == world.charged(GUESTS) == 4 * 140
    world.register()
    world.settle()
    world.holds()
    assert world.spent(GUESTS) == 4 * 140


def test_a_reclaimed_cell_whose_end_nobody_told_is_refunded_too(world: World) -> None:
    world.register()
    lease = world.ask("eve", gpus=4)
    world.begin(lease)
    world.pass_ms(500)
    world.step(ev.LeaseEnded(lease), LeaseEnd.RECLAIMED)
    del world.leases[lease]
    world.pass_ms(PATIENCE_MS)
    world.settle()
    row = only(world.holds())
    assert (row["outcome"], row["held_ms"], row["refunded_ms"]) == ("reclaimed", 500, 500)
    assert world.spent(GUESTS) == world.charged(GUESTS) == 0


def test_a_reclaimed_cell_that_is_told_to_the_next_broker_is_refunded_once(world: World) -> None:
    world.register()
    first, second = world.ask("eve"), world.ask("eva")
    for lease in (first, second):
        world.begin(lease)
    world.pass_ms(500)
    world.write()
    world.is_linked = False
    world.leave(first, LeaseEnd.RECLAIMED)
    world.new_broker()
    world.register()
    world.pass_ms(200)
    assert world.spent(GUESTS) == 700
    world.settle()
    world.holds()
    assert world.spent(GUESTS) == world.charged(GUESTS) == 700


def test_slices_count_as_their_part_of_a_gpu_before_a_restart_and_after_it(world: World) -> None:
    world.slots = SLICES
    world.register()
    lease = world.ask("ann", "lab", gpus=2)
    world.begin(lease)
    world.pass_ms(1_000)
    assert world.spent(LAB) == 250
    world.end(lease)
    world.settle()
    (used,) = world.ledger.usage("project")
    assert used.gpu_ms == only(world.holds())["gpu_ms"] == 250
    world.new_broker()
    assert world.spent(LAB) == world.charged(LAB) == 250
    history = world.scheduler.state.accounts.of(LAB).history
    assert history.amount == 250_000 << 16, "as it counts when it is new"


def play(world: World, chance: random.Random) -> bool:
    """A history at random. Whether any agent died with what only it knew."""
    has_died = False
    for _ in range(chance.randint(5, 40)):
        world.pass_ms(chance.choice((0, 1, 15, 40, 400, 9_000)))
        match chance.choice("aaabbbbeeeelwwukrdxo"):
            case "a":
                world.ask(chance.choice("stuv"), chance.choice(("lab", "guests")), chance.choice((1, 1, 2, 4)))
            case "b":
                free = [lease for lease, held in world.leases.items() if held.cell is None]
                if free:
                    world.begin(chance.choice(free))
            case "e":
                running = [lease for lease, held in world.leases.items() if held.cell is not None]
                if running:
                    world.end(chance.choice(running))
            case "l":
                if world.leases:
                    world.leave(chance.choice(list(world.leases)))
            case "w":
                world.write(chance.choice((None, None, 1, 3)))
            case "u":
                world.is_linked = world.is_registered = False
            case "k":
                world.knows_the_ledger()
            case "r":
                world.register()
            case "d":
                world.is_linked = world.is_registered = False
                world.step(ev.AgentLost(AgentId("a")))
            case "x":
                world.leases, world.unrecorded, has_died = {}, {}, True
                world.is_linked = world.is_registered = False
            case "o":
                world.pass_ms(PATIENCE_MS)
    world.settle()
    return has_died


@pytest.mark.parametrize("seed", range(40))
def test_whatever_happens_each_lease_and_cell_is_in_the_ledger_once(world: World, seed: int) -> None:
    world.slots = SLICES if seed % 2 else world.slots
    has_died = play(world, random.Random(seed))
    rows = world.holds()
    for project in (LAB, GUESTS):
        assert world.spent(project) >= world.charged(project), "the scheduler counts from the grant"
    assert world.scheduler.state.accounts.credits(GUESTS).earned == 0
    world.queue.append((world.credit_book.take_entries(), None, None))
    world.write()
    has = [world.scheduler.state.accounts.credits(project) for project in (LAB, GUESTS)]
    world.knows_the_ledger()
    assert [world.scheduler.state.accounts.credits(project) for project in (LAB, GUESTS)] == has
    tenancies = []
    for slots, granted_ms, ended_ms in sql(world.url, "SELECT slots, granted_at_ms, ended_at_ms FROM leases"):
        tenancies += [(slot, granted_ms, ended_ms) for slot in msgspec.json.decode(slots)]
    for one, other in itertools.pairwise(sorted(tenancies)):
        assert one[0] != other[0] or one[2] <= other[1], f"{one[0]} has two tenants"
    if not has_died:
        for done in world.ran:
            (row,) = rows[done.cell, done.lease]
            assert int(row["held_ms"]) <= done.ended_ms - done.began_ms  # type: ignore[call-overload]


def test_what_a_running_cell_is_charged_outlives_the_broker_and_a_change_of_prices(world: World) -> None:
    world.settings = msgspec.structs.replace(SETTINGS, prices=(Price("model", 400),))
    world.new_broker()
    world.register()
    lease = world.ask("ann", "lab")
    world.begin(lease, "one")
    world.pass_ms(2_000)
    world.pass_ms(1_000)
    world.write()
    world.settings = msgspec.structs.replace(SETTINGS, prices=(Price("model", 200),))
    world.new_broker()
    world.register()
    assert world.scheduler.state.leases[lease].charged == 4_000
    world.pass_ms(1_000)
    world.end(lease)
    assert world.spent(LAB) == 4 * 4_000
    world.begin(lease, "two")
    world.pass_ms(1_000)
    world.end(lease)
    assert world.spent(LAB) == 4 * 4_000 + 2 * 1_000
    world.settle()
    rows = {cell: row for (cell, _), (row,) in world.holds().items()}
    assert [(rows[one]["milli"], rows[one]["charged_milli"]) for one in ("one", "two")] == [(1000, 4000), (1000, 2000)]
    world.knows_the_ledger()


@pytest.mark.parametrize("seed", range(3))
def test_late_and_lost_news_are_charged_at_the_price_that_was_agreed(world: World, seed: int) -> None:
    chance = random.Random(seed)
    world.settings = msgspec.structs.replace(SETTINGS, prices=(Price("model", 250),))
    world.new_broker()
    world.register()
    for _ in range(4):
        lease = world.ask("ann", "lab")
        world.begin(lease)
        world.pass_ms(chance.choice((10, 500, 3_000)))
        world.write()
        world.is_linked = world.is_registered = False
        world.pass_ms(chance.choice((10, 2_000)))
        world.end(lease)
        world.new_broker()
        world.register()
        world.leave(lease)
        world.pass_ms(PATIENCE_MS)
        world.write()
    world.settle()
    world.holds()
    assert {row["charged_milli"] for row in world.ledger.each_cell()} <= {2500, None}
    assert world.spent(LAB) == world.charged(LAB)


@pytest.mark.parametrize("told_after_ms", [0, 700, 5_000])
def test_a_place_that_is_kept_is_charged_once(world: World, told_after_ms: int) -> None:
    world.settings = msgspec.structs.replace(SETTINGS, prices=(Price("model", 250),))
    world.new_broker()
    world.register()
    lease = world.ask("ann", "lab")
    world.begin(lease, "first")
    for cell in ("kept-1", "second", "kept-2", "third"):
        world.pass_ms(6_000)
        world.pass_ms(4_000)
        world.go_on(lease, cell, told_after_ms)
        world.pass_ms(0)
    world.pass_ms(10_000)
    world.end(lease)
    world.pass_ms(0)
    all_of_it = 5 * 10_000 + 4 * told_after_ms
    assert world.unseen == []
    assert world.spent(LAB) == Fraction(5, 2) * all_of_it
    world.settle()
    rows = {cell: row for (cell, _), (row,) in world.holds().items()}
    assert [rows[cell]["held_ms"] for cell in ("first", "third")] == [10_000, 10_000 + told_after_ms]
    assert {row["charged_milli"] for row in rows.values()} == {2_500}
    assert world.charged(LAB) == world.spent(LAB)
    world.knows_the_ledger()


def test_what_was_agreed_for_a_kept_place_holds_when_prices_change_meanwhile(world: World) -> None:
    world.settings = msgspec.structs.replace(SETTINGS, prices=(Price("model", 400),))
    world.new_broker()
    world.register()
    lease = world.ask("ann", "lab")
    world.begin(lease, "first")
    world.pass_ms(30)
    world.pass_ms(2_000)
    dearer = msgspec.structs.replace(SETTINGS, prices=(Price("model", 200),))
    world.step(ev.SettingsChanged(dearer))
    world.go_on(lease, "kept-1")
    world.pass_ms(1_000)
    world.end(lease)
    assert world.spent(LAB) == 4 * 2_030 + 2 * 1_000
    world.settle()
    rows = {cell: row for (cell, _), (row,) in world.holds().items()}
    assert [rows[cell]["charged_milli"] for cell in ("first", "kept-1")] == [4_000, 2_000]


@pytest.mark.parametrize("is_restarted", [True, False])
def test_a_kept_place_has_one_price_whatever_becomes_of_broker_and_link(world: World, is_restarted: bool) -> None:
    world.settings, world.keeps = msgspec.structs.replace(SETTINGS, prices=(Price("model", 400),)), True
    world.new_broker()
    world.register()
    lease = world.ask("ann", "lab")
    world.begin(lease, "first")
    world.pass_ms(2_000)
    world.write()
    dearer = msgspec.structs.replace(SETTINGS, prices=(Price("model", 200),))
    world.is_linked = world.is_registered = False
    world.end(lease)
    world.begin(lease, "kept-1")
    world.pass_ms(2_000)
    if is_restarted:
        world.settings = dearer
        world.new_broker()
    else:
        world.step(ev.SettingsChanged(dearer))
    world.register()
    assert world.scheduler.state.leases[lease].charged == 4_000
    world.go_on(lease, "second")
    world.pass_ms(1_000)
    world.register()
    assert world.scheduler.state.leases[lease].charged == 4_000
    world.end(lease)
    world.settle()
    rows = {cell: row for (cell, _), (row,) in world.holds().items()}
    assert [rows[cell]["charged_milli"] for cell in ("first", "kept-1", "second")] == 3 * [4_000]


def test_a_kept_cell_that_began_while_its_node_was_lost_is_charged_from_there_on(world: World) -> None:
    world.register()
    lease = world.ask("ann", "lab")
    world.begin(lease, "first")
    world.pass_ms(1_000)
    world.is_linked = world.is_registered = False
    world.step(ev.AgentLost(AgentId("a")))
    world.pass_ms(300)
    world.end(lease)
    world.begin(lease, "kept-1")
    world.pass_ms(500)
    world.register()
    world.pass_ms(200)
    world.end(lease)
    world.settle()
    world.holds()
    assert world.spent(LAB) == world.charged(LAB) == 2_000
