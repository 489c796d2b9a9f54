"""Values of libraries that a class of the notebook holds, and that lead back to it before it has what it holds."""

from collections.abc import Callable
from pathlib import Path

import pytest

from .notebook import Notebook

LIBRARY = """
class Model:
    def __init_subclass__(cls):
        cls.limits, cls.space = {}, Space(cls)
        cls.of_field = {}
        for name, held in list(vars(cls).items()):
            if isinstance(held, Field):
                held.owner, held.name = cls, name
                cls.of_field[held] = name

class Space:
    # Asks its class as it gets its state, as param's do.
    def __init__(self, owner): self.owner, self.steps = owner, 1
    def __getstate__(self): return dict(vars(self), limits=self.owner.limits)
    def __setstate__(self, state):
        state.pop("limits").setdefault("loaded", 0)
        state["owner"].limits["loaded"] = 1
        vars(self).update(state)

class Field:
    # Its hash needs its state, as with peewee's.
    def __hash__(self): return hash((self.owner.__name__, self.name))

class Cached:
    # Says that it is what its class has under its name, as cachetools' does.
    def __init__(self, function): self.function, self.owner, self.name = function, None, None
    def __set_name__(self, owner, name): self.owner, self.name = owner, name
    def __get__(self, one, kind=None): return self if one is None else Bound(self, one)
    def __reduce__(self): return look_up, (self.owner, self.name)

class Bound:
    def __init__(self, by, one): self.by, self.one = by, one
    def __call__(self, *args): return self.by.function(self.one, *args)
    def __reduce__(self): return self.by.__get__, (self.one,)

def counted(function):
    def call(*args): return function(*args)
    return call

class Broken:
    def __getstate__(self): return {"n": 1}
    def __setstate__(self, state): raise ValueError("it has no engine")

class Frozen(dict):
    # Is made of a copy of its items.
    def __reduce__(self): return Frozen, (dict(self),)

class Absent:
    def __reduce__(self): return fetch, ()

def fetch():
    _tries.append(1)
    import no_such_engine

_tries = []

def look_up(owner, name): return vars(owner)[name]
"""


@pytest.fixture
def library(notebook: Notebook, install: Callable[[str, str], Path]) -> Notebook:
    install("leads_back", LIBRARY)
    notebook.local("import leads_back")
    return notebook


def test_an_instance_that_asks_its_class_as_it_loads_is_there_with_it(library: Notebook) -> None:
    library.local(
        "class Tank(leads_back.Model):\n"
        "    level = 2\n"
        "    @leads_back.counted\n"
        "    def twice(self): return 2 * self.level\n"
        "held = Tank.space"
    )
    sent = library.gpu("Tank.space.steps += 1\nTank.space.owner is Tank, held is Tank.space, Tank().twice()")
    assert sent.extra["result"] == (True, True, 4)
    assert library.local("Tank.space.steps, held is Tank.space, held.owner is Tank") == (2, True, True)
    library.gpu("class Pool(leads_back.Model): pass\nPool.space.steps = 7")
    assert library.local("Pool.space.steps, Pool.space.owner is Pool") == (7, True)


def test_a_key_whose_hash_asks_for_what_has_not_come_yet_is_found(library: Notebook) -> None:
    library.local("class Pet(leads_back.Model):\n    a, b = leads_back.Field(), leads_back.Field()")
    assert library.gpu("Pet.of_field[Pet.b], [*Pet.of_field.values()]").extra["result"] == ("b", ["a", "b"])
    library.gpu("Pet.of_field[Pet.a] = 'first'\none = Pet.a")
    assert library.local("Pet.of_field[one], list(Pet.of_field.values())") == ("first", ["first", "b"])


def test_what_says_that_its_class_has_it_is_made_with_the_class(library: Notebook) -> None:
    library.local(
        "class Shop:\n"
        "    asked = 0\n"
        "    @leads_back.Cached\n"
        "    def price(self, n):\n"
        "        self.asked += 1\n"
        "        return n * 3\n"
        "shop = Shop(); price, by = shop.price, vars(Shop)['price']"
    )
    assert library.gpu("price(2), shop.price(3), shop.asked, price.by is by").extra["result"] == (6, 9, 2, True)
    assert library.local("price(4), shop.asked, vars(Shop)['price'] is by, price.by is by") == (12, 3, True, True)


