"""`--fallback cpu`: where the pool does not run a cell, the notebook does, as if nobody had asked the pool."""

from collections.abc import Callable

from tests.integration.conftest import Notebook, PoolProcess

_HERE = "The cell runs here instead"


def test_without_a_pool_the_cell_runs_here_and_reads_as_ever(open_notebook: Callable[..., Notebook]) -> None:
    notebook = open_notebook(BULLETIN_CONNECTION_FILE="/nowhere/connection.json")
    done = notebook.run("%%gpu --fallback cpu\nx = 6\nprint('here')\nx * 7")
    assert "does not exist" in done.shown
    assert _HERE in done.shown
    assert (done.stream(), done.result) == ("here\n", "42")
    assert notebook.value("x, _") == "(6, 42)"
    assert notebook.run("%%gpu --fallback cpu\nx;").result is None
    raised = notebook.run("%%gpu --fallback cpu\ndef f():\n    x / 0\nf()")
    assert raised.error is not None
    assert raised.error["ename"] == "ZeroDivisionError"
    assert "----> 4 f()" in raised.shown
    assert "bulletin" not in raised.shown.partition("ZeroDivisionError")[2]
    awaited = notebook.run("%%gpu --fallback cpu\nimport asyncio\nawait asyncio.sleep(0)")
    assert "Put %%cpu above it" in awaited.shown
    assert "NoPool" in notebook.run("%%gpu\n1").shown


def test_every_cell_may_fall_back(open_notebook: Callable[..., Notebook]) -> None:
    notebook = open_notebook(BULLETIN_CONNECTION_FILE="/nowhere/connection.json")
    notebook.run("%gpu on")
    assert "Meanwhile, `%gpu off` runs cells here" in notebook.run("1 + 1").shown
    assert "Meanwhile" not in notebook.run("%%gpu\n1 + 1").shown
    notebook.run("%gpu on --fallback cpu")
    done = notebook.run("y = 3\ny + 1")
    assert _HERE in done.shown
    assert done.result == "4"
    assert "----> 2 y / 0" in notebook.run("# one\ny / 0").shown


def test_a_cell_that_is_refused_cannot_be_sent_or_has_waited_runs_here(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook]
) -> None:
    pool = start_pool("--slots", "1")
    first, second = open_notebook(pool), open_notebook(pool)
    refused = second.run("%%gpu --gpus 5 --fallback cpu\nprint('a')")
    assert "The pool refused the cell" in refused.shown
    assert refused.stream() == "a\n"
    second.run("import socket\nplug = socket.socket()")
    unsendable = second.run("%%gpu --fallback cpu\nplug.fileno() > 0")
    assert "plug is a network connection, which cannot go to the pool." in unsendable.shown
    assert unsendable.result == "True"
    busy = first.start_until("%%gpu\nprint('started')\ninput()", shows="started")
    waited = second.run("%%gpu --max-wait 1s --fallback cpu\nprint('b')")
    assert "No CPU slot came free within 1.0 s." in waited.shown
    assert waited.stream() == "b\n"
    given_up = second.run("%%gpu --max-wait 1s\nprint('c')")
    assert given_up.error is not None
    assert given_up.error["ename"] == "WaitedTooLong"
    assert not pool.picture().waiting
    first.answer("go")
    first.collect(busy)
