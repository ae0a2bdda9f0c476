"""The tables, as the newest migration leaves them."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData()

loads = Table(
    "loads",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("host", String(255), nullable=False),
    Column("simulated", Boolean, nullable=False),
    Column("unit", String(255), nullable=False),
    Column("invocation", String(64), nullable=False),
    Column("model", String(1024), nullable=False),
    Column("tp", Integer, nullable=False),
    Column("flags_signature", String(16), nullable=False),
    Column("began", Double, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("record", JSON, nullable=False),
    UniqueConstraint("host", "simulated", "unit", "invocation", name="uq_loads_invocation"),
    Index("ix_loads_host_began", "host", "simulated", "began"),
)

reconfigurations = Table(
    "reconfigurations",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("kind", String(16), nullable=False),
    Column("host", String(255), nullable=False),
    Column("simulated", Boolean, nullable=False),
    Column("unit", String(255), nullable=False),
    Column("who", String(255), nullable=False),
    Column("preset", String(255), nullable=False),
    Column("began", Double, nullable=False),
    Column("ended", Double, nullable=True),
    Column("ending", String(32), nullable=False),
    Column("drop_in", Text, nullable=False),
    Column("drop_in_hash", String(64), nullable=False),
    Column("record", JSON, nullable=False),
    Index("ix_reconfigurations_host_began", "host", "simulated", "began"),
)

reconfiguration_steps = Table(
    "reconfiguration_steps",
    metadata,
    Column("id", Integer, primary_key=True),
    Column(
        "reconfiguration",
        String(32),
        ForeignKey("reconfigurations.id", name="fk_steps_reconfiguration"),
        nullable=False,
    ),
    Column("step", String(32), nullable=False),
    Column("at", Double, nullable=False),
    Column("detail", Text, nullable=False),
    Index("ix_reconfiguration_steps_reconfiguration", "reconfiguration"),
)

queues = Table(
    "queues",
    metadata,
    Column("host", String(255), primary_key=True),
    Column("simulated", Boolean, primary_key=True),
    # Counts every change of the host's experiments, settings and measurements.
    Column("version", Integer, nullable=False),
    Column("settings", JSON, nullable=False),
)

experiments = Table(
    "experiments",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("host", String(255), nullable=False),
    Column("simulated", Boolean, nullable=False),
    Column("position", Double, nullable=False),
    Column("state", String(16), nullable=False),
    Column("sweep", String(255), nullable=False),
    Column("cleared", Boolean, nullable=False),
    Column("created", Double, nullable=False),
    Column("ended", Double, nullable=True),
    Column("record", JSON, nullable=False),
    Index("ix_experiments_queue", "host", "simulated", "cleared", "state", "position"),
    Index("ix_experiments_sweep", "host", "simulated", "sweep"),
)

experiment_events = Table(
    "experiment_events",
    metadata,
    Column("id", Integer, primary_key=True),
    Column(
        "experiment",
        String(32),
        ForeignKey("experiments.id", name="fk_events_experiment"),
        nullable=False,
    ),
    Column("at", Double, nullable=False),
    Column("who", String(255), nullable=False),
    Column("what", String(32), nullable=False),
    Column("detail", Text, nullable=False),
    Index("ix_experiment_events_experiment", "experiment"),
)

measurements = Table(
    "measurements",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("host", String(255), nullable=False),
    Column("simulated", Boolean, nullable=False),
    Column("unit", String(255), nullable=False),
    Column("configuration", String(64), nullable=False),
    Column("plan_key", String(64), nullable=False),
    Column("experiment", String(32), nullable=False),
    Column("state", String(16), nullable=False),
    Column("began", Double, nullable=False),
    Column("ended", Double, nullable=True),
    Column("record", JSON, nullable=False),
    Index("ix_measurements_host_began", "host", "simulated", "began"),
    Index("ix_measurements_configuration", "host", "simulated", "configuration", "plan_key"),
)
