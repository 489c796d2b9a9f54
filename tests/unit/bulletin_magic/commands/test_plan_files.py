"""What a plan says of files before anything runs."""

from pathlib import Path

import pytest

from bulletin_magic.commands.plan_files import describe_files
from bulletin_magic.connection.folder_listing import FolderLimits


def test_a_plan_says_that_all_of_a_large_file_would_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.csv").write_text("1\n")
    with (tmp_path / "large.bin").open("wb") as large:
        large.truncate(2_000_000_000)  # of holes
    cell = "np.memmap('large.bin', mode='r')[:10]; pd.read_csv('small.csv')"
    says = describe_files(cell, (), {}, {str(tmp_path): False}, FolderLimits())
    assert "These would come, unless they are there already: large.bin (2 GB), small.csv (2 B)." in says
    assert "All of a file comes, however little of it is read: large.bin (2 GB)." in says
    assert describe_files(cell, (), {}, {str(tmp_path): True}, FolderLimits()) == [
        "The node shares the notebook's folder: the cell works in it."
    ]
