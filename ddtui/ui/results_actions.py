"""What an operator can do with the results."""

from __future__ import annotations

from ddtui.ui.action import Action, Group, Scope, steps

_LOOK = (
    Action(
        "results.view",
        "View",
        "Table with details and chart, then the chart alone, then the table alone",
        ("v",),
        Group.SHOW,
        footer=True,
    ),
    Action("results.chart", "Chart", "Show the next chart", ("c",), Group.SHOW, footer=True),
    Action("results.chart-back", "Chart before", "Show the chart before", ("C",), Group.SHOW),
    Action(
        "results.knob",
        "Knob",
        "Choose the knob that the charts are drawn against",
        ("x",),
        Group.SHOW,
        footer=True,
    ),
    Action(
        "results.second-knob",
        "Second knob",
        "Choose the other knob of the heat map",
        ("X",),
        Group.SHOW,
    ),
    Action("results.sort", "Sort", "Choose the column to sort by", ("s",), Group.SHOW, footer=True),
    Action("results.reverse", "Reverse", "Sort the other way round", ("S",), Group.SHOW),
    Action(
        "results.open",
        "Details",
        "Show the highlighted configuration in full",
        ("o",),
        Group.SHOW,
        footer=True,
    ),
    Action("results.reload", "Reload", "Read the results again", ("r",), Group.SHOW),
)

_COMPARE = (
    Action(
        "results.baseline",
        "Baseline",
        "Compare with the highlighted configuration; on the baseline, choose it as usual again",
        ("b",),
        Group.FILTER,
        footer=True,
    ),
    Action(
        "results.concurrency",
        "Concurrency",
        "Choose the concurrency at which configurations are compared",
        ("n",),
        Group.FILTER,
    ),
    Action("results.sweep", "Sweep", "Show one sweep, or all results", ("w",), Group.FILTER),
    Action(
        "results.plan",
        "Work",
        "Show what was measured with one kind of work: prompts, lengths, temperature",
        ("p",),
        Group.FILTER,
    ),
    Action(
        "results.filter",
        "Filter",
        "Show only configurations with a text in their title, knobs, marks or cause",
        ("/",),
        Group.SEARCH,
    ),
    Action(
        "results.cancel",
        "Close",
        "Close the line that is typed into, then drop the filters one by one",
        ("escape",),
        Group.SEARCH,
    ),
)

_TAKE = (
    Action(
        "results.copy",
        "Copy command",
        "Copy the command lines that apply the highlighted configuration and measure it again",
        ("y",),
        Group.COPY,
        footer=True,
    ),
    Action(
        "results.export",
        "Export",
        "Write the results to a file: CSV, JSON, a Markdown report with charts, or charts alone",
        ("e",),
        Group.COPY,
        footer=True,
    ),
)

_MOVE = (
    *steps(Scope.RESULTS, "configuration"),
    Action("results.first", "First", "To the first configuration", ("g",), Group.MOVE),
    Action("results.last", "Last", "To the last configuration", ("G",), Group.MOVE),
    Action("results.page-down", "Further", "Scroll the details", ("pagedown", "J"), Group.MOVE),
    Action("results.page-up", "Back", "Scroll the details back", ("pageup", "K"), Group.MOVE),
)

RESULTS: tuple[Action, ...] = (*_LOOK, *_COMPARE, *_TAKE, *_MOVE)
"""In the order in which the help lists them."""
