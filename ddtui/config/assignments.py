"""Assignments of the command line: `--set budget=16 --set flag:NAME=VALUE --set env:NAME=VALUE`.

`--set text:NAME=VALUE` sets a flag to this very text: `true`, `false` and `none` mean nothing then.
"""

from __future__ import annotations

from collections.abc import Iterable

from ddtui.config.errors import ConfigError, Problem
from ddtui.config.preset_tables import FLAG, VARIABLE
from ddtui.core.knobs import (
    KNOBS,
    LONGEST_TEXT,
    NONE,
    TEXT_PATTERN,
    BadValue,
    knob_name,
    knob_text,
    nearest_knob,
)
from ddtui.core.launch import Request, Value
from ddtui.core.redact import redact_text

HELP = (
    "KNOB=VALUE, flag:NAME=VALUE or env:NAME=VALUE (the value none takes it away),"
    " or text:NAME=VALUE for a flag with this very text"
)


def parse_assignments(words: Iterable[str]) -> Request:
    """What `--set` asks for. Raises ConfigError with every mistake."""
    knobs: dict[str, Value] = {}
    flags: dict[str, Value] = {}
    environment: dict[str, str | None] = {}
    problems = []
    seen: set[tuple[str, str]] = set()
    for word in words:
        try:
            kind, name, value = assignment(word)
        except ValueError as error:
            problems.append(Problem(str(error), where=_shown(word)))
            continue
        if (kind, name) in seen:
            problems.append(Problem("is set twice", where=_shown(word)))
        seen.add((kind, name))
        if kind == "env":
            environment[name] = None if value is None else str(value)
        else:
            (flags if kind == "flag" else knobs)[name] = value
    if problems:
        raise ConfigError(problems)
    return Request("", knobs, flags, environment)


def _shown(word: str) -> str:
    """What was written, without a secret: masked before it is cut."""
    return f"--set {redact_text(word)[:80]}"


def assignment(word: str) -> tuple[str, str, Value]:
    """Kind (`knob`, `flag`, `env`), name and value of one word. Raises ValueError."""
    left, sign, text = word.partition("=")
    if not sign:
        raise ValueError(f"has no value; expected {HELP}")
    if len(text) > LONGEST_TEXT:
        raise ValueError(f"the value is too long ({len(text)} characters, most {LONGEST_TEXT})")
    if text and not TEXT_PATTERN.fullmatch(text):
        raise ValueError("the value is not one line of text")
    kind, colon, name = left.partition(":")
    if not colon:
        return _knob(left, text)
    if kind == "env":
        if not VARIABLE.fullmatch(name):
            raise ValueError(f"{name[:80]!r} is no name of a variable")
        return kind, name, None if text == NONE else text
    if kind not in {"flag", "text"}:
        raise ValueError(f"{kind[:80]!r} is none of flag, text and env; expected {HELP}")
    flag = name.removeprefix("--")
    if not FLAG.fullmatch(flag):
        raise ValueError(f"{name[:80]!r} is no name of a flag")
    if not text:
        raise ValueError("has no value; write flag:NAME=true for a bare flag")
    if kind == "text":
        return "flag", flag, text
    return kind, flag, {"true": True, "false": False, NONE: None}.get(text.lower(), text)


def _knob(name: str, text: str) -> tuple[str, str, Value]:
    knob = knob_name(name)
    if knob is None:
        near = nearest_knob(name)
        hint = f"did you mean {near}?" if near else f"knobs: {', '.join(KNOBS)}"
        raise ValueError(f"there is no knob {name[:80]!r}; {hint} (server flags: flag:NAME=VALUE)")
    try:
        return "knob", knob, knob_text(knob, text)
    except BadValue as error:
        raise ValueError(f"got {text[:80]!r}; {error}") from error
