"""Turns the wish to change a host into a change: only through a question that was confirmed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from time import monotonic
from typing import Any

from textual.app import App

from ddtui.core.clock import Clock
from ddtui.core.launch import Finding, Plan, Request
from ddtui.core.snapshot import Snapshot
from ddtui.ui import format as fmt
from ddtui.ui import questions
from ddtui.ui.asking import Asking
from ddtui.ui.glyphs import Glyphs
from ddtui.ui.screens.confirm import ConfirmScreen, Words
from ddtui.ui.screens.waiting import WaitingScreen
from ddtui.ui.source import ControlProblem, ControlSource, Question, ReconfigurationView
from ddtui.ui.widgets.reconfiguration import visible

LOOK_INTERVAL = 5.0
"""Seconds between two looks for who else changes the unit, while that is shown."""


class ControlDesk(Asking):
    """Asks, and starts what was confirmed. Every start of a change goes through `_confirmed`."""

    def __init__(
        self,
        app: App[Any],
        control: ControlSource,
        snapshot: Callable[[], Snapshot],
        *,
        clock: Clock,
        glyphs: Glyphs,
        read_only: bool = False,
        key_clock: Callable[[], float] = monotonic,
    ) -> None:
        """`key_clock` as in Asking."""
        super().__init__(app, clock=clock, read_only=read_only, key_clock=key_clock)
        self.control = control
        self.trouble = ""
        self.looked = False
        """Whether it is known by now if a change was interrupted, or another one is at it."""
        self.busy: Callable[[], ControlProblem | None] = _nothing
        """Says what else has the engine in its hands from here, and how to end that; or nothing."""
        self.other_runner: Callable[[], str] = str
        """Says who runs experiments on the host in another process; empty for nobody."""
        self._snapshot = snapshot
        self._glyphs = glyphs
        self._dismissed = ""
        self._asked: set[str] = set()
        self._open_question: tuple[str, ConfirmScreen] | None = None

    # ---- what is shown ----------------------------------------------------------------------

    @property
    def view(self) -> ReconfigurationView | None:
        """The reconfiguration that the operator should see."""
        view = self.control.reconfiguration
        if view is None or view.id == self._dismissed or not visible(view, self._clock()):
            return None
        return view

    @property
    def can_decide(self) -> bool:
        """Whether something waits for the operator."""
        view = self.control.reconfiguration
        return view is not None and (view.question is not None or view.interrupted)

    @property
    def carrying_on(self) -> bool:
        """Whether a reconfiguration would stand still without this ddtui."""
        view = self.control.reconfiguration
        return view is not None and view.running and view.here

    @property
    def under_way(self) -> bool:
        """Whether a reconfiguration has not ended: it goes on, or waits for the operator."""
        view = self.control.reconfiguration
        return view is not None and not view.ending

    def dismiss(self) -> None:
        """Hide a reconfiguration that has ended."""
        view = self.view
        if view is not None and view.ending:
            self._dismissed = view.id

    def tick(self) -> None:
        """Called often: ask what must be decided, close what no longer must, tell of trouble."""
        if isinstance(self._app.screen, WaitingScreen):
            return  # it must be on top when what it waits for is there
        problem = self.control.take_trouble()
        if problem is not None:
            self._tell("It came to nothing", problem)
        view = self.control.reconfiguration
        question = view.question if view is not None else None
        if self._open_question is not None:
            asked, screen = self._open_question
            if screen not in self._app.screen_stack:
                self._open_question = None
            elif (question is None or question.id != asked) and screen.is_current:
                screen.dismiss(None)
            return
        if self.read_only or view is None or question is None or question.id in self._asked:
            return
        if not self.asking:
            self._ask_question(question, view, unasked=True)

    async def look(self) -> None:
        """Ask who has the lock, and read the history."""
        try:
            await self.control.look()
        except ControlProblem as problem:
            self.trouble = problem.what
        else:
            self.trouble = ""
            self.looked = True

    # ---- what is asked ----------------------------------------------------------------------

    def apply(self, request: Request) -> None:
        """Plan, show all that would change, and apply it when that is confirmed."""

        async def prepared() -> Plan:
            return await self.control.plan(request)

        title = f"Apply {fmt.clean(request.preset)[:48]}".strip()
        self._plan_and_ask(title, prepared, self._ask_apply)

    def rollback(self) -> None:
        """Show what would come back, and roll back when that is confirmed."""
        self._plan_and_ask("Roll back", self.control.rollback_plan, self._ask_rollback)

    def restart(self) -> None:
        """Ask, and restart when that is confirmed."""
        self._plan_and_ask("Restart", self.control.against_restart, self._ask_restart)

    def decide(self) -> None:
        """Answer what is asked, or carry on what was interrupted."""
        view = self.control.reconfiguration
        if self.read_only or view is None:
            return
        if view.question is not None:
            self._ask_question(view.question, view, unasked=False)
        elif view.interrupted:
            words = questions.resume_words(view, self._snapshot(), self.control.holder)
            self._ask(words, lambda: self._start(self.control.resume))

    def leave(self, host: str, then: Callable[[], None]) -> None:
        """Ask before ddtui is left in the middle of something."""
        view = self.control.reconfiguration
        if view is None or not self.carrying_on:
            then()
        elif not self.asking:
            self._ask(questions.leave_words(view, host), then)

    # ---- within -----------------------------------------------------------------------------

    def _plan_and_ask(
        self,
        title: str,
        prepare: Callable[[], Awaitable[Any]],
        ask: Callable[[Any, bool], None],
    ) -> None:
        if self.read_only or self.asking:
            return
        if (problem := self._under_way()) is not None:
            self._tell(f"{title}: not possible now", problem)
            return

        async def looked() -> Any:
            await self.control.look()
            return await prepare()

        self._work_out_and_ask(
            title, "Looking at the host, and working out what changes", looked, ask
        )

    def _under_way(self) -> ControlProblem | None:
        """What must end first."""
        if (busy := self.busy()) is not None:
            return busy
        view = self.control.reconfiguration
        if view is None or view.ending:
            return None
        if view.interrupted or view.question is not None:
            words = "was interrupted" if view.interrupted else "waits for your decision"
            return ControlProblem(f"{view.heading} {words}.", "Decide on that first (the key D).")
        return ControlProblem(f"{view.heading} by {view.who} is under way.", "Wait until it ends.")

    def _expected(self, plan: Plan | None) -> tuple[float | None, str]:
        return (None, "") if plan is None else self.control.expected_load(plan.after)

    def _moment(self, expected: tuple[float | None, str]) -> questions.Moment:
        return questions.Moment(
            snapshot=self._snapshot(),
            now=self._clock(),
            glyphs=self._glyphs,
            expected=expected,
            holder=self.control.holder,
            runner=self.other_runner(),
        )

    def _ask_apply(self, plan: Plan, late: bool) -> None:
        def words() -> Words:
            return questions.apply_words(plan, self._moment(self._expected(plan)))

        self._confirmed(words, lambda: self.control.apply(plan), late)

    def _ask_rollback(self, plan: Plan, late: bool) -> None:
        def words() -> Words:
            return questions.rollback_words(plan, self._moment(self._expected(plan)))

        self._confirmed(words, self.control.rollback, late)

    def _ask_restart(self, against: Sequence[Finding], late: bool) -> None:
        def words() -> Words:
            load = self._snapshot().load
            known = load is not None and load.finished and load.ended is not None
            seconds = load.ended - load.began if load is not None and load.ended else None
            expected = (seconds, "the last one") if known else (None, "")
            return questions.restart_words(against, self._moment(expected))

        self._confirmed(words, self.control.restart, late)

    def _ask_question(
        self, question: Question, view: ReconfigurationView, *, unasked: bool
    ) -> None:
        self._asked.add(question.id)
        words = questions.question_words(question, view, self._snapshot())
        screen = ConfirmScreen(words, unasked=unasked, clock=self._key_clock)

        def answered(yes: bool | None) -> None:
            self._open_question = None
            if yes is not None:
                self.control.answer(question, yes=yes)

        self._open_question = (question.id, screen)
        self._app.push_screen(screen, answered)


def _nothing() -> ControlProblem | None:
    return None
