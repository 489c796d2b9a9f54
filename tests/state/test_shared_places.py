"""What people put into libraries, and choose there: shared dicts, what is current for a thread, what that names."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.state.notebook import Notebook

LIBRARY = """
import threading

class Words:
    def __init__(self, words): self.words = words

_WORDS = {None: Words({})}
_CURRENT = threading.local()
known_cache = {}

def speak(language):
    if language not in _WORDS:
        _WORDS[language] = Words({"one": f"one in {language}"})
    known_cache[language] = _CURRENT.language = language

def say(word):
    return _WORDS[getattr(_CURRENT, "language", None)].words.get(word, word)

class Variable:
    def __init__(self): self.data = threading.local()

_profile = Variable()

class Profile:
    _all, _name = {}, "usual"
    def __init__(self, depth): self.depth = depth
    @classmethod
    def register(cls, name, depth): cls._all[name] = cls(depth)
    @classmethod
    def load(cls, name): cls._name, _profile.data.value = name, cls._all[name]
    @staticmethod
    def now(): return _profile.data.value.depth, Profile._all[Profile._name] is _profile.data.value

Profile.register("usual", 1)
Profile.load("usual")

class Files:
    store: dict[str, object] = {}
    def write(self, path, data): self.store[path] = Words(data)
    def read(self, path): return self.store[path].words

class Symbol:
    symbols = {}
    def __new__(cls, name): return cls.symbols.setdefault(name, object.__new__(cls))

START = Symbol("start")

class Themes:
    def __init__(self): self._themes = {"plain": Words({})}
    def __getitem__(self, name): return self._themes[name]
    def __setitem__(self, name, theme): self._themes[name] = theme
    def __contains__(self, name): return name in self._themes

themes = Themes()

class Options:
    def __init__(self, **options): self.options = options
    def __getitem__(self, name): return self.options[name]
    def __setitem__(self, name, value): self.options[name] = value

class Settings:
    def __init__(self):
        self.core = Options(depth=3, style="plain", array={"order": "C"}, limit=None, step=1)
        self._inner = Options(calls=0)

settings = Settings()

class Spec:
    def __init__(self, maker): self.maker, self.options = maker, {}

registry = {f"of the library {number}": Spec(dict) for number in range(80)}

def make(name): return registry[name].maker()

_rules, _rules_cache = {}, {}

def define_rule(function, rule):
    parts = {"first": function, "then": rule}
    _rules[function] = _rules_cache[function] = lambda value: parts["then"](parts["first"](value))

