"""The user's own keys: the `[keys]` table of the configuration.

    [keys]
    app.quit = "Q"
    log.search = ["/", "f3"]

Keys are named as Textual names them: a printable character, or a name such as `f5`, `ctrl+t`,
`shift+up`, `pagedown`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from textual.app import App
from textual.binding import Binding
from textual.keys import Keys, format_key

from ddtui.config.errors import did_you_mean
from ddtui.ui.actions import ACTIONS, Action, Scope

_SAME_BYTE_AS = {
    "ctrl+h": "backspace",
    "ctrl+i": "tab",
    "ctrl+j": "a line feed, as in pasted text",
    "ctrl+m": "enter",
    "ctrl+[": "escape",
    "ctrl+left_square_bracket": "escape",
}
"""Keys that most terminals send as another key."""

_KEPT = {
    "tab": "it moves the focus",
    "shift+tab": "it moves the focus",
    "enter": "it chooses in lists and dialogs",
}

DISCOURAGED = frozenset({"ctrl+a", "ctrl+b", "ctrl+q", "ctrl+s", "ctrl+z"})
"""Keys that screen, tmux or the terminal's flow control take: no default uses them, a user may."""

_NAMED = frozenset(key.value for key in Keys) - {
    "<any>",
    "<ignore>",
    "<scroll-up>",
    "<scroll-down>",
}
_MODIFIERS = ("ctrl", "shift", "alt", "super", "meta", "hyper")


class KeymapError(ValueError):
    """The `[keys]` table is wrong. `problems` has one line for each mistake."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


def canonical(key: str) -> str:
    """A key in Textual's long form: `?` becomes `question_mark`."""
    return next(iter(Binding.make_bindings([Binding(key, "")]))).key


def display(key: str) -> str:
    """A key as the footer and the help write it."""
    *modifiers, last = canonical(key).split("+")
    parts = ["^" if modifier == "ctrl" else f"{modifier}+" for modifier in modifiers]
    return "".join(parts) + format_key(last)


@dataclass(frozen=True)
class Keymap:
    """The keys in force for every action."""

    keys: Mapping[str, tuple[str, ...]]
    """Action id to keys, in Textual's long form."""
    changed: frozenset[str] = frozenset()
    """Ids of the actions whose keys the user chose."""

    def of(self, action_id: str) -> tuple[str, ...]:
        """Keys of an action, in Textual's long form."""
        return self.keys[action_id]

    def shown(self, action_id: str) -> str:
        """Keys of an action for reading: `j ↓`."""
        return " ".join(display(key) for key in self.keys[action_id])

    def install(self, app: App[Any]) -> None:
        """Put the user's keys in force in an app whose bindings come from the registry."""
        app.set_keymap({each: ",".join(self.keys[each]) for each in self.changed})


def default_keymap() -> Keymap:
    """The registry's own keys."""
    return Keymap({each.id: tuple(map(canonical, each.keys)) for each in ACTIONS})


def read_keymap(table: Mapping[str, object]) -> Keymap:
    """The key map that a `[keys]` table asks for.

    Args:
        table: Action id to a key or a list of keys. Tables within it are read as dotted ids, which
            is what TOML makes of an unquoted `log.search`.

    Raises:
        KeymapError: an unknown action, a key that cannot work, or one key for two actions; all
            mistakes at once, each with what to do.
    """
    problems: list[str] = []
    chosen: dict[str, tuple[str, ...]] = {}
    known = [each.id for each in ACTIONS]
    for action_id, value in _flat(table):
        if action_id not in known:
            problems.append(f"keys.{action_id}: no such action{_nearest(action_id, known)}")
            continue
        # As in Textual's own key maps, a string may name several keys: "f9,ctrl+r".
        keys = value.split(",") if isinstance(value, str) and value != "," else value
        keys = [keys] if isinstance(keys, str) else keys
        if (
            not isinstance(keys, list | tuple)
            or not keys
            or not all(isinstance(k, str) for k in keys)
        ):
            problems.append(f"keys.{action_id}: expected a key or a list of keys, not {value!r}")
            continue
        wrong = [f"keys.{action_id}: {why}" for key in keys if (why := _fault(key))]
        problems += wrong
        if not wrong:
            chosen[action_id] = tuple(dict.fromkeys(map(canonical, keys)))
    keymap = Keymap({**default_keymap().keys, **chosen}, frozenset(chosen))
    problems += _clashes(keymap)
    if problems:
        raise KeymapError(problems)
    return keymap


def _flat(table: Mapping[str, object], prefix: str = "") -> Iterable[tuple[str, object]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _nearest(word: str, known: Iterable[str]) -> str:
    return did_you_mean(word, known) or "; `?` in ddtui lists all keys and actions"


def _fault(key: str) -> str:
    """Why a key cannot be bound, or an empty string."""
    if key == ",":
        return "a comma cannot be bound; write the keys as a list"
    if len(key) == 1:
        return (
            "" if key.isprintable() and key != " " else f"{key!r} has a name: write it out (space)"
        )
    if other := _SAME_BYTE_AS.get(key):
        return f"{key} reaches ddtui as {other} in most terminals; choose another key"
    if why := _KEPT.get(key):
        return f"{key} cannot be bound: {why}"
    *modifiers, last = key.split("+")
    if any(modifier not in _MODIFIERS for modifier in modifiers):
        return f"no such key: {key!r}; modifiers are {', '.join(_MODIFIERS)}"
    if key in _NAMED or last in _NAMED or (modifiers and len(last) == 1 and last.isprintable()):
        return ""
    if len(format_key(last)) == 1:  # a character by its Unicode name, such as question_mark
        return ""
    return f"no such key: {key!r}{_nearest(key, sorted(_NAMED))}"


def _clashes(keymap: Keymap) -> Iterable[str]:
    """One line for each key that two actions want which can both be reached."""
    for index, one in enumerate(ACTIONS):
        for other in ACTIONS[index + 1 :]:
            if not _reachable_together(one, other):
                continue
            for key in keymap.of(one.id):
                if key in keymap.of(other.id):
                    user, kept = (other, one) if one.id not in keymap.changed else (one, other)
                    yield (
                        f"keys.{user.id}: {display(key)} is already the key of {kept.id} "
                        f"({kept.title}); give {kept.id} another key, or choose another here"
                    )


def _reachable_together(one: Action, other: Action) -> bool:
    return one.scope is other.scope or Scope.APP in (one.scope, other.scope)
