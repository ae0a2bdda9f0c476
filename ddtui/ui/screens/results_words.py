"""What the results screen offers to choose from, and what it says, in words."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from ddtui.core.clock import Clock
from ddtui.experiments.results import ResultsView
from ddtui.experiments.results_files import Form
from ddtui.ui import format as fmt
from ddtui.ui.keymap import Keymap
from ddtui.ui.log_files import state_folder
from ddtui.ui.screens.choice import Choice
from ddtui.ui.screens.confirm import Words
from ddtui.ui.widgets.results_chart import ChartData, knobs_of
from ddtui.ui.widgets.results_order import concurrencies_of, sortable, works_of

ALL = "="
"""Id of the choice that sorts or filters by nothing."""
_FORMS = {
    Form.CSV: ("CSV", "a line per configuration and concurrency, for spreadsheets"),
    Form.JSON: ("JSON", "everything, provenance too"),
    Form.MD: ("Markdown", "a report, its charts beside it"),
    Form.SVG: ("SVG", "the charts alone"),
}


def sort_choices(view: ResultsView | None) -> list[Choice]:
    """Every column of the table."""
    if view is None or not view.rows:
        return []
    usual = Choice(ALL, "as usual", "baseline first, then by knobs")
    return [usual, *(Choice(name, fmt.clean(name)) for name in sortable(view))]


def knob_choices(data: ChartData) -> list[Choice]:
    """Every knob that varies."""
    found = knobs_of(data.view) if data.view is not None else []
    return [Choice(name, fmt.clean(name), f"{count} values") for name, count in found]


def concurrency_choices(view: ResultsView | None) -> list[Choice]:
    """Every concurrency that something was measured at."""
    found = concurrencies_of(view.rows) if view is not None else []
    return [Choice(str(level), str(level), f"{count} measured") for level, count in found]


def sweep_choices(sweeps: Sequence[str]) -> list[Choice]:
    """All results, or a sweep; ids are `=SWEEP`."""
    named = [Choice(f"={sweep}", fmt.clean(sweep)[:60]) for sweep in sweeps]
    return [Choice(ALL, "all results"), *named] if named else []


def work_choices(view: ResultsView | None) -> list[Choice]:
    """All kinds of work, or one; ids are `=WORK`."""
    found = works_of(view) if view is not None else []
    kinds = [Choice(f"={work}", fmt.clean(work), str(count)) for work, count in found]
    return [Choice(ALL, "any work"), *kinds] if kinds else []


def form_choices() -> list[Choice]:
    """What results are exported as."""
    return [Choice(form.value, name, words) for form, (name, words) in _FORMS.items()]


def empty_words(view: ResultsView, of: int) -> tuple[str, ...]:
    """Why there are no rows."""
    if of:
        return ("No configuration is left by the filters.",)
    waiting = f"Experiments in the queue that have not ended: {view.waiting}."
    lines = (f"Nothing was measured on {fmt.clean(view.host)} yet.", waiting)
    return lines if view.waiting else lines[:1]


def hints_for(view: ResultsView, of: int, keymap: Keymap) -> tuple[tuple[str, str], ...]:
    """What to do where there are no rows."""
    if of:
        return ((keymap.shown("results.cancel"), "drops the filters"),)
    host = fmt.clean(view.host)
    return (
        (f"key {keymap.shown('app.queue')}", "the queue: add experiments there, and run them"),
        (f"ddtui bench {host}", "measures what is in force now"),
        (f"ddtui sweep {host} 'budget=8,12,16'", "queues a grid of configurations"),
        (f"ddtui run {host}", "runs the queue; --detach leaves it running"),
    )


def file_for(view: ResultsView, form: Form, clock: Clock) -> Path:
    """A new file's name, in the current folder, or in ddtui's own where that cannot be written."""
    here = Path.cwd()
    folder = here if os.access(here, os.W_OK) else state_folder()
    stamp = datetime.fromtimestamp(clock(), UTC).astimezone().strftime("%Y%m%d-%H%M%S")
    words = ("results", _plain(view.host), _plain(view.sweep), stamp)
    return folder / f"{'-'.join(filter(None, words))}.{form.value}"


def replace_words(files: Sequence[Path]) -> Words:
    """Before files are overwritten."""
    names = "\n".join(fmt.clean(str(each)) for each in files)
    what = "this file" if len(files) == 1 else f"these {len(files)} files"
    return Words(f"Replace {what}?", names, action="Replace")


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.")[:40]
