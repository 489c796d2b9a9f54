"""What an engine is: what starts a pool's agents, keeps them alive and ends them."""

from typing import Protocol

#: Exit statuses by which a part of the pool says that it will never run, or that it has had enough: no engine starts it
#: again. Any other means that it died.
BAD_CONFIG, IDLE = 78, 0  # 78 is EX_CONFIG of sysexits.h


class Engine(Protocol):
    """A way to run a pool's agents: as processes of this host, as jobs of a cluster. The broker does not know which.

    Each keeps the promises of tests/integration/test_engines.py.
    """

    async def run(self) -> int:
        """Start the agents, and start them again when they die, until this task is cancelled; that ends them.

        Returns earlier, with BAD_CONFIG or IDLE, if there is nothing left to keep alive.
        """
        ...
