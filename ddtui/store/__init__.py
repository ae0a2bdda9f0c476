"""What ddtui keeps between runs, in a database in the user's data folder.

Importing this is cheap: SQLAlchemy and Alembic are imported when a store is opened.
"""

from __future__ import annotations

from ddtui.store.errors import Stale, StoreError
from ddtui.store.store import Store, data_folder

__all__ = ["Stale", "Store", "StoreError", "data_folder"]
