"""Queues of experiments with their logs, and measurements."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "queues",
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("host", "simulated", name="pk_queues"),
    )
    _create_experiments()
    op.create_table(
        "measurements",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.Column("unit", sa.String(255), nullable=False),
        sa.Column("configuration", sa.String(64), nullable=False),
        sa.Column("plan_key", sa.String(64), nullable=False),
        sa.Column("experiment", sa.String(32), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("began", sa.Double(), nullable=False),
        sa.Column("ended", sa.Double(), nullable=True),
        sa.Column("record", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_measurements"),
    )
    op.create_index("ix_measurements_host_began", "measurements", ["host", "simulated", "began"])
    op.create_index(
        "ix_measurements_configuration",
        "measurements",
        ["host", "simulated", "configuration", "plan_key"],
    )


def _create_experiments() -> None:
    op.create_table(
        "experiments",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.Column("position", sa.Double(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("sweep", sa.String(255), nullable=False),
        sa.Column("cleared", sa.Boolean(), nullable=False),
        sa.Column("created", sa.Double(), nullable=False),
        sa.Column("ended", sa.Double(), nullable=True),
        sa.Column("record", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_experiments"),
    )
    op.create_index(
        "ix_experiments_queue",
        "experiments",
        ["host", "simulated", "cleared", "state", "position"],
    )
    op.create_index("ix_experiments_sweep", "experiments", ["host", "simulated", "sweep"])
    op.create_table(
        "experiment_events",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("experiment", sa.String(32), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("who", sa.String(255), nullable=False),
        sa.Column("what", sa.String(32), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_experiment_events"),
        sa.ForeignKeyConstraint(["experiment"], ["experiments.id"], name="fk_events_experiment"),
    )
    op.create_index("ix_experiment_events_experiment", "experiment_events", ["experiment"])


def downgrade() -> None:
    op.drop_table("measurements")
    op.drop_table("experiment_events")
    op.drop_table("experiments")
    op.drop_table("queues")
