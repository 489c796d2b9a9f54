"""In a pool of CPU slots nobody is told of GPUs, whatever has just been started again."""

import signal
from collections.abc import Callable
from typing import Any

from tests.integration.conftest import Notebook, Output, PoolProcess, until


def test_a_cell_waits_for_a_cpu_slot_also_at_a_broker_that_no_agent_has_come_back_to(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook]
) -> None:
    pool = start_pool("--slots", "1")
    first, second = open_notebook(pool), open_notebook(pool)
    busy = first.start_until("%%gpu\nprint('started')\ninput()", shows="started")
    agent, broker = pool.part("agent"), pool.part("broker")
    shown: list[str] = []
    done: list[str] = []

    def look(message: dict[str, Any]) -> None:
        text = Output([message], {}).shown
        if "1st in line" in text and not done:
            done.append("killed")
            agent.send_signal(signal.SIGSTOP)
            broker.send_signal(signal.SIGKILL)
            until(lambda: pool.part("broker").pid != broker.pid, "the broker to be started again")
        elif "was started again" in text and done == ["killed"]:
            done.append("continued")
            agent.send_signal(signal.SIGCONT)
            first.answer("go")
        shown.append(text)

    output = second.collect(second.start("%%gpu\nprint('mine')"), look)
    first.collect(busy)
    assert "mine" in output.stream()
    lines = [line for text in shown for line in text.splitlines() if "Waiting for" in line]
    assert lines
    assert all("Waiting for a CPU slot" in line for line in lines), lines
