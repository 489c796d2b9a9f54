"""One node pool: who has what of it, and the slots that are in it now."""

import msgspec

from bulletin.ids import AgentId, ProjectId, SlotId
from gpu_worker.scheduler.accounts.accounts import Accounts
from gpu_worker.scheduler.events import Slot
from gpu_worker.scheduler.leases.resources import SlotKind
from gpu_worker.scheduler.leases.shapes import Shape
from gpu_worker.scheduler.policy.projects import NodePool


class PoolAccounts:
    """One pool: its accounts, and the slots that are in it now."""

    def __init__(self, pool: NodePool, accounts: Accounts) -> None:
        self.pool, self.accounts = pool, accounts
        self.slots: dict[AgentId, tuple[Slot, ...]] = {}  #: of connected nodes that are not drained
        #: What hot leases keep of such classes as never borrow, by project, with what is inside it.
        self.hot_in_quota: dict[ProjectId, int] = {}
        self._ever: dict[tuple[tuple[Slot, ...], int], None] = {}  #: what nodes offered here, each kind once
        self._beside: dict[AgentId, int] = {}  #: how many slots else these nodes have
        self._serves_cache: dict[tuple[SlotKind, int, bool], bool] = {}

    def offer(self, agent: AgentId, slots: tuple[Slot, ...], beside: int = 0) -> None:
        """Note what a node offers here from now on, which may be nothing; `beside` is how many slots else it has."""
        if slots:
            self.slots[agent], self._beside[agent] = slots, beside
            self._ever[tuple(msgspec.structs.replace(slot, id=SlotId("")) for slot in slots), beside] = None
        else:
            self.slots.pop(agent, None)
        self._serves_cache.clear()
        self.accounts.set_capacity(sum(slot.milli for some in self.slots.values() for slot in some))

    def could_serve(self, shape: Shape) -> bool:
        """Whether such a request could run on a node that was ever here; while none was, nobody can say."""
        is_gpu = shape.lane == "gpu" and bool(shape.cost)
        return is_gpu and (not self._ever or any(_hold(*offered, shape) for offered in self._ever))

    def serves(self, shape: Shape) -> bool:
        """Whether such a request could run here, on one node, if nothing else did."""
        if shape.lane != "gpu" or not shape.cost:
            return False
        key = shape.wants.kind, shape.need, shape.wants.is_exclusive
        if key not in self._serves_cache:
            there = self.slots.items()
            self._serves_cache[key] = any(_hold(slots, self._beside[agent], shape) for agent, slots in there)
        return self._serves_cache[key]


def _hold(slots: tuple[Slot, ...], beside: int, shape: Shape) -> bool:
    """Whether slots of one node hold such a request: who would have a node alone has all that it has, here."""
    number = sum(map(shape.wants.kind.serves, slots))
    return number == shape.need == len(slots) + beside if shape.wants.is_exclusive else number >= shape.need
