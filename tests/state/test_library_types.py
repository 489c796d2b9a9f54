"""What libraries have of their own: lazy modules, exceptions with slots, and places where notebooks put things."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bulletin import state
from tests.state.notebook import Notebook

LIBRARY = """
import sys
from types import ModuleType

class Lazy(ModuleType):
    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return f"lazy {name}"

sys.modules[__name__].__class__ = Lazy

_NOTHING = object()

class Holder:
    def __init__(self):
        self.value = _NOTHING
    def is_empty(self):
        return self.value is _NOTHING

class Several(ExceptionGroup):
    def __new__(cls, message, errors, wanted):
        self = super().__new__(cls, message, errors)
        self.wanted = wanted
        return self

class SlottedError(Exception):
    __slots__ = ("place", "later", "args")
    def __init__(self, place):
        self.place, self.args = place, (place, "told")
    def __str__(self):
        return f"at {self.place}"
"""


@pytest.fixture
def library(notebook: Notebook, install: Callable[[str, str], Path]) -> Notebook:
    install("unlikelib", LIBRARY)
    return notebook


def test_a_module_of_a_librarys_own_type_travels_by_its_name(library: Notebook) -> None:
    library.local("import unlikelib; held = [unlikelib]")
    assert library.gpu("unlikelib.word, held[0] is unlikelib").extra["result"] == ("lazy word", True)
    library.gpu("import unlikelib as there")
    assert library["there"] is sys.modules["unlikelib"]


def test_a_sentinel_that_a_module_holds_is_the_receivers_own(library: Notebook) -> None:
    library.gpu("import unlikelib\nholder = unlikelib.Holder()")
    library.local("found = holder.is_empty(), holder.value is unlikelib._NOTHING")
    assert library["found"] == (True, True)
    library.local("mine = object(); both = [mine, holder.value]")
    assert library.gpu("both[0] is mine, both[1] is unlikelib._NOTHING, holder.is_empty()").extra["result"] == (
        True,
        True,
        True,
    )


def test_an_exception_group_that_is_made_of_more_comes_back(library: Notebook) -> None:
    applied = library.gpu("import unlikelib\nraise unlikelib.Several('two', [KeyError(1), ValueError(2)], int)")
    raised = applied.extra["error"]
    assert isinstance(raised, ExceptionGroup)
    assert (raised.message, [type(one) for one in raised.exceptions]) == ("two", [KeyError, ValueError])
    assert raised.wanted is int  # type: ignore[attr-defined]


def test_an_exception_keeps_what_it_has_in_slots(library: Notebook) -> None:
    applied = library.gpu("import unlikelib\nraise unlikelib.SlottedError(5)")
    raised = applied.extra["error"]
    assert (str(raised), raised.args, raised.place) == ("at 5", (5, "told"), 5)  # type: ignore[attr-defined]
    assert not hasattr(raised, "later")


def test_an_exception_takes_what_changes_in_its_slots(library: Notebook) -> None:
    library.local("import unlikelib; e = unlikelib.SlottedError(5); held = [e]")
    library.gpu("e.place, e.later = 6, held")
    assert str(library["e"]) == "at 6"
    assert library["e"].later is library["held"]
    assert library["held"][0] is library["e"]
    library.gpu("del e.later; e.place = 7")
    assert str(library["e"]) == "at 7"
    assert not hasattr(library["e"], "later")


REGISTRY = """
from types import SimpleNamespace

class Accessor:
    def __init__(self, made_by): self.made_by = made_by
    def __get__(self, value, kind): return self.made_by(value)

class Frame:
    makers = {"plain": len}

def register(name):
    def keep(cls):
        setattr(Frame, name, Accessor(cls))
        return cls
    return keep

class _Configuration:
    processors, level = [], 0

_CONFIGURATION = _Configuration()
_locale, _is_ready, LIMIT, _table = "en", False, 5, {}

def configure(*processors):
    _CONFIGURATION.processors, _CONFIGURATION.level = list(processors), 3

def run(event):
    for processor in _CONFIGURATION.processors: event = processor(event)
    return event, _CONFIGURATION.level