def by_rule(function, value): return _rules[function](value)
"""


@pytest.fixture
def library(notebook: Notebook, install: Callable[[str, str], Path]) -> Notebook:
    install("sharing", LIBRARY)
    notebook.local("import sharing")
    return notebook


def test_what_is_current_for_the_thread_of_the_cells_is_so_on_both_sides_with_what_it_names(library: Notebook) -> None:
    library.gpu("sharing.speak('fr')")
    assert library.local("sharing.say('one')") == "one in fr"
    library.local("sharing.speak('de')")
    assert library.gpu("sharing.say('one'), sorted(sharing.known_cache)").extra["result"] == ("one in de", ["fr"])
    library.gpu("sharing.speak(None)")
    assert library.local("sharing.say('one')") == "one"


def test_a_profile_that_a_cell_registers_and_loads_is_loaded_on_both_sides(library: Notebook) -> None:
    library.local("from sharing import Profile")
    library.gpu("Profile.register('quick', 7); Profile.load('quick')")
    assert library.local("Profile.now()") == (7, True)
    library.local("Profile.load('usual')")
    assert library.gpu("Profile.now()[0]").extra["result"] == 1


def test_what_is_in_a_dict_that_a_class_shares_is_there_on_both_sides(library: Notebook) -> None:
    library.local("files = sharing.Files(); files.write('/a', [1]); a = files.store['/a']")
    library.gpu("files.read('/a').append(2); files.write('/b', [3])")
    assert library.local("files.read('/a'), files.read('/b'), files.store['/a'] is a") == ([1, 2], [3], True)
    library.local("del files.store['/a']; files.write('/b', [4])")
    assert library.gpu("sorted(files.store), files.read('/b')").extra["result"] == (["/b"], [4])


def test_what_a_library_has_put_there_itself_stays_its_own(library: Notebook) -> None:
    library.local("start = sharing.Symbol('start')")
    assert library.gpu("start is sharing.START is sharing.Symbol.symbols['start']").extra["result"] is True
    library.gpu("n = 1")
    assert library.local("start is sharing.START is sharing.Symbol.symbols['start']") is True


def test_what_a_cell_puts_into_an_object_for_everybody_is_given_out_on_both_sides(library: Notebook) -> None:
    library.gpu("sharing.themes['mine'] = sharing.Words({'a': 1})")
    library.local("sharing.themes['mine'].words['b'] = 2; plain = sharing.themes['plain']")
    assert library.gpu("sharing.themes['mine'].words").extra["result"] == {"a": 1, "b": 2}
    assert library.local("sharing.themes['plain'] is plain") is True


def test_options_of_a_part_of_an_object_for_everybody_are_so_on_both_sides(library: Notebook) -> None:
    library.gpu("sharing.settings.core['depth'] = 5")
    assert library.local("sharing.settings.core['depth'], sharing.settings.core['style']") == (5, "plain")
    library.local("sharing.settings.core['depth'] = 7; sharing.settings._inner['calls'] = 1")
    there = library.gpu("sharing.settings.core['depth'], sharing.settings._inner['calls']")
    assert there.extra["result"] == (7, 0)  # what is private is how far the library has come on each side
    library.local("sharing.settings.core['array']['order'] = 'F'")
    assert library.gpu("sharing.settings.core['array']").extra["result"] == {"order": "F"}
    library.gpu("sharing.settings.core['array']['order'] = 'A'")
    assert library.local("sharing.settings.core['array']") == {"order": "A"}


def test_options_that_get_another_type_are_so_on_both_sides(library: Notebook) -> None:
    library.gpu("sharing.settings.core['limit'] = 5")
    assert library.local("sharing.settings.core['limit']") == 5
    library.local("sharing.settings.core['limit'] = None; sharing.settings.core['step'] = 1.0")
    there = library.gpu("sharing.settings.core['limit'], type(sharing.settings.core['step'])")
    assert there.extra["result"] == (None, float)
    library.gpu("sharing.settings.core['style'] = {'font': 'mono'}; sharing.settings.core['depth'] = 0.5")
    assert library.local("sharing.settings.core['style'], sharing.settings.core['depth']") == ({"font": "mono"}, 0.5)


def test_an_option_without_a_name_costs_no_cell(library: Notebook) -> None:
    library.gpu("sharing.settings.core[''] = 2")
    library.local("sharing.settings.core[''] += 2")
    assert library.gpu("sharing.settings.core['']").extra["result"] == 4


def test_what_a_library_makes_around_a_class_of_the_notebook_and_registers_is_on_both_sides(library: Notebook) -> None:
    library.gpu(
        "import math as m\n"
        "class Corridor:\n"
        "    def length(self): return m.floor(2.5)\n"
        "sharing.registry['corridor'] = sharing.Spec(Corridor)"
    )
    assert library.gpu("sharing.make('corridor').length()").extra["result"] == 2  # the cell names none of it
    assert library.local("sharing.make('corridor').length(), type(sharing.make('corridor')) is Corridor") == (2, True)
    library.local("del sharing.registry['corridor']")
    assert library.gpu("'corridor' in sharing.registry, len(sharing.registry)").extra["result"] == (False, 80)


def test_what_a_library_makes_for_a_function_of_the_notebook_is_found_by_it_on_both_sides(library: Notebook) -> None:
    library.local("def cube(x): return x ** 3\nsharing.define_rule(cube, lambda y: y + k)\nk = 1")
    assert library.gpu("k = 5; sharing.by_rule(cube, 2), len(sharing._rules_cache)").extra["result"] == (13, 0)
    library.gpu("def square(x): return x ** 2\nsharing.define_rule(square, lambda y: y * k)")
    assert library.local("k = 10; sharing.by_rule(square, 3), sharing.by_rule(cube, 2)") == (90, 18)
