"""Which registrations of agents count: by the key of their connection, and never by their word."""

from bulletin.codes import RefusalCode
from bulletin.errors import VersionMismatch
from bulletin.wire import messages as wire
from gpu_worker.broker.agent_admission import AgentAdmission
from gpu_worker.broker.connected_agent import ConnectedAgent
from gpu_worker.broker.node_claims import find_excess
from gpu_worker.broker.own_node_claims import find_own_excess

#: An agent that was heard within this time is there; agents speak each second.
_ANSWERS_MS = 3_000


def find_refusal(
    route: bytes, message: wire.Register, admission: AgentAdmission, earlier: ConnectedAgent | None, now_ms: int
) -> tuple[RefusalCode, str]:
    """Find why an agent may not be what it says, in a sentence that is empty where it may.

    `earlier` is the connection by which an agent of that name was heard last.
    """
    if message.protocol != wire.PROTOCOL:
        return RefusalCode.VERSION_MISMATCH, str(VersionMismatch(message.protocol, wire.PROTOCOL, "the agent"))
    if problem := admission.find_problem(route, message):
        return RefusalCode.NOT_ALLOWED, problem
    owner = admission.owner_of(admission.key_of(route))
    if excess := find_excess(message) or (find_own_excess(message) if owner else ""):
        return RefusalCode.OVER_LIMIT, f"What the node {message.node[:63]!r} says of itself cannot be: {excess}."
    if earlier is None or earlier.route == route or earlier.message.process in ("", message.process):
        return RefusalCode.NOT_ALLOWED, ""
    # The connection of one that has ended is gone at once; that of a host that has is, after some seconds.
    is_there = admission.key_of(earlier.route) is not None
    if is_there and now_ms - earlier.heard_ms <= _ANSWERS_MS:
        return RefusalCode.NAME_TAKEN, (
            f"There is an agent of this name already, at {earlier.message.address.address}, and it answers. If "
            "this is another host, give it a name and a file of its own: bulletin node add NAME. If it is the "
            "same one, end the other agent."
        )
    return RefusalCode.NOT_ALLOWED, ""


def is_older(message: wire.Register, known: wire.Register) -> bool:
    """Tell whether the same process of an agent said this before what is known of it."""
    if message.clock_ms is None or known.clock_ms is None:
        return False
    return message.process == known.process != "" and message.clock_ms < known.clock_ms
