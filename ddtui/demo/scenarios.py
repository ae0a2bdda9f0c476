"""What the simulated host can be doing when one connects to it."""

from __future__ import annotations

SCENARIOS: dict[str, str] = {
    "serving": "the engine is up and serves a light stream of requests",
    "idle": "the engine is up and nobody asks it anything",
    "loading": "the unit has just started: the load is under way",
    "failing": "the unit has just started, and its load dies on a kernel that this GPU lacks",
    "crash-loop": "the engine refuses its configuration at each start, and systemd restarts it",
    "hang": "the load stops moving half-way through the weights",
}
"""Name to description, in the order to offer them."""

DEFAULT_SCENARIO = "serving"
"""The one used when none is named."""

SETTLED = ("serving", "idle")
"""Those in which the engine was started long ago."""

FAILURES_OF: dict[str, str] = {
    "failing": "sm120",
    "crash-loop": "ddtree-unknown",
    "hang": "hang",
}
"""Scenario to the simulated failure of the engine (see `ddtui.demo.failures`)."""
