"""Whether credits are a project's among its siblings, or those of its own users among the projects inside it."""

from alembic import op
from sqlalchemy import Boolean, Column, false

from gpu_worker.broker.migrations import refuse_downgrade

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. What is there is of projects."""
    op.add_column(
        "credits",
        Column(
            "own_users",
            Boolean(create_constraint=False),
            nullable=False,
            server_default=false(),
            comment="of its own users among the projects inside it",
        ),
    )


def downgrade() -> None:
    """There is no way back."""
    refuse_downgrade()
