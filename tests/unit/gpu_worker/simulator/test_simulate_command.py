"""`bulletin simulate`: what it prints, plays and draws, and what it says no to."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bulletin.errors import BadConfig
from gpu_worker.broker.ledger import CellRecord, Ledger
from gpu_worker.simulator.simulate_command import SimulateCommand


def run(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    command = SimulateCommand()
    command.initialize(list(words))
    command.start()
    return capsys.readouterr().out


SMALL = ("--generate", "course", "--people", "2", "--gpus", "1", "--nodes", "1")
WEEK = ("--generate", "course", "--people", "12", "--gpus", "3", "--nodes", "2")


def test_the_command_prints_a_table_and_plots(capsys: pytest.CaptureFixture[str]) -> None:
    said = run(capsys, *WEEK)
    assert said.startswith("course, seed 1, 12 people, version 1: ")
    assert "a simulation" in said
    for line in (
        "started at once (1 s)",
        "worst hour",
        "closed when idle for 20 min",
        "saved against that",
        "cells by their wait",
        "GPUs that run cells",
        "day 7",
    ):
        assert line in said


def test_a_trace_that_was_saved_gives_the_same_report(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    made = run(capsys, *WEEK, "--json", "--save-trace", f"{tmp_path}/week.jsonl")
    again = run(capsys, f"{tmp_path}/week.jsonl", "--gpus", "3", "--nodes", "2", "--json")
    assert json.loads(made) == json.loads(again)
    [found] = json.loads(made)["runs"]
    assert found["cells"] == found["returned"] > 100


def test_two_settings_stand_side_by_side(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "short.json").write_text(
        '{"qos": [{"name": "interactive", "priority": 1, "walltime_ms": 60000, "queued_per_user": 20}]}'
    )
    said = run(capsys, *WEEK, "--compare", f"{tmp_path}/short.json").splitlines()
    assert said[2].split() == ["defaults", "short"]
    [cut] = [line.split() for line in said if line.startswith("  cut at their walltime")]
    assert int(cut[-2]) == 0 < int(cut[-1])
    assert "GPUs that run cells, short" in said


def test_the_fewest_gpus_are_found(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(run(capsys, *WEEK[:-4], "--gpus", "12", "--nodes", "1", "--at-once", "0.9", "--json"))
    assert 1 <= found["runs"][0]["gpus"] < 12
    assert found["runs"][0]["waits"]["at_once"] >= 0.9


def test_with_slower_evictions_fewer_cells_start_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    usual, slow = (
        json.loads(run(capsys, *WEEK, "--json", "--evict-delay", delay))["runs"][0] for delay in ("0.5", "9")
    )
    assert slow["waits"]["at_once"] < usual["waits"]["at_once"]
    assert slow["waits"]["at_once"] < slow["waited_for_nobody"]


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("--state-delay", "3"), "waits"),
        (("--model-delay", "3"), "waits"),
        (("--long-cells", "0.2"), "cell_gpu_hours"),
        (("--lost-node", "11"), "lost"),
    ],
)
def test_another_assumption_gives_another_report(
    words: tuple[str, ...], field: str, capsys: pytest.CaptureFixture[str]
) -> None:
    [usual], [other] = (json.loads(run(capsys, *WEEK, "--json", *more))["runs"] for more in ((), words))
    assert other[field] != usual[field]
    assert other["cells"] == usual["cells"]


def test_a_figure_is_drawn_and_is_the_same_again(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for name in ("one.svg", "two.svg"):
        run(capsys, *SMALL, "--figure", f"{tmp_path}/{name}")
    drawn = (tmp_path / "one.svg").read_text()
    assert "GPUs; one per open notebook would be" in drawn
    assert drawn == (tmp_path / "two.svg").read_text()
    with pytest.raises(BadConfig, match="cannot be written"):
        run(capsys, *SMALL, "--figure", f"{tmp_path}/none/week.svg")


def test_a_recorded_ledger_is_played(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ledger.db"
    records = [
        CellRecord(
            cell=f"c{at}", lease="l", session=f"s{at % 2}", user="ann", project="ml", qos="interactive", node="n",
            slots=("g0",), kind="gpu", gpus=1, started_at_ms=10_000 * at, ended_at_ms=10_000 * at + 4_000,
            held_ms=4_000, ran_ms=4_000, outcome="returned",
        )
        for at in range(6)
    ]  # type: ignore[arg-type]  # fmt: skip
    with Ledger.open(url) as ledger:
        ledger.record_cells(records, at_ms=0)
    found = json.loads(run(capsys, "--ledger", url, "--gpus", "1", "--nodes", "1", "--json"))
    assert found["trace"]["made_by"] == "ledger"
    assert (found["runs"][0]["cells"], found["runs"][0]["returned"]) == (6, 6)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "Give one trace"),
        (("week.jsonl", "--generate", "course"), "Give one trace"),
        (("--generate", "party"), "no workload 'party'"),
        (("--generate", "course", "--gpus", "2"), "not enough for 8 nodes"),
    ],
)
def test_a_command_that_cannot_be_says_why(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BadConfig, match=said):
        run(capsys, *words)


def test_the_program_ends_with_the_status_of_bad_configuration() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gpu_worker.cli", "simulate", "--generate", "party"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (78, "")
    assert done.stderr.startswith("bulletin simulate: There is no workload 'party'.")
