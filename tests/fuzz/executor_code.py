"""What a cell does that attacks its own executor's pipe: run in the executor, by the attack on it."""

import gc
from typing import Any

from bulletin.wire import messages as wire
from gpu_worker.executor.relay import _Packet
from tests.fuzz.random_messages import RandomMessages


def attack(seed: int, count: int) -> None:
    """Let the executor say so many random messages to its agent, in the name of the cell that runs."""
    relay: Any = next(one for one in gc.get_objects() if type(one).__name__ == "Relay")
    cell = relay.owners.cell
    known = {"cell": [cell], "round": [0, 1, 2]}
    messages = RandomMessages(wire.FromExecutor, seed, known, rare=("ended",), rarely=0.01, junk=0.0005)
    for _ in range(count):
        relay._items.append(_Packet(messages.draw(), 0))
    relay._wake.put(None)
    relay.flush()
