"""What a library has once in each process: it keeps its identity on both sides, and is never emptied or copied."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tests.state.notebook import Executor, Notebook

#: A library of the usual kinds of such objects.
LIBRARY = '''
import logging

class Singleton:
    _only = None
    def __new__(cls):
        if cls._only is None:
            cls._only = super().__new__(cls)
            cls._only.parts = ["of the library"]
        return cls._only
    def __reduce__(self):
        return Singleton, ()
    def __getstate__(self):
        return None

class Blank(Singleton):
    def __reduce_ex__(self, protocol):
        return object.__reduce_ex__(self, 2)

class Interned:
    _known = {}
    def __new__(cls, name):
        if name not in cls._known:
            made = cls._known[name] = super().__new__(cls)
            made.name, made.seen = name, []
        return cls._known[name]
    def __getnewargs__(self):
        return (self.name,)
    def __getstate__(self):
        return None

class Unit:
    def __init__(self, name):
        self.name, self._cache = name, {}

class Context:
    def __init__(self):
        self.digits, self._table, self.make = 15, {}, lambda: 1

class Symbol(int):
    def __new__(cls, name):
        found = super().__new__(cls, hash(name))
        found.name = name
        return found
    def __reduce__(self):
        return check, (self.name, int(self))

def check(name, value):
    assert value == hash(name), "another process has other hashes"
    return Symbol(name)

METER, CONTEXT, MISSING, SYMBOL = Unit("m"), Context(), object(), Symbol("symbol")
METERS = METER

class MethodOfC:
    """Stands for a method of C code, which is no function of Python's."""
    def __get__(self, value, kind):
        return self if value is None else lambda state: set_once(value, state)

def set_once(value, state):
    if "value" in vars(value):
        raise TypeError("it has an object already")
    vars(value).update(state)

class Wrapped:
    """Stands for a class of C++, whose object is made once."""
    __setstate__ = MethodOfC()
