"""Measurements and experiments made safe to show: one line, without secrets, capped. Pure.

Titles, notes and causes come from operators, hosts and models; nothing of them is trusted. What is
made safe here is plain text still: each format escapes it in its own way.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from ddtui.core.experiment import Experiment, Match
from ddtui.core.knobs import by_name
from ddtui.core.measurement import Cell, CodingResult, Measurement, Provenance, Spread
from ddtui.core.redact import redact_argv, redact_environment, redact_mapping, safe_text
from ddtui.core.text import named_values

NAME = 120
"""Most characters of a title, a name or a value."""
TEXT = 500
"""Most characters of a note, a cause or a detail."""

_OTHERS = {"errors", "notes", "positions", "seconds"}
_FIGURES = tuple(field for field in Cell.__struct_fields__ if field not in _OTHERS)


def name(text: str) -> str:
    """A title, a name or a value as one safe line."""
    return safe_text(text, NAME).strip()


def text(longer: str) -> str:
    """A note, a cause or a detail as one safe line."""
    return safe_text(longer, TEXT).strip()


def measurement(found: Measurement) -> Measurement:
    """The measurement with every text safe, and every figure finite or None."""
    return msgspec.structs.replace(
        found,
        unit=name(found.unit),
        title=name(found.title),
        knobs={name(knob): name(value) for knob, value in by_name(found.knobs).items()},
        plan=msgspec.structs.replace(
            found.plan,
            name=name(found.plan.name),
            prompts=name(found.plan.prompts),
            command=redact_argv(tuple(map(text, found.plan.command))),
        ),
        cells=tuple(map(_cell, found.cells)),
        coding=None if found.coding is None else _coding(found.coding),
        provenance=_provenance(found.provenance),
        disturbed=tuple(map(text, found.disturbed)),
        cause=text(found.cause),
        owner=None,
    )


def experiment(found: Experiment) -> Experiment:
    """The experiment with its texts safe. Its request stays: it is what is asked for."""
    return msgspec.structs.replace(
        found,
        plan=msgspec.structs.replace(found.plan, command=redact_argv(found.plan.command)),
        title=name(found.title),
        sweep=name(found.sweep),
        hypothesis=text(found.hypothesis),
        note=text(found.note),
        by=name(found.by),
        match=None if found.match is None else _match(found.match),
        cause=None if found.cause is None else _mapping(found.cause),
    )


def _match(found: Match) -> Match:
    words = {field: text(getattr(found, field)) for field in ("policy", "formula", "reference")}
    return msgspec.structs.replace(found, knob=name(found.knob), **words)


def _cell(cell: Cell) -> Cell:
    figures = {field: _finite(getattr(cell, field)) for field in _FIGURES}
    return msgspec.structs.replace(
        cell,
        **figures,
        seconds=cell.seconds if math.isfinite(cell.seconds) else 0.0,
        positions=tuple(each for each in cell.positions if math.isfinite(each)),
        errors={name(what): count for what, count in cell.errors.items()},
        notes=tuple(map(text, cell.notes)),
    )


def _finite(value: Any) -> Any:
    """What is no number was not measured."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Spread):
        bounds = (value.median, value.low, value.high)
        if not all(map(math.isfinite, bounds)):
            return None
        return Spread(*bounds, tuple(each for each in value.values if math.isfinite(each)))
    return value


def _coding(coding: CodingResult) -> CodingResult:
    return msgspec.structs.replace(
        coding,
        verdicts={name(task): verdict for task, verdict in coding.verdicts.items()},
        details={name(task): text(detail) for task, detail in coding.details.items()},
        isolation=name(coding.isolation),
    )


def _provenance(found: Provenance) -> Provenance:
    pairs = redact_environment(f"{key}={value}" for key, value in found.environment.items())
    return msgspec.structs.replace(
        found,
        engine=name(found.engine),
        engine_version=name(found.engine_version),
        driver=name(found.driver),
        gpus=tuple(map(name, found.gpus)),
        argv=tuple(map(text, redact_argv(found.argv))),
        environment={name(key): text(value) for key, value in named_values(pairs).items()},
        server_args=_mapping(found.server_args),
        evidence=tuple(map(text, found.evidence)),
        throttled=tuple(map(name, found.throttled)),
        load_seconds=_finite(found.load_seconds),
        temperature_c=_finite(found.temperature_c),
    )


def _mapping(values: dict[str, Any]) -> dict[str, Any]:
    return {name(key): _plain(value) for key, value in redact_mapping(values).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, dict):
        return {name(str(key)): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return _finite(value)
