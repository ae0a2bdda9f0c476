"""`ddtui presets [NAME]`: which presets there are, and what one asks for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from ddtui.cli.arguments import JsonOption
from ddtui.cli.context import told
from ddtui.cli.output import (
    Paint,
    clean,
    emit,
    emit_json,
    narrowed,
    say,
    table,
    terminal_width,
    wrapped,
)
from ddtui.core.knobs import NONE

if TYPE_CHECKING:
    from ddtui.config.presets import Presets


_GIVE = ((1, 24), (3, 10), (1, 12))
"""How the columns of the list give way where there is no room."""


class PresetReport(msgspec.Struct, frozen=True):
    """One preset with all that it extends, secrets masked. None takes a flag or variable away."""

    name: str
    description: str
    source: str
    only_for: str
    """The only host that it is for; empty for one that every host may have."""
    note: str
    extends: list[str]
    knobs: dict[str, object]
    flags: dict[str, object]
    environment: dict[str, object]


def presets(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Show all that one preset asks for.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the presets, or show one with all that it extends."""
    with told(context) as options:
        from ddtui.app.preset_source import host_of_source, presets_for

        found = presets_for(options.load())
        # One's own first: those that are built in are for the simulated host only.
        listed = sorted(found.by_name, key=lambda each: host_of_source(found.find(each).source))
        names = listed if name is None else [found.find(name).name]
        reports = [preset_report(found, each) for each in names]
        if as_json:
            emit_json(reports if name is None else reports[0])
        elif name is None:
            _list(reports)
        else:
            emit("\n".join(_detail(reports[0], Paint())))


def preset_report(found: Presets, name: str) -> PresetReport:
    """What a preset asks for, resolved."""
    from ddtui.app.preset_source import host_of_source
    from ddtui.core.redact import redact_mapping

    preset, request = found.find(name), found.request(name)
    return PresetReport(
        name,
        preset.table.description,
        preset.source,
        host_of_source(preset.source),
        preset.note,
        [each.name for each in found.chain(name)[:-1]],
        dict(request.knobs),
        redact_mapping(request.flags),
        redact_mapping(request.environment),
    )


def _list(reports: list[PresetReport]) -> None:
    if not reports:
        say("no presets: add [presets.NAME] to the configuration, or to ddtui.toml in this folder")
        return
    rows = [("PRESET", "WHAT IT IS", "FOR", "SOURCE")]
    for each in reports:
        what = each.description or ", ".join(f"{k} {_shown(v)}" for k, v in each.knobs.items())
        rows.append((each.name, clean(what), each.only_for or "every host", each.source))
    emit("\n".join(table(narrowed(rows, terminal_width(), _GIVE))))
    for each in reports:
        if each.note:
            words = f"{each.name} of {each.source} {each.note}"
            say("\n".join(wrapped(words, terminal_width())))


def _detail(report: PresetReport, paint: Paint) -> Iterator[str]:
    title = f"{report.name}  {clean(report.description)}".rstrip()
    yield paint(title, "bold")
    yield f"from {report.source}{f' ({report.note})' if report.note else ''}"
    if report.extends:
        yield f"extends {', '.join(reversed(report.extends))}"
    rows = [
        *((each, "", _shown(value)) for each, value in report.knobs.items()),
        *((f"--{each}", "flag", _shown(value)) for each, value in report.flags.items()),
        *((each, "environment", _shown(value)) for each, value in report.environment.items()),
    ]
    kinds = [(name, kind or "knob", value) for name, kind, value in rows]
    yield from table([("NAME", "KIND", "VALUE"), *kinds])


def _shown(value: object) -> str:
    if value is None:
        return f"{NONE} (taken away)"
    return ("true" if value else "false") if isinstance(value, bool) else clean(str(value))
