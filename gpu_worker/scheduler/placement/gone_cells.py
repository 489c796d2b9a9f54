"""What would hold once some running cells have gone: while it is asked, they count in no account."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Literal

from gpu_worker.scheduler.leases.leases import Lease
from gpu_worker.scheduler.state import State


@contextmanager
def without_cells(state: State, gone: Iterable[Lease]) -> Iterator[None]:
    """Take what these cells use out of what their projects use, of all GPUs and of their node pools, for a while."""
    gone = list(gone)
    _use(state, gone, -1)
    try:
        yield
    finally:
        _use(state, gone, +1)


def _use(state: State, leases: Iterable[Lease], sign: Literal[1, -1]) -> None:
    for lease in leases:
        use = (lease.project, lease.user, lease.qos, lease.cost)
        state.accounts.use(*use, sign)
        state.pools.use(lease.pool, *use, sign)
