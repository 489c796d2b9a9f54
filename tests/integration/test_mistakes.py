"""What people do wrong in a %%gpu cell, and what they then read: what a plain cell says, or one sentence that helps."""

import pytest

from tests.integration.conftest import Notebook


@pytest.mark.parametrize(
    ("before", "cell", "words"),
    [
        ("f = open('/dev/null')", "%%gpu\nf.read()", "or open the file inside the cell."),
        (
            "import threading\nlock = threading.Lock()\n_ = lock.acquire()",
            "%%gpu\nlock.release()",
            "it is a lock. Nothing was run; your variables are unchanged. Release it before the cell, or create it",
        ),
        ("import zlib\nm = zlib.compressobj()", "%%gpu\nm.flush()", "are unchanged. Create it inside the cell."),
        (
            "",
            "%%gpu --time 5 hours\n1",
            'If it belongs to --time, write --time "5 hours"; code goes on the lines below.',
        ),
        ("", "%%gpu --gpus 1 import torch\n1", "'import' cannot stand beside %%gpu: options start with --, and code"),
        (
            "",
            "%%gpu\n%%gpu --gpus 2\n1",
            "UsageError: This cell is on the pool already: only its first line says where",
        ),
        ("", "%%gpu\n%gpu", "UsageError: %gpu is for the notebook. Write it in a cell of its own, without %%gpu."),
        ("", "%%gpu\nexit()", "SystemExit: exit() has ended this cell. The notebook goes on."),
        (
            "",
            "%%gpu\nimport os\nos._exit(3)",
            "ended by itself, with status 3 (as os._exit does). Your variables are as",
        ),
    ],
)
def test_a_mistake_is_met_with_a_sentence_that_helps(before: str, cell: str, words: str, notebook: Notebook) -> None:
    notebook.run(before)
    told = notebook.run(cell)
    assert told.reply["status"] == "error"
    assert words in told.shown


def test_exit_ends_the_cell_alone_and_nobody_is_told_how_to_leave_a_terminal(notebook: Notebook) -> None:
    told = notebook.run("%%gpu\nexit()")
    assert "SystemExit: exit() has ended this cell. The notebook goes on." in told.shown
    assert "To exit: use" not in told.shown
    own = notebook.run("raise SystemExit(3)")
    assert "To exit: use" in own.shown  # IPython's own words of a plain cell are as they were


def test_a_value_that_stayed_in_the_notebook_is_named_with_the_line_that_touched_it(notebook: Notebook) -> None:
    notebook.run("import sqlite3\nclass Store:\n    db = None\nstore = Store()\nstore.db = sqlite3.connect(':memory:')")
    told = notebook.run("%%gpu\ntried = 1\nrows = store.db.execute('select 1')\n")
    assert told.error is not None
    assert told.error["evalue"] == (
        "store.db is a sqlite3.Connection and stayed in the notebook. "
        "Connect inside the cell, or read what it needs into a DataFrame first."
    )
    assert "----> 3 rows = store.db.execute('select 1')" in told.shown
    assert "handles.py" not in told.shown
    assert notebook.value("tried, store.db.execute('select 1').fetchone()") == "(1, (1,))"


def test_a_value_that_stayed_on_the_pool_says_where_it_can_be_used(notebook: Notebook) -> None:
    notebook.run("%%gpu\nletters = (letter for letter in 'ab')")
    told = notebook.run("first = 1\nsecond = next(letters)")
    assert told.error is not None
    assert told.error["evalue"] == "letters is a generator and stayed on the pool. Use it in a %%gpu cell."
    assert "----> 2 second = next(letters)" in told.shown
    assert "handles.py" not in told.shown
    assert notebook.value("%%gpu\nnext(letters)") == "'a'"


def test_a_recursion_without_end_is_shown_as_one(notebook: Notebook) -> None:
    """Nobody looks through all modules for each of its thousand frames: `inspect` knows where cells belong."""
    notebook.run("def again(n):\n    return again(n + 1)")
    told = notebook.run("%%gpu\nagain(0)")
    assert told.error is not None
    assert told.error["ename"] == "RecursionError"
    assert "----> 2 again(0)" in told.shown
    known = "import inspect\ninspect.getmodule(again.__code__).__name__"
    assert notebook.value(f"%%gpu\n{known}") == "'__main__'"


@pytest.mark.parametrize(
    ("last", "stream"),
    [
        ("os.kill(os.getpid(), 9)", "stdout"),
        ("os._exit(3)", "stdout"),
        ("__import__('ctypes').string_at(0)", "stdout"),
        ("os.write(2, b'line 1\\nline 2\\n'), os.abort()", "stderr"),
    ],
)
def test_the_last_words_of_a_process_that_dies_arrive_and_only_once(last: str, stream: str, notebook: Notebook) -> None:
    prints = "print('line 1'); print('line 2')" if stream == "stdout" else "pass"
    output = notebook.run(f"%%gpu\nimport os\n{prints}\n{last}")
    assert output.error is not None
    assert output.error["ename"] == "CellLost"
    assert output.stream(stream) == "line 1\nline 2\n"


@pytest.mark.parametrize("count", [500, 10_000])
def test_the_last_words_arrive_after_much_that_was_printed_at_once(count: int, notebook: Notebook) -> None:
    prints = f"for i in range({count}): print('epoch', i, 'x' * 60)\nprint('why')"
    output = notebook.run(f"%%gpu\nimport os\n{prints}\nos._exit(3)")
    expected = [f"epoch {i} {'x' * 60}" for i in range(count)]
    assert output.stream("stdout").splitlines() == [*expected, "why"]
