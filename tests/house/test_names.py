"""One word for one thing: docs/reference/glossary.md and the code say the same."""

import pytest

from tests.house.glossary import Retired, retired_words, shared_names
from tests.house.packages import classes_by_name, definitions, files, modules_by_name


@pytest.mark.parametrize(("kind", "by_name"), [("class", classes_by_name), ("module", modules_by_name)])
def test_no_name_stands_twice_but_for_a_reason(kind: str, by_name) -> None:  # type: ignore[no-untyped-def]
    allowed = {one.name for one in shared_names() if one.reason}
    twice = {name: where for name, where in by_name().items() if len(where) > 1 and name not in allowed}
    assert twice == {}, f"rename a {kind}, or list it in docs/reference/glossary.md with the reason"


def test_every_name_that_the_glossary_lets_stand_twice_does() -> None:
    twice = {
        name for found in (classes_by_name(), modules_by_name()) for name, where in found.items() if len(where) > 1
    }
    assert sorted({one.name for one in shared_names()} - twice) == []


@pytest.mark.parametrize("retired", retired_words(), ids=lambda one: f"{one.word}-{one.folder or 'everywhere'}")
def test_a_retired_word_does_not_come_back(retired: Retired) -> None:
    named = [(path.stem, str(path)) for path in files()] + [(one.name, one.where) for one in definitions()]
    found = [
        where
        for name, where in named
        if name.strip("_") == retired.word.strip("_") and where.startswith(retired.folder)
    ]
    assert found == [], f"it is called {retired.now} now"


def test_the_glossary_has_retired_words() -> None:
    assert len(retired_words()) > 20
