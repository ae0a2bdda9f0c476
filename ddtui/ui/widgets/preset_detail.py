"""What a preset would change of the unit, and what speaks against it: the right of the Presets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ddtui.core.launch import Plan, Request
from ddtui.ui import format as fmt
from ddtui.ui.copying import UNBROKEN, plain
from ddtui.ui.ink import Ink, Row, lines_of, wrapped
from ddtui.ui.plan_rows import asked_rows, change_rows, finding_rows, verdict_row
from ddtui.ui.shown import Shown
from ddtui.ui.source import ControlProblem, PresetView
from ddtui.ui.widgets.scrolled import ScrolledPanel


@dataclass(frozen=True)
class Detail:
    """What is shown."""

    preset: PresetView | None = None
    request: Request = field(default_factory=Request)
    own: Request = field(default_factory=Request)
    """What was set beside the preset."""
    plan: Plan | None = None
    planned_at: float | None = None
    """When the plan was made: Unix seconds, operator's clock."""
    working: bool = False
    """Whether a newer plan is being made."""
    problem: ControlProblem | None = None
    """Why no plan could be made last; an earlier one may still be there."""
    problems: str = ""
    """Why there are no presets."""


class PresetDetail(ScrolledPanel):
    """Keeps its place while the plan is made anew."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002  (Textual's own name for it)
        super().__init__(id=id)
        self._detail = Detail()

    def tell(self, detail: Detail) -> None:
        """Show another detail; of another preset from its first line."""
        names = [each.preset.name if each.preset else "" for each in (detail, self._detail)]
        self._detail = detail
        self.renew(from_top=names[0] != names[1])

    def title(self) -> Row:
        """The preset's name, and whether more is set beside it."""
        preset = self._detail.preset
        name = fmt.clean(preset.name) if preset is not None else ""
        row = Row(name or "No preset", Ink.TITLE)
        if self._detail.own != Request():
            row.add("  + set here", Ink.WARN)
        return row

    def rows(self, shown: Shown, width: int) -> list[Row]:
        """All that is told, for a width in cells."""
        return detail_rows(self._detail, shown, width)

    def text(self) -> str:
        """All that is told, each line whole."""
        return "" if self._shown is None else plain(self.rows(self._shown, UNBROKEN))


def detail_rows(detail: Detail, shown: Shown, width: int) -> list[Row]:
    """All rows; the verdict and the changes first."""
    rows: list[Row] = []
    if detail.problems:
        rows += wrapped(detail.problems, width, Ink.BAD)
    if shown.holder:
        rows += wrapped(f"{shown.glyphs.warn} LOCKED by {shown.holder}", width, Ink.WARN)
    rows += _state_rows(detail, shown, width)
    preset = detail.preset
    if preset is not None and preset.description:
        rows += wrapped(preset.description, width)
    plan = None if _unplanned(detail, shown) else detail.plan
    if plan is not None and plan.changes:
        rows += _section("Changes", change_rows(plan.changes, width, shown.glyphs, _report(shown)))
    if plan is not None and plan.findings:
        rows += _section("Checks", finding_rows(plan.findings, width, shown.glyphs))
    asked = asked_rows(detail.request, detail.own, width)
    if asked:
        rows += _section("Asks for", asked)
    elif preset is not None and not preset.name:
        key = shown.keys.get("presets.edit", "")
        rows += _section("Asks for", [Row(f"nothing yet; {key} sets something", Ink.LABEL)])
    if preset is not None and preset.name:
        rows += _section("From", _origin(preset, width))
    return rows


def _unplanned(detail: Detail, shown: Shown) -> bool:
    """Whether there is no plan to show: one from before the link broke is better than none."""
    return detail.problem is not None and (shown.connected or detail.plan is None)


def _report(shown: Shown) -> Mapping[str, object] | None:
    info = shown.snapshot.server_info
    return info.arguments if info is not None else None


def _state_rows(detail: Detail, shown: Shown, width: int) -> list[Row]:
    """The verdict, or why there is none."""
    if detail.preset is None and not detail.problems:
        return [Row("no preset passes the filter", Ink.LABEL)]
    if _unplanned(detail, shown) and detail.problem is not None:
        rows = wrapped(f"No plan: {detail.problem.what}", width, Ink.BAD)
        return rows + lines_of(detail.problem.remedy, width)
    if detail.plan is None:
        words = "working out what it would change" if shown.connected else "not connected"
        return [Row(f"{shown.glyphs.running} {words} ...", Ink.LABEL)]
    view = shown.reconfiguration
    if view is not None and view.running and not detail.plan.blocked and not detail.plan.changes:
        words = f"this is what {view.title} brings into force now"
        return [Row(f"{shown.glyphs.running} {words}", Ink.BUSY).cut(width)]
    row = verdict_row(detail.plan, shown.glyphs)
    if not shown.connected and detail.planned_at is not None:
        row.add(f"  as of {fmt.clock(detail.planned_at)}, not connected now", Ink.WARN)
    elif detail.working:
        row.add("  ...", Ink.LABEL)
    return [row.cut(width)]


def _section(title: str, rows: list[Row]) -> list[Row]:
    return [Row(), Row(title, Ink.TITLE), *rows]


def _origin(preset: PresetView, width: int) -> list[Row]:
    rows = wrapped(preset.source, width, Ink.LABEL)
    if preset.extends:
        rows += wrapped(f"extends {', '.join(preset.extends)}", width, Ink.LABEL)
    if preset.note:
        rows += wrapped(preset.note, width, Ink.LABEL)
    return rows
