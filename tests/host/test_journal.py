"""A hostile journal: all of it arrives once, in order, cleaned, and changes nothing on screen."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator

import pytest
from rich.segment import Segment
from textual.pilot import Pilot

from ddtui.core.samples import JournalLine
from ddtui.ui.app import DdtuiApp
from tests.host.gpuhost import GpuHost
from tests.host.watching import Watcher, Watching

UNIT = "llm-hostile.service"
LINE_MAX = 48 * 1024
"""Bytes after which journald cuts a line (LineMax=)."""

_SHARDS = "Loading safetensors checkpoint shards"
BARS = [f"{_SHARDS}: {n}0% Completed | {n}/10 [00:0{n}<00:09,  1.0s/it]" for n in (1, 5, 9)]
# What is written, and the lines that must come of it.
WRITTEN: list[tuple[bytes, list[str]]] = [
    (b"plain line\n", ["plain line"]),
    (b"A" * 90_000 + b"\n", ["A" * LINE_MAX, "A" * (90_000 - LINE_MAX)]),
    (b"[/usr/bin]\n", ["[/usr/bin]"]),
    (b"[@click=app.quit]click me[/]\n", ["[@click=app.quit]click me[/]"]),
    (b"[bold red]no markup[/bold red] [/nonsense\n", ["[bold red]no markup[/bold red] [/nonsense"]),
    (b"\x1b[31;1mred words\x1b[0m\n", ["red words"]),
    (b"\x1b]0;new title\x07\x1b[2J\x1b[Hwiped\n", ["wiped"]),
    (b"\x1b]8;;file:///etc/passwd\x1b\\linked\x1b]8;;\x1b\\\n", ["linked"]),
    (b"\x9b31mnot UTF-8 \xff\xfe\xc3 end\n", ["\ufffd31mnot UTF-8 \ufffd\ufffd\ufffd end"]),
    ("right\u202eto left\u2066\n".encode(), ["rightto left"]),
    (b"before\0after\n", ["before", "after"]),
    ("\r".join(BARS).encode() + b"\n", BARS),
    (b"B" * 60_000 + b"\n", ["B" * LINE_MAX, "B" * (60_000 - LINE_MAX)]),
    (b"tab\tstop\n", ["tab     stop"]),
    ("日本語 ü\n".encode(), ["日本語 ü"]),
    (b"--api-key=sk-verysecretvalue0123456789\n", []),
    (b"last line\n", ["last line"]),
]  # fmt: skip
SECRET = "sk-verysecretvalue0123456789"
EXPECTED = [line for _, lines in WRITTEN for line in lines]

WRITER = """
import base64, json, sys, time
for chunk in json.load(open(sys.argv[1])):
    sys.stdout.buffer.write(base64.b64decode(chunk))
    sys.stdout.buffer.flush()
    time.sleep(0.01)
time.sleep(600)
"""


@pytest.fixture
def hostile(gpuhost: GpuHost) -> Iterator[GpuHost]:
    gpuhost.write("/opt/hostile/writer.py", WRITER)
    chunks = [base64.b64encode(data).decode() for data, _ in WRITTEN]
    gpuhost.write("/opt/hostile/chunks.json", json.dumps(chunks))
    files = ("/opt/hostile/writer.py", "/opt/hostile/chunks.json")
    with gpuhost.unit(UNIT, ["/usr/bin/python3", *files]):
        yield gpuhost


async def whole(watching: Watching) -> list[JournalLine]:
    """The unit's own lines, once the last has come."""
    await watching.until(lambda _: "last line" in watching.own_texts(), what="the last line")
    return [line for line in watching.state.log.since(0) if not line.from_manager]


@pytest.mark.parametrize("late", [True, False], ids=["read back", "followed"])
async def test_all_lines_come_once_in_order_and_clean(
    hostile: GpuHost, watcher: Watcher, *, late: bool
) -> None:
    if late:
        hostile.systemctl("restart", UNIT)
    watching = await watcher.watch(UNIT)
    if not late:
        await whole(watching)
        seen = watching.state.log.total
        hostile.systemctl("restart", UNIT)
        await watching.until(
            lambda _: any(line.text == "last line" for line in watching.state.log.since(seen))
        )
        lines = [line for line in watching.state.log.since(seen) if not line.from_manager]
    else:
        lines = await whole(watching)
    texts = [line.text for line in lines]
    secret = [text for text in texts if text.startswith("--api-key")]
    assert len(secret) == 1
    assert SECRET not in secret[0]
    texts.remove(secret[0])
    assert texts == EXPECTED
    assert all(text.isprintable() for text in texts)
    assert [line.text[:1] for line in lines if line.continued] == ["A", "B"]
    assert not any(line.truncated for line in lines)
    assert [line.text for line in lines if line.bar] == BARS


def joined(row: list[Segment]) -> str:
    return "".join(each.text for each in row)


def painted(app: DdtuiApp) -> list[list[Segment]]:
    """Every row of the screen on top, as its segments."""
    return [list(strip) for strip in app.screen._compositor.render_strips()]


async def settled(app: DdtuiApp, pilot: Pilot[object], words: str) -> str:
    """The text on the screen once `words` are in it."""
    text = ""
    for _ in range(1200):
        app.paint()
        await pilot.pause(0.05)
        text = "\n".join(joined(row) for row in painted(app))
        if words in text:
            return text
    raise AssertionError(f"{words!r} is not on the screen:\n{text}")


@pytest.mark.parametrize("screen", ["monitor", "log"])
async def test_the_screen_shows_it_as_plain_text(hostile: GpuHost, screen: str) -> None:
    watching = Watching(hostile, UNIT)
    app = DdtuiApp(watching)
    async with app.run_test(size=(200, 60)) as pilot:
        await whole(watching)
        if screen == "log":
            app.action_log()
        text = await settled(app, pilot, "last line")
        assert app.is_running
        assert app.title == "ddtui"
        if screen == "log":
            for words in ("[/usr/bin]", "[@click=app.quit]click me[/]", "red words", "linked"):
                assert words in text
        shown = [row for row in painted(app) if any(words in joined(row) for words in EXPECTED)]
        assert shown
        styles = [each.style for row in shown for each in row if each.style]
        assert not [style.meta for style in styles if "@click" in style.meta]
        assert not [style.link for style in styles if style.link]
        if screen == "log":
            plain = style_of(shown, "plain line")
            assert plain == style_of(shown, "red words") == style_of(shown, "no markup")
    await watching.close()


def style_of(rows: list[list[Segment]], words: str) -> tuple[str, bool]:
    """Colour and weight in which words are shown."""
    for row in rows:
        for each in row:
            if words in each.text and each.style:
                return str(each.style.color), bool(each.style.bold)
    raise AssertionError(f"{words!r} is not shown in one piece")