def set_locale(name):
    global _locale, _is_ready
    _locale, _is_ready = name, True
    _table[name] = object()

class Palette:
    def __init__(self): self.colors, self._options, self._seen = {}, {}, 0
    def add(self, name, color): self.colors[name], self._seen = color, self._seen + 1
    def enable(self, **options): self._options = options

class Color:
    def __init__(self, parts): self.parts = parts

palette = Palette()

def create(name, base):
    globals()[name] = type(name, (base,), {"__module__": __name__})
"""


@pytest.fixture
def registry(notebook: Notebook, install: Callable[[str, str], Path]) -> Notebook:
    install("registry", REGISTRY)
    notebook.local("import registry")
    return notebook


HOT = """
k = 2
@registry.register("hot")
class Hot:
    def __init__(self, frame): self.frame = frame
    def times(self): return k * 3
"""


def test_an_accessor_that_a_cell_registers_is_on_the_class_of_the_other_side(registry: Notebook) -> None:
    registry.gpu(HOT)
    assert registry.local("k = 3\nregistry.Frame().hot.times()") == 9
    registry.local("k = 4\nframe = registry.Frame()")
    assert registry.gpu("frame.hot.times(), type(frame.hot) is Hot").extra["result"] == (12, True)


def test_what_is_in_a_library_stays_the_same_object_while_cells_have_nothing_to_do_with_it(registry: Notebook) -> None:
    registry.gpu(HOT)
    before = registry.local("vars(registry.Frame)['hot']")
    for cell in ("n = 1", "n += 1", "registry.Frame().hot.times()", "n += 1"):
        registry.gpu(cell)
    assert registry.local("vars(registry.Frame)['hot']") is before


def test_what_both_have_put_into_a_library_meanwhile_is_there_and_is_no_value_of_the_user(registry: Notebook) -> None:
    registry.gpu(HOT)
    cell = "registry.Frame.makers['there'] = lambda: 1"
    captured = state.capture(registry.ns, state.needs(cell, registry.ns), table=registry.table)
    meanwhile = state.depart(registry.ns, captured)
    registry.local("registry.Frame.makers['here'] = lambda: 2\nstate_of_hot = registry.Frame().hot.times()")
    answer = registry.executor.ask(cell, captured.parts)
    applied = state.apply(answer["parts"], registry.ns, sent=captured, meanwhile=meanwhile)
    assert (applied.aside, applied.changed) == ({}, ())
    assert registry.local("sorted(registry.Frame.makers), registry.Frame().hot.times()") == (
        ["here", "plain", "there"],
        6,
    )
    assert registry.gpu("sorted(registry.Frame.makers)").extra["result"] == ["here", "plain", "there"]


def test_what_was_registered_before_the_first_cell_is_there_and_goes_when_it_is_taken_away(registry: Notebook) -> None:
    registry.local(f"{HOT}registry.Frame.makers['hot'] = lambda: k + 1")
    ask = "hasattr(registry.Frame, 'hot'), sorted(registry.Frame.makers)"
    assert registry.gpu(ask).extra["result"] == (True, ["hot", "plain"])
    assert registry.gpu("registry.Frame.makers['hot']()").extra["result"] == 3
    registry.local("del registry.Frame.hot, registry.Frame.makers['hot']")
    assert registry.gpu(ask).extra["result"] == (False, ["plain"])


def test_a_configuration_that_has_something_of_the_notebook_goes_as_a_whole(registry: Notebook) -> None:
    registry.local("def shout(event): return event.upper()\nregistry.configure(shout, str.strip)")
    assert registry.gpu("registry.run(' a ')").extra["result"] == ("A", 3)
    registry.gpu("registry._CONFIGURATION.level = 4\nregistry.configure(str.strip)\nregistry._CONFIGURATION.level = 5")
    assert registry.local("registry.run(' a ')") == ("a", 5)


def test_plain_variables_of_a_module_follow_and_what_says_that_it_is_ready_does_not(registry: Notebook) -> None:
    ask = "registry._locale, registry._is_ready, registry.LIMIT"
    registry.gpu("registry.set_locale('fr')")
    assert registry.local(ask) == ("fr", False, 5)
    registry.local("registry.set_locale('de'); registry.LIMIT = 6")
    assert registry.gpu(ask).extra["result"] == ("de", True, 6)


def test_what_is_added_to_a_registry_for_everybody_is_there_on_the_other_side(registry: Notebook) -> None:
    registry.gpu("1")
    registry.local("registry.palette.add('sea', registry.Color([0, 0, 9]))\nregistry.palette.enable(depth=8)")
    ask = "registry.palette.colors['sea'].parts, registry.palette._options, sorted(registry.palette.colors)"
    assert registry.gpu(ask).extra["result"] == ([0, 0, 9], {"depth": 8}, ["sea"])


def test_a_class_that_was_made_in_a_module_of_a_library_is_one_on_both_sides(registry: Notebook) -> None:
    registry.local("registry.create('Person', dict)\np = registry.Person()")
    assert registry.gpu("type(p) is registry.Person").extra["result"] is True
    registry.gpu("registry.create('Other', list)\nq = registry.Other()")
    assert registry.local("type(q) is registry.Other and registry.Other.__module__ == 'registry'")


def test_what_cannot_go_from_a_library_is_told_once(registry: Notebook) -> None:
    code = "class Kept:\n  def __init__(self, made_by): self.made_by, self.letters = made_by, (c for c in 'ab')\n"
    applied = registry.gpu(f"{HOT}{code}registry.Frame.stays = Kept(Hot)")
    assert [one.path for one in applied.stayed] == ["registry.Frame.stays"]
    assert registry.gpu("1").stayed == []
    assert registry.local("not hasattr(registry.Frame, 'stays')")


PICKLED = """
import importlib
import threading

