"""Whether everybody comes to a program: through each folder, and through each link's."""

from pathlib import Path

from gpu_worker.doctor.file_owners import find_closed


def test_what_keeps_people_from_a_program_is_found_behind_links_too(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents):
        if not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o001)
    closed, opened = tmp_path / "home", tmp_path / "opt"
    program = closed / "bin" / "python3"
    program.parent.mkdir(parents=True)
    opened.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for folder in (closed, program.parent, opened):
        folder.chmod(0o755)
    link = opened / "python"
    link.symlink_to(program)
    assert find_closed(link) is None
    closed.chmod(0o700)
    assert find_closed(link) == closed
    closed.chmod(0o755)
    program.chmod(0o700)
    assert find_closed(link) == program
    program.chmod(0o711)
    assert find_closed(link) == program, "an interpreter is run, and its links are read"
    assert find_closed(tmp_path / "nothing") is None


def test_links_that_lead_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to(tmp_path / "other")
    (tmp_path / "other").symlink_to(tmp_path / "one")
    find_closed(tmp_path / "one")
