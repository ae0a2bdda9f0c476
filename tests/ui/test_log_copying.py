from __future__ import annotations

import stat
from pathlib import Path

import pytest
from textual.widgets import Input, Static

from ddtui.ui import log_files
from ddtui.ui.widgets.prompt import Prompt
from tests.ui.log_keys import opened, press, status, toasts
from tests.ui.log_world import EARLIER, line, many


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "state"
    monkeypatch.setattr(log_files, "state_folder", lambda: folder)
    monkeypatch.chdir(tmp_path)
    return folder


def saved(path: Path) -> str:
    """What a file that nobody else may read holds."""
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    return path.read_text()


def block(path: Path) -> None:
    path.write_text("a file where the folder should be")


async def test_copying_a_selection_reaches_clipboard_and_file(own_state: Path) -> None:
    async with opened(line("one"), line("old", invocation=EARLIER), line("three")) as (app, pilot):
        await press(pilot, "g", "v", "j", "j")
        assert "3 selected" in status(app)
        await press(pilot, "y")
        assert app.clipboard == "one\nold\nthree"
        copied = own_state / "copied.log"
        assert saved(copied) == "one\nold\nthree\n"
        assert f"Copied 3 lines. Also in {copied}" in toasts(app)
        assert app.log_screen.view.mark is None
        await press(pilot, "y")
        assert saved(copied) == "three\n"


async def test_copying_says_when_no_file_can_be_written(own_state: Path) -> None:
    block(own_state)
    async with opened(line("one")) as (app, pilot):
        await press(pilot, "y")
        assert app.clipboard == "one"
        assert "no file: " in toasts(app)


async def test_saving_writes_what_is_shown_and_overwrites_nothing(tmp_path: Path) -> None:
    async with opened(*many(2_000)) as (app, pilot):
        await press(pilot, "l", "l", "l", "s")
        prompt = app.log_screen.query_one(Prompt)
        path = Path(prompt.value)
        assert path.parent == tmp_path
        assert path.name.startswith("ct200-sglang-kimi-20260")
        await press(pilot, "enter")
        await app.workers.wait_for_complete()
        first, second = saved(path).splitlines()
        assert first.startswith("2026-09-21T")
        assert "RuntimeError: out of memory in batch line 999 " in first
        assert f"Saved 2 lines to {path}" in toasts(app)
        # The suggestion is another name now; the old one is refused.
        await press(pilot, "s")
        assert prompt.value != str(path)
        prompt.query_one(Input).value = str(path)
        await press(pilot, "enter")
        await app.workers.wait_for_complete()
        assert "nothing is overwritten" in str(app.log_screen.query_one("#fault", Static).content)
        assert saved(path).splitlines() == [first, second]
        prompt.query_one(Input).value = "/proc/nowhere/x.log"
        await press(pilot, "enter")
        await app.workers.wait_for_complete()
        assert "cannot be written: " in str(app.log_screen.query_one("#fault", Static).content)
        await press(pilot, "escape")
        assert prompt.purpose == ""


async def test_a_prompt_is_not_covered_by_what_was_told_before() -> None:
    async with opened(*many(30)) as (app, pilot):
        await press(pilot, "y")
        assert toasts(app)
        await press(pilot, "s")
        assert not toasts(app)
