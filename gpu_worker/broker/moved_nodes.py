"""Nodes whose hosts have got other addresses: the notebooks that have something there are told where it is now."""

from collections.abc import Awaitable, Callable, Mapping

from msgspec import structs

from bulletin.ids import AgentId, LeaseId, SessionId
from bulletin.wire import messages as wire
from gpu_worker.broker.active_lease import ActiveLease

TellKernel = Callable[[SessionId, wire.Message], Awaitable[None]]
Leases = Mapping[LeaseId, ActiveLease]


async def tell_moved(node: wire.Register, leases: Leases, tell: TellKernel) -> None:
    """Tell each notebook that has a lease of this node where that is reached now; also what it is to be told yet."""
    for name, active in [(name, active) for name, active in leases.items() if active.agent == node.agent]:
        if active.granted is not None:
            active.granted = structs.replace(active.granted, agent=node.address)
        await tell(active.session, wire.NodeMoved(lease=name, agent=node.address))


async def tell_where(
    session: SessionId, leases: Leases, nodes: Mapping[AgentId, wire.Register], tell: TellKernel
) -> None:
    """Tell a notebook that has come anew where its lease is: it may have been away when that was told."""
    for name, active in [(name, active) for name, active in leases.items() if active.session == session]:
        if active.agent in nodes:
            await tell(session, wire.NodeMoved(lease=name, agent=nodes[active.agent].address))
