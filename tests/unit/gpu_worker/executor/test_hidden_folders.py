"""What a cell moves to where nobody can look stays in the notebook."""

import ctypes
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.gpu_worker.executor.both_folders import FILES, Both


def _hide_a_file() -> None:
    Path("private").mkdir()
    Path("log").rename("private/log")
    Path("private").chmod(0)


def _hide_a_folder() -> None:
    Path("data").rename("between")
    Path("between").chmod(0)


def _list_names_alone() -> None:
    Path("private").mkdir()
    Path("log").rename("private/log")
    Path("private").chmod(0o600)


def _hide_in_a_folder_of_the_same_name() -> None:
    Path("log").rename("between")
    Path("log").mkdir()
    Path("between").rename("log/first")
    Path("log").chmod(0)


HIDING = {
    "a file goes into a folder": _hide_a_file,
    "a folder": _hide_a_folder,
    "a folder whose names can be listed": _list_names_alone,
    "a file goes into a folder that has its name now": _hide_in_a_folder_of_the_same_name,
}


@pytest.fixture
def like_others() -> Iterator[None]:
    """Root is held to the modes of files, as users are."""
    libc = ctypes.CDLL(None, use_errno=True)
    header, before = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(header, before) == 0
    less = (ctypes.c_uint32 * 6)(*before)
    less[0] &= ~0b110  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    assert libc.capset(header, less) == 0
    yield
    assert libc.capset(header, before) == 0


@pytest.mark.usefixtures("like_others")
@pytest.mark.parametrize("is_here", [True, False], ids=["contents here", "contents to come"])
@pytest.mark.parametrize("hide", HIDING)
def test_what_is_moved_to_where_nobody_can_look_stays_in_the_notebook(both: Both, hide: str, is_here: bool) -> None:
    both.write(FILES)
    both.begin()
    if is_here:
        both.bring(*FILES)
    notes = both.run(HIDING[hide])
    assert set(both.read().values()) == set(FILES.values())
    assert any("nobody can look into it" in note for note in notes)
    assert any("is kept in the notebook's folder" in note for note in notes)
    both.begin()
    assert both.run(lambda: None) == [], "it is said once"
    assert set(both.read().values()) == set(FILES.values())


@pytest.mark.usefixtures("like_others")
def test_a_folder_that_can_be_looked_into_again_follows_with_what_is_in_it(both: Both) -> None:
    both.write(FILES)
    both.begin()

    def cell() -> None:
        Path("private").mkdir()
        Path("private/made").write_text("made")
        Path("private").chmod(0)

    [note] = both.run(cell)
    assert "'private/'" in note
    both.begin()
    assert both.run(lambda: Path("private").chmod(0o700)) == []
    assert both.read() == {**FILES, "private/made": "made"}
