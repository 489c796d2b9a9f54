"""A node that has registered, as far as its connection goes."""

import time

import msgspec

from bulletin.ids import UserName
from bulletin.wire import messages as wire
from gpu_worker.broker.agent_clock import AgentClock

#: Clocks that are kept differ by less, and so does what a message takes.
_APART_MS = 3_000


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
    #: While it is away: from when on its host is asked again.
    look_again_ms: int = 0
    #: It has said since that it is reached elsewhere, where it is not.
    has_moved: bool = False
    #: It ends, and may be gone before a notebook has heard it.
    is_leaving: bool = False
    clock: AgentClock = msgspec.field(default_factory=AgentClock)
    #: Its clock of the day, beside this host's, which an admin may set.
    day_clock: AgentClock = msgspec.field(default_factory=AgentClock)
    #: How busy its slots were when it said so last.
    slot_uses: tuple[wire.SlotUse, ...] = ()

    def is_to_be_looked_after(self, now_ms: int) -> bool:
        """Tell whether, silent as it is, its host is to be asked for it: at once, and now and then while it is away."""
        return not self.is_away or self.look_again_ms <= now_ms

    def note_ping(self, ping: wire.Ping) -> None:
        """Take in what it says of itself once a second; of one that a user has brought, no counters."""
        self.counters, self.slot_uses = {} if self.owner else ping.counters, ping.slots
        self.clock.compare(ping.clock_ms, self.heard_ms)
        self.day_clock.compare(ping.day_ms, time.time_ns() // 1_000_000)

    @property
    def day_ahead_ms(self) -> int:
        """By how much its clock of the day is ahead of this host's, below 0 behind; 0 where they agree."""
        behind_ms = self.day_clock.behind_ms
        return -behind_ms if abs(behind_ms) >= _APART_MS else 0
