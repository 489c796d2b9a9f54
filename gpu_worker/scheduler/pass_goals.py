"""How far a pass goes in a long line: until what has just happened is decided upon."""

from typing import Protocol

from bulletin.ids import AgentId, RequestId, SlotId
from gpu_worker.scheduler.leases.leases import LEAVING, Request
from gpu_worker.scheduler.leases.life import Phase
from gpu_worker.scheduler.leases.resources import Lane, lane_of
from gpu_worker.scheduler.state import State

#: Leases of which the slots are somebody else's now, or soon.
_SOON = LEAVING | {Phase.HOT}


class Goal(Protocol):
    """What is to be decided; of those who stand behind that nobody is looked at."""

    def is_reached(self, state: State, lane: Lane) -> bool:
        """Whether nothing is left to decide in a lane."""

    def note(self, request: Request, place: AgentId | None) -> None:
        """Take in that somebody was looked at, and on which node they are to have a place that is not free yet."""


class SlotsGiven:
    """Slots that nobody uses any more are somebody's, or are to be."""

    def __init__(self, agent: AgentId, slots: tuple[SlotId, ...]) -> None:
        self._agent, self._slots = agent, slots
        self._claimed = 0  #: how many slots of the node are promised to those who were looked at

    def is_reached(self, state: State, lane: Lane) -> bool:
        """Whether none of them is free or hot, or as many like it, that are or will be, are promised."""
        node, leases = state.nodes[self._agent], state.leases
        tenants = {slot: node.tenants[slot] for slot in self._slots if lane_of(node.slots[slot]) == lane}
        if not any(name is None or leases[name].phase is Phase.HOT for name in tenants.values()):
            return True
        names = {node.slots[slot].name for slot in tenants}
        alike = [node.tenants[slot.id] for slot in node.slots.values() if slot.name in names]
        return sum(name is None or leases[name].phase in _SOON for name in alike) <= self._claimed

    def note(self, request: Request, place: AgentId | None) -> None:
        """Count what somebody is to have on the node."""
        if place == self._agent:
            self._claimed += request.entry.shape.need


class RequestReached:
    """A new request was looked at, or so many others that it must be far behind."""

    def __init__(self, request: RequestId, most: int) -> None:
        self._request, self._left = request, most

    def is_reached(self, state: State, lane: Lane) -> bool:
        """Whether that is so, or it waits no more."""
        request = state.pending.get(self._request)
        return request is None or request.lane != lane or self._left <= 0

    def note(self, request: Request, place: AgentId | None) -> None:  # noqa: ARG002  # the protocol's
        """Count who was looked at."""
        self._left = 0 if request.id == self._request else self._left - 1
