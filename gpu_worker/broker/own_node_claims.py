"""What is believed of the node that a user has brought: of that user's own cells what the pool knows of them.

Its agent is run by somebody whom the pool trusts with nothing but their own cells. So whose a lease is, in which
project and of which session is taken from the ledger, never from its word; what it offers costs nothing; and a lease
that the pool has not granted there is none.
"""

from collections.abc import Callable

from msgspec import structs

from bulletin.ids import AgentId, LeaseId, UserName
from bulletin.wire import messages as wire
from gpu_worker.broker.records import LeaseRecord
from gpu_worker.broker.scheduler_shell import SchedulerShell
from gpu_worker.scheduler.state import State

#: No machine of somebody's own is given more cells at once.
MOST_SLOTS = 256

FindRecord = Callable[[LeaseId], LeaseRecord | None]


def known_in(shell: SchedulerShell) -> FindRecord:
    """Look leases up in the ledger's books; a session that another notebook has taken over is that one's now."""

    def find_record(lease: LeaseId) -> LeaseRecord | None:
        record, active = shell.metering.find_record(lease), shell.active_leases.get(lease)
        return record if record is None or active is None else structs.replace(record, session=active.session)

    return find_record


def find_own_excess(message: wire.Register) -> str:
    """Say what of such a node is more than one may have; empty where nothing is."""
    if len(message.slots) > MOST_SLOTS:
        return f"it offers {len(message.slots)} slots, and a node of one's own may have {MOST_SLOTS}"
    if len(message.held) > MOST_SLOTS:
        return f"it says that it has {len(message.held)} leases, and a node of one's own may have {MOST_SLOTS}"
    return ""


def believe(
    message: wire.Register, owner: UserName, find_record: FindRecord
) -> tuple[wire.Register, tuple[LeaseId, ...]]:
    """Leave of a registration what is believed; and name the leases that it says it has, and that are none.

    Of a node of the pool, which has no owner, all is.
    """
    if not owner:
        return message, ()
    held = tuple(one for one in message.held if _is_granted(one, message.node, owner, find_record(one.lease)))
    known = {one.lease for one in held}
    others = tuple(dict.fromkeys(one.lease for one in message.held if one.lease not in known))
    slots = tuple(structs.replace(slot, milli=0) for slot in message.slots)
    return structs.replace(message, held=held, slots=slots), others


def _is_granted(held: wire.HeldLease, node: str, owner: UserName, record: LeaseRecord | None) -> bool:
    """Tell whether a lease was granted to the owner of a node there, for what its agent says.

    Its session may be another one by now: a notebook of the same user can have taken the cell over, which the ledger
    does not tell. Whose a session is, its name proves (`lease_claims`).
    """
    if record is None:
        return False
    said = held.user, node, held.project, held.qos
    return held.user == owner and said == (record.user, record.node, record.project, record.qos)


def correct(
    message: wire.CellDone, node: wire.Register, owner: UserName, find_record: FindRecord
) -> wire.CellDone | None:
    """Say of a cell that ended whose it was, as the pool knows it; None where it was none of such a node's.

    Of a node of the pool, which has no owner, it is as its agent says.
    """
    if not owner:
        return message
    record = find_record(message.lease)
    if record is None or (record.user, record.node) != (owner, node.node):
        return None
    offered = {slot.slot for slot in node.slots}
    return structs.replace(
        message,
        user=record.user,
        project=record.project,
        qos=record.qos,
        session=record.session,
        slots=tuple(slot for slot in record.slots if slot in offered),
    )


def is_open_to(state: State, agent: AgentId, user: UserName) -> bool:
    """Tell whether a node that is there may be asked in the name of a user: it is the pool's, or that user's own."""
    node = state.nodes.get(agent)
    return node is not None and node.owner in ("", user)
