"""What doctor prints at an admin's terminal."""

from gpu_worker.doctor.diagnosis import Diagnosis, Examination, describe_examination


def test_each_is_one_line_and_no_name_in_it_is_obeyed_by_a_terminal() -> None:
    """A process, a file or a kernel is called as its owner likes."""
    found = Diagnosis(check="gpu-in-use", what="GPU 0 is used by \x1b]0;root\x07\n\x1bc.", why="Why.", remedy="Do.")
    lines = list(describe_examination(Examination(diagnoses=(found,), looked_at=("\x9b2J",), not_looked_at=())))
    assert len(lines) == 2
    assert all(line.isprintable() for line in lines), lines
