"""Failures as the screens tell them."""

from __future__ import annotations

from ddtui.core.local_time import in_local_time
from ddtui.hosts.base import HostError
from ddtui.store import StoreError
from ddtui.ui.source import ControlProblem


def problem_of(error: HostError | StoreError | OSError) -> ControlProblem:
    """What has failed, and what to do. Who has a lock has noted since when in UTC."""
    if isinstance(error, StoreError):
        return ControlProblem(f"{error.what}: {error.why}".removesuffix(": "), error.remedy)
    if isinstance(error, OSError):
        return ControlProblem(f"{error.strerror or error}: {error.filename or ''}".strip(": "))
    return ControlProblem(in_local_time(error.what), error.remedy)
