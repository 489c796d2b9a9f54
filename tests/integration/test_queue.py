"""Two notebooks and one slot: the second sees where it stands, and then runs."""

from collections.abc import Callable

from tests.integration.conftest import Notebook, PoolProcess


def test_the_second_of_two_sees_its_position_and_the_reason_and_then_runs(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook]
) -> None:
    pool = start_pool("--slots", "1")
    first, second = open_notebook(pool), open_notebook(pool)
    busy = first.start_until("%%gpu\nprint('started')\nname = input()\nprint('over')", shows="started")
    output = second.run_until("%%gpu\nprint('mine')", shows="1st in line", then=lambda: first.answer("go"))
    assert "CPU slot" in output.shown
    assert "mine\n" in output.stream()
    assert output.error is None
    assert "over" in first.collect(busy).stream()


def test_a_stop_while_waiting_leaves_the_queue(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook]
) -> None:
    pool = start_pool("--slots", "1")
    first, second = open_notebook(pool), open_notebook(pool)
    busy = first.start_until("%%gpu\nprint('started')\ninput()", shows="started")
    output = second.run_until("%%gpu\nx = 1", shows="1st in line", then=second.interrupt)
    assert output.error is not None
    assert output.error["ename"] in ("KeyboardInterrupt", "CellStopped")
    assert not pool.picture().waiting
    first.answer("go")
    first.collect(busy)


def test_what_can_never_run_is_refused_at_once_with_the_reason(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook]
) -> None:
    notebook = open_notebook(start_pool("--slots", "1"))
    for options, reason in [
        ("--time '3 h'", "30 min"),
        ("--gpus 5", "5"),
        ("--qos gold", "gold"),
        ("--gpu-type A100", "CPU slots"),
        ("--cpus 9999", "the most that one node of this pool has is"),
        ("--memory 900TB", "--memory asks for 900 TB"),
    ]:
        output = notebook.run(f"%%gpu {options}\nprint(1)")
        assert output.error is not None
        assert output.error["ename"] == "Refused"
        assert reason in output.error["evalue"]
    assert notebook.run("%%gpu --cpus 1 --memory 1MB\nprint('still here')").stream() == "still here\n"
