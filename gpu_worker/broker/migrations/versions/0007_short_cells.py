"""Several short cells may be one row: how many they are, and by what each of them is found again."""

from alembic import op
from sqlalchemy import Column, Integer, Text

from gpu_worker.broker.migrations import refuse_downgrade

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns. What is there is one cell a row."""
    runs = Column("runs", Integer, nullable=False, server_default="1", comment="how many short cells it is")
    comment = "eight letters of each of them but the first; NULL where it is one"
    op.add_column("cells", runs)
    op.add_column("cells", Column("marks", Text, comment=comment))


def downgrade() -> None:
    """There is no way back."""
    refuse_downgrade()
