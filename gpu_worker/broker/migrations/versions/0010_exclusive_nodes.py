"""Of each cell and lease, whether nobody else was on the node."""

from alembic import op
from sqlalchemy import Boolean, Column, false

from gpu_worker.broker.migrations import refuse_downgrade

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. Of what is there, nobody asked for that."""
    for table in ("cells", "leases"):
        kind = Boolean(create_constraint=False)
        comment = "nobody else was on the node"
        op.add_column(table, Column("is_exclusive", kind, nullable=False, server_default=false(), comment=comment))


def downgrade() -> None:
    """There is no way back."""
    refuse_downgrade()
