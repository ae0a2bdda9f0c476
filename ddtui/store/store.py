"""The store: one database with everything that outlives a run of ddtui."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs

from ddtui.store.lock_wait import LockWait

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine

    from ddtui.store.experiments import Experiments
    from ddtui.store.loads import Loads
    from ddtui.store.measurements import Measurements
    from ddtui.store.reconfigurations import Reconfigurations

FILE_NAME = "ddtui.sqlite3"
FOLDER_VARIABLE = "DDTUI_DATA_DIR"


def data_folder(env: Mapping[str, str] = os.environ) -> Path:
    """The folder of the database: named by DDTUI_DATA_DIR, else the user's data folder."""
    if named := env.get(FOLDER_VARIABLE):
        return Path(named).expanduser()
    return platformdirs.user_data_path("ddtui", appauthor=False)


class Store:
    """Open it with `Store.open`; its parts are attributes. Methods block: call them in a thread.

    Several threads and several processes may use one database at once. Every method raises
    StoreError when the database fails.
    """

    def __init__(
        self,
        engine: Engine,
        where: str,
        *,
        wait: LockWait,
        loads: Loads,
        reconfigurations: Reconfigurations,
        experiments: Experiments,
        measurements: Measurements,
    ) -> None:
        self._engine = engine
        self.wait = wait
        """How it waits while another process keeps the database locked."""
        self.loads = loads
        """Loads of models that became ready."""
        self.reconfigurations = reconfigurations
        """Changes of units, with their steps."""
        self.experiments = experiments
        """Queues of experiments, with their logs."""
        self.measurements = measurements
        """What benches gave."""
        self.where = where
        """The database, in words."""

    @classmethod
    def open(cls, path: Path | None = None, *, wait: LockWait | None = None) -> Store:
        """Open the database, made or brought to the present schema where needed.

        Args:
            path: The database's file; the user's own one by default.
            wait: For how long, beyond a few seconds, to wait for another process that is writing.

        Raises:
            StoreError: It cannot be used.
        """
        # Not needed for the first screen, and slow to import.
        from ddtui.store.database import open_database  # noqa: PLC0415
        from ddtui.store.experiments import Experiments  # noqa: PLC0415
        from ddtui.store.loads import Loads  # noqa: PLC0415
        from ddtui.store.measurements import Measurements  # noqa: PLC0415
        from ddtui.store.reconfigurations import Reconfigurations  # noqa: PLC0415

        file = path if path is not None else data_folder() / FILE_NAME
        # A folder that somebody named may be shared with others.
        named = path is not None or os.environ.get(FOLDER_VARIABLE)
        wait = LockWait() if wait is None else wait
        engine = open_database(file, own_folder=not named, wait=wait)
        where = str(file)
        return cls(
            engine,
            where,
            wait=wait,
            loads=Loads(engine, where),
            reconfigurations=Reconfigurations(engine, where),
            experiments=Experiments(engine, where),
            measurements=Measurements(engine, where),
        )

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()
