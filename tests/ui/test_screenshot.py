"""The picture of the screen that an operator can save."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.ui.control_keys import operating, shows, until


def pictures(folder: Path) -> list[str]:
    """Names of all files."""
    return sorted(each.name for each in folder.iterdir())


async def test_a_picture_of_the_screen_is_saved_and_said_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with operating("live", size=(200, 50)) as operator:
        await operator.press("4")
        await operator.press("f12")
        await until(operator, shows(operator, "Saved the screen in "))
        assert pictures(tmp_path)[0] in operator.text()
        await operator.press("f12")
        await until(operator, lambda: len(pictures(tmp_path)) == 2)
    names = pictures(tmp_path)
    first = tmp_path / min(names, key=len)
    assert first.name.startswith("ct200-screen-")
    assert first.suffix == ".svg"
    assert stat.S_IMODE(first.stat().st_mode) == 0o600
    text = first.read_text(encoding="utf-8")
    assert "budget-16" in text
    assert "http://" not in text.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "url(" not in text.replace("url(#", "")


async def test_it_is_in_the_palette_and_shows_what_was_below_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with operating("live", size=(100, 30)) as operator:
        await operator.press(":", *"screenshot")
        await until(operator, shows(operator, "Copy and save: Screenshot"))
        await operator.press("down", "enter")
        await until(operator, shows(operator, "Saved the screen in "))
    (name,) = pictures(tmp_path)
    text = (tmp_path / name).read_text(encoding="utf-8")
    assert "GPUs" in text
    assert "Screenshot" not in text


async def test_what_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> Path:
        raise OSError(28, "No space left on device", "/x/y.svg")

    monkeypatch.setattr("ddtui.ui.app.write_picture", full)
    async with operating("live") as operator:
        await operator.press("f12")
        await until(operator, shows(operator, "Not saved: No space left on device (/x/y.svg)"))


async def test_a_dialog_is_in_it_and_what_was_told_of_another_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with operating("live", size=(120, 40)) as operator:
        await operator.press("question_mark")
        await operator.pilot.pause()
        await operator.press("f12")
        await until(operator, shows(operator, "Saved the screen in "))
        await operator.press("f12")
        await until(operator, lambda: len(pictures(tmp_path)) == 2)
    texts = [(tmp_path / each).read_text(encoding="utf-8") for each in pictures(tmp_path)]
    assert all("Explain" in each for each in texts)
    assert not any("Saved" in each for each in texts)
