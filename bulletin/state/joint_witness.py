"""Many small units that are known again at once: what their witnesses look at, asked for in one pass.

To ask two thousand values one by one takes some microseconds each, whatever they are; to ask them together takes what
there is in them. Where a joint witness does not hold, each of its units is asked for itself, as ever, and it is over.
"""

from collections.abc import Sequence
from typing import Any

from .encoding import Encoding
from .table import Unit
from .witness import Look, Notes, Parts, Seen, Witness, are_kinds_as_ever, are_own, is_still
from .witnessed_memory import WitnessedMemory

#: Of so many units, those that did not change are asked for themselves when one of them did.
_MOST = 64
#: So few are asked for themselves: to join them would take longer than it saves.
FEWEST = 16


class JointWitness:
    """Knows some units again, all or none. It holds on to no unit."""

    __slots__ = ("_definitions", "_kinds", "_memory", "_named", "_parts", "_seen", "count", "is_over", "notes")

    def __init__(self, witnesses: Sequence[Witness]) -> None:
        self._parts, self._seen = _joined(witnesses)
        self._kinds = frozenset[type]().union(*(witness.kinds for witness in witnesses))
        self._named = frozenset[type]().union(*(witness.named for witness in witnesses))
        self._memory = WitnessedMemory.joined([witness.memory for witness in witnesses if witness.memory])
        #: How many units it is of, and what the encoder would note of all.
        self.count, self.notes = len(witnesses), _of_all([witness.notes for witness in witnesses])
        self.is_over = False

    def holds(self, encoder: Encoding) -> bool:
        """Tell whether each unit's witness would hold, up to what the encoder has met of its memory: see `claim`."""
        return (
            are_kinds_as_ever(encoder, self._kinds, self._named)
            and is_still(self._parts, self._seen)
            and are_own(self.notes.definitions)
            and self._memory.agreed.is_as_agreed(encoder.finder)
        )

    def claim(self, encoder: Encoding) -> bool:
        """Have the encoder know of all memory as if it had met it; False where it has met some of it otherwise."""
        return self._memory.claim(encoder)

    def is_as_it_was(self, encoder: Encoding) -> bool:
        """Tell whether all parts and all memory hold what they held, since it was asked before in this exchange."""
        return is_still(self._parts, self._seen) and self._memory.agreed.is_as_agreed(encoder.finder)

    def end(self) -> None:
        """Let go of everything: one of the units has changed, or is gone."""
        self.is_over = True
        self._parts, self._seen, self._memory, self.notes = {}, {}, WitnessedMemory.joined(()), _of_all([])


def _joined(witnesses: Sequence[Witness]) -> tuple[Parts, Seen]:
    """Put together what witnesses look at, and what they saw when they were made: nobody looks anew."""
    parts: dict[Look, list[Any]] = {}
    seen: dict[Look, tuple[list[int], list[object]]] = {}
    for witness in witnesses:
        for ask, objects in witness.parts.items():
            parts.setdefault(ask, []).extend(objects)
            sizes, content = seen.setdefault(ask, ([], []))
            sizes += witness.seen[ask][0]
            content += witness.seen[ask][1]
    return (
        {ask: tuple(objects) for ask, objects in parts.items()},
        {ask: (sizes, tuple(content)) for ask, (sizes, content) in seen.items()},
    )


def _of_all(several: Sequence[Notes]) -> Notes:
    """Put together what an encoder notes of several values."""
    return Notes(
        {uid: definition for notes in several for uid, definition in notes.definitions.items()},
        tuple(dict.fromkeys(name for notes in several for name in notes.names)),
        any(notes.is_dynamic for notes in several),
        tuple(dict.fromkeys(file for notes in several for file in notes.files)),
        tuple(dict.fromkeys(name for notes in several for name in notes.imports)),
        frozenset[str]().union(*(notes.attributes for notes in several)),
        frozenset[str]().union(*(notes.homes for notes in several)),
        tuple(dict.fromkeys(name for notes in several for name in notes.modules)),
        frozenset[type]().union(*(notes.kinds for notes in several)),
    )


class JointWitnesses:
    """What one exchange asks of joint witnesses: each once."""

    def __init__(self, encoder: Encoding) -> None:
        self._encoder = encoder
        self._asked: dict[JointWitness, bool] = {}
        #: Units whose own witnesses were asked, and held.
        self.alone: list[Unit] = []

    def holds(self, joint: JointWitness) -> bool:
        """Tell whether the units of a joint witness are as they were; where they are not, it is over."""
        found = self._asked.get(joint)
        if found is None:
            found = self._asked[joint] = not joint.is_over and joint.holds(self._encoder)
            if not found:
                joint.end()
        return found

    def end_changed(self) -> list[JointWitness]:
        """End those that held and would not hold any more, and return them."""
        held = [joint for joint, has_held in self._asked.items() if has_held]
        changed = [joint for joint in held if not joint.is_as_it_was(self._encoder)]
        for joint in changed:
            self._asked[joint] = False
            joint.end()
        return changed

    def join(self) -> None:
        """Give the units that were known for themselves joint witnesses; not those whose memory takes long to ask."""
        without: list[Unit] = []
        having: list[Unit] = []
        for unit in self.alone:
            memory = unit.witness.memory
            if memory is None:
                without.append(unit)
            elif not memory.agreed.is_large:
                having.append(unit)
        for alike in (without, having):  # who reaches no memory need not have what is known of it taken in
            count = -(-len(alike) // _MOST) if len(alike) >= FEWEST else 0
            for number in range(count):
                some = alike[number::count]
                joint = JointWitness([unit.witness for unit in some])
                for unit in some:
                    unit.joint = joint
        self.alone = []
