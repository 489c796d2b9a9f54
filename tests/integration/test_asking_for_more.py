"""A cell is refused for its walltime, its notebook asks, an admin decides at a command line, and the cell runs."""

from collections.abc import Callable

import pytest

from gpu_worker import cli
from tests.integration.conftest import Notebook, PoolProcess

CELL = "%%gpu --time 4h\nprint('ran')"


def test_what_is_refused_is_asked_for_granted_at_a_command_line_and_runs(
    start_pool: Callable[..., PoolProcess],
    open_notebook: Callable[..., Notebook],
    capsys: pytest.CaptureFixture[str],
) -> None:
    pool = start_pool("--slots", "1")
    notebook = open_notebook(pool)

    def command(*words: str) -> str:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main(["request", *words, f"--folder={pool.folder}"])
        printed = capsys.readouterr()
        assert not ended.value.code, printed.err
        return printed.out

    refused = notebook.run(CELL)
    assert refused.error is not None
    assert 'To ask for it: `%gpu request --time 4h --why "..."`. Nothing was run' in refused.error["evalue"]
    for line, problem in (
        ("--time 4h", "--why"),
        ('--why "x"', "--time, --gpus or --budget"),
        ('--time soon --why "x"', "--time"),
        ('--tiem 4h --why "x"', "no option '--tiem'"),
        ('--time 30min --why "x"', "may have cells of up to 30 min without asking"),
        ("--withdraw a-1f00c3", "You see no request 'a-1f00c3'"),
        (f'--time 4h --why "{"x" * 501}"', "500 fit"),
    ):
        error = notebook.run(f"%gpu request {line}").error
        assert error is not None
        assert problem in error["evalue"]
        assert "Nothing was run" not in error["evalue"], "no cell was sent"

    assert "You have asked for nothing of late" in notebook.run("%gpu request").stream()
    asked = notebook.run('%gpu request --time 4h --why "=my thesis"').shown
    assert "Asked for cells of up to 4 h in project 'default'. A lead of the project or an admin decides." in asked
    assert "Asked for cells of up to 4 h" in notebook.run("%gpu").shown
    listed = command("list")
    assert "why: =my thesis" in listed
    name = listed.split()[0]
    assert "'=my thesis" in command("list", "--csv"), "no formula in a spreadsheet"
    command("decline", name, "--say=use batch")
    assert "use batch" in notebook.run("%gpu request").stream()
    assert notebook.run(CELL).error is not None

    def grant() -> None:
        command("grant", command("list").split()[0], "--for=2d", "--say=good luck")

    waited = notebook.run_until(
        '%gpu request --time 4h --why "my thesis" --wait', shows="Asked for cells of up to 4 h", then=grant
    )
    assert "Granted by " in waited.shown
    assert "(good luck). Run your cell again." in waited.shown
    assert "granted what you asked for" not in waited.shown, "it is said once"
    assert notebook.run(CELL).stream() == "ran\n"
    assert "Granted by " in notebook.run("%gpu").shown
