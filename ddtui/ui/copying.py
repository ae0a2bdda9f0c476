"""Copying text: to the terminal's clipboard, and to a file for terminals that have none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from textual.app import App

from ddtui.ui.ink import Row
from ddtui.ui.log_files import write_copied

CLIPBOARD_LIMIT = 74_000
"""Bytes that most terminals take into the clipboard at once."""
UNBROKEN = 1 << 20
"""A width in which no line is broken."""


def copy_text(app: App[Any], text: str, what: str) -> None:
    """Copy text and tell so. `what` it is, in words."""
    app.copy_to_clipboard(text)
    try:
        path = write_copied(text + "\n")
    except OSError as error:
        words = f"Copied {what} to the clipboard; no file: {error.strerror} ({error.filename})"
        app.notify(words, severity="warning", markup=False)
        return
    too_long = len(text.encode()) > CLIPBOARD_LIMIT
    note = " (long for some terminals' clipboards)" if too_long else ""
    app.notify(f"Copied {what}{note}. Also in {at_home(path)}", markup=False)


def at_home(path: Path) -> str:
    """A path as a shell takes it, short where it lies in the operator's home."""
    try:
        return f"~/{path.relative_to(Path.home())}"
    except ValueError:
        return str(path)


def plain(rows: Sequence[Row]) -> str:
    """Rows as text."""
    return "\n".join(row.text.rstrip() for row in rows)
