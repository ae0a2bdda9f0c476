"""Whether the command line that a server reports is the one that its unit runs.

SGLang reports its arguments joined by blanks, without any quotes
(`/server_info`, `launch_command`), so that the words of a value with blanks, quotes or backslashes
cannot be told from it again. The words that are expected are therefore joined in the ways in which
a server may have done it, and the texts are compared; only where no text fits are the words that a
text seems to hold compared, flag by flag. Both sides have their secrets masked, not always alike,
so that what is masked counts as equal.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Hashable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple, cast

from ddtui.core.engine import Engine
from ddtui.core.redact import MASK, redact_argv, redact_text
from ddtui.core.samples import ServerInfoSample
from ddtui.core.text import ELLIPSIS, clean

_LONGEST = 200_000
"""Characters of a command line that are compared."""
_QUOTED_MASK = re.compile(rf"""(['"]){re.escape(MASK)}\1""")


class Difference(NamedTuple):
    """A flag in which two command lines differ; None: not set."""

    name: str
    asked: str | None
    told: str | None


class Comparison(NamedTuple):
    """What a report says of the command line that is asked for."""

    exact: bool
    """The report is this very command line, as far as a joined text can tell."""
    different: tuple[Difference, ...]
    """What speaks against it. Empty and not exact: it reads the same, in another spelling."""


def compared(
    asked: Sequence[str], info: ServerInfoSample, engine: Engine, *, printed: bool = False
) -> Comparison:
    """Compare the command line of a server's report (which has one) with the one asked for.

    `printed`: what is asked for is known without its quotes only (`UnitStatus`).
    """
    return _compared(
        tuple(asked), info.launch_command, info.launch_text, cast(Hashable, engine), printed
    )


# Asked anew with every snapshot, of the same texts.
@lru_cache(maxsize=64)
def _compared(
    asked: tuple[str, ...], told: tuple[str, ...], text: str, engine: Engine, printed: bool
) -> Comparison:
    own = tuple(engine.arguments(asked))
    in_script = own != asked[len(asked) - len(own) :]
    unknown = "\"'\\" if printed else "$`" if in_script else ""
    by_words = _differing(own, told, engine, unknown)
    if not text:
        return Comparison(not by_words and not printed, by_words)
    joined = " ".join(own)
    if any(masked_words(each) == masked_words(text) for each in _spellings(own, asked)):
        # `--a 'x --b 2'` and `--a x --b 2` are one text.
        is_one_reading = engine.flags(joined.split()).keys() == engine.flags(own).keys()
        return Comparison(is_one_reading, ())
    by_text = _differing(masked_words(joined), masked_words(text), engine, unknown)
    return Comparison(False, min(by_words, by_text, key=len))


def _spellings(own: Sequence[str], asked: Sequence[str]) -> list[str]:
    """The texts that servers may make of their arguments, with or without the program."""
    return [
        join(words)
        for words in (own, asked)
        for join in (" ".join, shlex.join, subprocess.list2cmdline)
    ]


def masked_words(text: str) -> tuple[str, ...]:
    """The words of a joined command line, its secrets removed, with one spelling of the masks."""
    masked = _QUOTED_MASK.sub(MASK, redact_text(clean(text, _LONGEST)))
    return without_rest(redact_argv(masked.split()))


def without_rest(words: Iterable[str]) -> tuple[str, ...]:
    """The words without those between a masked one and the next flag: a secret may have blanks."""
    kept: list[str] = []
    hidden = False
    for word in words:
        hidden = hidden and not word.startswith("--")
        if not hidden:
            kept.append(word)
        hidden = hidden or word.endswith(MASK)
    return tuple(kept)


def _differing(
    asked: Sequence[str], told: Sequence[str], engine: Engine, unknown: str
) -> tuple[Difference, ...]:
    wanted, given = engine.flags(asked), engine.flags(told)
    return tuple(
        Difference(name, wanted.get(name), given.get(name))
        for name in sorted(wanted.keys() | given.keys())
        if not _alike(wanted.get(name), given.get(name), unknown)
    )


def _alike(asked: str | None, told: str | None, unknown: str) -> bool:
    """Whether a value may be the other one.

    `unknown` are characters that leave it open what a value is: the shell expands them, or they are
    not printed.
    """
    if asked is None or told is None or asked == told:
        return asked == told
    if MASK in asked or MASK in told or asked.endswith(ELLIPSIS):
        return True
    if "$" in unknown and asked.startswith("~"):
        return True
    return any(char in asked or char in told for char in unknown)
