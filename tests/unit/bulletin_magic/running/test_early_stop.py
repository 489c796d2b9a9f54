"""What a stop means that comes before a cell is sent, where other code took the interrupt for its own."""

import contextlib
import signal
from collections.abc import Iterator

import pytest

from bulletin.errors import CellStopped
from bulletin_magic.running.early_stop import EarlyStop


@pytest.fixture(autouse=True)
def hears_interrupts() -> Iterator[None]:
    """Hear SIGINT as a kernel does: a shell may have had it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press_and_swallow() -> None:
    with contextlib.suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_a_stop_that_came_to_nothing_ends_a_cell_that_was_not_sent() -> None:
    with pytest.raises(CellStopped, match="before it ran"), EarlyStop():
        press_and_swallow()


def test_a_cell_that_was_sent_keeps_its_results_whatever_was_pressed_before() -> None:
    try:
        with EarlyStop() as early_stop:
            press_and_swallow()
            early_stop.cell_sent()
            early_stop.raise_if_pressed()
    except CellStopped as error:  # it is a KeyboardInterrupt, which would end all tests
        pytest.fail(str(error))


def test_a_stop_after_a_cell_came_back_without_having_run_ends_it() -> None:
    with contextlib.suppress(CellStopped), EarlyStop() as early_stop:
        early_stop.cell_sent()
        early_stop.cell_returned()
        press_and_swallow()
        early_stop.raise_if_pressed()
        pytest.fail("it goes on")
