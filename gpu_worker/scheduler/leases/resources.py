"""What a request asks of a node beyond a number of slots, and which slots serve it. Amounts are exact.

A slice of a GPU serves only those who ask for one by name, and those who ask for no type in a pool that has shown no
whole GPU. A whole GPU serves everybody else. So a cell that asks for a GPU gets one, and not a part of one.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from bulletin.ids import UserName
from gpu_worker.scheduler.events import NOBODY, Slot
from gpu_worker.scheduler.policy.prices import USUAL_PERCENT, Price

#: Slots of nodes that users have brought for themselves are a lane of their own: nobody else's request looks there.
Lane = Literal["gpu", "cpu", "own"]
LANES: tuple[Lane, ...] = ("gpu", "cpu", "own")
_WORD = re.compile(r"[a-z0-9]+")
#: How NVIDIA names slices: "MIG 1g.10gb", "MIG 1c.3g.40gb".
_SLICE = re.compile(r"mig|\d+g")


class SlotKind(msgspec.Struct, frozen=True, order=True, cache_hash=True):
    """What each slot must be."""

    words: tuple[str, ...] = ()  #: of its name, in lower case; punctuation parts words
    memory_bytes: int = 0  #: of a GPU or a slice, at least
    is_slice: bool = False
    owner: UserName = NOBODY  #: whose own it is, as its slots are; empty is nobody's

    def serves(self, slot: Slot) -> bool:
        """Whether the slot is such a one."""
        if slot.owner != self.owner:
            return False
        if (slot.kind == "mig") is not self.is_slice or slot.memory_bytes < self.memory_bytes:
            return False
        return {slot.kind, *_WORD.findall(slot.name.lower())}.issuperset(self.words)

    def takes_in(self, other: "SlotKind") -> bool:
        """Whether every slot of the other kind is one of this kind too."""
        is_looser = self.memory_bytes <= other.memory_bytes and set(self.words) <= set(other.words)
        return is_looser and (self.is_slice, self.owner) == (other.is_slice, other.owner)


class Wants(msgspec.Struct, frozen=True, order=True, cache_hash=True):
    """Beyond a number of slots: what they must be, and what else of the node is needed. 0 is nothing more."""

    kind: SlotKind = SlotKind()
    cpus: int = 0
    memory_bytes: int = 0  #: of the host
    is_exclusive: bool = False  #: all slots of a node, which has just as many: nobody else is there meanwhile

    @property
    def is_more(self) -> bool:
        """Whether it needs anything that is not a slot."""
        return bool(self.cpus or self.memory_bytes)


#: Whole GPUs of any kind, or CPU slots, and nothing else.
PLAIN = Wants()


class Amount(msgspec.Struct, frozen=True):
    """Slots, CPUs and host memory of one node: what there is, or what is missing."""

    slots: int
    cpus: int = 0
    memory_bytes: int = 0

    def less(self, other: "Amount") -> "Amount":
        """Subtract; below 0 where the other is more."""
        return Amount(self.slots - other.slots, self.cpus - other.cpus, self.memory_bytes - other.memory_bytes)

    @property
    def is_nothing(self) -> bool:
        """Whether nothing is left of any of the three."""
        return self.slots <= 0 and self.cpus <= 0 and self.memory_bytes <= 0

    def gains(self, other: "Amount") -> bool:
        """Whether the other has something of what is left."""
        return (
            (self.slots > 0 and other.slots > 0)
            or (self.cpus > 0 and other.cpus > 0)
            or (self.memory_bytes > 0 and other.memory_bytes > 0)
        )


class Offer(msgspec.Struct, frozen=True):
    """What a node has in one lane and beside it, once shown. Alike nodes make one offer."""

    slots: tuple[tuple[Slot, int], ...]  #: without their names on the node, each with its number
    cpus: int
    memory_bytes: int
    beside: int = 0  #: slots of the other lane on such a node

    def count(self, kind: SlotKind) -> int:
        """How many of its slots are of this kind."""
        return sum(number for slot, number in self.slots if kind.serves(slot))

    def is_whole(self, kind: SlotKind, need: int) -> bool:
        """Whether so many slots of this kind are all that such a node has."""
        return self.count(kind) == need == sum(number for _, number in self.slots) + self.beside

    def could_hold(self, need: int, wants: Wants) -> bool:
        """Whether such a node could hold a request for so many slots, if nothing ran there."""
        enough = wants.cpus <= self.cpus and wants.memory_bytes <= self.memory_bytes
        enough = enough and self.count(wants.kind) >= need
        return enough and (not wants.is_exclusive or self.is_whole(wants.kind, need))


def lane_of(slot: Slot) -> Lane:
    """Find the lane that a slot belongs to."""
    if slot.owner:
        return "own"
    return "cpu" if slot.kind == "cpu" else "gpu"


def words_of(name: str) -> tuple[str, ...]:
    """List the words of a name, each once, in lower case; punctuation parts words."""
    return tuple(sorted(set(_WORD.findall(name.lower()))))


def price_of(slot: Slot, cost: int, prices: Iterable[Price]) -> int:
    """Compute what a slot of this cost is charged, rounded up: the first price counts whose words are in its name."""
    is_slice = slot.kind == "mig"
    fitting = (one.percent for one in prices if SlotKind(words_of(one.gpu), 0, is_slice).serves(slot))
    return -(-cost * next(fitting, USUAL_PERCENT) // USUAL_PERCENT)


def kind_of(gpu_type: str, memory_bytes: int, offered: Mapping[Slot, None]) -> SlotKind:
    """Describe slots for who asks for a type, all of whose words are words of the name, and for so much memory.

    `offered` is what the pool has ever shown: without a whole GPU among it, slices stand in for them.
    """
    words = words_of(gpu_type)
    by_name = any(_SLICE.fullmatch(word) for word in words)
    only_slices = any(slot.kind == "mig" for slot in offered) and not any(slot.kind == "gpu" for slot in offered)
    return SlotKind(words, memory_bytes, by_name or only_slices)
