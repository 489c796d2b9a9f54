"""CONTRIBUTING says where a change goes, and what it names is there."""

import re

import pytest

from tests.house.packages import ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text()
TABLE = PAGE.partition("## Where a change goes")[2]
ROWS = [line for line in TABLE.splitlines() if line.startswith("| ")][2:]


def test_there_is_a_row_for_each_kind_of_change() -> None:
    assert len(ROWS) >= 12


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`([\w./]+/[\w./]*)`", PAGE))))
def test_a_file_that_contributing_names_is_there(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip()[:40])
def test_a_name_in_brackets_is_in_the_file_before_it(row: str) -> None:
    for path, names in re.findall(r"`([\w./]+\.py)` \(((?:`\w+`(?:, )?)+)\)", row):
        text = (ROOT / path).read_text()
        assert [name for name in re.findall(r"`(\w+)`", names) if name not in text] == [], path
    for names, path in re.findall(r"`(\w+)` in `([\w./]+\.py)`", row):
        assert names in (ROOT / path).read_text(), path


def test_the_tree_names_every_folder_of_the_packages() -> None:
    tree = PAGE.partition("```\nbulletin/ ")[2].partition("```")[0]
    packages = [ROOT / name for name in ("bulletin", "gpu_worker", "bulletin_magic")]
    folders = [one.name for package in packages for one in package.iterdir() if (one / "__init__.py").exists()]
    assert [name for name in folders if f"{name}/" not in tree] == []
