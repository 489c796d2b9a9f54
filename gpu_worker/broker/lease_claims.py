"""What nodes say of leases, as far as it is believed: of one that the broker granted, the broker knows whose it is."""

from collections.abc import Callable, Iterator

import structlog
from msgspec import structs

from bulletin.ids import AgentId, KernelId, LeaseId, UserName
from bulletin.rate_limiter import RateLimiter
from bulletin.wire import messages as wire
from gpu_worker.broker.ledger_notes import printable
from gpu_worker.broker.node_claims import is_possible
from gpu_worker.broker.scheduler_shell import SchedulerShell
from gpu_worker.broker.session_names import SessionNames

#: So many leases and cells of which the broker knows nothing each node may tell in a second, and at once: each is a row
#: of the ledger. Those of a broker before it are few.
_UNKNOWN_PER_S, _UNKNOWN_MOST = 5.0, 5_000

#: No kernel is called so that a node may speak of.
_NO_KERNEL = KernelId("")


class LeaseClaims:
    """Decides which leases and cells of a node count, and whose they are."""

    def __init__(self, names: SessionNames, shell: Callable[[], SchedulerShell], now_ms: Callable[[], int]) -> None:
        self._names, self._shell = names, shell
        self._unknown: RateLimiter[AgentId] = RateLimiter(_UNKNOWN_PER_S, _UNKNOWN_MOST, lambda: now_ms() / 1000)
        self._log = structlog.get_logger("broker")

    def tidy(self) -> None:
        """Forget the nodes that have told nothing new for a while. To be called now and then."""
        self._unknown.tidy()

    def admits_cell(self, agent: AgentId, lease: LeaseId) -> bool:
        """Tell whether a cell that ended is to be recorded: of leases that nobody knows, so many of each node."""
        return self._shell().metering.knows(lease) or self._take_unknown(agent)

    def is_of_another(self, agent: AgentId, owner: UserName, message: wire.FromAgent) -> bool:
        """Tell whether a message is about a lease that another agent has: a node speaks of what is its own.

        One that a user has brought speaks of nothing that this broker has not given it, but of cells that have ended.
        """
        if not isinstance(
            message, wire.Prepared | wire.CellBegan | wire.CellDone | wire.PauseDeclined | wire.LeaseOver
        ):
            return False
        active = self._shell().active_leases.get(message.lease)
        if active is None:
            return bool(owner) and not isinstance(message, wire.CellDone)
        return active.agent != agent

    def find_believed(self, message: wire.Register) -> Iterator[wire.HeldLease]:
        """Leave out the leases that are another agent's, or cannot be; say of the others whose they are."""
        agent = message.agent
        for one in message.held:
            active = self._shell().active_leases.get(one.lease)
            if not is_possible(one):
                self._warn("an agent says that it has a lease that cannot be", agent, one)
            elif active is not None and active.agent != agent:
                self._warn("an agent says that it has a lease that is another's", agent, one)
            elif active is None and not self._take_unknown(agent):
                self._warn("an agent says too often that it has leases of which nobody knows", agent, one)
            else:
                yield self._with_owner(one, message.node)

    def _take_unknown(self, agent: AgentId) -> bool:
        has_credit = self._unknown.has_credit(agent)
        if has_credit:
            self._unknown.charge(agent, 1)
        return has_credit

    def _warn(self, what: str, agent: AgentId, held: wire.HeldLease) -> None:
        self._log.warning(what, agent=agent, lease=printable(held.lease[:63]))

    def _with_owner(self, held: wire.HeldLease, node: str) -> wire.HeldLease:
        """Put in who has a lease, as it was granted; and a session that nobody has, where it is not one's own.

        A session has what was granted to it here or by a broker before this one, as the ledger has it, and is not over:
        of others it knows nothing, and waits for none of them.
        """
        shell = self._shell()
        known, active = shell.scheduler.state.leases.get(held.lease), shell.active_leases.get(held.lease)
        recorded = shell.metering.find_unended(held.lease)
        is_recorded = recorded is not None and recorded.node == node
        if known is not None:
            held = structs.replace(held, user=known.user, project=known.home, qos=known.qos)
        elif recorded is not None and is_recorded:
            held = structs.replace(held, user=recorded.user, project=recorded.project, qos=recorded.qos)
        if (active is not None or is_recorded) and self._names.is_of(held.session, held.user, held.kernel):
            return held
        if active is not None:
            return structs.replace(held, session=active.session, kernel=active.kernel)
        return structs.replace(held, session=self._names.draw(held.user, _NO_KERNEL))
