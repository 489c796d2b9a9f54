"""What the world sees of a cell that waits: a server that counts activity, and a pool whose kernel is gone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.integration.conftest import Notebook, Output, PoolProcess, until


def _is_busy(message: dict[str, Any]) -> bool:
    return bool(message["msg_type"] == "status" and message["content"]["execution_state"] == "busy")


def test_a_cell_in_the_queue_and_a_silent_cell_count_as_activity(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook], tmp_path: Path
) -> None:
    pool = start_pool("--slots", "1")
    first, second = open_notebook(pool), open_notebook(pool)
    busy = first.start_until("%%gpu\nprint('started')\ninput()", shows="started")
    second.run("get_ipython().magics_manager.registry['BulletinMagics'].activity_every_s = 0.2")
    signs: list[str] = []

    def look(message: dict[str, Any]) -> None:
        """Let the first cell end after two signs in the queue, and the second after two more while it runs."""
        signs.append("sign" if _is_busy(message) else Output([message], {}).shown)
        if _signs_after("1st in line", signs) == 2 and "answered" not in signs:
            signs.append("answered")
            first.answer("go")
        if _signs_after("running", signs) == 2:
            (tmp_path / "seen").touch()

    cell = "%%gpu\nimport os\nprint('running', flush=True)\nwhile not os.path.exists('seen'):\n    pass\n'done'"
    assert second.collect(second.start(cell), look).result == "'done'"
    first.collect(busy)


def _signs_after(text: str, signs: list[str]) -> int:
    """How often the kernel has said that it is busy since it has shown the text."""
    place = next((number for number, shown in enumerate(signs) if text in shown), None)
    return 0 if place is None else signs[place:].count("sign")


def test_a_kernel_that_is_restarted_leaves_the_queue_and_takes_a_cell_along_that_shall_not_outlive_it(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook]
) -> None:
    pool = start_pool("--slots", "1")
    first, second = open_notebook(pool), open_notebook(pool)
    first.run("%config BulletinMagics.on_restart = 'cancel'")
    stubborn = "while True:\n    try:\n        time.sleep(60)\n    except KeyboardInterrupt:\n        pass"
    first.start_until(f"%%gpu\nimport time\nprint('started', flush=True)\n{stubborn}", shows="started")
    second.start_until("%%gpu\n1", shows="1st in line")
    second.manager.restart_kernel()
    until(lambda: not pool.picture().waiting, "the request of the kernel that is gone to go")
    first.manager.restart_kernel()
    until(lambda: [slot.state for slot in pool.picture().slots] == ["free"], "the slot of the kernel that is gone")
