"""The log, the help and the dialogs as pictures, with a frozen clock."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from ddtui.core.journal_text import split_message
from ddtui.core.samples import JournalLine
from ddtui.engines.sglang import SGLANG
from ddtui.ui.screens.confirm import ConfirmScreen, Words
from ddtui.ui.screens.log import LogScreen
from tests.ui.log_keys import press, settle
from tests.ui.log_world import EARLIER, LogApp, line, many
from tests.ui.scenes import NOW
from tests.ui.test_hosts_screen import HostsApp

LOG = Path(__file__).parents[1] / "fixtures" / "sglang" / "sglang-dflash.log"

SnapCompare = Callable[..., bool]


def by_size(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"


def real_lines() -> list[JournalLine]:
    """A start that failed, then the log of a real engine up to its first requests."""
    lines = [
        line("Started sglang-kimi.service.", at=-900, invocation=EARLIER, from_manager=True),
        line("Traceback (most recent call last):", at=-890, invocation=EARLIER),
        line("RuntimeError: NCCL error: unhandled system error", at=-890, invocation=EARLIER),
        line(
            "sglang-kimi.service: Main process exited, code=exited, status=1/FAILURE",
            at=-889,
            invocation=EARLIER,
            from_manager=True,
        ),
        line("Started sglang-kimi.service.", at=-300, from_manager=True),
    ]
    for message in LOG.read_text(encoding="utf-8", errors="replace").split("\n")[:190]:
        for text, bar in split_message(message):
            lines.append(line(text[:8_000], at=-300 + len(lines), bar=bar))
    return lines


HOSTILE = [
    line("[/usr/bin] [b]bold?[/b] [@click=app.quit]x[/]"),
    line("\x1b[31mred?\x1b[0m \x1b]0;title\x07after", priority=3),
    line("漢字かな交じり文を折り返す" * 12),
    line("שלום עולם \u202eturned"),
    line("🚀 emoji ❤\ufe0f and 👩‍👩‍👧"),
    line("x" * 8_000),
    line("Loading safetensors checkpoint shards:  45% Completed | 29/64", bar=True),
]


def log_app(*lines: JournalLine, theme: str = "") -> LogApp:
    app = LogApp(*lines, theme=theme)
    app.log_screen = LogScreen(SGLANG, clock=lambda: NOW)
    return app


def pressing(*keys: str) -> Callable[[Pilot[object]], Awaitable[None]]:
    async def run(pilot: Pilot[object]) -> None:
        await settle(pilot)
        if keys:
            await press(pilot, *keys)

    return run


@pytest.mark.parametrize("size", [(60, 16), (80, 24), (120, 40), (200, 60)], ids=by_size)
def test_following(size: tuple[int, int], snap_compare: SnapCompare) -> None:
    app = log_app(*real_lines())
    assert snap_compare(app, terminal_size=size, run_before=pressing())


@pytest.mark.parametrize("size", [(60, 16), (80, 24), (120, 40)], ids=by_size)
def test_two_starts_and_a_search(size: tuple[int, int], snap_compare: SnapCompare) -> None:
    keys = pressing("slash", *"error", "enter", "g", "v", "j", "n")
    assert snap_compare(log_app(*real_lines()), terminal_size=size, run_before=keys)


def test_paused_with_filters(snap_compare: SnapCompare) -> None:
    app = log_app(*many(2_000))

    async def run(pilot: Pilot[object]) -> None:
        await pressing("l", "l", "ampersand", *"slow", "enter", "k", "k", "k")(pilot)
        app.buffer.suppressed = 1_204
        app.feed(*many(900, 2_000))
        await settle(pilot)

    assert snap_compare(app, terminal_size=(80, 24), run_before=run)


@pytest.mark.parametrize("size", [(60, 16), (80, 24), (120, 40)], ids=by_size)
def test_hostile_lines(size: tuple[int, int], snap_compare: SnapCompare) -> None:
    assert snap_compare(log_app(*HOSTILE), terminal_size=size, run_before=pressing("g"))


@pytest.mark.parametrize("theme", ["ddtui-light", "ddtui-contrast"])
def test_hostile_lines_wrapped(theme: str, snap_compare: SnapCompare) -> None:
    app = log_app(*HOSTILE, theme=theme)
    assert snap_compare(app, terminal_size=(80, 24), run_before=pressing("w", "g"))


def test_a_bad_pattern(snap_compare: SnapCompare) -> None:
    keys = pressing("ctrl+g", "slash", *"(a|")
    app = log_app(*real_lines())

    async def run(pilot: Pilot[object]) -> None:
        await keys(pilot)
        pilot.app.clear_notifications()
        await pilot.pause()

    assert snap_compare(app, terminal_size=(80, 24), run_before=run)


def test_choosing_a_rank(snap_compare: SnapCompare) -> None:
    app = log_app(*many(200))
    assert snap_compare(app, terminal_size=(80, 24), run_before=pressing("r", "j", "j"))


@pytest.mark.parametrize("size", [(60, 16), (120, 40)], ids=by_size)
def test_help(
    size: tuple[int, int], snap_compare: SnapCompare, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DDTUI_CONFIG_DIR", "/home/operator/.config/ddtui")
    app = log_app(*real_lines())
    assert snap_compare(app, terminal_size=size, run_before=pressing("question_mark"))


@pytest.mark.parametrize("size", [(60, 16), (120, 40)], ids=by_size)
def test_hosts(size: tuple[int, int], snap_compare: SnapCompare) -> None:
    assert snap_compare(HostsApp(), terminal_size=size)


@pytest.mark.parametrize("size", [(60, 16), (80, 24)], ids=by_size)
def test_confirm(size: tuple[int, int], snap_compare: SnapCompare) -> None:
    app = log_app(*real_lines())
    body = "12 requests are running and would be lost.\n\nbudget       60 → 96\ntop-k         8 → 8"

    async def run(pilot: Pilot[object]) -> None:
        await settle(pilot)
        moment = [100.0]
        words = Words("Restart sglang-kimi on ct200", body, "Restart", typed="ct200")
        question = ConfirmScreen(words, clock=lambda: moment[0])
        await app.push_screen(question)
        moment[0] += 1.0
        question._look()
        await pilot.pause()

    assert snap_compare(app, terminal_size=size, run_before=run)
