"""What keys of the Queue screen change: lines to type into, and what is done to an experiment."""

from __future__ import annotations

from typing import Any

from textual import on
from textual.screen import Screen
from textual.widgets import OptionList

from ddtui.core.experiment import ENDED, WAITING, Experiment, ExperimentState, Leave, Place
from ddtui.experiments.worked import Worked
from ddtui.ui import format as fmt
from ddtui.ui.messages import ChangeDismissed, TypingRefused
from ddtui.ui.palette import keymap_of
from ddtui.ui.queue_desk import QueueDesk
from ddtui.ui.queue_rows import leave_words
from ddtui.ui.screens.choice import Choice, ChoiceScreen
from ddtui.ui.screens.queue_grid import GridScreen
from ddtui.ui.screens.queue_like import Chosen, LikeScreen
from ddtui.ui.source import ControlProblem
from ddtui.ui.widgets.key_bar import KeyBar
from ddtui.ui.widgets.prompt import Prompt

_State = ExperimentState
_AGAIN = frozenset({_State.FAILED, _State.CANCELLED})
_HINTS = {
    "add": "a preset, budget=16 flag:NAME=1 env:NAME=1 plan=quick",
    "edit": "budget=16 sets, -topk takes away, plan=quick",
}


class QueueEditing(Screen[None]):
    """The actions that change the queue, and the runner. `_desk` does it."""

    _desk: QueueDesk

    @property
    def highlighted(self) -> Experiment | None:
        """The experiment that keys mean."""
        raise NotImplementedError

    # ---- adding -----------------------------------------------------------------------------

    def action_add(self) -> None:
        """Ask for an experiment to add."""
        self._ask("add", "Add:", "")

    def action_grid(self) -> None:
        """Ask for a grid, and show what it would be."""

        def given(worked: Worked | None) -> None:
            if worked is not None:
                self._desk.do(lambda: self._desk.queue.add_grid(worked), self._added)

        self.app.push_screen(GridScreen(self._desk.queue), given)

    def action_like(self) -> None:
        """Ask what is different from the highlighted one."""
        each = self.highlighted
        if each is None:
            self.notify("No experiment is highlighted", markup=False)
            return
        experiment_id = each.id

        def given(chosen: Chosen | None) -> None:
            if chosen is not None:
                text, policy = chosen
                self._desk.do(
                    lambda: self._desk.queue.add_like(experiment_id, text, policy), self._added
                )

        self.app.push_screen(LikeScreen(self._desk.queue, each), given)

    def go_to(self, experiment_id: str) -> None:
        """Highlight an experiment, now or as soon as it is listed."""
        raise NotImplementedError

    def _added(self, ids: Any) -> None:
        count = len(ids)
        if ids:
            self.go_to(ids[0])
        words = "experiment" if count == 1 else "experiments"
        self.notify(f"Added {count} {words}", markup=False)

    # ---- one experiment ---------------------------------------------------------------------

    def _waits(self, verb: str) -> Experiment | None:
        """The highlighted one, if it waits; says why not otherwise."""
        each = self.highlighted
        if each is None:
            self.notify("No experiment is highlighted", markup=False)
        elif each.state not in WAITING:
            self.notify(f"Cannot {verb} it: it is {each.state}", severity="warning", markup=False)
        else:
            return each
        return None

    def action_earlier(self) -> None:
        """Put it before the one above it."""
        self._move(-1)

    def action_later(self) -> None:
        """Put it after the one below it."""
        self._move(1)

    def _move(self, step: int) -> None:
        each = self._waits("move")
        if each is None:
            return
        waiting = [x.id for x in self._desk.view.in_state(*WAITING)]
        at = waiting.index(each.id) + step if each.id in waiting else -1
        if 0 <= at < len(waiting):
            place = Place("before" if step < 0 else "after", waiting[at])
            experiment_id = each.id
            self._desk.do(lambda: self._desk.queue.move(experiment_id, place))

    def action_next(self) -> None:
        """Put it before all others that wait."""
        each = self._waits("move")
        if each is not None:
            experiment_id = each.id
            self._desk.do(lambda: self._desk.queue.move(experiment_id, Place("first")))

    def action_hold(self) -> None:
        """Have it passed over, or taken up again."""
        each = self._waits("hold")
        if each is None:
            return
        queue, experiment_id = self._desk.queue, each.id
        if each.state is _State.PENDING:
            self._desk.do(lambda: queue.hold(experiment_id))
        else:
            self._desk.careful(
                "Release the experiment",
                "Release",
                each.title,
                lambda: queue.release(experiment_id),
            )

    def action_end(self) -> None:
        """Cancel it."""
        each = self.highlighted
        if each is None or each.state in ENDED:
            self.notify("Nothing that waits or runs is highlighted", markup=False)
        else:
            self._desk.cancel(each)

    def action_retry(self) -> None:
        """Do it once more."""
        each = self.highlighted
        if each is None or each.state not in _AGAIN:
            words = "Only what failed or was cancelled is retried; add one like it instead"
            self.notify(words, severity="warning", markup=False)
            return
        experiment_id = each.id
        self._desk.careful(
            "Do the experiment once more",
            "Retry",
            each.title,
            lambda: self._desk.queue.retry(experiment_id),
        )

    def action_edit(self) -> None:
        """Ask what to change of it."""
        if self._waits("change") is None:
            self.post_message(TypingRefused())
        else:
            self._ask("edit", "Change:", "")

    def action_note(self) -> None:
        """Ask for its note."""
        each = self.highlighted
        self._ask("note", "Note:", "" if each is None else each.note)

    def action_hypothesis(self) -> None:
        """Ask what is expected of it."""
        each = self.highlighted
        self._ask("hypothesis", "Hypothesis:", "" if each is None else each.hypothesis)

    # ---- the whole queue --------------------------------------------------------------------

    def action_clear(self) -> None:
        """Take all that ended off the list."""

        def told(ids: Any) -> None:
            self.notify(f"Cleared {len(ids)}; measurements are kept", markup=False)

        self._desk.do(self._desk.queue.clear, told)

    def action_pause(self) -> None:
        """Have nothing more taken up, or go on."""
        queue = self._desk.queue
        if not self._desk.view.settings.paused:
            self._desk.do(lambda: queue.pause(paused=True))
        else:
            self._desk.careful(
                "Go on with the queue",
                "Go on",
                "What is pending is taken up again.",
                lambda: queue.pause(paused=False),
            )

    def action_leave(self) -> None:
        """Choose in which configuration the unit is left."""
        kinds: tuple[Leave, ...] = ("baseline", "best", "last")
        choices = [Choice(each, f"{each}: {leave_words(each)}") for each in kinds]

        def given(chosen: str | None) -> None:
            which = next((each for each in kinds if each == chosen), None)
            if which is not None:
                self._desk.do(lambda: self._desk.queue.leave(which))

        now = self._desk.view.settings.leave
        self.app.push_screen(ChoiceScreen("At the end the unit is left in", choices, now), given)

    def action_start(self) -> None:
        """Show what a run would do, and ask."""
        self._desk.start()

    def action_stop(self) -> None:
        """Ask, and have whoever runs it stop."""
        self._desk.stop()

    # ---- typing -----------------------------------------------------------------------------

    def _ask(self, purpose: str, label: str, value: str) -> None:
        each = self.highlighted
        self._asked_of = "" if each is None else each.id
        self.query_one(Prompt).ask(purpose, label, value)
        self.query_one(Prompt).fault(self._missing(purpose))
        close = keymap_of(self).shown("queue.close")
        hints = [("⏎", purpose, ""), (close, "close", "screen.close")]
        if purpose in _HINTS:
            hints.append((_HINTS[purpose], "", ""))
        self.query_one(KeyBar).instead(hints)

    def _missing(self, purpose: str) -> str:
        """Why what is asked for can come to nothing; it is asked all the same.

        Without a line to type into, what is typed would reach the keys of the screen.
        """
        each = self._desk.view.find(self._asked_of) if self._asked_of else None
        if purpose == "add":
            return ""
        if each is None:
            return "no experiment is highlighted"
        if purpose == "edit" and each.state not in WAITING:
            return f"it is {each.state}: only what waits can be changed"
        return ""

    def action_close(self) -> None:
        """Close the line; then hide a change that has ended."""
        if self.query_one(Prompt).purpose:
            self.query_one(Prompt).close()
            self.query_one(KeyBar).instead(())
            self.query_one(OptionList).focus()
        else:
            self.post_message(ChangeDismissed())

    @on(Prompt.Changed)
    def _typed(self, event: Prompt.Changed) -> None:
        if event.value != self._judged:
            self.query_one(Prompt).fault(self._missing(event.purpose))

    @on(Prompt.Entered)
    async def _entered(self, event: Prompt.Entered) -> None:
        prompt, queue, of = self.query_one(Prompt), self._desk.queue, self._asked_of
        self._judged = event.value
        if (missing := self._missing(event.purpose)) or self._desk.read_only:
            prompt.fault(missing)
            return
        try:
            match event.purpose:
                case "add":
                    self._added(await queue.add(event.value))
                case "edit":
                    await queue.edit(of, event.value)
                case "note":
                    await queue.annotate(of, note=event.value)
                case _:
                    await queue.annotate(of, hypothesis=event.value)
        except ControlProblem as problem:
            prompt.fault(fmt.clean(problem.what.partition("\n")[0]))
        else:
            self.action_close()

    _asked_of = ""
    """Id of the experiment that the line is about."""
    _judged = "\0"
    """The text that a fault is told of; word of a change may come after it was entered."""
