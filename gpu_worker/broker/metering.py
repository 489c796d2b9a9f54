"""The meters of all leases: what the scheduler does and what agents report, as records for the ledger. Pure.

A lease is metered from its grant until its slots are free again, by the broker's clock. For how long a cell held them
is its agent's word, which comes with the cell's end: a broker that stood still has heard of it too late. Agents say it
again until it is written. Of a cell that was lost with its agent, what was heard of it counts.

Agents outlive brokers, and may be thought lost and come back. What became of a lease is then not known at once: its
meter stays open for a while, for the cells that its agent may still report. Whoever comes back later than that finds
the lease ended in the ledger, and goes on under another name (`records.name_again`).
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from bulletin.codes import CellOutcome, LeaseEnd
from bulletin.ids import CellId, LeaseId, ProjectId, UserName
from bulletin.kept_time import LABEL, is_kept
from gpu_worker.broker.meter import CellUnderWay, Meter
from gpu_worker.broker.metered_lease import MeteredLease
from gpu_worker.broker.records import (
    UNSURE,
    CellRecord,
    LeaseHolder,
    LeaseRecord,
    OpenLease,
    Record,
    begun,
    first_name,
    holder_fields,
    name_again,
)
from gpu_worker.broker.run_notes import Running
from gpu_worker.broker.short_cells import mark
from gpu_worker.scheduler.accounts.coverage import Coverage
from gpu_worker.scheduler.leases.leases import Lease
from gpu_worker.scheduler.leases.life import Phase
from gpu_worker.scheduler.state import State

#: For how long the cells of a lease that is over may still be reported.
PATIENCE_MS = 30_000
#: What the scheduler saw for longer than it was used is taken back from so long on.
_WORTH_MS = 1_000


class Stretch(msgspec.Struct, frozen=True):
    """Use that the scheduler has not seen (its agent told of it late, or told another broker), or that is refunded."""

    project: ProjectId
    user: UserName
    qos: str
    charged: int  #: thousandths of a GPU, at its price
    from_ms: int
    until_ms: int


class Metering:
    """Follows one scheduler. What it returns is to be written in that order."""

    def __init__(
        self, state: State, open_leases: Iterable[OpenLease], given_up: Iterable[OpenLease], now_ms: int
    ) -> None:
        """Take what the ledger knows of the time before this broker: `open_leases` and `given_up`."""
        self._state, self._coverage = state, Coverage()
        self._given_up = {first_name(one.lease.lease): one for one in given_up}
        self._held_ms: dict[LeaseId, int] = {}
        self._metered: dict[LeaseId, MeteredLease] = {}
        self._closing: dict[LeaseId, None] = {}
        self._unseen: list[Stretch] = []
        self._refunded: list[Stretch] = []
        self._turned: dict[LeaseId, None] = {}
        for one in open_leases:
            name = first_name(one.lease.lease)
            meter = Meter(one.lease, one.accounted_until_ms)
            metered = self._metered[name] = MeteredLease(
                meter, dict.fromkeys(one.cells), one.marks, why=LeaseEnd.NOT_HELD, closes_ms=now_ms + PATIENCE_MS
            )
            if one.running is not None:
                cell, began_ms, metered.over_ms, charged_milli = one.running
                meter.begin(cell, is_in_quota=True, at_ms=began_ms, charged_milli=charged_milli)
                metered.seen_from_ms, metered.seen_until_ms = meter.began_ms, 0  # nothing, by this scheduler
            self._closing[name] = None

    def expect_leases(self, held_ms: Mapping[LeaseId, int]) -> None:
        """Expect an agent to join in the next step with these leases, which it has had for so long."""
        self._held_ms = dict(held_ms)

    def follow_step(self, why: Mapping[LeaseId, LeaseEnd], now_ms: int, lost_ms: int | None = None) -> list[Record]:
        """Return what the scheduler's last step comes to. Call it after every one; `why` names ends of leases.

        `lost_ms` is when the agent was heard last of which the step says that it is lost, or that another process has
        taken its place: that one cannot come back, and nobody will say more of what it held.
        """
        told: list[Record] = []
        turned = self._coverage.follow(self._state.accounts, self._state.leases, self._state.touched, self._state.pools)
        for name in self._state.touched:
            lease, metered = self._state.leases.get(name), self._metered.get(name)
            if lease is not None:
                told += self._follow_lease(lease, metered, now_ms)
            elif metered is not None and metered.closes_ms is None:
                code = why.get(name, LeaseEnd.UNRECOGNIZED)
                metered.lost_ms = lost_ms if code in UNSURE else None
                told += self._note_lease_end(name, metered, code, now_ms)
        self._held_ms = {}
        self._turned |= dict.fromkeys((*self._state.touched, *turned))
        for name, is_in_quota in turned.items():
            if name in self._metered:
                self._metered[name].meter.turn(is_in_quota=is_in_quota, at_ms=now_ms)
        for name in [name for name in self._closing if (self._metered[name].closes_ms or 0) <= now_ms]:
            told += self._close(name, self._metered[name])
        return told

    def end_cell(self, record: CellRecord, ended_ago_ms: int, now_ms: int) -> list[Record] | None:
        """Record that a cell ended, by its agent's word, for the first time or again. Of one lease the earlier first.

        None where the lease is not known, or was closed: the ledger may have the cell or not (`stray`).
        """
        metered = self._metered.get(record.lease)
        if metered is None:
            return None
        if record.cell in metered.cells or mark(record.cell) in metered.marks:
            return []
        metered.note_end(record.cell)
        at_ms = now_ms - ended_ago_ms
        if metered.over_ms is not None:
            at_ms = min(at_ms, metered.over_ms)
        lease, is_refunded = self._state.leases.get(record.lease), record.outcome is CellOutcome.RECLAIMED
        told: list[Record] = []
        if lease is not None and lease.phase is Phase.ENDING:
            told.append(metered.meter.without_charge(record))  # its session has long gone on elsewhere
        elif metered.meter.cell == record.cell:
            ended = metered.meter.end(record, at_ms, began_ms=at_ms - record.held_ms, is_refunded=is_refunded)
            self._note_end(metered, ended, now_ms)
            told += ended
        else:
            replaced = metered.replaced.pop(record.cell, None)
            if replaced is not None:
                record = msgspec.structs.replace(record, charged_milli=replaced.charged_milli)
            told += metered.meter.add_earlier(
                record,
                at_ms - record.held_ms,
                at_ms,
                is_in_quota=self._would_cover(lease, metered.meter.lease),
                is_refunded=is_refunded,
            )
            if replaced is not None:
                for one in (one for one in told if isinstance(one, CellRecord)):
                    self._note_missed(one, replaced.seen_from_ms, replaced.seen_until_ms)
            elif not is_refunded and (lease is None or lease.phase is not Phase.GRANTED):  # that is seen as use
                for one in (one for one in told if isinstance(one, CellRecord)):
                    for span in one.held:
                        self._note_unseen(one, span.started_at_ms, span.ended_at_ms)
        if metered.closes_ms is not None and metered.meter.cell is None and metered.why not in UNSURE:
            told += self._close(record.lease, metered)
        return told

    def knows(self, lease: LeaseId) -> bool:
        """Tell whether a lease is metered: one that this broker has heard of, and that is not closed yet."""
        return lease in self._metered

    def find_unended(self, lease: LeaseId) -> LeaseRecord | None:
        """Return a lease that may hold, as the ledger has it: nobody has said that it is over who knows."""
        metered, before = self._metered.get(lease), self._given_up.get(lease)
        if metered is None:
            return None if before is None else before.lease
        is_over = metered.over_ms is not None and metered.why not in UNSURE
        return None if is_over else metered.meter.lease

    def running(self) -> Iterator[Running]:
        """List the cells that run, each under its lease's name in the ledger."""
        for metered in self._metered.values():
            if metered.meter.cell is not None and metered.closes_ms is None:
                meter = metered.meter
                yield Running(meter.lease.lease, metered.meter.cell, meter.began_ms, meter.charged_milli)

    def under_way(self, now_ms: int) -> Iterator[tuple[LeaseId, CellUnderWay]]:
        """List what cells that run have held until now, each with its lease."""
        for name, metered in self._metered.items():
            held = metered.meter.under_way(now_ms) if metered.closes_ms is None else None
            if held is not None:
                yield name, held

    def agreed(self, lease: LeaseId, cell: CellId | None) -> int | None:
        """Return what a cell that runs, or else ran last, is charged, in thousandths of a slot; None is unknown."""
        metered = self._metered.get(lease)
        is_other = metered is not None and cell is not None and metered.meter.cell != cell
        return None if metered is None or is_other else metered.meter.charged_milli

    def find_record(self, lease: LeaseId) -> LeaseRecord | None:
        """Return what the ledger has of a lease that holds, or whose end is not sure; None where it knows none."""
        metered, given_up = self._metered.get(lease), self._given_up.get(lease)
        if metered is not None:
            return metered.meter.lease
        return None if given_up is None else given_up.lease

    def is_in_quota(self, lease: Lease) -> bool:
        """Return whether a guarantee covers it now; of a hot one, whether it would if a cell began."""
        return self._coverage.is_in_quota(self._state.accounts, lease)

    def take_turned(self) -> Iterable[LeaseId]:
        """Take the leases that were touched since the last call, or whose coverage was."""
        turned, self._turned = self._turned, {}
        return turned

    def take_unseen(self) -> list[Stretch]:
        """Take what was used besides, unseen by the scheduler, since the last call."""
        unseen, self._unseen = self._unseen, []
        return unseen

    def take_refunded(self) -> list[Stretch]:
        """Take what the scheduler has seen, and a reclaim made worthless, since the last call."""
        refunded, self._refunded = self._refunded, []
        return refunded

    def _note_unseen(self, cell: CellRecord, from_ms: int, until_ms: int) -> None:
        self._unseen += self._stretch(cell, cell.charged, from_ms, until_ms)

    def _note_end(self, metered: MeteredLease, ended: Iterable[Record], heard_ms: int) -> None:
        """Note what of an ended cell, whose beginning the scheduler saw, it did not see, saw too long, or is refunded.

        `heard_ms` is when the scheduler hears of the end.
        """
        seen_from_ms = metered.seen_from_ms
        seen_until_ms = heard_ms if metered.seen_until_ms is None else metered.seen_until_ms
        for record in ended:
            if not isinstance(record, CellRecord):
                continue
            self._note_missed(record, seen_from_ms, seen_until_ms)
            if seen_until_ms - record.ended_at_ms >= _WORTH_MS:
                self._note_refunded(record, max(record.ended_at_ms, seen_from_ms), seen_until_ms)
        metered.seen_until_ms = None

    def _note_missed(self, cell: CellRecord, seen_from_ms: int, seen_until_ms: int) -> None:
        """Note what of an ended cell the scheduler, which saw it between these times, did not see, or is refunded."""
        began_ms, ended_ms = cell.started_at_ms, cell.ended_at_ms
        if cell.refunded_ms:
            self._note_refunded(cell, max(began_ms, seen_from_ms), min(ended_ms, seen_until_ms))
        elif seen_until_ms <= seen_from_ms:  # none of it
            self._note_unseen(cell, began_ms, ended_ms)
        else:
            self._note_unseen(cell, began_ms, min(ended_ms, seen_from_ms))
            self._note_unseen(cell, max(began_ms, seen_until_ms), ended_ms)

    def _note_refunded(self, cell: CellRecord, from_ms: int, until_ms: int) -> None:
        self._refunded += self._stretch(cell, cell.charged, from_ms, until_ms)

    def _note_running(self, meter: Meter, from_ms: int, until_ms: int) -> None:
        """Note what the cell that runs has used, unseen by the scheduler."""
        charged = meter.lease.slots_milli if meter.charged_milli is None else meter.charged_milli
        self._unseen += self._stretch(meter.lease, charged, from_ms, until_ms)

    def _stretch(self, holder: LeaseHolder, charged_milli: int, from_ms: int, until_ms: int) -> Iterator[Stretch]:
        charged = self._state.slot_catalog.cost_of(holder.kind, charged_milli)
        if charged and from_ms < until_ms:
            yield Stretch(holder.project, holder.user, holder.qos, charged, from_ms, until_ms)

    def _follow_lease(self, lease: Lease, metered: MeteredLease | None, now_ms: int) -> Iterator[Record]:
        if metered is None:
            metered = self._start_metering(lease, now_ms)
            yield from begun(metered.meter.lease, lease.charged or lease.cost)
        metered.over_ms = metered.closes_ms = metered.lost_ms = None  # it may have been given up, and is here again
        self._closing.pop(lease.id, None)
        meter = metered.meter
        if lease.phase is Phase.ENDING:
            if meter.cell is not None:
                metered.note_end(meter.cell)
                ended = meter.end(_lost(meter, meter.cell, CellOutcome.NODE_LOST), now_ms)
                self._note_end(metered, ended, now_ms)
                yield from ended
        elif lease.cell is not None and lease.cell not in metered.cells:
            if metered.seen_until_ms is not None and lease.cell == meter.cell:  # it ran on unseen
                self._note_running(meter, max(meter.began_ms, metered.seen_until_ms), now_ms)
                metered.seen_until_ms = None
            is_in_quota = self._coverage.is_in_quota(self._state.accounts, lease)
            if lease.cell != meter.cell:
                charged_milli = lease.charged if lease.cost else None
                is_seen = metered.replace(now_ms)
                metered.seen_until_ms = None
                meter.begin(lease.cell, is_in_quota=is_in_quota, at_ms=lease.since_ms, charged_milli=charged_milli)
                metered.seen_from_ms = 0  # since its grant
                # A hot session's own is told of a little late.
                if not is_seen and (lease.id in self._held_ms or not metered.is_granted):
                    self._note_running(meter, meter.began_ms, now_ms)
                    metered.seen_from_ms = meter.began_ms
            meter.turn(is_in_quota=is_in_quota, at_ms=now_ms)
        metered.is_granted = lease.phase is Phase.GRANTED

    def _start_metering(self, lease: Lease, now_ms: int) -> MeteredLease:
        name, granted_at_ms, cells, marks = lease.id, now_ms, dict[CellId, None](), frozenset[str]()
        if lease.id in self._held_ms:  # learned from its agent
            granted_at_ms = min(lease.since_ms, now_ms - self._held_ms[lease.id])
            before = self._given_up.pop(lease.id, None)
            if before is not None:
                granted_at_ms = max(granted_at_ms, before.accounted_until_ms)
                cells, marks = dict.fromkeys(before.cells), before.marks
            name = name_again(lease.id, str(now_ms))
        node = self._state.nodes[lease.agent]
        record = LeaseRecord(
            lease=name,
            session=lease.session,
            user=lease.user,
            project=lease.home,
            qos=lease.qos,
            node=node.name,
            slots=lease.slots,
            kind=node.device_of(lease.slots),
            milli=sum(node.slots[slot].milli for slot in lease.slots),
            granted_at_ms=granted_at_ms,
            is_exclusive=lease.is_exclusive,
        )
        return self._metered.setdefault(lease.id, MeteredLease(Meter(record), cells, marks))

    def _note_lease_end(self, name: LeaseId, metered: MeteredLease, why: LeaseEnd, now_ms: int) -> list[Record]:
        metered.over_ms, metered.why, metered.closes_ms = now_ms, why, now_ms + PATIENCE_MS
        if metered.meter.cell is not None:
            metered.seen_until_ms = now_ms
        is_gone = why is LeaseEnd.NOT_HELD and metered.lost_ms is not None
        if is_gone or (metered.meter.cell is None and why not in UNSURE):
            return self._close(name, metered)
        self._closing[name] = None
        return []

    def _close(self, name: LeaseId, metered: MeteredLease) -> list[Record]:
        told: list[Record] = []
        over_ms = metered.over_ms if metered.lost_ms is None else metered.lost_ms
        if metered.meter.cell is not None:
            assert over_ms is not None, "what runs was heard of by this broker, and so was its end"
            metered.note_end(metered.meter.cell)
            is_refunded = metered.why is LeaseEnd.RECLAIMED
            ended = metered.meter.end(
                _lost(metered.meter, metered.meter.cell, metered.why.outcome), over_ms, is_refunded=is_refunded
            )
            self._note_end(metered, ended, over_ms)
            told += ended
        told += metered.meter.close(metered.why, over_ms)
        if metered.why in UNSURE:
            end = told[-1]
            assert isinstance(end, LeaseRecord)
            self._given_up[name] = OpenLease(end, end.ended_at_ms or 0, tuple(metered.cells), metered.marks)
        del self._metered[name]
        self._closing.pop(name, None)
        return told

    def _would_cover(self, lease: Lease | None, record: LeaseRecord) -> bool:
        if lease is not None:
            return self._coverage.is_in_quota(self._state.accounts, lease)
        cost = self._state.slot_catalog.cost_of(record.kind, record.slots_milli)
        return self._coverage.would_cover(self._state.accounts, record.project, cost)


