"""`bulletin` itself: what it says of its commands, and of what is none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bulletin import __version__
from gpu_worker import cli
from tests.other_users import in_mount_namespace


def _said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as exit_:
        cli.main(list(words))
    said = capsys.readouterr()
    return exit_.value.code, said.out, said.err


def test_a_word_that_is_no_command_is_named_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    sentence = "bulletin: there is no command 'statsu'. Did you mean 'status'? `bulletin --help` lists the commands.\n"
    assert _said(capsys, "statsu") == (2, "", sentence)
    assert "mean" not in _said(capsys, "zzz")[2]


def test_the_version_can_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert _said(capsys, "--version") == (0, f"bulletin {__version__}\n", "")


def test_help_lists_every_command_in_lines_that_fit_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    status, text, _ = _said(capsys, "--help")
    assert status == 0
    assert all(f"  bulletin {name}" in text for name in cli.COMMANDS)
    assert max(map(len, text.splitlines())) <= 100
    assert _said(capsys) == (2, "", text)


def test_help_of_which_only_the_first_lines_are_read_complains_of_nothing() -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        words = [sys.executable, "-m", "gpu_worker.cli", "quota", "--help"]
        done = subprocess.run(words, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_part_of_a_pool_waits_for_no_import_that_only_other_commands_need() -> None:
    begin = "import sys; from gpu_worker.cli import COMMANDS; COMMANDS['agent']; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", begin], capture_output=True, text=True, check=True).stdout.split()
    assert "gpu_worker.event_log" in modules
    others = ("rich", "yaml", "sqlalchemy", "gpu_worker.doctor", "gpu_worker.simulator", "gpu_worker.scheduler.machine")
    assert set(others) & set(modules) == set()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("status", "--foldr=/x"), "There is no option --foldr. Did you mean --folder?"),
        (("pool", "--isolaton=shared"), "There is no option --isolaton. Did you mean --isolation?"),
        (("pool", "--Pool.requre=limits"), "There is no option --Pool.requre. Did you mean --Pool.require?"),
        (("agent", "--Pol.slots=3"), "There is no option --Pol. Did you mean --Pool?"),
        (("simulate", "--zzz=3"), "There is no option --zzz. --help"),
    ],
)
def test_an_option_that_is_none_is_refused_with_the_nearest(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], sentence: str
) -> None:
    status, out, err = _said(capsys, *words)
    assert (status, out) == (78, "")
    assert sentence in err


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("c.Pool.requre = ['limits']\n", "sets c.Pool.requre, which is no setting. Did you mean c.Pool.require?"),
        ("c.Poool.slots = 2\n", "sets c.Poool, which is no setting. Did you mean c.Pool?"),
        ("c.SlurmAgents.partitoin = 'gpu'\n", "Did you mean c.SlurmAgents.partition?"),
        ("c.Pool.slots = = 2\n", "line 1 cannot be read: SyntaxError"),
        ("c.Pool.slots = none\n", "cannot be read: NameError"),
    ],
)
@pytest.mark.parametrize("command", ["pool", "broker", "agent", "queue"])
def test_nothing_starts_with_a_file_that_sets_what_is_none_or_cannot_be_read(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str, text: str, sentence: str
) -> None:
    file = tmp_path / "bulletin_config.py"
    file.write_text(text)
    status, out, err = _said(capsys, command, f"--config={file}", f"--folder={tmp_path}")
    assert (status, out) == (78, "")
    assert f"{file}" in err
    assert sentence in err


def test_a_file_may_have_sections_of_other_commands(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "bulletin_config.py"
    file.write_text("c.Pool.keep = 60\nc.QuotaCommand.gpus = 8\nc.Scaling.spare_slots = 1\n")
    _, _, err = _said(capsys, "queue", f"--config={file}", f"--folder={tmp_path}")
    assert err.startswith("bulletin queue: No pool runs"), err


def test_a_section_may_stand_in_that_of_a_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "bulletin_config.py"
    file.write_text("c.AgentCommand.Pool.device = 'cpu'\nc.Command.Pool.keep = 60\nc.Pool.Scaling.max_nodes = 2\n")
    _, _, err = _said(capsys, "queue", f"--config={file}", f"--folder={tmp_path}")
    assert err.startswith("bulletin queue: No pool runs"), err
    file.write_text("c.Command.Pool.kepe = 60\n")
    _, _, err = _said(capsys, "queue", f"--config={file}", f"--folder={tmp_path}")
    assert "sets c.Pool.kepe, which is no setting. Did you mean c.Pool.keep?" in err


@pytest.mark.parametrize("name", ["agent.conf", "bulletin_config", "."])
def test_what_would_be_read_as_nothing_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    file = (tmp_path / name).resolve()
    if name != ".":
        file.write_text("c.Pool.require = ['limits']\n")
    (tmp_path / "agent.py").write_text("c.Pool.slots = 3\n")
    status, _, err = _said(capsys, "agent", f"--config={file}", f"--folder={tmp_path}")
    assert (status, f"{file} is no configuration file" in err) == (78, True)


def test_a_file_of_json_is_read(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "bulletin_config.json"
    file.write_text('{"Pool": {"requre": ["limits"]}}')
    _, _, err = _said(capsys, "queue", f"--config={file}", f"--folder={tmp_path}")
    assert "sets c.Pool.requre" in err


@pytest.mark.skipif(os.getuid() != 0, reason="only root makes a small disk")
def test_a_disk_that_is_full_is_said_with_the_file_and_what_to_do(tmp_path: Path) -> None:
    folder = tmp_path / "pool"
    folder.mkdir()
    small = [f"mount -t tmpfs -o size=4k,mode=711 tmpfs {folder}", f"(head -c 4096 /dev/zero > {folder}/full)"]
    words = [*in_mount_namespace(small), sys.executable, "-m", "gpu_worker.cli", "broker", "--folder", str(folder)]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert f"{folder}/pool.json cannot be written, since the disk is full" in ended.stderr
