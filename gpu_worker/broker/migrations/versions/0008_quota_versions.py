"""The texts that the quota file has had, so that a change is undone in one step."""

from alembic import op
from sqlalchemy import BigInteger, Column, Integer, String, Text

from gpu_worker.broker.migrations import refuse_downgrade

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table. What the file was before, nobody knows."""
    count = BigInteger().with_variant(Integer(), "sqlite")
    op.create_table(
        "quota_versions",
        Column("seq", count, primary_key=True, autoincrement=True),
        Column("version", String(64), nullable=False, comment="what its text is called"),
        Column("at_ms", BigInteger, nullable=False),
        Column("who", String(256), nullable=False),
        Column("why", Text, nullable=False),
        Column("changes", Text, nullable=False, comment="JSON list of sentences"),
        Column("content", Text, nullable=False, comment="of the file"),
    )


def downgrade() -> None:
    """There is no way back."""
    refuse_downgrade()
