"""One agent, one broker at a time and their ledger, all that is metered played in virtual time."""

import itertools
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import msgspec

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
from gpu_worker.scheduler.policy.projects import GPU_MILLI, Budget, Project, QoS, SchedulerSettings

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
                is_kept=self.keeps, is_exclusive=one.asked.is_exclusive,
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

    def ask(self, session: str, project: str = "guests", gpus: int = 1, *, is_exclusive: bool = False) -> LeaseId:
        number = next(self.number)
        request = ev.RequestSubmitted(
            RequestId(f"r{number}"), LeaseId(f"l{number}"), SessionId(session), UserName(session), ProjectId(project),
            "interactive", gpus, is_kept=self.keeps, is_exclusive=is_exclusive,
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


def only(rows: dict[tuple[str, str], list[dict[str, object]]]) -> dict[str, object]:
    ((row,),) = rows.values()
    return row
