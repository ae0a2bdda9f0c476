"""Arguments and options that several verbs of `ddtui queue` take."""

from __future__ import annotations

from typing import Annotated

import typer

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The experiment.")]
IdsArgument = Annotated[list[str], typer.Argument(metavar="ID", help="The experiments.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="KNOB=VALUE, flag:NAME=VALUE or env:NAME=VALUE; `none` takes it away.",
    ),
]
PlanOption = Annotated[
    str | None,
    typer.Option(
        "--plan",
        metavar="NAME|FILE",
        help="The bench plan to measure by (`ddtui plans` lists them), or a TOML file with one.",
    ),
]
POLICY_NAMES = "nodes, ratio, siblings, cost, coverage, tile or measured"
MatchOption = Annotated[
    str | None,
    typer.Option(
        "--match",
        metavar="POLICY",
        help=f"Compute the budget that matches the new block size: {POLICY_NAMES}.",
    ),
]
TitleOption = Annotated[
    str | None,
    typer.Option("--title", metavar="TEXT", help="The configuration in short, for tables."),
]
HypothesisOption = Annotated[
    str | None, typer.Option("--hypothesis", metavar="TEXT", help="What is expected, and why.")
]
NoteOption = Annotated[
    str | None, typer.Option("--note", metavar="TEXT", help="Whatever is to be remembered.")
]
FirstOption = Annotated[bool, typer.Option("--first", help="Before all that wait.")]
LastOption = Annotated[bool, typer.Option("--last", help="After all that wait.")]
BeforeOption = Annotated[
    str | None, typer.Option("--before", metavar="ID", help="Right before this one.")
]
AfterOption = Annotated[
    str | None, typer.Option("--after", metavar="ID", help="Right after this one.")
]
