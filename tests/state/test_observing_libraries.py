"""What was put into libraries is found alike by counting entries and by going through all of them."""

import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bulletin.state.registrations import Registrations

LIBRARY = """
import threading
level, name, _private = 1, 'plain', 2
handlers, _table, paths, most = {}, {}, ['a'], 9
class Frame:
    options = {}
    limit = 3
class Config:
    def __init__(self): self.precision, self.style, self.parts = 6, 'dark', {}
config = Config()
local = threading.local()
"""


class Thorough(Registrations):
    """Goes through all dicts each time."""

    def observe(self, namespace: Any) -> Any:
        self._revision = -1
        return super().observe(namespace)


def change(chance: random.Random, library: Any, namespace: dict[str, Any]) -> None:
    """Do something of what notebooks do to libraries."""

    def accessor(_: object) -> None: ...

    accessor.__module__ = "__main__"
    key = f"key{chance.randrange(4)}"
    number = chance.randrange(5)
    changes: list[Callable[[], Any]] = [
        lambda: setattr(library.Frame, key, accessor),
        lambda: setattr(library, key, accessor),
        lambda: setattr(library, "level", number),
        lambda: setattr(library, "name", key),
        lambda: setattr(library.config, "precision", number),
        lambda: setattr(library.config, "parts", {key: number}),
        lambda: setattr(library.local, key, number),
        lambda: library.handlers.__setitem__(key, accessor),
        lambda: library.handlers.__setitem__(key, number),
        lambda: library.paths.append(key),
        lambda: setattr(library, "paths", [key]),
        lambda: setattr(library, "most", chance.choice([None, number])),
        lambda: setattr(library, f"new_{key}", [number]),
        lambda: library.handlers.pop(key, None),
        lambda: library._table.__setitem__(key, accessor),
        lambda: library.Frame.options.__setitem__(key, number),
        lambda: library.Frame.__dict__.get(key) and delattr(library.Frame, key),
        lambda: namespace.__setitem__("frame", library.Frame),
        lambda: namespace.__setitem__("library", library),
        lambda: namespace.__setitem__("made", library.Frame()),
        lambda: namespace.pop("library", None),
    ]
    chance.choice(changes)()


@pytest.mark.parametrize("seed", range(25))
def test_counting_finds_what_going_through_finds(seed: int, install: Callable[[str, str], Path]) -> None:
    install("library_to_observe", LIBRARY)
    library: Any = __import__("library_to_observe")
    chance, namespace = random.Random(seed), dict[str, Any](library=library)
    if seed % 2:  # the module comes to have a name later
        namespace = {"made": library.Frame()}
    quick, thorough = Registrations(), Thorough()
    for _ in range(60):
        for _ in range(chance.choice([0, 1, 1, 2])):
            change(chance, library, namespace)
        found, expected = quick.observe(namespace), thorough.observe(namespace)
        assert {name: dict(places) for name, places in found.items()} == {
            name: dict(places) for name, places in expected.items()
        }
        assert [one.name for one in quick.take_stayed()] == [one.name for one in thorough.take_stayed()]
    assert any(thorough.observe(namespace).values())
    del sys.modules["library_to_observe"]
