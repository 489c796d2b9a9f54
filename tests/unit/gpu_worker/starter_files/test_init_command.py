"""`bulletin init`: what it asks, what it refuses, who may read what it writes."""

import grp
import os
import pty
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gpu_worker.quotas import read_quotas
from gpu_worker.starter_files.answers import KINDS, SiteAnswers
from gpu_worker.starter_files.file_texts import compose

WORDS = [sys.executable, "-P", "-m", "gpu_worker.cli", "init"]


def init(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*WORDS, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "quotas.toml").write_text("mine")
    done = init("workstation", f"--out={tmp_path}")
    assert done.returncode == 78
    assert f"{tmp_path / 'quotas.toml'} is there already, and is not overwritten" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["quotas.toml"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nodes"], "is no address by which nodes reach this host"),
        (["nodes", "--pool-host=127.0.0.1"], "is no address by which nodes reach this host"),
        (["server", "--groups=a;b"], "is no name of a group"),
        (["server", '--admins=ann"]'], "is no name of a user"),
        (["workstation", '--folder=/srv/a"b'], "Choose another"),
    ],
)
def test_what_would_make_no_file_is_refused(tmp_path: Path, words: list[str], said: str) -> None:
    done = init(*words, f"--out={tmp_path / 'files'}")
    assert done.returncode == 78
    assert said in done.stderr
    assert not (tmp_path / "files").exists()


def test_without_a_terminal_it_says_how_it_is_written() -> None:
    assert (init().returncode, init("laptop").returncode) == (2, 2)
    assert "usage: bulletin init workstation" in init().stderr


def test_who_has_slurm_is_told_which_files_are_theirs() -> None:
    assert "jobs of Slurm: as nodes, and docs/howto/slurm.md" in init("slurm").stderr


def test_groups_that_are_not_there_yet_are_to_be_made_first(tmp_path: Path) -> None:
    there = grp.getgrgid(os.getgid()).gr_name
    said = init("server", f"--groups=bulletin-none,{there}", f"--out={tmp_path / 'files'}").stdout
    assert said.index("groupadd bulletin-none\n") < said.index("bulletin doctor")
    assert f"groupadd {there}\n" not in said


@pytest.mark.parametrize("kind", KINDS)
def test_secrets_are_for_their_owner_and_drawn_anew(tmp_path: Path, kind: str) -> None:
    said = [init(kind, f"--out={tmp_path / n}", "--pool-host=10.77.0.1") for n in ("one", "two")]
    assert [done.returncode for done in said] == [0, 0]
    secret = [path for path in (tmp_path / "one").rglob("*") if "password" in path.name or path.name == "hub.env"]
    secret += list((tmp_path / "one").rglob("bulletin-token"))
    assert len(secret) == {"workstation": 2, "server": 0, "nodes": 2}[kind]
    for path in secret:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        other = tmp_path / "two" / path.relative_to(tmp_path / "one")
        assert path.read_text() != other.read_text()
        assert all(word not in done.stdout for done in said for word in path.read_text().split())


@pytest.mark.parametrize("kind", KINDS)
def test_the_quota_file_is_right_as_it_is(tmp_path: Path, kind: str) -> None:
    answers = SiteAnswers(kind=kind, out=tmp_path, folder=tmp_path / "pool", groups=("lab", "course"))  # type: ignore[arg-type]
    (quotas,) = [file for file in compose(answers) if file.path.name == "quotas.toml"]
    used = re.sub(r"^# (\[|\w+ = )", r"\1", quotas.text, flags=re.MULTILINE)
    assert "\nguaranteed = 1\n" in used
    for text in (quotas.text, used):
        (tmp_path / "quotas.toml").write_text(text)
        assert read_quotas(tmp_path / "quotas.toml")[1] == []


def test_on_a_terminal_it_asks_for_what_is_not_given(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen([*WORDS], stdin=theirs, stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    os.close(theirs)
    for answer in ("laptop", "nodes", "files", "", "course, staff", "ann", "localhost", "10.77.0.1"):
        os.write(ours, f"{answer}\n".encode())
    said, _ = process.communicate(timeout=120)
    os.close(ours)
    assert process.returncode == 0, said
    assert "Type one of workstation, server, nodes." in said
    assert "'localhost' is no address by which nodes reach this host" in said
    assert 'c.Pool.host = "10.77.0.1"' in (tmp_path / "files" / "hub" / "bulletin_config.py").read_text()
    hub = (tmp_path / "files" / "hub" / "jupyterhub_config.py").read_text()
    assert 'c.Authenticator.admin_users = {"ann"}' in hub
    assert '"course"' in hub
