"""How often nodes may say what they are: the broker takes in all that they have each time, and others wait for that."""

from collections.abc import Callable

from bulletin.ids import AgentId
from bulletin.rate_limiter import RateLimiter
from bulletin.wire import messages as wire

#: A registration counts as one, and one more for each so many leases in it: a thousand take a tenth of a second.
_LEASES_OF_ONE = 32
#: So many of each node in a second, and at once: a link that is cut again and again needs fewer.
_PER_S, _MOST = 1.0, 100
_TOO_OFTEN = (
    "The node {node!r} connects again and again, more often than the broker takes it in. It is taken in again when it "
    "has waited for some seconds, or minutes where it has very many leases. See its agent's log for why its link ends."
)


class RegistrationPace:
    """Counts what each node has had taken in."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        """Take the broker's clock."""
        self._taken: RateLimiter[AgentId] = RateLimiter(_PER_S, _MOST, lambda: now_ms() / 1000)

    def find_problem(self, message: wire.Register) -> str:
        """Say why a node is not to be taken in now; empty if it may."""
        return "" if self._taken.has_credit(message.agent) else _TOO_OFTEN.format(node=message.node[:63])

    def charge(self, message: wire.Register) -> None:
        """Count a registration that is taken in."""
        self._taken.charge(message.agent, 1 + len(message.held) / _LEASES_OF_ONE)

    def take_telling(self, message: wire.Register) -> bool:
        """Tell whether the node is to be told now that it comes too often; once a second."""
        return self._taken.take_telling(message.agent)

    def tidy(self) -> None:
        """Forget the nodes that have come seldom. To be called now and then."""
        self._taken.tidy()
