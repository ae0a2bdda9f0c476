"""The footer: the keys of the screen's main actions, help and quit always among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.strip import Strip
from textual.widget import Widget

from ddtui.ui.keymap import display
from ddtui.ui.palette import actions_of, keymap_of

_ALWAYS = ("app.help", "app.quit")

Hint = tuple[str, str, str]
"""A key as it is written, what it does, and the action that a click runs (or nothing)."""


class KeyBar(Widget):
    """One line. What does not fit is left out; the help has it."""

    ALLOW_SELECT = False
    DEFAULT_CSS = "KeyBar { height: 1; dock: bottom; background: $footer-background; }"

    def __init__(self) -> None:
        super().__init__()
        self._instead: Sequence[Hint] = ()
        self._titles: Mapping[str, str] = {}

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, lambda _screen: self.refresh())
        self.app.theme_changed_signal.subscribe(self, lambda _theme: self.refresh())

    def instead(self, hints: Sequence[Hint]) -> None:
        """Show these keys for as long as others do not work; nothing to show the screen's again."""
        self._instead = hints
        self.refresh()

    def retitle(self, titles: Mapping[str, str]) -> None:
        """Call actions, by id, by what they do now: `Resume` instead of `Pause`."""
        if titles != self._titles:
            self._titles = titles
            self.refresh()

    def hints(self) -> tuple[list[Hint], list[Hint]]:
        """What is shown: from the left, and at the right."""
        if self._instead:
            return list(self._instead), []
        keymap = keymap_of(self.screen)
        left: list[Hint] = []
        right: list[Hint] = []
        for action in actions_of(self.screen):
            if action.footer:
                title = self._titles.get(action.id, action.title)
                hint = (display(keymap.of(action.id)[0]), title, action.command)
                (right if action.id in _ALWAYS else left).append(hint)
        return left, right

    def render_line(self, y: int) -> Strip:  # noqa: ARG002 - there is one line
        width = self.size.width
        left, right = self.hints()
        kept, room = [], width - sum(map(_cells, right))
        for hint in left:
            room -= _cells(hint)
            if room < 0:
                break
            kept.append(hint)
        ground = Style(bgcolor=self._color("footer-background"))
        segments = [each for hint in kept for each in self._segments(hint, ground)]
        used = sum(_cells(hint) for hint in kept) + sum(map(_cells, right))
        segments.append(Segment(" " * max(0, width - used), ground))
        segments += [each for hint in right for each in self._segments(hint, ground)]
        return Strip(segments).adjust_cell_length(width, ground)

    def _segments(self, hint: Hint, ground: Style) -> list[Segment]:
        key, words, command = hint
        clickable = Style(meta={"@click": command}) if command else Style()
        key_style = Style(color=self._color("footer-key-foreground"), bold=True)
        word_style = Style(color=self._color("footer-description-foreground"))
        return [
            Segment(f" {key} ", ground + key_style + clickable),
            Segment(f"{words} ", ground + word_style + clickable),
        ]

    def _color(self, name: str) -> str:
        return Color.parse(self.app.theme_variables[name]).hex6


def _cells(hint: Hint) -> int:
    return cell_len(hint[0]) + cell_len(hint[1]) + 3
