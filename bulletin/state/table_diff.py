"""What an exchange is about: values of names and all definitions that they reach, each compared with the table.

The same for both sides: the notebook asks what a cell needs that the executor does not have, the executor asks what a
cell has changed.
"""

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from . import definition_ids, lookups, names
from .atoms import ATOMS
from .encoder import Encoder
from .exchange import Buffer
from .handles import Handle
from .joint_witness import FEWEST, JointWitness, JointWitnesses
from .memory import Finder, Region, Widen
from .missing_modules import stays_here
from .object_paths import Stayed, describe_stay
from .reducers.functions import is_importable
from .reducers.named import travels_by_name
from .table import ABSENT, Table, Unit
from .witness import Notes
from .witness_walk import Walk

_ATOMS = frozenset(ATOMS)
#: Packages to whose values no code of the user's is attached: to write them runs none.
_WITHOUT_CODE = frozenset({"builtins", "numpy", "pandas", "pyarrow"})


def is_plain(value: object) -> bool:
    """Tell whether a value travels with its name, since it has no content or is found by its own name."""
    kind = type(value)  # and not `isinstance`, which asks the value itself
    if issubclass(kind, BuiltinFunctionType):  # `numbers.append` is a value, `len` is not
        owner: Any = getattr(value, "__self__", None)
        return (owner is None or issubclass(type(owner), ModuleType | type)) and not stays_here(value)
    if issubclass(kind, ModuleType):
        module: Any = value
        return travels_by_name(module) and not stays_here(module)
    if kind is tuple:  # the empty one is everywhere the same, and pickle gives it no place
        return not value
    return kind in ATOMS or (issubclass(kind, FunctionType | type) and not stays_here(value))


def _top_of(kind: type) -> str:
    home = kind.__module__
    return home.partition(".")[0] if isinstance(home, str) else ""


