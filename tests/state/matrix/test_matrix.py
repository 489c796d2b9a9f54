"""Every kind of value does what its row of the type matrix says, no more and no less."""

from collections.abc import Iterator
from contextvars import copy_context
from pathlib import Path

import pytest

from tests.state.notebook import Executor

from .kind import Family, Kind
from .kinds import FAMILIES
from .trial import trial


class Machine:
    """One executor for all kinds; another one only where a kind has ended it."""

    def __init__(self) -> None:
        self.executor = Executor()

    def renew(self) -> None:
        self.executor.close()
        self.executor = Executor()


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    machine = Machine()
    yield machine
    machine.executor.close()


def rows() -> Iterator[object]:
    for family in FAMILIES:
        marks = [pytest.mark.torch] if "torch" in family.needs else []
        for kind in family.kinds:
            yield pytest.param(family, kind, id=f"{family.title}: {kind.name}", marks=marks)


@pytest.mark.parametrize(("family", "kind"), list(rows()))
def test_a_kind_of_value_travels_as_its_row_says(
    family: Family, kind: Kind, machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for module in (*family.needs, *kind.needs):
        pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")  # it is the same in the rows; here it is taken back
    found = copy_context().run(trial, kind, machine.executor)  # what a row binds is bound for no other
    if found.is_executor_lost:
        machine.renew()
    said = "\n".join(found.said)
    assert found.marks == kind.marks(), f"{kind.known or 'expected to be right'}:\n{said}"
    if kind.refused or kind.behind:
        assert found.said[0] == (f"refused: {kind.refused}" if kind.refused else f"behind: {kind.behind}")


def test_each_kind_has_one_row() -> None:
    for family in FAMILIES:
        names = [kind.name for kind in family.kinds]
        assert sorted(set(names)) == sorted(names)
    assert sum(len(family.kinds) for family in FAMILIES) >= 220
