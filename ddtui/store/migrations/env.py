"""Alembic's entry: runs migrations in the transaction that `ddtui.store.database` has begun."""

from __future__ import annotations

from alembic import context

from ddtui.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    # SQLite cannot alter most things in place.
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
