"""Where each panel of the monitor goes in a terminal of a given size: one pure function."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from textual.geometry import Region

from ddtui.ui.widgets.gpus import panel_height
from ddtui.ui.widgets.too_small import LEAST_HEIGHT, LEAST_WIDTH


class Part(StrEnum):
    """The panels, by the ids of their widgets."""

    HEADER = "header"
    ALERTS = "alerts"
    CHANGE = "change"
    GPUS = "gpus"
    ENGINE = "engine"
    LOAD = "load"
    READINESS = "readiness"
    UNIT = "unit"
    SYSTEM = "system"
    LOG = "log"
    QUEUE = "queue-short"
    TOO_SMALL = "too-small"


@dataclass(frozen=True)
class Need:
    """What decides how much room the panels want."""

    gpus: int = 0
    foreign: int = 0
    """Lines for processes outside the unit: 0 or 1."""
    alerts: int = 0
    """Lines of alerts at this width."""
    change: int = 0
    """Lines of a reconfiguration, at this width; 0 for none."""
    loading: bool = False
    phases: int = 6
    warnings: int = 0
    """Lines of warnings below the phases."""
    evidence: int = 5
    """Lines of evidence, the summary of the last load among them."""
    queue: int = 0
    """Lines of the queue in short; 0 for none."""


Plan = dict[Part, Region]


def alert_room(height: int) -> int:
    """Lines that the alerts may take, of `height` without the footer."""
    return max(1, height // 3)


def change_room(height: int) -> int:
    """Lines that a reconfiguration may take in its frame, of `height` without the footer."""
    return max(2, height // 3 - 2)


def plan(width: int, height: int, need: Need) -> Plan:
    """Regions of the panels shown; a panel without a region has no room here.

    Args:
        width: of the terminal, in cells.
        height: of the terminal without the footer's line.
        need: what decides how much room the panels want.
    """
    if width < LEAST_WIDTH or height < LEAST_HEIGHT - 1:
        return {Part.TOO_SMALL: Region(0, 0, max(1, width), max(1, height))}
    alerts = min(need.alerts, alert_room(height))
    top = 2 + alerts
    out: Plan = {Part.HEADER: Region(0, 0, width, 2)}
    if alerts:
        out[Part.ALERTS] = Region(0, 2, width, alerts)
    if need.change:
        lines = min(need.change, change_room(height)) + 2
        out[Part.CHANGE] = Region(0, top, width, lines)
        top += lines
    body = Region(0, top, width, height - top)
    if width >= 170 and height >= 40:
        _two_columns(out, body, need)
    elif width >= 100 and height >= 29:
        _stacked_with_columns(out, body, need)
    else:
        _stacked(out, body, need)
    if need.queue:
        _beside_log(out, need.queue)
    return out


def _beside_log(out: Plan, lines: int) -> None:
    """The queue in short, in a part of the log's room: at its right, or above it where it is high.

    Where that leaves too little of the log it is one line, without a frame.
    """
    log = out.get(Part.LOG)
    if log is None:
        return
    if log.width >= 110 and log.height >= 4:
        width = min(64, log.width * 2 // 5)
        out[Part.QUEUE] = Region(log.right - width, log.y, width, log.height)
        out[Part.LOG] = Region(log.x, log.y, log.width - width, log.height)
    elif log.height >= 11:
        height = min(lines + 2, 6)
        out[Part.QUEUE] = Region(log.x, log.y, log.width, height)
        out[Part.LOG] = Region(log.x, log.y + height, log.width, log.height - height)
    elif log.height >= 4:
        out[Part.QUEUE] = Region(log.x, log.y, log.width, 1)
        out[Part.LOG] = Region(log.x, log.y + 1, log.width, log.height - 1)


def _stack(out: Plan, area: Region, parts: list[tuple[Part, int]]) -> None:
    """Put panels below each other with the heights given; a height of 0 leaves one out."""
    y = area.y
    for part, lines in parts:
        fitting = min(lines, area.bottom - y)
        if fitting >= 3:
            out[part] = Region(area.x, y, area.width, fitting)
            y += fitting


def _two_columns(out: Plan, body: Region, need: Need) -> None:
    """A wide and high terminal: everything at once, the log across the bottom."""
    half = (body.width + 1) // 2
    readiness = need.evidence + 2
    least_log = 8
    if need.loading:
        load = need.phases + 2 + need.warnings
        gpus = panel_height(need.gpus, need.foreign, half, body.height - least_log - 5)
        upper = max(gpus, load + readiness)
        parts = [(Part.GPUS, upper), (Part.UNIT, 5)]
        others = [(Part.LOAD, load), (Part.READINESS, upper - load), (Part.SYSTEM, 5)]
        upper = min(upper + 5, body.height - least_log)
    else:
        most = body.height - least_log - readiness - 10
        gpus = panel_height(need.gpus, need.foreign, half, most)
        # The charts want some height even where the GPUs need little.
        upper = min(max(gpus + readiness + 10, 26), body.height - least_log)
        readiness = upper - gpus - 10
        parts = [(Part.GPUS, gpus), (Part.READINESS, readiness), (Part.UNIT, 5), (Part.SYSTEM, 5)]
        others = [(Part.ENGINE, upper)]
    _stack(out, Region(0, body.y, half, upper), parts)
    _stack(out, Region(half, body.y, body.width - half, upper), others)
    out[Part.LOG] = Region(0, body.y + upper, body.width, body.height - upper)


def _stacked_with_columns(out: Plan, body: Region, need: Need) -> None:
    """GPUs across, then the engine beside readiness, unit and machine, then the log."""
    log = 6 if body.height < 34 else 7
    middle_least = max(9, min(15, body.height // 2 - 3))
    gpus = panel_height(need.gpus, need.foreign, body.width, body.height - log - middle_least)
    _stack(out, body, [(Part.GPUS, gpus)])
    middle = Region(0, body.y + gpus, body.width, body.height - gpus - log)
    left = Region(0, middle.y, (middle.width + 1) // 2, middle.height)
    right = Region(left.width, middle.y, middle.width - left.width, middle.height)
    if need.loading:
        load = min(need.phases + 2 + need.warnings, middle.height)
        _stack(out, Region(0, middle.y, body.width, load), [(Part.LOAD, load)])
        left = Region(0, left.y + load, left.width, left.height - load)
        right = Region(right.x, right.y + load, right.width, right.height - load)
        _stack(out, left, [(Part.READINESS, left.height)])
        unit = 4 if right.height >= 8 else 0
        _stack(out, right, [(Part.UNIT, unit), (Part.SYSTEM, right.height - unit)])
    else:
        readiness = min(max(need.evidence + 2, middle.height - 13), middle.height)
        rest = middle.height - readiness
        unit = min(6, rest // 2) if rest >= 6 else rest
        _stack(out, left, [(Part.ENGINE, left.height)])
        _stack(
            out,
            right,
            [(Part.READINESS, readiness), (Part.UNIT, unit), (Part.SYSTEM, rest - unit)],
        )
    out[Part.LOG] = Region(0, body.bottom - log, body.width, log)


def _stacked(out: Plan, body: Region, need: Need) -> None:
    """A small terminal: GPUs in short, the engine, the load or the log."""
    engine = 4
    log = 5 if body.height >= 20 else 4
    load = min(need.phases + 2 + need.warnings, max(3, body.height - 12)) if need.loading else 0
    if need.loading:
        engine = 0
    gpus = panel_height(
        need.gpus,
        need.foreign,
        body.width,
        max(3, body.height - engine - load - log),
        double=False,
    )
    spare = body.height - gpus - engine - load - log
    readiness = need.evidence + 2
    if spare < readiness or need.loading:  # the header tells the state, and how much is proved
        readiness = 0
    spare -= readiness
    chart = min(spare, 9) if spare >= 5 and not need.loading else 0
    engine += chart
    log += spare - chart
    _stack(
        out,
        body,
        [
            (Part.GPUS, gpus),
            (Part.ENGINE, engine),
            (Part.LOAD, load),
            (Part.READINESS, readiness),
            (Part.LOG, log),
        ],
    )
