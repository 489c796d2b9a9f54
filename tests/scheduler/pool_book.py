"""The referee's book of the pool: what there is, who has it, what a request may use of it, and what that is worth."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

from gpu_worker.scheduler import events as ev
from gpu_worker.scheduler.policy.prices import Price
from tests.scheduler.tenancy import USING, Tenancy


def lane_of(slot: ev.Slot) -> str:
    return "cpu" if slot.kind == "cpu" else "gpu"


def names_a_slice(asked: ev.RequestSubmitted) -> bool:
    return re.search(r"\bmig\b|\b\d+g\b", asked.gpu_type.lower()) is not None


def price(slot: ev.Slot, prices: Iterable[Price]) -> Fraction:
    words = set(re.findall("[a-z0-9]+", slot.name.lower())) | {slot.kind}
    fitting = [one.percent for one in prices if set(re.findall("[a-z0-9]+", one.gpu.lower())) <= words]
    return Fraction(fitting[0] if fitting else 100, 100)


@dataclass
class PoolBook:
    offers: dict[str, ev.AgentJoined] = field(default_factory=dict)  # what each agent there has
    shown: list[ev.AgentJoined] = field(default_factory=list)  # what any agent ever had
    lanes: set[str] = field(default_factory=set)  # those of all slots that were ever shown
    leases: dict[str, Tenancy] = field(default_factory=dict)
    drained: set[str] = field(default_factory=set)  # agents
    planned: dict[str, int] = field(default_factory=dict)  # agents that are to be drained, and when
    awaited: set[str] = field(default_factory=set)  # names of nodes that are to come back
    awaited_until_ms: int | None = None

    # What there is

    def joined(self, offer: ev.AgentJoined) -> None:
        self.offers[offer.agent] = offer
        self.shown.append(offer)
        self.lanes |= {lane_of(slot) for slot in offer.slots}

    def drain_what_is_due(self, now_ms: int) -> None:
        due = {agent for agent, at_ms in self.planned.items() if at_ms <= now_ms}
        self.drained |= due
        self.planned = {agent: at_ms for agent, at_ms in self.planned.items() if agent not in due}

    def offered(self) -> int:
        """What may be used now, in thousandths of a GPU: of nodes that are drained, what still is."""
        slots = [slot for agent, offer in self.offers.items() if agent not in self.drained for slot in offer.slots]
        using = [lease for lease in self.leases.values() if lease.state in USING]
        there = sum(self.worth(lane_of(slot), slot.milli) for slot in slots)
        return there + sum(self.cost_of(lease) for lease in using if lease.agent in self.drained)

    def taken(self, agent: str) -> dict[str, str]:
        return {slot: name for name, lease in self.leases.items() if lease.agent == agent for slot in lease.slots}

    # What a request may use of it

    def lane(self, asked: ev.RequestSubmitted) -> str:
        return "gpu" if asked.gpus and "gpu" in self.lanes else "cpu"

    def serves(self, slot: ev.Slot, asked: ev.RequestSubmitted) -> bool:
        words = re.split(r"[^a-z0-9]+", asked.gpu_type.lower().strip())
        if lane_of(slot) != self.lane(asked) or slot.memory_bytes < asked.gpu_memory_bytes:
            return False
        name = re.split(r"[^a-z0-9]+", f"{slot.name} {slot.kind}".lower())
        if not all(word in name for word in words if word):
            return False
        if slot.kind == "mig":
            has_whole = any(one.kind == "gpu" for offer in self.shown for one in offer.slots)
            return names_a_slice(asked) or not has_whole
        return not names_a_slice(asked)

    def serving(self, offer: ev.AgentJoined, asked: ev.RequestSubmitted) -> set[str]:
        return {slot.id for slot in offer.slots if self.serves(slot, asked)}

    def holds(self, offer: ev.AgentJoined, asked: ev.RequestSubmitted) -> bool:
        number = max(1, asked.gpus)
        enough = len(self.serving(offer, asked)) >= number
        if asked.is_exclusive:
            enough = enough and len(offer.slots) == number
        return enough and asked.cpus <= offer.cpus and asked.memory_bytes <= offer.memory_bytes

    def was_shown_for(self, asked: ev.RequestSubmitted) -> bool:
        """Whether any agent that was ever there could hold it."""
        return any(self.holds(offer, asked) for offer in self.shown)

    def never_fits(self, asked: ev.RequestSubmitted) -> bool:
        return self.awaited_until_ms is None and bool(self.lanes) and not self.was_shown_for(asked)

    def fits(self, agent: str, asked: ev.RequestSubmitted) -> bool:
        """Whether it fits what is free there."""
        offer = self.offers[agent]
        here = [lease for lease in self.leases.values() if lease.agent == agent]
        free = self.serving(offer, asked) - set(self.taken(agent))
        cpus, memory = sum(lease.cpus for lease in here), sum(lease.memory_bytes for lease in here)
        enough = len(free) >= max(1, asked.gpus)
        return enough and asked.cpus + cpus <= offer.cpus and asked.memory_bytes + memory <= offer.memory_bytes

    # What it is worth

    def worth(self, lane: str, milli: int) -> int:
        return milli if lane == "gpu" or "gpu" not in self.lanes else 0

    def cost(self, asked: ev.RequestSubmitted) -> int:
        each = [slot.milli for slot in self.slots_for(asked)]
        return self.worth(self.lane(asked), max(1, asked.gpus) * max(each, default=1000))

    def charge(self, asked: ev.RequestSubmitted, prices: tuple[Price, ...]) -> int:
        """What it would be charged on the dearest slots."""
        each = [self.charge_for(slot, prices) for slot in self.slots_for(asked)]
        return max(1, asked.gpus) * max(each) if each else self.cost(asked)

    def slots_for(self, asked: ev.RequestSubmitted) -> list[ev.Slot]:
        """What may serve it; who would have a node alone has none of another size."""
        offers = [one for one in self.shown if asked.is_exclusive and self.is_alone_on(one, asked)] or self.shown
        return [slot for offer in offers for slot in offer.slots if self.serves(slot, asked)]

    def is_alone_on(self, offer: ev.AgentJoined, asked: ev.RequestSubmitted) -> bool:
        return len(self.serving(offer, asked)) == len(offer.slots) == max(1, asked.gpus)

    def cost_of(self, lease: Tenancy) -> int:
        return sum(self.worth(lane_of(slot), slot.milli) for slot in self.slots_of(lease))

    def charge_of(self, lease: Tenancy) -> int:
        return sum(self.charge_for(slot, lease.prices) for slot in self.slots_of(lease))

    def charge_for(self, slot: ev.Slot, prices: tuple[Price, ...]) -> int:
        return math.ceil(self.worth(lane_of(slot), slot.milli) * price(slot, prices))

    def slots_of(self, lease: Tenancy) -> list[ev.Slot]:
        return [slot for slot in self.offers[lease.agent].slots if slot.id in lease.slots]
