"""What a notebook and an executor share stays right when a stop comes between a cell's end and what becomes of it."""

from typing import Any

import pytest

from bulletin import state
from bulletin.ids import LeaseId
from bulletin_magic.running.shared_state import SharedState

CELL = "numbers.append(len(numbers))"


class Executor:
    """The other half: it runs what it is sent."""

    def __init__(self) -> None:
        self.table, self.namespace = state.Table(), dict[str, Any]()

    def run(self, sent: state.Captured) -> state.Changed:
        """Take in what was sent, and run the cell."""
        baseline = state.restore(sent.parts, self.namespace, table=self.table)
        exec(CELL, self.namespace)
        return state.changes(self.namespace, baseline)


@pytest.mark.parametrize("lost", [1, 2])
def test_a_cell_after_one_whose_results_were_never_taken_in_has_the_notebooks_values(lost: int) -> None:
    shared, executor = SharedState(), Executor()
    namespace = {"numbers": [0, 1]}
    sent = shared.capture(namespace, state.needs(CELL, namespace))
    shared.apply(executor.run(sent).parts, namespace, sent, LeaseId("lease"))
    for _ in range(lost):
        executor.run(shared.capture(namespace, state.needs(CELL, namespace)))
    sent = shared.capture(namespace, state.needs(CELL, namespace))
    shared.apply(executor.run(sent).parts, namespace, sent, LeaseId("lease"))
    assert namespace["numbers"] == [0, 1, 2, 3]
