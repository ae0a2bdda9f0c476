"""The time, injected wherever it matters so that tests and pictures can freeze it."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]
"""Returns Unix seconds."""

system_clock: Clock = time.time
