"""Loads that became ready."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "loads",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.Column("unit", sa.String(255), nullable=False),
        sa.Column("invocation", sa.String(64), nullable=False),
        sa.Column("model", sa.String(1024), nullable=False),
        sa.Column("tp", sa.Integer(), nullable=False),
        sa.Column("flags_signature", sa.String(16), nullable=False),
        sa.Column("began", sa.Double(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("record", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_loads"),
        sa.UniqueConstraint("host", "simulated", "unit", "invocation", name="uq_loads_invocation"),
    )
    op.create_index("ix_loads_host_began", "loads", ["host", "simulated", "began"])


def downgrade() -> None:
    op.drop_table("loads")