def test_what_fails_whenever_it_loads_says_what_it_failed_with(library: Notebook) -> None:
    library.local("class Car(leads_back.Model):\n    part = leads_back.Broken()")
    with pytest.raises(RuntimeError, match=r"CannotSend.*it has no engine"):
        library.gpu("Car.part")
    assert library.gpu("1 + 1").extra["result"] == 2


def test_an_instance_of_its_own_class_that_never_takes_its_state_says_so(library: Notebook) -> None:
    library.local(
        "class P:\n"
        "    def __init__(self, n): self.n = n\n"
        "    def __setstate__(self, state):\n"
        "        if self is not type(self).first and state['n'] == 2: raise ValueError('never')\n"
        "        self.n = state['n']\n"
        "P.first, P.second = P(1), P(2)"
    )
    with pytest.raises(RuntimeError, match=r"CannotSend.*never"):
        library.gpu("P.second")
    library.local("del P.second")
    assert library.gpu("P.first.n, type(P.first) is P").extra["result"] == (1, True)


def test_instances_of_its_own_class_get_their_states_once_each_whatever_their_order(library: Notebook) -> None:
    library.local(
        "class Q:\n"
        "    def __init__(self, n, asks): self.n, self.asks, self.times = n, asks, 0\n"
        "    def __setstate__(self, state):\n"
        "        self.times = vars(self).get('times', 0) + (not state['asks'] or vars(type(self).second)['n'] == 2)\n"
        "        vars(self).update(state, times=self.times)\n"
        "Q.first, Q.second = Q(1, True), Q(2, False)"
    )
    assert library.gpu("[(q.n, q.times) for q in (Q.first, Q.second)]").extra["result"] == [(1, 1), (2, 1)]


def test_what_copies_items_that_have_not_come_yet_is_not_made_without_them(library: Notebook) -> None:
    library.local(
        "class Lake(leads_back.Model):\n    a = leads_back.Field()\nLake.a.peers = leads_back.Frozen({Lake.a: 'a'})"
    )
    with pytest.raises(RuntimeError, match=r"CannotSend.*no attribute 'owner'"):
        library.gpu("Lake.a.peers")
    library.local("del Lake.a.peers")
    assert library.gpu("Lake.of_field[Lake.a]").extra["result"] == "a"


def test_a_class_that_is_read_twice_is_there_once(library: Notebook) -> None:
    library.local("class Boat(leads_back.Model):\n    mast = leads_back.Field()")
    there = "[kind is Boat for kind in leads_back.Model.__subclasses__() if kind.__name__ == 'Boat']"
    assert library.gpu(f"{there}, Boat.of_field[Boat.mast]").extra["result"] == ([True], "mast")


def test_functions_share_their_variables_also_where_they_are_read_twice(library: Notebook) -> None:
    library.local(
        "def make():\n"
        "    n = 0\n"
        "    def more():\n"
        "        nonlocal n\n"
        "        n += 1\n"
        "    def now(): return n\n"
        "    return more, now\n"
        "class Sea(leads_back.Model):\n"
        "    more, wave = map(staticmethod, make()), leads_back.Field()\n"
        "    more, now = more\n"
    )
    assert library.gpu("Sea.more(); Sea.more(); Sea.now(), Sea.of_field[Sea.wave]").extra["result"] == (2, "wave")
    assert library.local("Sea.more(); Sea.now()") == 3


def test_what_an_instance_does_to_its_class_as_it_gets_its_state_is_not_lost_where_they_are_read_twice(
    library: Notebook,
) -> None:
    library.local(
        "class Port:\n"
        "    seen = []\n"
        "    def __init__(self, n): self.n = n\n"
        "    def __setstate__(self, state):\n"
        "        self.n = state['n']\n"
        "        self.seen.append(self.n)\n"
        "Port.first = Port(7)\n"
        "class Coast(leads_back.Model):\n    port, rock = Port, leads_back.Field()"
    )
    assert library.gpu("Coast.port.seen, Coast.of_field[Coast.rock]").extra["result"] == ([7], "rock")


def test_what_needs_a_module_that_is_not_there_is_read_once(library: Notebook) -> None:
    library.local("absent = leads_back.Absent()")
    with pytest.raises(RuntimeError, match="no_such_engine"):
        library.gpu("absent")
    assert library.gpu("leads_back._tries").extra["result"] == [1]
