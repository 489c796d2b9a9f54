"""Stop is pressed while a big array is on its way: the cell ends, its variables are whole, and the next cell works."""

from collections.abc import Callable, Iterator

import pytest

from bulletin.wire import keys
from tests.integration.conftest import PATIENCE_S, Notebook, Output, PoolProcess
from tests.integration.relay import Relay

pytest.importorskip("numpy")

#: Less than the array, more than anything else.
_SOME = 5_000_000
SETUP = "import numpy as np\nbig, kept = np.zeros(40_000_000, 'u1'), [0]\nwindow = big[10:20]"
CELL = "%%gpu\nbig += 1\nkept.append(1)\nnew = 1\nprint('over')"
#: What `CELL` has made of the variables, as one number, and whether the new one is there.
SEEN = "{int(big.min()), int(big.max()), int(window[0]), len(kept) - 1}, 'new' in dir()"


@pytest.fixture(scope="module")
def relay() -> Iterator[Relay]:
    made = Relay()
    yield made
    made.close()


@pytest.fixture(scope="module")
def pool(relay: Relay, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PoolProcess]:
    """A pool of one slot whose agent is reached through the relay, and shares no memory with notebooks.

    What is held counts as silence: a notebook may be away for longer than a press of stop takes on a busy machine.
    """
    folder = tmp_path_factory.mktemp("pool") / "p"
    started = PoolProcess(folder, "--slots", "1", f"--Pool.advertise={relay.address}", "--Pool.away=10")
    relay.lead(keys.read_private(folder / "agent.json", keys.AgentFile).address)
    (folder / "door").unlink()
    yield started
    started.stop()


@pytest.fixture
def notebook(pool: PoolProcess, open_notebook: Callable[..., Notebook]) -> Notebook:
    opened = open_notebook(pool)
    opened.run(SETUP)
    return opened


def press_when_held(relay: Relay, notebook: Notebook, *, to_notebook: bool) -> str:
    """Run the cell until the array is held on its way, and press stop; the message id of the execution."""
    relay.hold(_SOME, to_notebook=to_notebook)
    message_id = notebook.start(CELL)
    assert relay.was_held.wait(PATIENCE_S), "nothing was held"
    notebook.interrupt()
    return message_id


def runs_again(notebook: Notebook) -> bool:
    """Whether the same cell does what it should, from the variables as they were at first."""
    again = notebook.run(CELL)
    assert again.error is None, again.shown
    return notebook.value(SEEN) == "({1}, True)"


def test_a_stop_while_variables_go_out_ends_the_cell_before_it_began(relay: Relay, notebook: Notebook) -> None:
    output = notebook.collect(press_when_held(relay, notebook, to_notebook=False))
    assert output.error is not None
    assert "stopped before it ran" in output.error["evalue"]
    assert notebook.value(SEEN) == "({0}, False)"
    relay.release()
    assert runs_again(notebook)


def test_a_stop_while_results_return_waits_for_all_of_them(relay: Relay, notebook: Notebook) -> None:
    message_id = press_when_held(relay, notebook, to_notebook=True)

    def look(message: dict[str, object]) -> None:
        if "results are on their way" in Output([message], {}).shown:
            relay.release()

    output = notebook.collect(message_id, look)
    assert output.error is None, output.shown
    assert notebook.value(SEEN) == "({1}, True)"
    assert notebook.run("%%gpu\nprint(int(big.sum()))").stream() == "40000000\n"


def test_a_second_stop_while_results_return_leaves_all_of_them(relay: Relay, notebook: Notebook) -> None:
    message_id = press_when_held(relay, notebook, to_notebook=True)

    def look(message: dict[str, object]) -> None:
        if "Press stop again" in Output([message], {}).shown:
            notebook.interrupt()

    output = notebook.collect(message_id, look)
    assert output.error is not None
    assert "were left behind" in output.error["evalue"]
    assert notebook.value(SEEN) == "({0}, False)"
    relay.release()
    assert runs_again(notebook)
