"""MIG slices count as their part of a GPU: how much of one cells, leases and their spans held."""

from alembic import op
from sqlalchemy import Column, Integer

from gpu_worker.broker.migrations import refuse_downgrade

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. What is there was counted in whole slots, and stays so."""
    for table in ("cells", "leases", "lease_spans"):
        comment = "thousandths of a slot, all together; NULL: all are whole"
        op.add_column(table, Column("milli", Integer, comment=comment))


def downgrade() -> None:
    """There is no way back."""
    refuse_downgrade()