def stray(record: CellRecord, after_ms: int) -> list[Record]:
    """Record a cell of a lease that nobody knows, and that the ledger does not have, as a lease of its own.

    Until `after_ms` the ledger knows what the lease did.
    """
    name = name_again(record.lease, record.cell)
    lease = LeaseRecord(**holder_fields(record) | {"lease": name}, granted_at_ms=max(after_ms, record.started_at_ms))
    meter = Meter(lease)
    meter.begin(record.cell, is_in_quota=True, at_ms=record.started_at_ms, charged_milli=record.charged_milli)
    cell = meter.end(record, record.ended_at_ms, is_refunded=record.outcome is CellOutcome.RECLAIMED)
    return [lease, *cell, *meter.close(LeaseEnd.NOT_HELD)]


def _lost(meter: Meter, cell: CellId, outcome: CellOutcome) -> CellRecord:
    """Record a cell of which its agent has said nothing: all of it ran, as far as anybody knows."""
    lease = meter.lease
    return CellRecord(
        **holder_fields(lease),
        cell=cell,
        attempt=0,
        gpus=len(lease.slots) if lease.kind == "gpu" else 0,
        started_at_ms=0,
        ended_at_ms=0,
        held_ms=0,
        ran_ms=0 if is_kept(cell) else 1 << 60,
        outcome=outcome,
        label=LABEL if is_kept(cell) else "",
    )
