"""What the results screen lets an operator choose from short lists: columns, knobs, sweeps, ..."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from ddtui.ui.results_model import ResultsModel
from ddtui.ui.results_reader import ResultsReader
from ddtui.ui.results_source import Asked, ResultsSource
from ddtui.ui.screens import results_words as words
from ddtui.ui.screens.choice import Choice, ChoiceScreen
from ddtui.ui.screens.live import LiveScreen
from ddtui.ui.widgets.results_chart import Kind, chosen_knobs
from ddtui.ui.widgets.results_order import AS_MEASURED, Order


class ResultsChoosing(LiveScreen):
    """The base of the results screen."""

    def __init__(self, source: ResultsSource) -> None:
        """`source` reads measurements."""
        super().__init__(id="results")
        self._reader = ResultsReader(source)
        self.model = ResultsModel()

    def _tell(self) -> None:
        """Show what the model has now."""
        raise NotImplementedError

    def _ask_for(self, asked: Asked) -> object:
        """Read with another baseline, sweep or concurrency, and show it."""
        raise NotImplementedError

    def action_knob(self) -> None:
        """Choose the knob that charts are drawn against."""

        def chosen(knob: str) -> None:
            self.model.draw_against(knob=knob)
            self._tell()

        first, _ = chosen_knobs(self.model.charts)
        self._choose("Charts against", words.knob_choices(self.model.charts), first, chosen)

    def action_second_knob(self) -> None:
        """Choose the other knob of the heat map."""

        def chosen(knob: str) -> None:
            self.model.draw_against(second=knob, kind=Kind.HEAT)
            self._tell()

        first, second = chosen_knobs(self.model.charts)
        choices = [each for each in words.knob_choices(self.model.charts) if each.id != first]
        self._choose(f"Heat map of {first} and", choices, second, chosen)

    def action_sort(self) -> None:
        """Choose the column to sort by."""

        def chosen(column: str) -> None:
            self.model.arrange(Order(AS_MEASURED if column == words.ALL else column))
            self._tell()

        now = self.model.table.order.column or words.ALL
        self._choose("Sort by", words.sort_choices(self.model.view), now, chosen)

    def action_concurrency(self) -> None:
        """Choose the concurrency at which rows are compared."""
        view = self.model.view

        def chosen(level: str) -> None:
            self._ask_for(msgspec.structs.replace(self._reader.asked, concurrency=int(level)))

        now = str(view.concurrency) if view is not None else ""
        self._choose("Compare at concurrency", words.concurrency_choices(view), now, chosen)

    def action_sweep(self) -> None:
        """Choose a sweep, or all results."""
        found, asked = self._reader.found, self._reader.asked

        def chosen(sweep: str) -> None:
            # Which concurrencies a sweep has is known once it is read.
            self._ask_for(Asked(baseline=asked.baseline, sweep=sweep.removeprefix("=")))

        choices = words.sweep_choices(found.sweeps if found is not None else ())
        self._choose("Show", choices, f"={asked.sweep}", chosen)

    def action_plan(self) -> None:
        """Choose one kind of work, or all."""

        def chosen(kind: str) -> None:
            self.model.work = kind.removeprefix("=")
            self.model.arrange()
            self._tell()

        choices = words.work_choices(self.model.view)
        self._choose("Measured with", choices, f"={self.model.work}", chosen)

    def _choose(
        self, title: str, choices: Sequence[Choice], now: str, then: Callable[[str], None]
    ) -> None:
        def chosen(choice: str | None) -> None:
            if choice is not None:
                then(choice)

        if choices:
            self.app.push_screen(ChoiceScreen(title, choices, now), chosen)
        else:
            self.notify("There is nothing to choose from yet", severity="warning")
