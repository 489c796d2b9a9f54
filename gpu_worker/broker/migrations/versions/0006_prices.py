"""GPUs have prices: what was charged for a cell, beside what it held. What is there was charged as it was held."""

from collections.abc import Iterator
from contextlib import contextmanager

from alembic import op
from sqlalchemy import Column, Integer

from gpu_worker.broker.migrations import refuse_downgrade

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column, as it would have been written without any price."""
    comment = "the same at the price of the GPUs; NULL: as milli"
    op.add_column("cells", Column("charged_milli", Integer, comment=comment))
    with _cells_may_change():
        op.execute("UPDATE cells SET charged_milli = milli")


@contextmanager
def _cells_may_change() -> Iterator[None]:
    """Lift what forbids the database to change cells, for as long as this step needs."""
    if op.get_context().dialect.name == "postgresql":
        op.execute("ALTER TABLE cells DISABLE TRIGGER cells_is_final")
        yield
        op.execute("ALTER TABLE cells ENABLE TRIGGER cells_is_final")
        return
    op.execute("DROP TRIGGER cells_no_update")
    yield
    op.execute(
        "CREATE TRIGGER cells_no_update BEFORE UPDATE ON cells "
        "BEGIN SELECT RAISE(ABORT, 'the table cells is only appended to'); END"
    )


def downgrade() -> None:
    """There is no way back."""
    refuse_downgrade()
