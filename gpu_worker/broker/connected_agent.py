"""A node that has registered, as far as its connection goes."""

import msgspec

from bulletin.ids import UserName
from bulletin.wire import messages as wire
from gpu_worker.broker.agent_clock import AgentClock


class ConnectedAgent(msgspec.Struct):
    """One connection of an agent, and what it said by it."""

    route: bytes
    #: Which public key its connection was made with.
    key: str
    message: wire.Register
    heard_ms: int
    #: Who has brought it, for themselves alone; empty: it is the pool's.
    owner: UserName = UserName("")
    counters: dict[str, int] = {}
    #: It is not heard, and may come back with what it holds.
    is_away: bool = False
    #: It ends, and may be gone before a notebook has heard it.
    is_leaving: bool = False
    clock: AgentClock = msgspec.field(default_factory=AgentClock)
    #: How busy its slots were when it said so last.
    slot_uses: tuple[wire.SlotUse, ...] = ()
