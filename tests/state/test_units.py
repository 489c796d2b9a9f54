"""What both sides note of a value: what it says without looking again is what looking says."""

import copyreg
from collections.abc import Callable
from typing import Any

import pytest

from bulletin.state.encoder import Encoder
from bulletin.state.load_transaction import LoadTransaction
from bulletin.state.memory import Finder
from bulletin.state.stream_reader import Reader, unit_as_read
from bulletin.state.table import ABSENT, Table, Unit

from .notebook import Notebook


def there_and_back(value: object, here: dict[str, Any]) -> tuple[Unit | None, Unit]:
    """What is noted of a value as it is read, and what encoding it there gives."""
    there: dict[str, Any] = {}
    sent = Encoder(here, Finder(())).encode(value)
    read, made = Reader(sent.data, there, LoadTransaction(there, Table(), "")).read()
    oids = [ABSENT if node is None else 7 for node in sent.nodes]
    return unit_as_read(read, sent.data, made, oids), Encoder(there, Finder(())).encode(read)


def tied() -> list[Any]:
    """Lists, dicts and tuples that hold each other and themselves."""
    ring: list[Any] = [1, 2.5, None, True, 1 << 90, float("nan"), "text", b"", ()]
    inner = {"ring": ring, "text": "text" * 2, -0.0: b"bytes"}
    ring += [(ring, inner, "text"), (inner, (ring,)), [inner] * 3, "long" * 50_000, inner["text"]]
    ring.append((1, 2, 3, ring, ring[-1]))
    return ring


SIMPLE: dict[str, Callable[[dict[str, Any]], object]] = {
    "records": lambda _: [{"id": n, "name": str(n), "score": n / 7} for n in range(2000)],
    "what holds itself": lambda _: tied(),
    "a tuple": lambda _: ("a", b"b", [b"b"]),
    "the namespace": lambda here: {"globals": here, "list": [here]},
    "nothing": lambda _: {},
}


@pytest.mark.parametrize("kind", SIMPLE)
def test_of_plain_containers_it_is_known_without_looking_what_looking_says(kind: str) -> None:
    here: dict[str, Any] = {}
    noted, looked = there_and_back(SIMPLE[kind](here), here)
    assert noted is not None
    assert noted.is_as(looked)


OTHER: dict[str, Callable[[], object]] = {
    "a set, which has another order there": lambda: [{"a", "b"}],
    "letters that are one there": lambda: [str(1), str(1)],
    "a kind of number that is made by its name": lambda: [1j],
    "a range": lambda: [range(3)],
    "a constant": lambda: [...],
    "a class": lambda: [int],
}


@pytest.mark.parametrize("kind", OTHER)
def test_of_anything_else_nothing_is_noted_without_looking(kind: str) -> None:
    assert there_and_back(OTHER[kind](), {})[0] is None


class Listed:
    """Travels as a list."""

    def __reduce__(self) -> Any:
        return list, ([1],)


def test_what_has_a_short_name_in_picklings_register_is_looked_at() -> None:
    copyreg.add_extension("builtins", "list", 240)
    try:
        assert there_and_back([Listed()], {})[0] is None
    finally:
        copyreg.remove_extension("builtins", "list", 240)


def test_what_loading_does_to_other_values_does_not_come_back(notebook: Notebook) -> None:
    notebook.local(
        "class Noisy:\n"
        "  def __getstate__(self): return {'n': 1}\n"
        "  def __setstate__(self, state): log[0].append(state)\n"
        "log, noisy = [[0]], Noisy()"
    )
    assert notebook.gpu("log, noisy\nn = len(log[0])").bound == ("n",)
    assert (notebook["log"], notebook["n"]) == ([[0]], 2)
