"""A dialog that closes once: the second of two fast keys must not close the screen below it."""

from __future__ import annotations

from typing import TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen

from ddtui.ui.toasts import forget_passing

Result = TypeVar("Result")


class Modal(ModalScreen[Result]):
    """Ignores what would close it once it is closed.

    Textual closes whatever is on top then (8.2.8, `Screen.dismiss`), or fails at the last screen.
    """

    def on_screen_resume(self) -> None:
        forget_passing(self.app)  # it may stand on the answers

    def dismiss(self, result: Result | None = None) -> AwaitComplete:
        """Close with a result, unless it is closed or covered."""
        return super().dismiss(result) if self.is_current else nothing_to_await()


def nothing_to_await() -> AwaitComplete:
    """What `dismiss` returns where there is nothing to close."""
    done: AwaitComplete = AwaitComplete.nothing()  # type: ignore[no-untyped-call]
    return done
