"""`ddtui results HOST`: what was measured on a host, compared; as a table or for other programs."""

from __future__ import annotations

import enum
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ddtui.cli.arguments import HostArgument, JsonOption, from_one_on, one_of
from ddtui.cli.context import Options, VerbFailed, tell_hint, told
from ddtui.cli.exit_codes import ExitCode
from ddtui.cli.output import Paint, clean, emit, emit_json, emit_json_text, say, terminal_width

if TYPE_CHECKING:
    from ddtui.experiments.results import ResultsView


class Format(enum.StrEnum):
    """What the results are written as."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    MD = "md"
    SVG = "svg"


def results(
    context: typer.Context,
    host: HostArgument,
    form: Annotated[
        Format,
        typer.Option(
            "--format",
            metavar="|".join(Format),
            parser=one_of(Format),
            help="Table, CSV, JSON, Markdown report, or charts.",
        ),
    ] = Format.TABLE,
    baseline: Annotated[
        str,
        typer.Option(
            "--baseline", metavar="ID|TITLE", help="What to compare with; chosen if left out."
        ),
    ] = "",
    sweep: Annotated[
        str, typer.Option("--sweep", metavar="NAME", help="Only what belongs to this sweep.")
    ] = "",
    concurrency: Annotated[
        int | None,
        typer.Option(
            "--concurrency", metavar="N", parser=from_one_on, help="Compare at this concurrency."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", help="Write there; a report's charts are put beside it."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show what was measured on a host, one row a configuration, compared with a baseline.

    It reads what is stored on this machine and speaks to no host.

    Exit status: 0 shown, also where nothing was measured yet (then no file is written); 1 the store
    or the file failed; 2 there is no such host, baseline, sweep or concurrency.
    """
    form = Format.JSON if as_json else form
    with told(context, as_json=form is Format.JSON) as options:
        from ddtui.experiments.choosing import ResultsError

        try:
            view = _stored(options, host, baseline, sweep, concurrency)
        except ResultsError as error:
            raise VerbFailed(error.what, error.remedy, ExitCode.USAGE) from error
        if out is not None:
            _put(view, form, out)
        elif view.rows or form is not Format.TABLE:
            tell = emit_json_text if form is Format.JSON else emit
            tell(_text(view, form).rstrip("\r\n"))


def _put(view: ResultsView, form: Format, out: Path) -> None:
    """Write a file, and say so; for JSON in a document, too. Raises VerbFailed."""
    written: list[Path] = []
    if not view.rows:
        say(f"{clean(str(out))} is not written: there is nothing to write")
    else:
        try:
            written = _write(view, form, out.expanduser())
        except OSError as error:
            what = f"cannot write {out}: {error.strerror or error}"
            raise VerbFailed(what, "nothing stored is lost: name another file") from error
        say(f"written: {', '.join(clean(str(each)) for each in written)}")
    if form is Format.JSON:
        emit_json({"written": [str(each) for each in written]})


def _stored(
    options: Options, host: str, baseline: str, sweep: str, concurrency: int | None
) -> ResultsView:
    from ddtui.app.queue_asked import plans_to_name
    from ddtui.app.results_source import left_of
    from ddtui.cli.nothing_stored import refuse_unknown
    from ddtui.config.hosts import Reach, find_host
    from ddtui.experiments.interrupted import as_they_ended
    from ddtui.experiments.results import results_view
    from ddtui.store import Store

    loaded = options.load()
    config = loaded.config
    target = find_host(config, host)
    simulated = target.reach is Reach.DEMO
    store = Store.open()
    try:
        measured = store.measurements.of_host(target.name, simulated=simulated)
        queue = store.experiments.queue(target.name, simulated=simulated, cleared=True)
        view = results_view(
            target.name,
            as_they_ended(measured, queue, left=left_of(target.name, queue, simulated=simulated)),
            queue,
            settings=store.experiments.settings(target.name, simulated=simulated),
            baseline=baseline,
            sweep=sweep,
            concurrency=concurrency,
            plans=plans_to_name(loaded),
            simulated=simulated,
        )
        if view.rows:
            tell_hint(target)
        else:
            nothing = f"nothing was measured on {target.name} yet"
            refuse_unknown(nothing, target, config, store)
            count = view.waiting
            wait = "1 experiment waits" if count == 1 else f"{count} experiments wait"
            waits = f", and {wait}" if count else ""
            verb = "run" if count else "bench"
            say(clean(f"{nothing}{waits}: ddtui {verb} {target.name}"))
        return view
    finally:
        store.close()


def _text(view: ResultsView, form: Format) -> str:
    from ddtui.cli.results_table import table_lines
    from ddtui.experiments.chart_data import charts_of
    from ddtui.experiments.results_files import Form, text_of

    if form is Format.TABLE:
        return "\n".join(table_lines(view, terminal_width(), Paint()))
    if form is Format.MD and charts_of(view):
        say("the charts are left out: --out FILE writes them beside the report")
    return text_of(view, Form(form.value), time.time())


def _write(view: ResultsView, form: Format, file: Path) -> list[Path]:
    """Write a file, and a report's charts beside it. Raises OSError."""
    from ddtui.cli.results_table import table_lines
    from ddtui.config.whole_file import is_replaced
    from ddtui.experiments.results_files import Form, put, write

    if form is Format.MD and not is_replaced(file):
        say("the charts are left out: a pipe or device has no files beside it")
    if form is not Format.TABLE:
        return write(view, Form(form.value), file, time.time())
    plain = Paint()
    plain.enabled = False
    return [put(file, "\n".join(table_lines(view, None, plain)) + "\n")]
