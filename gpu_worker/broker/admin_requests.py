"""What people change by hand about a request or a cell: whether they may, and in the ledger who did it and why."""

import msgspec
import structlog

from bulletin.codes import RefusalCode
from bulletin.ids import LeaseId, ProjectId, UserName
from bulletin.kept_time import is_kept
from bulletin.units import show_duration
from bulletin.wire import console
from gpu_worker.broker import known_ids
from gpu_worker.broker.identity import Person
from gpu_worker.broker.known_ids import CannotTell
from gpu_worker.broker.ledger_notes import LedgerNotes, printable
from gpu_worker.broker.scheduler_shell import SchedulerShell
from gpu_worker.scheduler import events
from gpu_worker.scheduler.interventions import most_more_ms
from gpu_worker.scheduler.leases.leases import Lease, Request, RequestHold
from gpu_worker.scheduler.leases.life import Phase

BY_HAND = "by-hand"  # as the ledger calls it

#: What a person may ask for here.
Asked = console.Hold | console.Release | console.PutFirst | console.Requeue | console.Extend


class HandNote(msgspec.Struct, frozen=True):
    """What the ledger keeps of a change: what was done to what, by whom and why."""

    what: str
    lease: LeaseId
    user: UserName
    project: ProjectId
    by: UserName
    why: str


