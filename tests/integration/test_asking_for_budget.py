"""A cell is refused for its project's budget, its notebook asks for more, it is granted, and the cell runs."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gpu_worker import cli
from tests.integration.conftest import Notebook, PoolProcess

CELL = "%%gpu --time 30min\nprint('ran')"


def test_who_lacks_budget_asks_for_it_and_runs_until_it_is_ended(
    start_pool: Callable[..., PoolProcess],
    open_notebook: Callable[..., Notebook],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    quotas = tmp_path / "quotas.toml"
    quotas.write_text('[projects.default]\nbudget = "0.1 GPU-hours per month"\n')
    pool = start_pool("--slots", "1", f"--Pool.quota_file={quotas}")
    notebook = open_notebook(pool)

    def decide(*words: str) -> None:
        with pytest.raises(SystemExit) as ended:
            cli.main(["request", *words, f"--folder={pool.folder}"])
        assert not ended.value.code, capsys.readouterr().err

    refused = notebook.run(CELL).error
    assert refused is not None
    assert 'To ask for it: `%gpu request --budget 1 --why "..."`' in refused["evalue"]
    for line, problem in (("--budget many", "no number of GPU-hours"), ("--budget 1 --gpus 2", "alone")):
        error = notebook.run(f'%gpu request {line} --why "x"').error
        assert error is not None
        assert problem in error["evalue"]
    asked = notebook.run('%gpu request --budget 1 --why "the deadline"').shown
    assert "Asked for 1 more CPU slot-hours of the budget of project 'default'" in asked
    name = asked.rpartition("(")[2].partition(")")[0]
    decide("grant", name)
    assert "Granted by " in notebook.run("%gpu request").stream()
    assert notebook.run(CELL).stream() == "ran\n"
    notebook.run("%gpu stop")
    decide("decline", name)
    assert notebook.run(CELL).error is not None
