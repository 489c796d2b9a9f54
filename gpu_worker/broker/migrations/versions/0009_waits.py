"""Of each cell, how long it waited in line: what its user asks for, and what no other column tells."""

from alembic import op
from sqlalchemy import BigInteger, Column

from gpu_worker.broker.migrations import refuse_downgrade

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. Of what is there, nobody knows it."""
    comment = "in line, before its slots were granted; NULL: not known"
    op.add_column("cells", Column("waited_ms", BigInteger, comment=comment))


def downgrade() -> None:
    """There is no way back."""
    refuse_downgrade()
