"""What screens tell the app."""

from __future__ import annotations

from textual.message import Message


class PauseToggled(Message):
    """The operator wants what is shown to stand still, or to go on."""


class ChangeDismissed(Message):
    """The operator has seen how a reconfiguration ended."""


class TypingRefused(Message):
    """A line to type into did not come up: what is typed for it must not act as keys."""
