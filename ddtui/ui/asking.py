"""Asks before something is done: works out what, shows it, and does it once that is confirmed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from time import monotonic
from typing import Any

from textual.app import App
from textual.worker import Worker

from ddtui.core.clock import Clock
from ddtui.ui import questions
from ddtui.ui.ink import Ink, Row, wrapped
from ddtui.ui.screens.confirm import CANCEL, ConfirmScreen, Words
from ddtui.ui.screens.waiting import WaitingScreen
from ddtui.ui.source import ControlProblem

SLOW = 1.0
"""Seconds after which a question that comes is one that the operator no longer waits for."""
_AT_WORK = (
    "This question has changed, nothing was done: requests have begun since it was asked."
    " To go on all the same, type {word}."
)
_NOT_NOW = "This question has changed, nothing was done: it is not possible any more."


class Asking:
    """What desks have in common. Every start of a change goes through `_confirmed`."""

    def __init__(
        self,
        app: App[Any],
        *,
        clock: Clock,
        read_only: bool = False,
        key_clock: Callable[[], float] = monotonic,
    ) -> None:
        """`key_clock` is the one that key events carry, replaced where time must stand still."""
        self.read_only = read_only
        self._app = app
        self._clock = clock
        self._key_clock = key_clock

    @property
    def asking(self) -> bool:
        """Whether a question is open, or being worked out."""
        return isinstance(self._app.screen, ConfirmScreen | WaitingScreen)

    def _work_out_and_ask(
        self,
        title: str,
        doing: str,
        prepare: Callable[[], Awaitable[Any]],
        ask: Callable[[Any, bool], None],
    ) -> None:
        """Work something out, told in words (`doing`), then ask; `ask` is told if that was slow."""

        async def work() -> None:
            await self._prepared(title, waiting, prepare, ask)

        def give_up() -> None:
            worker.cancel()

        # From here on keys reach the question, or what stands in its place.
        waiting = WaitingScreen(title, doing, give_up)
        self._app.push_screen(waiting)
        worker: Worker[None] = self._app.run_worker(work, group="control")

    async def _prepared(
        self,
        title: str,
        waiting: WaitingScreen,
        prepare: Callable[[], Awaitable[Any]],
        ask: Callable[[Any, bool], None],
    ) -> None:
        began = self._clock()
        try:
            found = await prepare()
        except ControlProblem as problem:
            waiting.dismiss(None)
            self._tell(f"{title}: not possible now", problem)
            return
        if waiting.is_current:
            waiting.dismiss(None)
            ask(found, self._clock() - began > SLOW)

    def _confirmed(
        self,
        words: Callable[[], Words],
        start: Callable[[], None],
        late: bool = False,
        changed: str = "",
    ) -> None:
        """Ask; start it on yes, unless requests have come up meanwhile: then ask anew.

        `changed` tells why it is asked anew.
        """
        asked = words()

        def answered() -> None:
            now = words()
            if not now.action:
                self._confirmed(words, start, changed=_NOT_NOW)
            elif now.typed and not asked.typed:
                self._confirmed(words, start, changed=_AT_WORK.format(word=now.typed))
            else:
                self._start(start)

        self._ask(_told(asked, changed), answered, unasked=late)

    def _start(self, start: Callable[[], None]) -> None:
        if self.read_only:
            return
        try:
            start()
        except ControlProblem as problem:
            self._tell("Not started", problem)

    def _ask(self, words: Words, yes: Callable[[], None], *, unasked: bool = False) -> None:
        def answered(answer: bool | None) -> None:
            if answer:
                yes()
            elif words.action and words.cancel == CANCEL:
                self._app.notify("Cancelled: nothing was done", markup=False)

        screen = ConfirmScreen(words, unasked=unasked, clock=self._key_clock)
        self._app.push_screen(screen, answered)

    def _tell(self, title: str, problem: ControlProblem) -> None:
        words = questions.problem_words(title, problem)
        self._app.push_screen(ConfirmScreen(words, unasked=True, clock=self._key_clock))


def _told(words: Words, changed: str) -> Words:
    """The words with what has changed about them first."""
    body = words.body
    if not changed or isinstance(body, str):
        return words
    return replace(
        words, body=lambda width: [*wrapped(changed, width, Ink.BAD), Row(), *body(width)]
    )
