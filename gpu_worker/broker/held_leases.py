"""Which leases an agent is believed to hold when it registers: none that another agent has, and none that cannot be."""

from collections.abc import Iterable, Iterator, Mapping

import structlog

from bulletin.ids import AgentId, LeaseId
from bulletin.wire import messages as wire
from gpu_worker.broker.active_lease import ActiveLease
from gpu_worker.broker.node_claims import is_possible


def select_own(
    agent: AgentId, held: Iterable[wire.HeldLease], active_leases: Mapping[LeaseId, ActiveLease]
) -> Iterator[wire.HeldLease]:
    """Leave out the leases that are known to be another agent's, or cannot be, and log them."""
    log = structlog.get_logger("broker")
    for one in held:
        active = active_leases.get(one.lease)
        if not is_possible(one):
            log.warning("an agent says that it has a lease that cannot be", agent=agent, lease=one.lease[:63])
        elif active is None or active.agent == agent:
            yield one
        else:
            log.warning("an agent says that it has a lease that is another's", agent=agent, lease=one.lease)
