"""Who is heard at the broker's two sockets, and how much: of a connection, and of all those of a user together."""

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from bulletin.codes import RefusalCode
from bulletin.ids import UserName
from bulletin.rate_limiter import RateLimiter
from bulletin.wire import frames, messages as wire
from bulletin.wire.frames import Blob
from gpu_worker.broker.identity import Person

#: What a connection may say in a second, and at once; a notebook that waits says two things a second.
_ROUTE_PER_S, _ROUTE_MOST = 50, 200
_USER_PER_S, _USER_MOST = 200, 800
#: What counts as one; all else makes the broker ask others (the hub, the ledger, agents) or is no message at all.
_LIGHT = (wire.Ping, wire.Submit, wire.Withdraw)
#: Signs of life count for themselves: after a pause of the broker or of its link all of them come at once.
_PINGS_PER_S, _PINGS_MOST = 5, 20
_PING = frames.pack(wire.Ping())
_HELLO_COST, _COST = 25, 5
#: To read a long message takes as long as to read many: so many bytes count as one more. Notebooks say less.
_BYTES_OF_ONE = 4096
_TOO_FAST = (
    "{who} more at once than the pool listens to: what was said beyond that was dropped. Wait some seconds, then run "
    "the cell again."
)


class Gate(Protocol):
    """Decides what is heard at a socket."""

    def admits(self, route: bytes, parts: Sequence[Blob]) -> bool:
        """Tell whether the connection is to be heard now, with these frames."""

    def charge(self, route: bytes, parts: Sequence[Blob], message: wire.Message | None) -> None:
        """Count what was heard of a connection: frames, and what they say; None is what could not be read."""

    def take_refusal(self, route: bytes, parts: Sequence[Blob]) -> wire.Refusal | None:
        """Return what to tell a connection that is not heard, unless it was told within a second."""

    def tidy(self) -> None:
        """Forget those who were quiet for a while. To be called now and then."""


class KernelGate:
    """The gate for kernels: each connection has its own limit, and each user one for all of theirs."""

    def __init__(
        self, person_of: Callable[[bytes], Person | None], clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        """Take `person_of`, which says whose connection it is, where that is known."""
        self._person_of = person_of
        self._routes: RateLimiter[bytes] = RateLimiter(_ROUTE_PER_S, _ROUTE_MOST, clock_s)
        self._users: RateLimiter[UserName] = RateLimiter(_USER_PER_S, _USER_MOST, clock_s)
        self._pings: RateLimiter[bytes] = RateLimiter(_PINGS_PER_S, _PINGS_MOST, clock_s)

    def admits(self, route: bytes, parts: Sequence[Blob]) -> bool:
        """See Gate."""
        if self._is_page(route):
            return True
        if parts == _PING:
            return self._pings.has_credit(route)
        user = self._user_of(route)
        return self._routes.has_credit(route) and (user is None or self._users.has_credit(user))

    def charge(self, route: bytes, parts: Sequence[Blob], message: wire.Message | None) -> None:
        """See Gate."""
        if self._is_page(route):
            return
        if parts == _PING:
            self._pings.charge(route, 1)
            return
        cost = 1 if isinstance(message, _LIGHT) else _HELLO_COST if isinstance(message, wire.Hello) else _COST
        cost += sum(memoryview(part).nbytes for part in parts) // _BYTES_OF_ONE
        self._routes.charge(route, cost)
        user = self._user_of(route)
        if user is not None:
            self._users.charge(user, cost)

    def take_refusal(self, route: bytes, parts: Sequence[Blob]) -> wire.Refusal | None:
        """See Gate. What nobody knows is dropped in silence: a kernel that comes back from a pause says it again."""
        if parts == _PING or self._person_of(route) is None or not self._routes.take_telling(route):
            return None
        user = self._user_of(route)
        is_one = user is None or self._users.has_credit(user)
        who = "This notebook asks" if is_one else "Your notebooks together ask"
        return wire.Refusal(code=RefusalCode.TOO_FAST, sentence=_TOO_FAST.format(who=who))

    def tidy(self) -> None:
        """See Gate."""
        for limiter in (self._routes, self._pings):
            limiter.tidy()
        self._users.tidy()

    def _is_page(self, route: bytes) -> bool:
        """Whether it is the hub's page: it asks for all who look at it, one question after the other."""
        person = self._person_of(route)
        return person is not None and person.is_page

    def _user_of(self, route: bytes) -> UserName | None:
        person = self._person_of(route)
        return None if person is None or person.is_owner else person.user  # who has the pool's own token, has the pool


class AgentGate:
    """The gate for agents: who has shown the pool's secret says what it has to, all others little."""

    def __init__(self, is_agent: Callable[[bytes], bool], clock_s: Callable[[], float] = time.monotonic) -> None:
        """Take `is_agent`, which says whether an agent has registered by this connection."""
        self._is_agent = is_agent
        self._strangers: RateLimiter[bytes] = RateLimiter(_ROUTE_PER_S, _ROUTE_MOST, clock_s)

    def admits(self, route: bytes, parts: Sequence[Blob]) -> bool:  # noqa: ARG002
        """See Gate."""
        return self._strangers.has_credit(route) or self._is_agent(route)

    def charge(self, route: bytes, parts: Sequence[Blob], message: wire.Message | None) -> None:  # noqa: ARG002
        """See Gate."""
        if not self._is_agent(route):
            self._strangers.charge(route, 1 if isinstance(message, _LIGHT) else _COST)

    def take_refusal(self, route: bytes, parts: Sequence[Blob]) -> wire.Refusal | None:  # noqa: ARG002
        """See Gate. An agent takes a refusal for the end: who is none needs no words."""
        return None

    def tidy(self) -> None:
        """See Gate."""
        self._strangers.tidy()