class TableDiff:
    """Names, and units for what they hold. `run` once, then see what has changed."""

    def __init__(self, namespace: dict[str, Any], table: Table, *, wide: Iterable[Region] = ()) -> None:
        self.namespace, self.table = namespace, table
        self.encoder = Encoder(namespace, Finder(table.regions.values(), wide))
        #: The names, each with its value as it was found.
        self.names: dict[str, object] = {}
        #: By the id of the root; by the id of the definition.
        self.units: dict[int, Unit] = {}
        self.definitions: dict[str, Unit] = {}
        self.stayed: list[tuple[Stayed, object]] = []
        self.files: dict[str, None] = {}
        self.imports: dict[str, None] = {}
        self.attributes: set[str] = set()
        self.modules: dict[str, None] = {}
        self.homes: set[str] = set()  # modules of functions and classes that go by their names
        self.kinds: set[type] = set()  # of all that is not written without asking anybody
        self._queue: deque[tuple[str, object]] = deque()
        self._later: deque[tuple[str, object]] = deque()
        self._met: deque[tuple[str, Any]] = deque()  # functions and classes: one may lead to a thousand others
        #: Ids of what the units hold, but for those that were not asked yet.
        self._cache_inside: set[int] = set()
        self._cache_pending: list[Unit] = []
        self._joint = JointWitnesses(self.encoder)
        self._has_run_code = False
        self.is_open = False  # all names of the namespace have been added
        self._came: Mapping[int, Buffer] | None = None  # nothing counts but what `look_at` was given, as it came

    def add(self, found: Iterable[str], held: Mapping[str, object] | None = None) -> None:
        """Add these names of the namespace, or of `held`, with what they hold, to what `run` looks at."""
        held = self.namespace if held is None else held
        for name in found:
            if name in held and name not in self.names and name not in names.FIXED:
                value = held[name]
                self.names[name] = value
                self._queue.append((name, value))

    def run(self, *, follow: bool) -> None:
        """Look at everything, and with `follow` also at names that functions look up.

        Raises
        ------
        Widen
            If another diff is needed that knows of a larger region.
        """
        self._take_together(follow=follow)
        while self._queue or self._later:
            if not self._queue:
                name, value = self._later.popleft()
                if not self.is_inside(value):
                    self._see(name, value, follow=follow)
                continue
            name, value = self._queue.popleft()
            if self.is_plain(value):
                self._see_plain(value, follow=follow)
            elif id(value) in self.units:
                continue
            elif self.table.unit_of(value) is not None:
                self._see(name, value, follow=follow)
            else:  # what both sides know as units comes first: it may hold this
                self._later.append((name, value))

    def _take_together(self, *, follow: bool) -> None:
        """Take, of what waits, at once what is known together, and what has nothing in it."""
        if len(self._queue) < FEWEST:
            return
        values = [value for _, value in self._queue if type(value) not in _ATOMS]
        found = map(self.table.units.get, map(self.table.oids.get, map(id, values)))  # type: ignore[arg-type]
        known = [unit for value, unit in zip(values, found, strict=True) if unit is not None and unit.root is value]
        functions = {id(value) for value in values if type(value) is FunctionType}
        agreed = self.table.definitions.values() if functions else ()
        definitions = [unit for unit in agreed if id(unit.root) in functions and not stays_here(unit.root)]
        together: dict[JointWitness, list[Unit]] = {}
        for unit in {id(unit): unit for unit in (*known, *definitions) if unit.joint is not None}.values():
            together.setdefault(unit.joint, []).append(unit)
        for joint, units in together.items():
            witnesses = [joint] if len(units) == joint.count else [unit.witness for unit in units]
            if not self._joint.holds(joint) or not all(witness.claim(self.encoder) for witness in witnesses):
                continue
            named = [unit for unit in units if not unit.uid]
            self.units.update((id(unit.root), unit) for unit in named)
            self.definitions.update((unit.uid, unit) for unit in units if unit.uid)
            self._cache_pending += named
            for witness in witnesses:
                self._after(self._renewed(witness.notes), follow=follow)
        self._see_met(follow=follow)
        taken = self.units.keys() | {id(unit.root) for unit in self.definitions.values()}
        self._queue = deque(item for item in self._queue if type(item[1]) not in _ATOMS and id(item[1]) not in taken)

    def is_plain(self, value: object) -> bool:
        """Tell whether a value travels with its name: as `is_plain`, or as the namespace or a handle of what is lost.

        These two have no number, and no unit can have them as its root.
        """
        if value is self.namespace:
            return True
        return is_plain(value) or (type(value) is Handle and self.table.oid_of(value) == ABSENT)

    def is_inside(self, value: object) -> bool:
        """Tell whether a unit holds it: a name of such an object needs no unit of its own."""
        for unit in self._cache_pending:
            self._cache_inside.update(map(id, unit.nodes))
        self._cache_pending.clear()
        return id(value) in self._cache_inside

    def look_again(self, units: Iterable[Unit], definitions: Iterable[Unit]) -> None:
        """Encode what was agreed before, whether or not a name leads to it now."""
        for unit in units:
            if id(unit.root) not in self.units:
                self._see("a value", unit.root, follow=False)
        for unit in definitions:
            self.see_definition(unit.uid, unit.root, follow=False)

    def look_at(
        self, roots: Iterable[object], definitions: Iterable[object], came: Mapping[int, Buffer] | None = None
    ) -> None:
        """Encode these roots and definitions, with the roots inside them, and nothing else that they lead to.

        `came` has the streams that the roots were just read from, by their ids.
        """
        self._came = came or {}
        for root in roots:
            self._see("a value", root, follow=False)
        for root in self.table.roots_inside(self.units.values()):
            self._see("a value", root, follow=False)
        for definition in definitions:
            self.see_definition(definition_ids.uid_of(definition), definition, follow=False)
        self._joint.join()

    def join(self, units: Iterable[Unit]) -> None:
        """Have these, whose witnesses were just made, be known together with what `look_at` looks at."""
        self._joint.alone += [unit for unit in units if unit.witness is not None]

    def _see_plain(self, value: Any, *, follow: bool) -> None:
        if isinstance(value, ModuleType):
            self.modules[value.__name__] = None
        elif isinstance(value, FunctionType | type) and not is_importable(value):
            self.see_definition(definition_ids.uid_of(value), value, follow=follow)

    def _see(self, name: str, value: object, *, follow: bool) -> None:
        known = self._agreed(value, self.table.unit_of(value))
        unit = self._known_again(known)
        if unit is None:
            walk, unit = self._encode(name, value, known)
            notes = self._notes()
            unit = self._as_known(unit, known, walk, notes._replace(names=self._spelled(notes)))
        else:
            notes = self._renewed(unit.witness.notes)
        self.units[id(value)] = unit
        self._cache_pending.append(unit)
        self._after(notes, follow=follow)
        self._see_met(follow=follow)

    def _encode(self, name: str, value: object, known: Unit | None = None) -> tuple[Walk | None, Unit]:
        try:
            walk = self._walk(value, known)  # first: it is to see what changes meanwhile
            return walk, self.encoder.encode(value, name)
        except Widen:
            raise
        except Exception as problem:  # noqa: BLE001  whatever a value's own code raises means that it cannot travel
            return None, self.encoder.encode_handle(value, describe_stay(name, value, problem))
        finally:
            self._note_code()

    def _note_code(self) -> None:
        """Note whether code of the user's may have run while a value was encoded."""
        others = [kind for kind in self.encoder.met if _top_of(kind) not in _WITHOUT_CODE]
        self._has_run_code |= not all(map(self.encoder.goes_plainly, others))

    @staticmethod
    def _agreed(value: object, known: Unit | None) -> Unit | None:
        """Return what was agreed of this very object, which may have taken the place of another under its number."""
        return known if known is not None and known.root is value else None

    def _known_again(self, known: Unit | None) -> Unit | None:
        """Return the unit that was agreed upon, if its witness says that it is as it was."""
        if known is None or known.witness is None:
            return None
        if known.joint is not None:
            if self._joint.holds(known.joint):
                return known if known.witness.claim(self.encoder) else None
            known.joint = None
        if not known.witness.holds(self.encoder):
            return None
        self._joint.alone.append(known)
        return known

    def look_back(self, *, follow: bool) -> None:
        """Look again at what was known together, where the code of another value may have changed it since.

        What was known for itself is then known together, from the next time on.
        """
        while self._has_run_code:
            self._has_run_code = False
            for joint in self._joint.end_changed():
                for unit in [unit for unit in self.units.values() if unit.joint is joint]:
                    del self.units[id(unit.root)]
                    called = (name for name, value in self.names.items() if value is unit.root)
                    self._see(next(called, "a value"), unit.root, follow=follow)
                for uid in [uid for uid, unit in self.definitions.items() if unit.joint is joint]:
                    self.see_definition(uid, self.definitions.pop(uid).root, follow=follow)
            self.run(follow=follow)
        self._joint.join()

    def _as_known(self, unit: Unit, known: Unit | None, walk: Walk | None, notes: Notes) -> Unit:
        """Return the unit that was agreed upon where this one is as that; it is known again by what was seen now.

        What is new, or has changed, gets its witness when it is met again: a thread may have changed it while it was
        encoded, and back. What was just read gets it where it gives the very stream that came.
        """
        agreed = known if known is not None and unit.is_as(known) else unit
        is_certain = agreed is known if self._came is None else unit.data == self._came.get(id(unit.root))
        if agreed is known or is_certain:
            may_be_known = is_certain and walk is not None and not self.encoder.stayed
            agreed.witness = walk.witness(unit, notes) if walk is not None and may_be_known else None
            if agreed.witness is not None and self._came is not None:
                self._joint.alone.append(agreed)
            agreed.size = unit.stream_bytes
            agreed.is_steady, agreed.is_beyond = agreed is known, walk is not None and walk.has_failed
        return agreed

    def _walk(self, value: object, known: Unit | None) -> Walk | None:
        """Walk through a value whose content may be known now to be what both sides have agreed on."""
        is_met_again = known is not None if self._came is None else id(value) in self._came
        return Walk(self.encoder, value) if is_met_again and (known is None or known.is_worth_a_walk) else None

    def _spelled(self, notes: Notes) -> tuple[str, ...]:
        """Return the names that a value was noted to look up, but for those of its definitions; see `_renewed`."""
        own = self._names_of(notes.definitions.values())
        return tuple(name for name in notes.names if name not in own)

    def _names_of(self, definitions: Iterable[object]) -> set[str]:
        """Return the names of these functions and classes under which the namespace has them."""
        named = ((getattr(definition, "__name__", None), definition) for definition in definitions)
        return {name for name, definition in named if isinstance(name, str) and self.namespace.get(name) is definition}

    def _renewed(self, notes: Notes) -> Notes:
        """Return what is to be noted of a value that is as it was: its definitions may have other names by now."""
        if not notes.definitions:
            return notes
        return notes._replace(names=(*notes.names, *self._names_of(notes.definitions.values())))

    def encode(self, name: str, value: object) -> Unit:
        """Encode a value, or where no stream can hold it, a handle in its place; nothing is noted of it here."""
        return self._encode(name, value)[1]

    def see_definition(self, uid: str, value: Any, *, follow: bool) -> None:
        """Encode a function or class, and whatever it leads to; once is enough."""
        self._met.append((uid, value))
        self._see_met(follow=follow)

    def _see_met(self, *, follow: bool) -> None:
        while self._met:
            uid, value = self._met.popleft()
            if uid not in self.definitions:
                self._see_one(uid, value, follow=follow)

    def _see_one(self, uid: str, value: Any, *, follow: bool) -> None:
        known = self._agreed(value, self.table.definitions.get(uid))
        unit = self._known_again(known)
        if unit is None:
            walk = self._walk(value, known) if type(value) is FunctionType else None
            self.encoder.is_digest = True
            try:
                unit = self.encoder.encode(value, uid=uid)
            finally:
                self.encoder.is_digest = False
                self._note_code()
            notes = self._notes()
            names_of_code = lookups.of_code(value.__code__).names if walk is not None else ()
            unit = self._as_known(unit, known, walk, notes._replace(names=names_of_code))
        else:
            notes = self._renewed(unit.witness.notes)
        self.definitions[uid] = unit
        self._after(notes, follow=follow)

    def _notes(self) -> Notes:
        """Return what the encoder has noted of the value that it has just written."""
        found = self.encoder
        self.stayed += found.stayed
        return Notes(
            dict(found.definitions),
            tuple(found.names),
            found.is_dynamic,
            tuple(found.files),
            tuple(found.imports),
            frozenset(found.attributes),
            frozenset(found.homes),
            tuple(found.modules),
            frozenset(found.met),
        )

    def _after(self, notes: Notes, *, follow: bool) -> None:
        for told, found in ((self.files, notes.files), (self.imports, notes.imports), (self.modules, notes.modules)):
            if found:
                told.update(dict.fromkeys(found))
        self.attributes |= notes.attributes
        self.homes |= notes.homes
        self.kinds |= notes.kinds
        if follow:
            self.add(notes.names)
            if notes.is_dynamic and not self.is_open:
                self.is_open = True
                self.add(names.users(self.namespace))
        if self._came is None:
            self._met.extend(notes.definitions.items())

    # --- what is new

    def changed_units(self) -> list[Unit]:
        """List the units that the other side does not have as they are."""
        found = []
        for unit in self.units.values():
            known = self.table.unit_of(unit.root)
            if known is None or not unit.is_as(known):
                found.append(unit)
        return found

    def changed_definitions(self) -> dict[str, object]:
        """Return, by id, the functions and classes that the other side does not have as they are."""
        found = {}
        for uid, unit in self.definitions.items():
            known = self.table.definitions.get(uid)
            if known is None or not unit.is_as(known):
                found[uid] = unit.root
        return found

    def unused_regions(self, dropped: Collection[int]) -> list[int]:
        """List known memory that no unit uses once the other side has this, and has forgotten these roots."""
        table = self.table
        used = {region.rid for unit in self._units_after(dropped) for region in unit.regions}
        used.update(table.regions_left(self.namespace.values()))
        return [rid for rid in table.regions if rid not in used]

    def unused_leaves(self, dropped: Collection[int]) -> list[int]:
        """List known leaves that no unit has then, likewise."""
        if not self.table.leaves:
            return []
        used = {leaves.serial for unit in self._units_after(dropped) for leaves in unit.leaves}
        return [lid for lid, leaves in self.table.leaves.items() if leaves.serial not in used]

    def _units_after(self, dropped: Collection[int]) -> list[Unit]:
        """List the units that the table has once the other side has this, and has forgotten these roots."""
        table = self.table
        kept = [unit for oid, unit in table.units.items() if oid not in dropped and id(unit.root) not in self.units]
        kept += [unit for uid, unit in table.definitions.items() if uid not in self.definitions]
        return [*kept, *self.units.values(), *self.definitions.values()]
