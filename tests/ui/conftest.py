"""The same screens on every machine: a fixed time zone, and no themes of whoever runs the tests."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ui.bursts import SENT
from tests.ui.queue_world import stored

__all__ = ["stored"]


@pytest.fixture(autouse=True)
def same_everywhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("DDTUI_CONFIG_DIR", str(tmp_path / "config"))
    for name in ("TEXTUAL_THEME", "NO_COLOR", "TEXTUAL_ANIMATIONS"):
        monkeypatch.delenv(name, raising=False)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many bursts of keys were sent."""
    if SENT:
        words = f"{SENT['bursts']:,} bursts of {SENT['keys']:,} keys sent"
        terminalreporter.write_line(words)
