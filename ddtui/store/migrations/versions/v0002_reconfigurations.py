"""Reconfigurations and their steps."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "reconfigurations",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.Column("unit", sa.String(255), nullable=False),
        sa.Column("who", sa.String(255), nullable=False),
        sa.Column("preset", sa.String(255), nullable=False),
        sa.Column("began", sa.Double(), nullable=False),
        sa.Column("ended", sa.Double(), nullable=True),
        sa.Column("ending", sa.String(32), nullable=False),
        sa.Column("drop_in", sa.Text(), nullable=False),
        sa.Column("drop_in_hash", sa.String(64), nullable=False),
        sa.Column("record", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_reconfigurations"),
    )
    op.create_index(
        "ix_reconfigurations_host_began", "reconfigurations", ["host", "simulated", "began"]
    )
    op.create_table(
        "reconfiguration_steps",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("reconfiguration", sa.String(32), nullable=False),
        sa.Column("step", sa.String(32), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_reconfiguration_steps"),
        sa.ForeignKeyConstraint(
            ["reconfiguration"], ["reconfigurations.id"], name="fk_steps_reconfiguration"
        ),
    )
    op.create_index(
        "ix_reconfiguration_steps_reconfiguration", "reconfiguration_steps", ["reconfiguration"]
    )


def downgrade() -> None:
    op.drop_table("reconfiguration_steps")
    op.drop_table("reconfigurations")
