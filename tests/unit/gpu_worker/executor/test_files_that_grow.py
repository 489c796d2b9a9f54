"""A file that is changed in the notebook while it comes to the node."""

from pathlib import Path

from gpu_worker.executor.folder_requests import PART_BYTES
from tests.unit.gpu_worker.executor.both_folders import Both

LOG = "line\n" * (PART_BYTES // 2)  # some parts


def test_a_log_that_grows_all_the_while_comes_as_it_was_at_a_moment_and_anew_for_the_next_cell(both: Both) -> None:
    both.write({"log": LOG})
    both.begin()

    def log_more() -> None:
        with (both.notebook / "log").open("a") as log:
            log.write("more\n")

    both.before_part = log_more
    both.bring("log")
    both.before_part = lambda: None
    there = both.mirror.path("log").read_text()
    assert there.startswith(LOG)
    assert set(there.removeprefix(LOG).splitlines()) == {"more"}
    (note,) = both.run(lambda: None)
    assert note == "log grows in the notebook: the cell has what was in it when it began to come."
    both.begin()
    both.bring("log")
    assert both.mirror.path("log").read_text() == (both.notebook / "log").read_text()


def test_a_file_that_is_written_anew_all_the_while_is_not_mixed_of_several(both: Both) -> None:
    both.write({"data": LOG})
    both.begin()
    both.before_part = (both.notebook / "data").touch  # of the same size
    both.bring("data")
    (note,) = both.run(lambda: Path("data").read_text())
    assert note == "data is empty on the node: it is changed in the notebook again and again while it is read."