'''


@pytest.fixture
def library(notebook: Notebook, install: Callable[[str, str], Path]) -> Notebook:
    install("oncelib", LIBRARY)
    notebook.local("import oncelib")
    return notebook


@pytest.mark.parametrize("kind", ["Singleton", "Blank"])
def test_a_singleton_that_comes_back_is_the_librarys_own_and_keeps_what_it_holds(library: Notebook, kind: str) -> None:
    library.gpu(f"import oncelib\nheld = [oncelib.{kind}()]")
    library.gpu("held.append(1)")
    library.local(f"ok = held[0] is oncelib.{kind}() and held[0].parts == ['of the library']")
    assert library["ok"]
    assert library.gpu(f"held[0] is oncelib.{kind}() and held[0].parts").extra["result"] == ["of the library"]


def test_an_interned_value_takes_the_place_of_the_one_that_was_there(library: Notebook) -> None:
    library.local("x = oncelib.Interned('a'); held = [x]")
    library.gpu("held[0] = oncelib.Interned('b')")
    library.local("oncelib.Interned('a').seen.append(1)\nok = held[0] is oncelib.Interned('b') and not held[0].seen")
    assert library["ok"]
    assert library["x"].name == "a"


@pytest.mark.parametrize("name", ["METER", "CONTEXT", "SYMBOL"])
def test_what_a_module_holds_is_the_receivers_own(library: Notebook, name: str) -> None:
    library.gpu(f"import oncelib\nheld = {{'it': oncelib.{name}}}")
    library.local(f"ok = held['it'] is oncelib.{name}")
    assert library["ok"]
    assert library.gpu(f"held['it'] is oncelib.{name}").extra["result"] is True


def test_what_people_set_of_it_travels_and_what_the_library_keeps_there_does_not(library: Notebook) -> None:
    library.local("context = oncelib.CONTEXT; context._table['here'] = 1")
    library.gpu("context.digits = 30; context._table['there'] = 1")
    library.local("found = oncelib.CONTEXT.digits, oncelib.CONTEXT._table, context is oncelib.CONTEXT")
    assert library["found"] == (30, {"here": 1}, True)
    library.local("context.digits = 50")
    assert library.gpu("context.digits, oncelib.CONTEXT.digits").extra["result"] == (50, 50)


def test_one_that_a_module_no_longer_holds_travels_with_what_it_holds(library: Notebook) -> None:
    library.local("mine = oncelib.METER; oncelib.METER = oncelib.METERS = None; mine._cache['a'] = 1")
    assert library.gpu("mine.name, mine._cache").extra["result"] == ("m", {"a": 1})


def test_an_object_of_c_code_is_not_given_a_second_state(library: Notebook) -> None:
    library.local("w = oncelib.Wrapped(); vars(w)['value'] = 1; held = [w]")
    library.gpu("import copy\nvars(w)['value'] = 2")
    assert library["w"].value == 2
    assert library["held"][0] is library["w"]


def test_a_class_may_hold_an_instance_of_itself_that_says_how_it_gets_its_state(notebook: Notebook) -> None:
    notebook.gpu(
        "class Point:\n"
        "  def __init__(self, x): self.x = x\n"
        "  def __getstate__(self): return (self.x,)\n"
        "  def __setstate__(self, state): (self.x,) = state\n"
        "  def __eq__(self, other): return self.x == other.x\n"
        "  def __hash__(self): return hash(self.x)\n"
        "Point.origin = Point(0)"
    )
    notebook.local("found = Point.origin.x, type(Point.origin) is Point, list(vars(Point))[:2]")
    assert notebook["found"] == (0, True, ["__module__", "__init__"])


def test_a_module_inside_a_package_that_a_cell_imports_is_there_in_the_notebook(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("wsgiref.handlers", "wsgiref"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    notebook.gpu("import wsgiref.handlers\nif False:\n  import wsgiref.no_such_module")
    assert isinstance(notebook["wsgiref"].handlers, ModuleType)


def test_what_libraries_look_at_as_they_are_imported_is_set_before_values_load(
    notebook: Notebook, install: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = install("precise", "import os\nIS_PRECISE = 'PRECISE' in os.environ\nclass Number: pass\n")
    monkeypatch.setenv("PRECISE", "")
    monkeypatch.delenv("PRECISE")
    notebook.gpu(
        f"import os, sys\nsys.path.insert(0, {str(folder)!r})\n"
        "os.environ['PRECISE'] = '1'\nimport precise\nn = precise.Number()"
    )
    assert notebook["precise"].IS_PRECISE


def test_the_arguments_of_the_process_are_the_notebooks(notebook: Notebook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["notebook", "--fast"])
    assert notebook.gpu("import sys\nfrom sys import argv\nsys.argv.append('more')\nlist(argv)").extra["result"] == [
        "notebook", "--fast", "more",
    ]  # fmt: skip
    assert sys.argv == ["notebook", "--fast", "more"]


REGISTERING = """
import weakref
INFO, BY_NAME, ALL, FULL = weakref.WeakKeyDictionary(), {}, set(), {}

class Info:
    def __init__(self, names): self.names = names

class Meta(type):
    def __init__(cls, name, bases, body):
        super().__init__(name, bases, body)
        INFO[cls], BY_NAME[name], FULL[cls] = Info(tuple(body)), cls, [lambda: 1]
        ALL.add(cls)

class Base(metaclass=Meta): pass
"""


def test_where_a_library_has_put_down_a_class_it_is_put_down_on_the_other_side(
    notebook: Notebook, install: Callable[[str, str], Path]
) -> None:
    install("registering", REGISTERING)
    notebook.local("import registering as r")
    notebook.gpu("class Mine(r.Base):\n  x = 1")
    notebook.local("found = r.INFO[Mine].names[-1], r.BY_NAME['Mine'] is Mine, Mine in r.ALL, Mine in r.FULL")
    assert notebook["found"] == ("x", True, True, False)


def test_what_a_thread_keeps_for_itself_travels_for_the_thread_of_the_cells(notebook: Notebook) -> None:
    notebook.local("import threading\nt = threading.local(); t.x = 1; held = [t]")
    assert notebook.gpu("t.y = t.x + 1; held[0] is t").extra["result"] is True
    assert (vars(notebook["t"]), notebook["held"][0] is notebook["t"]) == ({"x": 1, "y": 2}, True)


def test_a_value_inside_another_one_is_not_sent_again_after_the_other_one_was(notebook: Notebook) -> None:
    """What draws on an image holds the image's pixels: a second state would give the image others."""
    notebook.local(
        "class Image:\n"
        "  def __init__(self): self.pixels = [0]\n"
        "  def __getstate__(self): return list(self.pixels)\n"
        "  def __setstate__(self, state): self.pixels = state\n"
        "class Draw:\n"
        "  def __init__(self, image): self.image, self.pixels, self.lines = image, image.pixels, (n for n in ())\n"
    )
    notebook.gpu("im = Image(); d = Draw(im)")
    notebook.gpu("d.pixels[0] = 1")
    assert notebook.gpu("d.pixels[0] = 2; im.pixels").extra["result"] == [2]
    assert notebook["im"].pixels == [2]


def test_what_draws_on_an_image_goes_on_drawing_on_it(notebook: Notebook) -> None:
    pytest.importorskip("PIL")
    notebook.local("from PIL import Image, ImageDraw\nim = Image.new('RGB', (4, 4)); d = ImageDraw.Draw(im); kept = im")
    notebook.gpu("im.putpixel((0, 0), (255, 0, 0)); im.info['a'] = 1")
    notebook.local("d.point((1, 1), fill='white'); found = [im.getpixel((n, n)) for n in range(2)]")
    assert notebook["found"] == [(255, 0, 0), (255, 255, 255)]
    notebook.gpu("d.point((2, 2), fill='white'); e = ImageDraw.Draw(im); e.fill = True; e.point((3, 3), fill='white')")
    notebook.local("e.point((0, 0), fill='white'); found = [im.getpixel((n, n))[1] for n in range(4)], e.fill")
    assert notebook["found"] == ([255, 255, 255, 255], True)
    notebook.gpu("im = im.resize((2, 2))")
    assert (notebook["im"].size, notebook["kept"].size, notebook["kept"].info) == ((2, 2), (4, 4), {"a": 1})


def test_a_nan_is_found_in_what_came_with_it_or_without(notebook: Notebook) -> None:
    np = pytest.importorskip("numpy")
    notebook.local("import numpy as np\na = np.nan\nheld = [a, 1.0]; keys = {a: 1}")
    assert notebook.gpu("found = [np.nan]\na in held, held[0] is np.nan, keys[np.nan]").extra["result"] == (
        True,
        True,
        1,
    )
    assert notebook["found"][0] is np.nan


def test_a_nan_is_the_same_key_in_the_first_cell_of_an_executor_and_in_the_next() -> None:
    """The library that has the usual one comes with the first cell, for what is set in it."""
    pytest.importorskip("numpy")
    executor = Executor()
    try:
        notebook = Notebook(executor)
        notebook.local("x = float('nan')\nd = {x: 1}")
        assert [notebook.gpu("d[x]").extra["result"] for _ in range(2)] == [1, 1]
    finally:
        executor.close()


def test_what_a_library_registers_late_is_there_for_the_next_kernel_of_an_executor() -> None:
    """It knows that it has done so, and does not do it again."""
    pytest.importorskip("PIL")
    save = "from PIL import Image\nimport io\nImage.new('RGB', (2, 2)).save(io.BytesIO(), 'png')"
    executor = Executor()
    try:
        notebook = Notebook(executor)
        notebook.gpu("from PIL import Image\nx = Image.new('L', (1, 1))")
        for one in (notebook, Notebook(executor)):
            assert one.gpu(f"{save}; 1").extra == {"result": 1}
    finally:
        executor.close()


LENDING = """
REGISTRY: dict = {}

class Registry:
    def __init__(self, *space): self.space = space
    def register(self, name, func): REGISTRY[(*self.space, name)] = func
    def get(self, name): return REGISTRY[(*self.space, name)]
"""
BORROWING = """
from lendinglib import Registry

class Meta:
    def __init__(self, options): self.options = options

class registry:
    factories = Registry("borrowinglib", "factories")

class Language:
    _meta: dict = {}
    @classmethod
    def factory(cls, name, **options):
        def register(made):
            registry.factories.register(name, made)
            cls._meta[name] = Meta(options)
            return made
        return register
    def make(self, name):
        return registry.factories.get(name)(**self._meta[name].options)
"""


def test_what_a_library_registers_with_another_one_is_registered_on_the_other_side(
    notebook: Notebook, install: Callable[[str, str], Path]
) -> None:
    install("lendinglib", LENDING)
    install("borrowinglib", BORROWING)
    notebook.local("import borrowinglib as b; language = b.Language()")
    notebook.gpu(
        "@b.Language.factory('count', n=2)\nclass Count:\n  def __init__(self, n): self.n = n\n"
        "made = language.make('count'); kind = b.Language._meta['count']"
    )
    assert notebook.local("again = language.make('count'); again.n, type(again) is type(made) is Count") == (2, True)
    notebook.local("@b.Language.factory('other', k=3)\ndef other(k): return k + 1")
    assert notebook.gpu("language.make('other')").extra["result"] == 4
