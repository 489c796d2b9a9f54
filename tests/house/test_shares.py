"""With which tests each process begins."""

import itertools
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.shares import LIVE_FOLDERS, TESTS, deal


@dataclass(frozen=True)
class Place:
    """A test, by where it is."""

    path: Path
    number: int


#: As shuffled ones are: those of a package are apart.
MANY = [
    Place(TESTS / folder / f"test_{number % 7}.py", number)
    for number in range(20)
    for folder in (*LIVE_FOLDERS, "integration/doctor", "unit", "unit/bulletin", "scheduler", "docs")
]


def folder_of(place: Place) -> str:
    return place.path.relative_to(TESTS).parts[0]


@pytest.mark.parametrize("processes", [1, 2, 3, 4, 9])
def test_each_test_is_dealt_once_and_live_ones_come_first_in_one_process(processes: int) -> None:
    shares = deal(MANY, processes)
    assert Counter(itertools.chain(*shares)) == Counter(MANY)
    for folder in LIVE_FOLDERS:
        assert len([share for share in shares if folder in map(folder_of, share)]) == 1
    for share in shares:
        kinds = [kind for kind, _ in itertools.groupby(share, key=lambda place: folder_of(place) in LIVE_FOLDERS)]
        assert kinds in ([True, False], [True], [False])


@pytest.mark.parametrize("processes", [1, 2, 3, 4])
def test_shares_are_as_large_as_those_that_pytest_xdist_makes(processes: int) -> None:
    assert max(map(len, deal(MANY, processes))) - min(map(len, deal(MANY, processes))) <= 1


def test_tests_of_a_package_are_together_and_in_their_order() -> None:
    (share,) = deal(MANY, 1)
    packages = [package for package, _ in itertools.groupby(share, key=lambda place: place.path.parent)]
    assert len(packages) == len(set(packages))
    for package in packages:
        found = [place for place in share if place.path.parent == package]
        assert found == [place for place in MANY if place.path.parent == package]


def test_tests_of_one_folder_alone_are_all_there() -> None:
    alone = [place for place in MANY if folder_of(place) == "integration"]
    assert Counter(itertools.chain(*deal(alone, 3))) == Counter(alone)
    assert deal([], 3) == [[], [], []]


def test_the_folders_are_there() -> None:
    assert [folder for folder in LIVE_FOLDERS if not (TESTS / folder).is_dir()] == []