class Curried:
    def __init__(self, function, *args): self.function, self.args = function, args
    def __call__(self, *args): return self.function(*self.args, *args)
    def __reduce__(self):
        if getattr(importlib.import_module(self.function.__module__), self.function.__name__, None) is self:
            return curried_again, (f"{self.function.__module__}:{self.function.__name__}",)
        return Curried, (self.function, *self.args)

def curried_again(path):
    module, name = path.split(":")
    return getattr(importlib.import_module(module), name)

class Quantity:
    def __init__(self, value): self.value = value
    def __reduce__(self): return quantity_again, (Quantity, self.value)

def quantity_again(base, value):
    return type("Quantity", (base,), {"units": {}})(value)

class Dispatch:
    # as libraries of events have them: made for a class, and found by that
    def __init__(self, owner): self.owner, self.events = owner, {}
    def __reduce__(self): return dispatch_of, (self.owner,)

class Owner: pass

def dispatch_of(owner):
    if "dispatch" not in vars(owner):
        owner.dispatch = type(owner.__name__ + "Dispatch", (Dispatch,), {})(owner)
    return owner.dispatch

def make_units(**units):
    return type("Quantity", (Quantity,), {"units": units, "in_small": lambda self, unit: self.value * self.units[unit]})

class Settings(threading.local):
    def __init__(self, depth, names=()): self.depth, self.names = depth, list(names)
