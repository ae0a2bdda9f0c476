"""The footer: the keys of the screen's main actions, help and quit always among them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.strip import Strip
from textual.widget import Widget

from ddtui.ui.action import Group, Scope
from ddtui.ui.keymap import display
from ddtui.ui.palette import actions_of, keymap_of

_ALWAYS = ("app.help", "app.quit")
_ENOUGH = 5
"""Screens whose names are worth the room that they take; fewer are told by their keys alone."""

Hint = tuple[str, str, str]
"""A key as it is written, what it does, and the action that a click runs (or nothing)."""


@dataclass
class Hints:
    """What a footer may show, the most needed first."""

    own: list[Hint] = field(default_factory=list)
    """Of the screen itself."""
    screens: list[Hint] = field(default_factory=list)
    """That go to other screens."""
    always: list[Hint] = field(default_factory=list)
    """At the right, help first."""


def fitted(hints: Hints, width: int) -> tuple[list[Hint], list[Hint]]:
    """What is shown from the left and at the right; `More` stands for what has no room."""
    everything = [*hints.own, *hints.screens]
    room = width - _width(hints.always)
    if _width(everything) <= room or not hints.always:
        return _first(everything, room), hints.always
    (key, _, command), *rest = hints.always
    right = [(key, "More", command), *rest]
    named = _first(hints.screens, room - _width(hints.own))
    if len(named) >= min(_ENOUGH, len(hints.screens)):
        return [*hints.own, *named], right
    folded = _folded(hints.screens)
    own = _first(hints.own, max(0, room - _width(folded[:1])))
    others = folded if len(own) == len(hints.own) else folded[:1]
    return [*own, *_first(others, room - _width(own))], right


def _folded(screens: Sequence[Hint]) -> list[Hint]:
    """`1-6 Go to` for as many as have one number after the other."""
    count = 0
    while count < len(screens) and screens[count][0] == str(count + 1):
        count += 1
    return [(f"1-{count}", "Go to", ""), *screens[count:]] if count > 1 else list(screens)


def _first(hints: Sequence[Hint], room: int) -> list[Hint]:
    """As many as fit."""
    kept = []
    for hint in hints:
        room -= _cells(hint)
        if room < 0:
            break
        kept.append(hint)
    return kept


class KeyBar(Widget):
    """One line. What does not fit is left out and said to be; the help has it."""

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
        """Call actions, by id, by what they do now: `Resume` instead of `Pause`.

        Those that would do nothing now are called nothing, and left out.
        """
        if titles != self._titles:
            self._titles = titles
            self.refresh()

    def hints(self) -> Hints:
        """What may be shown now."""
        if self._instead:
            return Hints(list(self._instead))
        keymap, found = keymap_of(self.screen), Hints()
        needed: Collection[str] = getattr(self.app, "needed", ())
        for action in actions_of(self.screen):
            if action.footer or action.id in needed:
                title = self._titles.get(action.id, action.title)
                hint = (display(keymap.of(action.id)[0]), title, action.command)
                if not title:
                    continue
                if action.id in _ALWAYS:
                    found.always.append(hint)
                elif action.scope is not Scope.APP:
                    found.own.append(hint)
                elif action.group is Group.GO:
                    found.screens.append(hint)
                else:  # what waits for a decision goes before what may be done
                    found.own.insert(0, hint)
        return found

    def render_line(self, y: int) -> Strip:  # noqa: ARG002 - there is one line
        width = self.size.width
        kept, right = fitted(self.hints(), width)
        ground = Style(bgcolor=self._color("footer-background"))
        segments = [each for hint in kept for each in self._segments(hint, ground)]
        used = _width(kept) + _width(right)
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


def _width(hints: Sequence[Hint]) -> int:
    return sum(map(_cells, hints))
