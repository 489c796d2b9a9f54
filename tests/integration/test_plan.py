"""`%%gpu --plan` and `%gpu vars` in a real notebook: nothing runs, nothing is leased, and the figures are true."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.conftest import PATIENCE_S, Notebook, PoolProcess
from tests.integration.own_pools import pools


def row(shown: str, name: str) -> list[str]:
    """The cells of a row of a table in plain text, without those that are empty."""
    line = next(line for line in shown.splitlines() if line.startswith(f"{name} "))
    return re.split(r"\s{2,}", line)


def test_a_plan_before_and_after_a_cell_and_after_a_change(
    pool: PoolProcess, open_notebook: Callable[..., Notebook]
) -> None:
    pytest.importorskip("numpy")
    notebook = open_notebook(pool)
    notebook.run("import numpy as np\nbig = np.zeros(3 * 2**17)\nnames = ['a']\nran = []")
    assert "Nothing of this notebook is on the pool." in notebook.run("%gpu vars").shown

    planned = notebook.run("%%gpu --plan\nran.append(big.sum())\nnames")
    assert planned.error is None, planned.shown
    assert row(planned.shown, "big") == ["big", "array", "3.15 MB", "3.15 MB"]
    assert "A CPU slot is free: the cell would not have to wait." in planned.shown
    assert notebook.value("ran") == "[]"
    assert {slot.state for slot in pool.picture().slots} == {"free"}
    assert [sorted(content["data"]) for content in planned.of("display_data")] == [["text/html", "text/plain"]]

    notebook.run("%%gpu\nran.append(big.sum())\nnames")
    again = notebook.run("%%gpu --plan\nran.append(big.sum())\nnames").shown
    assert row(again, "big") == ["big", "array", "3.15 MB", "0 B", "There already."]
    assert row(again, "names")[-2:] == ["0 B", "There already."]
    assert "This notebook holds a CPU slot of" in again

    notebook.run("big[2**17] = 1")
    changed = notebook.run("%%gpu --plan\nran.append(big.sum())\nnames").shown
    assert row(changed, "big") == ["big", "array", "3.15 MB", "1.05 MB", "Only the parts that changed."]

    other = notebook.run("%%gpu --plan --gpus 2\nbig").shown
    assert row(other, "big")[-1] == "3.15 MB"
    assert "another executor" in other

    notebook.run("%gpu stop")
    gone = notebook.run("%%gpu --plan\nbig").shown
    assert row(gone, "big")[-1] == "3.15 MB"
    assert "The executor of the last cell is gone" in gone


def test_a_plan_names_what_is_refused_and_what_stays(notebook: Notebook) -> None:
    notebook.run(
        "import threading\nlock = threading.Lock(); lock.acquire()\n"
        "cfg = {'lock': lock}\ngen = (i for i in 'ab')\na = [1]"
    )
    planned = notebook.run("%%gpu --plan\nnext(gen), cfg, a")
    assert planned.error is None, planned.shown
    assert row(planned.shown, "gen") == ["gen", "generator", "Cannot be sent: see below."]
    assert "it is a generator" in planned.shown
    assert "Make a list of it first, or create it inside the cell." in planned.shown
    assert row(planned.shown, "cfg['lock']")[1] == "lock"
    assert "Stays here. A lock cannot travel." in planned.shown
    assert row(planned.shown, "a")[1] == "list"
    assert notebook.value("next(gen)") == "'a'"


def test_a_module_beside_the_notebook_is_shown_with_its_size(notebook: Notebook) -> None:
    notebook.run("open('beside_plan.py', 'w').write('value = 1\\n')\nimport beside_plan")
    planned = notebook.run("%%gpu --plan\nbeside_plan.value").shown
    assert row(planned, "beside_plan")[1:4] == ["your module", "10 B", "10 B"]


def test_vars_show_what_stayed_on_the_pool_until_it_is_given_back(
    pool: PoolProcess, open_notebook: Callable[..., Notebook]
) -> None:
    pytest.importorskip("numpy")
    notebook = open_notebook(pool)
    notebook.run("%%gpu\nimport numpy as np\ngen = (i for i in 'ab')\nbig = np.ones(1000)")
    held = notebook.run("%gpu vars").shown
    assert row(held, "gen") == ["gen", "generator", "only on the pool, for %%gpu cells to use"]
    assert row(held, "big") == ["big", "array", "8 KB", "in the notebook and on the pool"]
    assert "A CPU slot of" in held
    assert "8 KB of arrays in all" in held
    notebook.run("%gpu stop")
    after = notebook.run("%gpu vars").shown
    assert "Nothing of this notebook is on the pool." in after
    assert "gen is gone: the process on the pool that held it has ended." in after


def test_a_plan_is_shown_where_no_pool_answers(open_notebook: Callable[..., Notebook], tmp_path: Path) -> None:
    notebook = open_notebook(BULLETIN_CONNECTION_FILE=str(tmp_path / "nowhere.json"))
    notebook.run("a = [1]")
    planned = notebook.run("%%gpu --plan\na")
    assert planned.error is None
    assert row(planned.shown, "a")[1] == "list"
    assert "nowhere.json does not exist." in planned.shown


def test_a_plan_starts_no_pool(open_notebook: Callable[..., Notebook], tmp_path: Path) -> None:
    notebook = open_notebook(BULLETIN_RUNTIME_DIR=str(tmp_path / "runtime"))
    notebook.run("a = [1]")
    planned = notebook.run("%%gpu --plan\na")
    assert planned.error is None
    assert "The cell would start a pool of your own first." in planned.shown
    assert pools(tmp_path / "runtime") == []


def test_the_tab_key_knows_options_and_commands(notebook: Notebook) -> None:
    def matches(code: str) -> list[str]:
        message_id = notebook.client.complete(code, len(code))
        while (reply := notebook.client.get_shell_msg(timeout=PATIENCE_S))["parent_header"].get("msg_id") != message_id:
            pass
        found: list[str] = reply["content"]["matches"]
        return found

    assert matches("%%gpu --pl") == ["--plan"]
    assert matches("%%gpu --gpus 2 --ti") == ["--time"]
    assert matches("%gpu v") == ["vars"]
    everything = matches("%%gpu --")
    assert {"--gpus", "--max-wait", "--plan", "--background"} <= set(everything)
    assert [word for word in everything if not word.startswith("--") or not word[2].islower()] == []
    assert "--print" not in everything  # Python's names stay out of it
    assert "print" not in matches("%gpu ")
    assert matches("%%gpu\npri") == ["print"]
