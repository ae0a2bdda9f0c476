"""Changes flags in a command line: order, spelling and style of everything else stay.

Words are an argument vector, without any quoting. What stands before the engine's own arguments
(`/opt/venv/bin/python -m sglang.launch_server`) is never touched.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ddtui.core.launch import Value
from ddtui.engines.sglang.flags import arguments_start, is_value
from ddtui.engines.sglang.server_flags import FlagInfo, ServerFlags


class NotEditable(ValueError):
    """The command line does not start the engine itself, so its flags cannot be changed in it."""


class Occurrence(msgspec.Struct, frozen=True):
    """One use of a flag in a command line."""

    name: str
    """As written, without dashes."""
    begin: int
    end: int
    """Words `begin` to `end` (exclusive) are the flag and its values."""
    values: tuple[str, ...]
    joined: bool
    """Written as `--name=value`."""

    @property
    def text(self) -> str:
        """The value as `flags()` gives it: values joined by blanks, `true` for a bare flag."""
        return " ".join(self.values) if self.values else "true"


class CommandLine:
    """An argument vector whose flags can be changed. Raises NotEditable when it has none."""

    def __init__(self, argv: Sequence[str], server: ServerFlags | None = None) -> None:
        start = arguments_start(argv)
        if start is None:
            raise NotEditable(
                "the unit's command does not start the engine itself: it is a script or a wrapper"
            )
        self._words = list(argv)
        self._start = start
        self._server = server

    @property
    def argv(self) -> tuple[str, ...]:
        """The words now."""
        return tuple(self._words)

    def occurrences(self) -> list[Occurrence]:
        """Every flag in its order."""
        found, at, words = [], self._start, self._words
        while at < len(words):
            word, begin = words[at], at
            at += 1
            if not word.startswith("--") or word == "--":
                continue
            name, sign, value = word[2:].partition("=")
            values = [value] if sign else []
            info = self._info(name)
            most = 0 if sign else _most_values(info)
            while len(values) < most and at < len(words) and is_value(words[at]):
                values.append(words[at])
                at += 1
            found.append(Occurrence(name, begin, at, tuple(values), bool(sign)))
        return found

    def of(self, name: str) -> list[Occurrence]:
        """The uses of a flag, whatever its spelling."""
        wanted = self.canonical(name)
        return [each for each in self.occurrences() if self.canonical(each.name) == wanted]

    def canonical(self, name: str) -> str:
        """The flag's own name for any of its spellings, as far as the server's flags are known."""
        info = self._info(name)
        return name if info is None else info.name

    def values(self) -> dict[str, str]:
        """Flags by their own names, the last use of each; a negated one is `false`."""
        result: dict[str, str] = {}
        for each in self.occurrences():
            info = self._info(each.name)
            name = each.name if info is None else info.name
            result.pop(name, None)
            negated = info is not None and each.name == info.negated
            result[name] = "false" if negated else each.text
        return result

    def set(self, name: str, value: Value) -> None:
        """Set a flag; True makes it a bare one, None and False take it away.

        The last use is changed where it stands, in its style; a new flag is put at the end. Earlier
        uses stay as they are (the last one counts). Where a flag has a `--no-...` form, False sets
        that.
        """
        info = self._info(name)
        if value is False and info is not None and info.negated:
            self._put(name, info.negated, ())
        elif value is None or value is False:
            self._remove(name)
        elif value is True:
            self._put(name, info.name if info and info.negated else name, ())
        else:
            text = value if isinstance(value, str) else render(value)
            many = info is not None and info.many
            self._put(name, name, tuple(text.split()) if many and text.split() else (text,))

    def _put(self, name: str, written: str, values: tuple[str, ...]) -> None:
        uses = self.of(name)
        if not uses:
            self._words += _written(written, values, joined=False)
            return
        last = uses[-1]
        info = self._info(name)
        switched = info is not None and info.negated in (last.name, written) and info.negated
        spelled = written if switched else last.name
        self._words[last.begin : last.end] = _written(spelled, values, joined=last.joined)

    def _remove(self, name: str) -> None:
        for each in reversed(self.of(name)):
            del self._words[each.begin : each.end]

    def _info(self, name: str) -> FlagInfo | None:
        return None if self._server is None else self._server.find(name)


def _most_values(info: FlagInfo | None) -> int:
    if info is None or info.many:
        return 10_000
    return 1 if info.takes_value else 0


def _written(name: str, values: tuple[str, ...], *, joined: bool) -> list[str]:
    if len(values) == 1 and (joined or not is_value(values[0])):
        return [f"--{name}={values[0]}"]
    return [f"--{name}", *values]


def render(value: float | str) -> str:
    """A value as a word of the command line: `0.9`, `16`, floats without an exponent's surprise."""
    return repr(value) if isinstance(value, float) else str(value)
