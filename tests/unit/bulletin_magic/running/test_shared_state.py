"""What a notebook and an executor share stays right when a stop comes between a cell's end and what becomes of it."""

from collections.abc import Iterator
from typing import Any

import pytest

from bulletin import state
from bulletin.ids import LeaseId
from bulletin_magic.running.shared_state import SharedState
from tests.state.notebook import Executor

CELL = "numbers.append(len(numbers))"


@pytest.fixture
def executor() -> Iterator[Executor]:
    """A process of its own: what is restored in this one would run the modules of the tests again."""
    child = Executor()
    yield child
    child.close()


class Notebook:
    """A list of numbers, and what the executor knows of it."""

    def __init__(self, executor: Executor) -> None:
        self._executor, self._shared = executor, SharedState()
        self.namespace: dict[str, Any] = {"numbers": [0, 1]}

    def send(self) -> tuple[state.Captured, Any]:
        """Run the cell there, and give what was sent and what came back."""
        sent = self._shared.capture(self.namespace, state.needs(CELL, self.namespace))
        answer = self._executor.ask(CELL, sent.parts)
        assert "failed" not in answer, answer["failed"]
        return sent, answer["parts"]

    def run(self) -> None:
        """Run the cell there, and take in its results."""
        sent, parts = self.send()
        self._shared.apply(parts, self.namespace, sent, LeaseId("lease"))


@pytest.mark.parametrize("lost", [1, 2])
def test_a_cell_after_one_whose_results_were_never_taken_in_has_the_notebooks_values(
    lost: int, executor: Executor
) -> None:
    notebook = Notebook(executor)
    notebook.run()
    for _ in range(lost):
        notebook.send()
    notebook.run()
    assert notebook.namespace["numbers"] == [0, 1, 2, 3]