class AdminRequests:
    """Changes requests and cells. Admins, and leads in their projects, may; others hold and release their own."""

    def __init__(self, shell: SchedulerShell, notes: LedgerNotes) -> None:
        self._shell, self._notes = shell, notes
        self._state = shell.scheduler.state
        self._log = structlog.get_logger("broker")

    async def answer(self, person: Person, asked: Asked) -> console.ChangedByHand:
        """Do what is asked for. Raises CannotTell."""
        match asked:
            case console.Hold():
                return await self._hold(person, asked)
            case console.Release():
                return await self._release(person, asked)
            case console.PutFirst():
                return await self._put_first(person, asked)
            case console.Requeue():
                return await self._requeue(person, asked)
            case console.Extend():
                return await self._extend(person, asked)

    async def _hold(self, person: Person, asked: console.Hold) -> console.ChangedByHand:
        request = self._waiting(person, asked.id)
        hold = request.hold
        may_change = known_ids.may_change(self._state, person, request.home)
        if hold is not None and not self._may_release(person, request, hold):
            who = "a lead or an admin" if hold.is_by_lead else "an admin"
            raise CannotTell(RefusalCode.NOT_ALLOWED, f"{request.lease} is {hold.reason}. Only {who} changes that.")
        why = printable(asked.why)
        # An admin's own notebook waits as everybody's: who holds it there may release it without being one.
        is_by_admin = may_change and request.user != person.user
        is_by_lead = is_by_admin and not person.is_admin
        await self._shell.step(events.RequestHeld(request.id, why, is_by_admin, is_by_lead))
        return await self._changed(person, request, "held", why, is_noted=is_by_admin)

    async def _release(self, person: Person, asked: console.Release) -> console.ChangedByHand:
        request = self._waiting(person, asked.id)
        hold = request.hold
        if hold is None:
            raise CannotTell(
                RefusalCode.NOT_HELD_BACK,
                f"{request.lease} is not held. Why it waits: bulletin explain {request.lease}",
            )
        if not self._may_release(person, request, hold):
            who = "a lead or an admin" if hold.is_by_lead else "an admin"
            raise CannotTell(
                RefusalCode.NOT_ALLOWED,
                f"{request.lease} is {hold.reason}. Only {who} releases it: ask one, or withdraw it with "
                f"bulletin cancel {request.lease}",
            )
        await self._shell.step(events.RequestReleased(request.id))
        return await self._changed(person, request, "released", printable(asked.why), is_noted=hold.is_by_admin)

    async def _put_first(self, person: Person, asked: console.PutFirst) -> console.ChangedByHand:
        request = self._waiting(person, asked.id, "put requests first")
        await self._shell.step(events.RequestPutFirst(request.id))
        return await self._changed(person, request, "put-first", printable(asked.why))

    async def _requeue(self, person: Person, asked: console.Requeue) -> console.ChangedByHand:
        lease = self._running(person, asked.id, "have cells run again")
        if is_kept(lease.cell):
            raise CannotTell(
                RefusalCode.NO_CELL,
                f"No cell runs in {lease.id}: its notebook keeps the place between two cells, and nothing could run "
                f"again. To take it back: bulletin cancel {lease.id}",
            )
        await self._shell.step(events.CellRequeued(lease.id))
        if lease.phase is not Phase.RECLAIMING:
            raise CannotTell(
                RefusalCode.NO_CELL,
                f"The QoS {lease.qos!r} of {lease.id} is no longer there, and its cell could not run again. "
                f"To stop it: bulletin cancel {lease.id}",
            )
        grace_ms = self._state.grace_ms(lease)
        return await self._changed(person, lease, "requeued", printable(asked.why), grace_ms=grace_ms)

    async def _extend(self, person: Person, asked: console.Extend) -> console.ChangedByHand:
        known_ids.check_admin(person, "give cells more time")
        lease, more = self._running(person, asked.id, ""), show_duration(asked.more_ms)
        most_ms, project = most_more_ms(self._state, lease)
        what = "the place that this notebook keeps" if is_kept(lease.cell) else "this cell"
        sentence = f"An admin ({person.user}) gave {what} {more} more."
        if asked.more_ms > most_ms or not await self._shell.extend_cell(lease.id, asked.more_ms, sentence):
            raise CannotTell(RefusalCode.OVER_LIMIT, _too_much(lease, asked.more_ms, most_ms, project))
        left_ms = self._state.end_ms(lease) - self._state.accounts.now_ms
        return await self._changed(
            person, lease, "extended", printable(asked.why), walltime_ms=lease.cell_walltime_ms, left_ms=left_ms
        )

    def _may_release(self, person: Person, request: Request, hold: RequestHold) -> bool:
        if not hold.is_by_admin or person.is_admin:
            return True
        return hold.is_by_lead and known_ids.is_led(self._state, person, request.home)

    def _find(self, person: Person, name: str, what: str) -> Request | Lease:
        """Find what is meant. Where `what` is to be done is said, only who may do it to others' goes on."""
        if what and not known_ids.leads_any(self._state, person):
            known_ids.check_admin(person, what)
        found = known_ids.find_live(self._state, person, name)
        if what:
            known_ids.check_lead(self._state, person, found.home, what)
        return found

    def _waiting(self, person: Person, name: str, what: str = "") -> Request:
        found = self._find(person, name, what)
        if isinstance(found, Request):
            return found
        others = f" Have it run again later: bulletin requeue {found.id}" if person.is_admin else ""
        raise CannotTell(
            RefusalCode.NOT_WAITING,
            f"{found.id} waits no longer: it has its place. To stop its cell: bulletin cancel {found.id}.{others}",
        )

    def _running(self, person: Person, name: str, what: str) -> Lease:
        found = self._find(person, name, what)
        if isinstance(found, Request):
            raise CannotTell(RefusalCode.NO_CELL, f"{found.lease} still waits: no cell of it runs.")
        if found.phase is Phase.RECLAIMING:
            raise CannotTell(
                RefusalCode.NO_CELL, f"The cell of {found.id} gives its place back already, and runs again after that."
            )
        if found.phase is not Phase.BUSY:
            raise CannotTell(RefusalCode.NO_CELL, f"No cell runs in {found.id} now.")
        return found

    async def _changed(
        self,
        person: Person,
        one: Request | Lease,
        what: console.Change,
        why: str,
        *,
        is_noted: bool = True,
        grace_ms: int = 0,
        walltime_ms: int = 0,
        left_ms: int = 0,
    ) -> console.ChangedByHand:
        """Note a change and tell its notebook. What owners do with their own is logged, and not in the ledger."""
        note = HandNote(what, known_ids.lease_id(one), one.user, one.home, person.user, why)
        self._log.info("changed by hand", what=what, lease=note.lease, user=one.user, by=person.user, why=why)
        if isinstance(one, Request):
            self._shell.teller.tell_anew(one.id)
        if is_noted:
            await self._notes.keep(BY_HAND, note)
        return console.ChangedByHand(
            lease=note.lease,
            user=one.user,
            project=one.home,
            what=what,
            why=why,
            grace_ms=grace_ms,
            walltime_ms=walltime_ms,
            left_ms=left_ms,
        )


def _too_much(lease: Lease, more_ms: int, most_ms: int, project: ProjectId | None) -> str:
    """Say why a cell cannot have so much more time, and how much it can have."""
    more, most = show_duration(more_ms), show_duration(most_ms)
    if not most_ms and project is None:
        return f"The cell of {lease.id} has used all of its time, or is over: it cannot have more."
    if project is None:
        return f"The cell of {lease.id} may have {most} more, and not {more}: no cell has more beside its walltime."
    return (
        f"The budget of project {project!r} is enough for {most} more of the cell of {lease.id} beside what runs, "
        f"and not for {more}. The quota file says how much it has."
    )
