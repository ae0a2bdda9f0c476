"""Changes a host's queue for the screens, and runs it: that only through a confirmed question."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from time import monotonic
from typing import Any

from textual.app import App
from textual.worker import Worker

from ddtui.core.clock import Clock
from ddtui.core.experiment import Experiment, ExperimentState
from ddtui.core.snapshot import Snapshot
from ddtui.ui import queue_questions as words_of
from ddtui.ui.asking import Asking
from ddtui.ui.queue_source import QueueSource, QueueView, RunPlan
from ddtui.ui.screens.confirm import ConfirmScreen, Words
from ddtui.ui.screens.waiting import WaitingScreen
from ddtui.ui.source import ControlProblem

QUEUE_INTERVAL = 1.0
"""Seconds between two looks at the queue."""

Work = Callable[[], Coroutine[Any, Any, Any]]
_RUN = "Run the queue"
_READING = "Reading the queue, and asking the host what each experiment loads"
_COMPARING = "Looking whether the queue is still as it was shown"
_CHANGED = (
    "This question has changed, nothing was started: the queue is another one than when it was"
    " asked."
)


class QueueDesk(Asking):
    """What the Queue screen asks for is done here, one after the other, and told."""

    def __init__(
        self,
        app: App[Any],
        queue: QueueSource,
        snapshot: Callable[[], Snapshot],
        *,
        clock: Clock,
        read_only: bool = False,
        key_clock: Callable[[], float] = monotonic,
    ) -> None:
        """`key_clock` as in Asking."""
        super().__init__(app, clock=clock, read_only=read_only, key_clock=key_clock)
        self.queue = queue
        self.handed_over = False
        """Whether a runner without a terminal is to go on, once ddtui is left."""
        self._snapshot = snapshot
        self._ended = ""

    @property
    def view(self) -> QueueView:
        """What is known of the queue."""
        return self.queue.view

    def busy(self) -> ControlProblem | None:
        """Why the unit is not to be changed by hand now."""
        view = self.view
        if view.run.where != "here":
            return None
        running = view.running
        what = f": {running.title}" if running is not None else ""
        return ControlProblem(
            f"The experiments of this host are being run here{what}.",
            "Stop that first, on the Queue screen.",
        )

    def other_runner(self) -> str:
        """Who runs the experiments of this host in another process; empty for nobody."""
        run = self.view.run
        return run.who if run.where in {"this machine", "elsewhere"} else ""

    def tick(self) -> None:
        """Called often: tell why a run came to nothing, and how it ended."""
        if isinstance(self._app.screen, WaitingScreen):
            return  # it must be on top when what it waits for is there
        if (problem := self.queue.take_trouble()) is not None:
            self._tell("The queue is not run any more", problem)
        run = self.view.run
        if run.ended != self._ended:
            self._ended = run.ended
            if run.ended:
                self._app.notify(f"The run has ended: {run.ended}", markup=False, timeout=15)

    # ---- the queue --------------------------------------------------------------------------

    def do(self, work: Work, then: Callable[[Any], None] | None = None) -> None:
        """Change the queue; say why where that is not possible."""
        if self.read_only:
            return

        async def doing() -> None:
            try:
                outcome = await work()
            except ControlProblem as problem:
                text = f"{problem.what}. {problem.remedy}" if problem.remedy else problem.what
                self._app.notify(text, severity="error", markup=False, timeout=12)
            else:
                if then is not None:
                    then(outcome)

        _worker: Worker[None] = self._app.run_worker(doing, group="queue")

    def careful(self, title: str, action: str, what: str, work: Work) -> None:
        """The same for what a runner takes up by itself: asks while the queue is run."""
        if self.view.run.running and not self.asking:
            self._ask(words_of.careful_words(title, action, what), lambda: self.do(work))
        else:
            self.do(work)

    def cancel(self, experiment: Experiment) -> None:
        """Cancel one; ask first where it runs."""

        async def work() -> None:
            await self.queue.cancel(experiment.id)

        if experiment.state is not ExperimentState.RUNNING:
            self.do(work)
        elif not self.read_only and not self.asking:
            self._ask(words_of.cancel_words(experiment), lambda: self.do(work))

    # ---- the runner -------------------------------------------------------------------------

    def start(self) -> None:
        """Show what a run would do, and run the queue here once that is confirmed."""
        if self.read_only or self.asking:
            return
        if self.view.run.where == "here":
            self._app.notify("The queue is being run here", markup=False)
            return
        self._prepare_start()

    def _prepare_start(self, changed: str = "") -> None:
        def ask(plan: RunPlan, late: bool) -> None:
            self._ask_start(plan, late, changed)

        self._work_out_and_ask(_RUN, _READING, self.queue.prepare_run, ask)

    def _ask_start(self, plan: RunPlan, late: bool, changed: str) -> None:
        def words() -> Words:
            return words_of.start_words(plan, self._snapshot(), self._clock())

        self._confirmed(words, lambda: self._start_as_asked(plan), late, changed)

    def _start_as_asked(self, plan: RunPlan) -> None:
        """Begin it; ask anew where another process has changed the queue since it was asked."""

        def looked(_: object, __: bool) -> None:
            if words_of.what_runs(self.view) == words_of.what_runs(plan.view):
                self._start(self.queue.start_run)
            else:
                self._prepare_start(_CHANGED)

        self._work_out_and_ask(_RUN, _COMPARING, self.queue.look, looked)

    def stop(self) -> None:
        """Ask, and have whoever runs the queue stop."""
        if self.read_only or self.asking:
            return
        if not self.view.run.running:
            self._app.notify("Nobody runs the queue", markup=False)
            return

        def told(said: str) -> None:
            if said:
                self._app.notify(said, markup=False)

        self._ask(words_of.stop_words(self.view), lambda: self.do(self.queue.stop_run, told))

    def leave(self, host: str, then: Callable[[], None]) -> bool:
        """Ask what becomes of a run here before ddtui is left; False where there is none."""
        if self.view.run.where != "here":
            return False
        if self.asking:
            return True

        simulated = self._snapshot().simulated
        words = words_of.leave_app_words(self.view, host, simulated=simulated)

        def answered(answer: bool | None) -> None:
            if answer or (answer is False and words.refuse):
                self.handed_over = bool(answer) and not simulated
                self._stop_and(then)

        screen = ConfirmScreen(words, clock=self._key_clock)
        self._app.push_screen(screen, answered)
        return True

    def _stop_and(self, then: Callable[[], None]) -> None:
        async def work() -> None:
            await self.queue.close()
            then()

        def stay() -> None:
            """It is being stopped all the same."""

        self._app.push_screen(WaitingScreen("Leaving ddtui", "Stopping the run", stay))
        _worker: Worker[None] = self._app.run_worker(work, group="control")
