"""What is told in passing, at the bottom right: short, and gone with what it was told of."""

from __future__ import annotations

from typing import Any

from textual.app import App

PASSING = 4.0
"""Seconds that something told in passing stays."""

TOAST_CSS = """
Toast { width: auto; max-width: 80%; padding: 0 1; margin-top: 0; }
ToastRack { padding: 0; }
"""
"""Style for the app: one line for what fits in one, so that little is covered."""


def forget(app: App[Any], beginning: str) -> None:
    """Take away what was told in these words."""
    told = [each for each in app._notifications if each.message.startswith(beginning)]
    for each in told:
        app._unnotify(each, refresh=False)
    if told:
        app._refresh_notifications()


def forget_passing(app: App[Any]) -> None:
    """Take away what was told in passing, as something else is looked at now.

    What went wrong stays until its time is over, and so does what was given more time.
    """
    passing = [
        each
        for each in app._notifications
        if each.severity == "information" and each.timeout <= PASSING
    ]
    for each in passing:
        app._unnotify(each, refresh=False)
    if passing:
        app._refresh_notifications()
