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
        self._ever: dict[tuple[Slot, ...], None] = {}  #: what nodes offered here, each kind once
        self._serves_cache: dict[tuple[SlotKind, int], bool] = {}

    def offer(self, agent: AgentId, slots: tuple[Slot, ...]) -> None:
        """Note what a node offers here from now on, which may be nothing."""
        if slots:
            self.slots[agent] = slots
            self._ever[tuple(msgspec.structs.replace(slot, id=SlotId("")) for slot in slots)] = None
        else:
            self.slots.pop(agent, None)
        self._serves_cache.clear()
        self.accounts.set_capacity(sum(slot.milli for some in self.slots.values() for slot in some))

    def could_serve(self, shape: Shape) -> bool:
        """Whether such a request could run on a node that was ever here; while none was, nobody can say."""
        some = self._ever or {(): None}
        is_gpu = shape.lane == "gpu" and bool(shape.cost)
        return is_gpu and any(not slots or sum(map(shape.wants.kind.serves, slots)) >= shape.need for slots in some)

    def serves(self, shape: Shape) -> bool:
        """Whether such a request could run here, on one node, if nothing else did."""
        if shape.lane != "gpu" or not shape.cost:
            return False
        key = shape.wants.kind, shape.need
        if key not in self._serves_cache:
            numbers = (sum(map(shape.wants.kind.serves, slots)) for slots in self.slots.values())
            self._serves_cache[key] = any(number >= shape.need for number in numbers)
        return self._serves_cache[key]
