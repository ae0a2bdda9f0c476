"""Why a bench could not go on: what happened, why, and what can be done.

::

    BenchError
    ├── ConnectionLost     the link to the host, or the way to the engine, broke: try again later
    ├── EngineBusy         the engine takes no more requests for now: try again later
    ├── ServerRefused      the engine refuses the requests: nothing changes by itself
    ├── NothingSucceeded   requests were sent and none was answered whole
    ├── BadPrompts         the prompts cannot be read
    └── CommandFailed      the external bench failed, or its output was not understood
"""

from __future__ import annotations


class BenchError(Exception):
    """`what` happened, `why`, and a `remedy` in words; whole cells were handed out before."""

    def __init__(self, what: str, why: str = "", remedy: str = "") -> None:
        super().__init__(f"{what}: {why}" if why else what)
        self.what = what
        self.why = why
        self.remedy = remedy


class ConnectionLost(BenchError):
    """The link to the host, or the way to the engine, broke."""


BUSY = frozenset({429, 503})
"""Statuses of HTTP that say: not now."""


class EngineBusy(BenchError):
    """The engine, or what stands before it, takes no more requests for now."""

    def __init__(self, why: str) -> None:
        super().__init__(
            "the engine takes no more requests for now",
            why,
            "see whom else it serves; or measure by a lower concurrency",
        )


class ServerRefused(BenchError):
    """The engine refuses the requests."""


class NothingSucceeded(BenchError):
    """Requests were sent and none was answered whole."""


class BadPrompts(BenchError):
    """The prompts cannot be read."""


class CommandFailed(BenchError):
    """The external bench failed, or its output was not understood."""
