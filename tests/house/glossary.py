"""The tables of docs/reference/glossary.md, as data."""

import re
from typing import NamedTuple

from tests.house.packages import ROOT

PAGE = ROOT / "docs" / "reference" / "glossary.md"


class Shared(NamedTuple):
    """A name that stands more than once, with leave."""

    name: str
    reason: str


class Retired(NamedTuple):
    """A word that stands no more: in all packages, or below one folder."""

    word: str
    folder: str
    now: str


def shared_names() -> list[Shared]:
    """Read the names that may stand more than once."""
    rows = _rows("Names that stand more than once")
    return [Shared(name, reason) for names, _, reason in rows for name in re.findall(r"`(\w+)`", names)]


def retired_words() -> list[Retired]:
    """Read the words that must not come back. A folder is empty where a word is retired everywhere."""
    return [
        Retired(word, "" if where == "everywhere" else where.strip("`"), now)
        for words, where, now in _rows("Retired words")
        for word in re.findall(r"`([^`]+)`", words)
    ]


def _rows(section: str) -> list[tuple[str, str, str]]:
    """Read the three columns of a section's table, without its head."""
    text = PAGE.read_text().partition(f"## {section}\n")[2].partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return [(one[0], one[1], one[2]) for one in rows[2:]]
