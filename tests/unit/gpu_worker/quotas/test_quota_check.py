"""The file itself, and the command that checks it."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bulletin.errors import BadConfig
from gpu_worker.quotas import LIMIT_BYTES, read_quotas
from tests.unit.gpu_worker.quotas.quota_texts import HERE


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    """Root may read everything; for a moment we are somebody else."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_what_is_no_readable_file_is_said_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "folder.toml").mkdir()
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "loop.toml").symlink_to(tmp_path / "loop.toml")
    large = tmp_path / "large.toml"
    with large.open("wb") as file:
        file.truncate(10 * LIMIT_BYTES)
    for path, words in [
        (tmp_path / "none.toml", "There is no such file"),
        (tmp_path / "folder.toml", "This is a folder"),
        (tmp_path / "pipe.toml", "This is not a file"),
        (Path("/dev/null"), "This is not a file"),
        (tmp_path / "loop.toml", "It cannot be read"),
        (tmp_path / ("n" * 300 + ".toml"), "It cannot be read"),
        (large, "It is larger than 1000000 bytes"),
    ]:
        with pytest.raises(BadConfig, match=words) as caught:
            read_quotas(path)
        assert str(caught.value).startswith(f"{path}: ")
    with pytest.raises(BadConfig, match="cannot be the name of a file"):
        read_quotas("a\0.toml")


def test_a_file_that_may_not_be_read_is_said_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "q.toml"
    path.write_text("")
    path.chmod(0)
    with as_nobody(), pytest.raises(BadConfig, match="It may not be read"):
        read_quotas(path)


def bulletin(*words: str) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "gpu_worker.cli", "quota", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=HERE)
    return done.returncode, done.stdout, done.stderr


def test_the_command_says_ok_or_every_error(tmp_path: Path) -> None:
    path = tmp_path / "q.toml"
    path.write_text("[projects.a]\nguarantee = 4\nlimit = -1\n")
    code, out, err = bulletin("check", str(path))
    assert (code, out) == (1, "")
    assert [line.removeprefix(f"{path}:")[:3] for line in err.splitlines()] == ["2: ", "3: "]
    path.write_text("[projects.a]\nguaranteed = 4\n")
    assert bulletin("check", str(path)) == (0, "ok: 1 project, 4 classes of service\n", "")
    code, out, err = bulletin("check", "--gpus=3", str(path))
    assert (code, out) == (0, "ok: 1 project, 4 classes of service\n")
    assert err.startswith(f"{path}:2: warning: 4 GPUs are guaranteed, and the pool has 3 GPUs.")


@pytest.mark.parametrize("words", [("show", "q.toml"), ("chekc", "q.toml"), ("check", "a.toml", "b.toml")])
def test_a_command_that_is_not_understood_shows_its_form(words: tuple[str, ...]) -> None:
    code, out, err = bulletin(*words)
    assert (code, out) == (2, "")
    assert "usage: bulletin quota [show]" in err
    assert "bulletin quota check FILE [--gpus=N]" in err
