"""Brings a database's schema to the one this ddtui knows, through Alembic."""

from __future__ import annotations

import threading

import alembic.command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, Engine, inspect

from ddtui.store.database import MIGRATIONS, writing
from ddtui.store.errors import StoreError

_migrating = threading.Lock()
"""Alembic keeps the migration under way in module globals."""


def migrate(engine: Engine, where: str) -> None:
    """Bring the schema up to date; safe when several processes do it at once.

    Raises:
        StoreError: The database is another program's, or a newer ddtui's.
    """
    try:
        _migrate(engine, where)
    except CommandError as error:
        remedy = "Move the file away, or name another folder in DDTUI_DATA_DIR"
        raise StoreError(f"cannot use the database {where}", str(error), remedy) from error


def _migrate(engine: Engine, where: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    scripts = ScriptDirectory.from_config(config)
    head = scripts.get_current_head()
    with engine.connect() as connection:
        if MigrationContext.configure(connection).get_current_revision() == head:
            return
    with _migrating, writing(engine) as connection:
        # Again, now that nobody else can change it.
        revision = MigrationContext.configure(connection).get_current_revision()
        _check_revision(connection, scripts, revision, where)
        if revision != head:
            config.attributes["connection"] = connection
            alembic.command.upgrade(config, "head")


def _check_revision(
    connection: Connection, scripts: ScriptDirectory, revision: str | None, where: str
) -> None:
    what = f"cannot use the database {where}"
    if revision is not None and revision not in {
        each.revision for each in scripts.walk_revisions()
    }:
        raise StoreError(
            what,
            f"a newer ddtui has changed its schema (to {revision})",
            "Upgrade ddtui here, or name another folder in DDTUI_DATA_DIR",
        )
    if revision is None and (tables := inspect(connection).get_table_names()):
        raise StoreError(
            what,
            f"it is another program's (it has the table {tables[0]})",
            "Name another folder in DDTUI_DATA_DIR",
        )
