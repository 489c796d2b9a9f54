"""What a cell has moved arrives in the notebook's folder before its old name goes, and where it cannot, that stays."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from bulletin_magic.connection.folder_listing import FolderLimits
from gpu_worker.executor.folder_requests import FolderUnreachable
from tests.unit.gpu_worker.executor.both_folders import FILES, Both


def _move() -> None:
    Path("log").rename("moved")


def _version_the_data() -> None:
    Path("data").rename("data_v1")
    Path("data").symlink_to("data_v1")


def _file_for_a_folder() -> None:
    Path("data").rename("data_v1")
    Path("data").write_text("new")


def _back_up() -> None:
    Path("log").rename("kept")
    Path("log").write_text("new")


def _link_to_the_latest() -> None:
    Path("log").rename("log_v1")
    Path("log").symlink_to("log_v1")


def _rotate() -> None:
    Path("log.1").rename("log.2")
    Path("log").rename("log.1")
    Path("log").write_text("new")


def _move_into_a_new_folder() -> None:
    Path("old/deep").mkdir(parents=True)
    Path("log").rename("old/deep/log")
    Path("data").rename("old/data")


def _change_places() -> None:
    for old, new in (("log", "between"), ("log.1", "log"), ("between", "log.1")):
        Path(old).rename(new)


def _go_round() -> None:
    for old, new in (("log", "between"), ("log.1", "log"), ("data/a", "log.1"), ("between", "data/a")):
        Path(old).rename(new)


def _move_into_a_folder_of_the_same_name() -> None:
    Path("log").rename("between")
    Path("log").mkdir()
    Path("between").rename("log/first")


def _move_out_of_the_folder_of_the_same_name() -> None:
    Path("data").rename("between")
    Path("between/a").rename("data")
    Path("between/deep").rename("deep")
    Path("between").rmdir()


def _link_from_the_old_name_into_a_folder_of_an_old_name() -> None:
    Path("log").rename("kept")
    Path("log").mkdir()
    Path("log.1").rename("log/first")
    Path("log.1").symlink_to("log/first")


MOVES = {
    "files change places": _change_places,
    "files go round": _go_round,
    "a file goes into a folder that has its name now": _move_into_a_folder_of_the_same_name,
    "a file has the name of its folder now": _move_out_of_the_folder_of_the_same_name,
    "a folder is kept under a version, and a link leads there": _version_the_data,
    "a file takes the place of a folder that was moved": _file_for_a_folder,
    "a file is moved": _move,
    "a file is kept before it is written anew": _back_up,
    "a file is kept under a version, and a link leads there": _link_to_the_latest,
    "files are rotated": _rotate,
    "a link leads into a folder in the place of a file": _link_from_the_old_name_into_a_folder_of_an_old_name,
    "all is moved into a new folder": _move_into_a_new_folder,
}


@pytest.mark.parametrize("is_here", [True, False], ids=["contents here", "contents to come"])
@pytest.mark.parametrize("move", MOVES)
def test_wherever_it_ends_each_content_is_in_the_notebook_under_one_name(
    make: Callable[[], Both], move: str, is_here: bool
) -> None:
    for changes in itertools.count():
        both = make()
        both.write(FILES)
        both.begin()
        if is_here:
            both.bring(*FILES)
        both.changes_left = changes
        try:
            both.run(MOVES[move])
        except FolderUnreachable:
            pass
        else:
            break
        finally:
            kept = set(both.read().values())
            assert kept >= set(FILES.values()), changes
    assert changes > 0
    both.bring(*both.mirror.files)
    assert both.read() == {
        str(path.relative_to(both.mirror.here)): f"-> {path.readlink()}" if path.is_symlink() else path.read_text()
        for path in both.mirror.here.rglob("*")
        if path.is_symlink() or path.is_file()
    }


@pytest.mark.parametrize("is_here", [True, False], ids=["contents here", "contents to come"])
@pytest.mark.parametrize("written", [0, 10, 20, 30])
@pytest.mark.parametrize("move", MOVES)
def test_whatever_is_refused_each_content_stays_in_the_notebook(
    both: Both, move: str, written: int, is_here: bool
) -> None:
    both.write(FILES)
    both.begin()
    if is_here:
        both.bring(*FILES)
    both.limits = FolderLimits(written_bytes=written)
    notes = both.run(MOVES[move])
    assert set(both.read().values()) >= set(FILES.values())
    if written == 0:
        assert any(" is kept " in note for note in notes)
    both.begin()
    assert both.run(lambda: None) == [], "it is said once"
    assert set(both.read().values()) >= set(FILES.values())
