"""What the ledger says of cells, to the row: whose label it has, how long it was held, how it ended."""

from collections.abc import Callable

from gpu_worker.broker.ledger import Ledger
from gpu_worker.broker.records import CellRecord
from tests.integration.conftest import Notebook, PoolProcess, until


def cells_of(pool: PoolProcess) -> list[CellRecord]:
    """The cells that the ledger has, the first one first."""
    with Ledger.open(f"sqlite:///{pool.folder / 'ledger.sqlite'}", upgrade=False) as ledger:
        assert list(ledger.audit()) == []
        return ledger.cells()[::-1]


def test_each_cell_of_a_hot_session_has_its_own_label(
    start_pool: Callable[..., PoolProcess], open_notebook: Callable[..., Notebook]
) -> None:
    pool = start_pool("--slots", "1")
    notebook = open_notebook(pool)
    for options in ("--label first", "--label 'second one'", ""):
        output = notebook.run(f"%%gpu {options}\nprint('ran')")
        assert output.stream() == "ran\n", output.shown
    cells = until(lambda: found if len(found := cells_of(pool)) == 3 else None, "three cells in the ledger")
    assert len({cell.lease for cell in cells}) == 1
    assert [cell.label for cell in cells] == ["first", "second one", ""]
