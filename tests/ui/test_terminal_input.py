"""What a terminal sends, torn apart or impossible: keys go on working."""

from __future__ import annotations

import pytest
from textual import events
from textual.message import Message

from ddtui.ui.terminal_input import LONGEST_PASTE, TolerantParser


class Terminal:
    """A parser with a clock of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr("ddtui.ui.terminal_input.time.monotonic", lambda: self.now)
        monkeypatch.setattr("textual._parser.get_time", lambda: self.now)
        self.parser = TolerantParser()

    def send(self, *chunks: str, gap: float = 0.0) -> list[str]:
        """What the chunks become, `gap` seconds apart: keys and `<pasted text>`."""
        out: list[Message] = []
        for chunk in chunks:
            out += self.parser.feed(chunk)
            out += self.wait(gap)
        return [self._word(each) for each in out]

    def wait(self, seconds: float) -> list[Message]:
        self.now += seconds
        return list(self.parser.tick())

    @staticmethod
    def _word(message: Message) -> str:
        if isinstance(message, events.Paste):
            return f"<{message.text}>"
        return message.key if isinstance(message, events.Key) else type(message).__name__


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    return Terminal(monkeypatch)


PASTE = "\x1b[200~some text\x1b[201~x"


@pytest.mark.parametrize("cut", range(1, len(PASTE)))
def test_a_torn_paste_ends_and_is_whole(terminal: Terminal, cut: int) -> None:
    assert terminal.send(PASTE[:cut], PASTE[cut:], gap=0.05) == ["<some text>", "x"]


@pytest.mark.parametrize("cut", range(6, len(PASTE)))
def test_a_slow_link_tears_no_paste_that_has_begun(terminal: Terminal, cut: int) -> None:
    assert terminal.send(PASTE[:cut], PASTE[cut:], gap=0.9) == ["<some text>", "x"]


def test_a_paste_without_an_end_is_over_after_a_while(terminal: Terminal) -> None:
    assert terminal.send("\x1b[200~lost", "\x1b[20", gap=0.2) == []
    assert [terminal._word(each) for each in terminal.wait(2.0)] == ["<lost\x1b[20>"]
    assert terminal.send("q") == ["q"]


def test_a_beginning_torn_twice_does_not_make_it_deaf(terminal: Terminal) -> None:
    terminal.send("\x1b[200", gap=0.11)
    terminal.send("~x", "\x1b[20", "1~", gap=0.11)
    assert terminal.send("q") == ["q"]


def test_a_long_paste_is_cut(terminal: Terminal) -> None:
    (word,) = terminal.send("\x1b[200~", *["x" * 4096] * 30, "\x1b[20", "1~")
    assert len(word) == LONGEST_PASTE + 2


def test_escape_and_sequences_are_what_they_were(terminal: Terminal) -> None:
    assert terminal.send("\x1b", gap=0.2) == ["escape"]
    assert terminal.send("\x1b", "[A", gap=0.05) == ["up"]
    assert terminal.send("\x1b[2", "4~", gap=0.05) == ["f12"]
    assert terminal.send("a\x1b[Bb") == ["a", "down", "b"]


@pytest.mark.parametrize(
    "sequence",
    [
        "\x1b[99999999999u",
        "\x1b[<999999999999;1;1M",
        "\x1b[<0;99999999999;1M",
        "\x1b[48;99999999999;99999;0;0t",
        "\x1b[97;1;55296u",
    ],
)
def test_what_cannot_be_is_skipped(terminal: Terminal, sequence: str) -> None:
    assert terminal.send(f"{sequence}z") == ["z"]
