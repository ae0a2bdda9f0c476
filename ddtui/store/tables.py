"""The tables, as the newest migration leaves them."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    MetaData,
    String,
    Table,
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
