"""What cannot arrive in the notebook's folder is said once, and what it would have taken the place of stays."""

from pathlib import Path

import pytest

from bulletin_magic.connection.folder_listing import FolderLimits
from tests.file_limits import files_end_at
from tests.unit.gpu_worker.executor.both_folders import Both


def _see(both: Both) -> dict[str, str]:
    """Return what the next cell would read."""
    both.begin()
    both.bring(*both.mirror.files)
    return {str(path.relative_to(both.mirror.here)): path.read_text() for path in both.mirror.here.rglob("*")}


def test_a_moved_file_that_is_refused_is_there_again_under_its_old_name(both: Both) -> None:
    both.write({"video": "frames", "small": "s"})
    both.begin()
    both.bring("video")
    both.limits = FolderLimits(file_bytes=3)

    def cell() -> None:
        Path("video").rename("old")
        Path("small").rename("moved")

    first, second = both.run(cell)
    assert first.startswith("old was not brought to the notebook's folder: it has ")
    assert second == "video is kept in the notebook's folder: what the cell moved it to could not be brought."
    both.limits = FolderLimits()
    assert _see(both) == {"video": "frames", "old": "frames", "moved": "s"}
    assert both.run(Path("old").unlink) == []
    assert both.read() == {"video": "frames", "moved": "s"}
    assert both.run(Path("video").unlink) == []
    assert both.read() == {"moved": "s"}, "what a cell removes goes"


def test_a_file_whose_content_did_not_come_keeps_its_name_though_it_was_moved(both: Both) -> None:
    both.write({"early": "content", "late": "content", "data/large": "content"})
    both.limits = FolderLimits(file_bytes=6)
    both.begin()
    large = both.mirror.refused
    assert sorted(large) == ["data/large", "early", "late"]
    both.limits = FolderLimits()  # it may come now, and what is here is empty, or of zeros
    notes = both.run(lambda: Path("data").rename("moved"))
    assert "data/large is kept in the notebook's folder: what the cell moved it to could not be brought." in notes
    assert set(both.read().values()) == {"content"}


@pytest.mark.parametrize("is_opened", [True, False])
def test_a_file_that_cannot_be_fetched_keeps_its_name_though_it_was_moved(both: Both, is_opened: bool) -> None:
    both.write({"video": "content"})
    both.begin()
    both.limits = FolderLimits(file_bytes=6)
    if is_opened:
        both.bring("video")
        both.limits = FolderLimits()
    notes = both.run(lambda: Path("video").rename("moved"))
    assert "video is kept in the notebook's folder: what the cell moved it to could not be brought." in notes
    assert both.read() == {"video": "content"}
    both.limits = FolderLimits()
    assert _see(both) == {"video": "content", "moved": ""}


def test_a_file_for_which_a_node_has_only_half_the_room_is_empty_there_and_not_half_of_zeros(both: Both) -> None:
    both.write({"video": "content" * 100})
    both.begin()
    with files_end_at(300):
        both.bring("video")
    assert both.transfers.take_notes() == ["video is empty on the node: File too large on the node."]
    assert (both.mirror.here / "video").read_text() == ""
    assert both.run(lambda: None) == []
    assert both.read() == {"video": "content" * 100}


def test_a_link_that_is_refused_under_a_new_name_stays_under_the_old_one(both: Both) -> None:
    (both.notebook / "shared").symlink_to("/usr/share")
    both.begin()
    notes = both.run(lambda: Path("shared").rename("moved"))
    assert "shared is kept in the notebook's folder: what the cell moved it to could not be brought." in notes
    assert both.read() == {"shared": "-> /usr/share"}
    both.begin()
    assert both.run(lambda: None) == []


def test_what_a_cell_has_really_removed_goes_whatever_is_refused(both: Both) -> None:
    both.write({"a": "text", "data/b": "text"})
    both.begin()
    both.limits = FolderLimits(written_bytes=0)

    def cell() -> None:
        Path("made").write_text("more")  # before anything is removed: its inode is another
        Path("a").unlink()
        Path("data/b").unlink()
        Path("data").rmdir()

    (note,) = both.run(cell)
    assert note.startswith("made was not brought")
    assert list(both.notebook.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_said_once_and_made_when_its_name_is_free(both: Both) -> None:
    both.write({"out": "of the notebook"})
    both.begin()

    def cell() -> None:
        Path("out").unlink()
        Path("out/deep").mkdir(parents=True)
        Path("out/deep/made").write_text("of the cell")
        (both.notebook / "out").write_text("changed meanwhile")

    notes = both.run(cell)
    assert "out was changed in the notebook, and is kept though the cell removed it." in notes
    assert "out is not as the cell left it in the notebook's folder: out: File exists." in notes
    for number in range(3):
        both.write({"other": str(number)})  # which makes the listing a new one
        both.begin()
        assert both.run(Path("out/deep").touch) == []
    assert both.read()["out"] == "changed meanwhile"
    (both.notebook / "out").unlink()
    both.begin()
    assert both.run(lambda: None) == []
    assert both.read() == {"out/deep/made": "of the cell", "other": "2"}


def test_a_folder_that_cannot_be_made_is_made_also_if_its_name_is_free_before_anybody_looks(both: Both) -> None:
    both.write({"out": "of the notebook"})
    both.begin()

    def cell() -> None:
        Path("out").unlink()
        Path("out").mkdir()
        (both.notebook / "out").write_text("changed meanwhile")

    assert len(both.run(cell)) == 2
    (both.notebook / "out").unlink()
    both.begin()
    assert both.run(lambda: None) == []
    assert (both.notebook / "out").is_dir()


def test_a_link_that_leads_out_is_said_once_and_stays_on_the_node(both: Both) -> None:
    assert len(both.run(lambda: Path("sets").symlink_to("/usr/share"))) == 1
    for number in range(3):
        both.write({"other": str(number)})
        both.begin()
        assert both.run(lambda: None) == []
    assert both.mirror.path("sets").is_symlink()
    assert sorted(both.read()) == ["other"]