"""


@pytest.fixture
def pickled(notebook: Notebook, install: Callable[[str, str], Path]) -> Notebook:
    install("pickled", PICKLED)
    notebook.local("import pickled, threading")
    return notebook


def test_what_a_library_names_by_a_text_of_the_notebook_goes_as_what_it_is(pickled: Notebook) -> None:
    pickled.local("@pickled.Curried\ndef add(a, b): return a + b")
    assert pickled.gpu("add(1, 2), type(add) is pickled.Curried").extra["result"] == (3, True)
    pickled.gpu("@pickled.Curried\ndef sub(a, b): return a - b\nheld = [sub]")
    assert pickled.local("sub(3, 1), held[0] is sub") == (2, True)


def test_a_value_of_a_class_that_no_module_has_keeps_its_class(pickled: Notebook) -> None:
    pickled.local("Length = pickled.make_units(mm=1000)\nd = Length(2)")
    assert pickled.gpu("d.in_small('mm'), type(d) is Length").extra["result"] == (2000, True)
    pickled.gpu("Length.units['cm'] = 100\ne = Length(3)")
    assert pickled.local("d.in_small('cm'), e.in_small('mm'), type(e) is Length") == (200, 3000, True)


def test_a_value_of_such_a_class_that_the_library_finds_by_another_is_found(pickled: Notebook) -> None:
    pickled.local("d = pickled.dispatch_of(pickled.Owner)")
    assert pickled.gpu("d is pickled.dispatch_of(pickled.Owner)").extra["result"] is True


def test_a_value_of_threads_is_made_in_each_with_what_it_was_made_with(pickled: Notebook) -> None:
    pickled.local("own = pickled.Settings(3, names=['a'])\nown.names.append('b')")
    other = "seen = []\nt = threading.Thread(target=lambda: seen.append((own.depth, own.names)))\nt.start(); t.join()\n"
    assert pickled.gpu(f"import threading\n{other}own.names, seen").extra["result"] == (["a", "b"], [(3, ["a"])])
    pickled.gpu("own.depth = 4")
    assert pickled.local(f"{other}own.depth, seen") == (4, [(3, ["a"])])


def test_what_runs_the_notebooks_process_stays_there_and_all_else_goes(library: Notebook) -> None:
    pytest.importorskip("ipykernel")
    library.local(
        "import zmq\nfrom ipykernel.iostream import IOPubThread, OutStream\n"
        "from jupyter_client.session import Session\n"
        "from tornado.ioloop import IOLoop\nloop = IOLoop(make_current=False)\n"
        "thread = IOPubThread(zmq.Context.instance().socket(zmq.PUB))\n"
        "stream, count = OutStream(Session(), thread, 'stdout', watchfd=False), 1"
    )
    library.gpu(
        "count += 1\n"
        "homes = {type(globals().get(name)).__module__.partition('.')[0] for name in ('loop', 'thread')}\n"
        "are_there = not homes.isdisjoint({'tornado', 'ipykernel'})"
    )
    assert library.local("count, are_there") == (2, False)
    assert library.local("stream.pub_thread is thread, loop.close()") == (True, None)


def test_a_class_whose_metaclass_no_module_has_keeps_its_base(notebook: Notebook) -> None:
    pytest.importorskip("contourpy")  # made by pybind11, whose metaclass is in C
    notebook.gpu(
        "from contourpy import SerialContourGenerator as Base\n"
        "class Contours(Base):\n"
        "    made = 0\n"
        "    @classmethod\n"
        "    def make(cls):\n"
        "        cls.made += 1\n"
        "        return cls.made, cls.supports_threads()"
    )
    assert notebook.local("Contours.make(), Contours.__mro__[1] is Base, type(Contours) is type(Base)") == (
        (1, False),
        True,
        True,
    )
    assert notebook.gpu("Contours.kind = 'C'; Contours.make()").extra["result"] == (2, False)
    assert notebook.local("Contours.kind, Contours.made, issubclass(Contours, Base)") == ("C", 2, True)
    notebook.local(
        "class Named(Base):\n"
        "    names = []\n"
        "    def __init_subclass__(cls): Named.names.append(cls.__name__)\n"
        "class Own(Named): pass"
    )
    assert notebook.gpu("class Other(Own): pass\nOwn.names, type(Own) is type(Base)").extra["result"] == (
        ["Own", "Other"],
        True,
    )
    assert notebook.local(
        "Named.names, Other.__mro__[2] is Named, [type('Last', (Other,), {})] and Named.names[-1]"
    ) == (
        ["Own", "Other", "Last"],
        True,
        "Last",
    )


def test_what_is_put_on_a_class_whose_metaclass_is_in_c_is_there_on_both_sides(notebook: Notebook) -> None:
    pytest.importorskip("contourpy")
    notebook.gpu("from contourpy import Mpl2014ContourGenerator as Base\nBase.told = lambda self=None: 'told'")
    assert notebook.local("Base.told()") == "told"
    notebook.local("del Base.told")
    assert notebook.gpu("hasattr(Base, 'told')").extra["result"] is False
