"""Whether all that a request asks for is in force, by what is known of the engine. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from ddtui.core.knobs import NONE, by_name, knob_name
from ddtui.core.launch import Request, Value
from ddtui.core.samples import LinkState
from ddtui.core.snapshot import ReadinessState, Snapshot
from ddtui.experiments.knob_values import numeric

_UP = frozenset({ReadinessState.READY, ReadinessState.DEGRADED})


def in_force(request: Request, snapshot: Snapshot) -> bool:
    """Whether a running engine has every value of a request; False where one is not known.

    A request that asks for nothing is none, and what a variable of the unit has become in its
    process is not known here.
    """
    if snapshot.link.state is not LinkState.LIVE or snapshot.readiness.state not in _UP:
        return False
    if request.environment or not (request.knobs or request.flags):
        return False
    knobs = by_name(snapshot.engine.knobs)
    info = snapshot.server_info
    report: Mapping[str, object] = info.arguments if info is not None else {}
    return all(
        _same(value, knobs.get(knob_name(name) or name, NONE))
        for name, value in request.knobs.items()
    ) and all(
        _same(value, report.get(name.strip("-").replace("-", "_"), NONE))
        for name, value in request.flags.items()
    )


def _same(asked: Value, found: object) -> bool:
    one, other = _text(asked), _text(found)
    if one == other:
        return True
    numbers = numeric(one), numeric(other)
    return numbers[0] is not None and numbers[0] == numbers[1]


def _text(value: object) -> str:
    return NONE if value is None else str(value).strip().lower()
