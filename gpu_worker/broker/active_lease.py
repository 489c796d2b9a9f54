"""A request that waits, the lease that it becomes, and what kernel and agent must be told of that."""

import msgspec

from bulletin.ids import AgentId, CellId, KernelId, ProjectId, SessionId
from bulletin.kept_time import is_kept
from bulletin.wire import keys, messages as wire
from gpu_worker.broker.identity import Person
from gpu_worker.broker.ledger_notes import printable
from gpu_worker.broker.records import CellRecord
from gpu_worker.scheduler import actions
from gpu_worker.scheduler.estimates.wait_history import WaitKind


class PendingRequest(msgspec.Struct):
    """A request in the queue, and whose it is."""

    session: SessionId
    kernel: KernelId
    person: Person
    message: wire.Submit
    since_ms: int
    token: str = ""  #: by which its kernel said hello
    told: wire.Queued | None = None
    announced: str = ""  #: what its kernel was told last of what is announced to everybody
    kind: WaitKind | None = None  #: what it was like when it was first told where it stands
    granted_ms: int | None = None  #: when it was; from `since_ms` on it waited
    was_on_hold: bool = False  #: its wait says nothing of others'

    @property
    def project(self) -> ProjectId:
        """Who pays."""
        return self.message.project or self.person.project


class ActiveLease(msgspec.Struct):
    """A lease that was granted, and what its kernel must hear when its executor is up.

    Without `granted` and `prepare` it was learned again from its agent, after a restart.
    """

    session: SessionId
    agent: AgentId
    kernel: KernelId
    #: What its user calls the cell that runs there, or is to; as it is shown.
    label: str
    granted: wire.Granted | None = None
    prepare: wire.Prepare | None = None
    #: Somebody cancelled its cell: which one, where that is known, and what its kernel hears of it.
    cancelled: CellId | None = None
    cancel_message: str = ""
    #: What its kernel was told last that it counts for.
    cost: wire.LeaseCost | None = None
    #: By which its kernel said hello; empty where that was another broker.
    token: str = ""
    #: The request that it was granted for.
    asked: wire.Submit | None = None
    #: How long the next cell of it that ends has waited in line: the first for its grant, no other. None: not known.
    waited_ms: int | None = None

    def with_wait(self, record: CellRecord) -> CellRecord:
        """Say of a cell that has ended how long it waited; the next one of this lease waited for nothing."""
        if is_kept(record.cell):
            return record  # no cell: a place between two
        waited_ms = self.waited_ms
        self.waited_ms = None if waited_ms is None else 0
        return msgspec.structs.replace(record, waited_ms=waited_ms)

    def is_for(self, asked: wire.Submit) -> bool:
        """Tell whether a request asks for what this one was granted for, and its kernel can be told of the grant."""
        return self.granted is not None and self.asked is not None and _what(self.asked) == _what(asked)


def _what(asked: wire.Submit) -> wire.Submit:
    """Return what a request asks for, without what it is called, and whether it is for a notebook yet to come."""
    return msgspec.structs.replace(asked, label="", is_qos_asked=True, keep_at_once=False)


def make_active_lease(
    action: actions.Grant,
    pending: PendingRequest,
    node: wire.Register,
    *,
    cost: wire.LeaseCost,
    sizes: tuple[int, ...],
) -> ActiveLease:
    """Draw a ticket for a grant, and write out what its agent and its kernel are told.

    `cost` is what it counts for now; `sizes` is the memory of its slots, in bytes.
    """
    ticket = keys.make_secret()
    offers = {slot.slot: slot for slot in node.slots}
    held = [offers[slot] for slot in action.slots if slot in offers]
    prepare = wire.Prepare(
        lease=action.lease,
        session=action.session,
        kernel=pending.kernel,
        user=pending.person.user,
        project=pending.project,
        qos=pending.message.qos,
        slots=action.slots,
        walltime_ms=action.walltime_ms,
        ticket=ticket,
        environment=pending.message.environment,
        label=pending.message.label,
        cpus=pending.message.cpus,
        memory_bytes=pending.message.memory_bytes,
        keep_ms=pending.message.keep_ms,
        keep_at_once=pending.message.keep_at_once,
        is_exclusive=pending.message.is_exclusive,
    )
    granted = wire.Granted(
        request=pending.message.request,
        lease=action.lease,
        session=action.session,
        agent=node.address,
        ticket=ticket,
        node=node.node,
        slots=tuple(offers[slot].name if slot in offers else slot for slot in action.slots),
        walltime_ms=action.walltime_ms,
        in_quota=cost.in_quota,
        price_percent=cost.price_percent,
        memory_bytes=min((offer.memory_bytes for offer in held), default=0),
        sizes=sizes,
    )
    token, asked = pending.token, pending.message
    return ActiveLease(
        action.session,
        action.agent,
        pending.kernel,
        asked.label,
        granted,
        prepare,
        cost=cost,
        token=token,
        asked=asked,
        waited_ms=None if pending.granted_ms is None else pending.granted_ms - pending.since_ms,
    )


def relearn_active_lease(held: wire.HeldLease, agent: AgentId) -> ActiveLease:
    """Take in a lease that an agent has from a broker before this one."""
    return ActiveLease(held.session, agent, held.kernel, printable(held.label))
