"""Makes text from a host safe to show: no control characters, no direction tricks, capped.

Control sequences are those of ECMA-48 (CSI, OSC, DCS, ...), in their 7-bit (`ESC [`) and 8-bit
(`U+009B`) forms.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

TAB_WIDTH = 8
ELLIPSIS = "…"

_LONGEST_STRING = 4096
"""Characters after which an unfinished OSC or DCS string is taken for text again: nothing is lost
because somebody printed an opening sequence alone."""

_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,16}[@-~]"  # CSI: colours, cursor movement
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])"  # OSC, DCS, SOS, PM, APC: a string with an end
    # What begins a sequence ends the string before it, as in a terminal. It also keeps this linear:
    # no character is looked at for two strings.
    rf"[^\x07\x1b\x80-\x9f]{{0,{_LONGEST_STRING}}}(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]{1,16}[0-~]"  # character sets and the like
    r"|\x1b[0-OQ-WYZ`-~]"  # single-character functions
)


def clean(text: str, limit: int) -> str:
    """Return `text` as one printable line of at most `limit` characters, cut with an ellipsis.

    Terminal sequences, control characters, bidirectional overrides and zero-width characters are
    removed; tabs become spaces up to the next tab stop; other white space becomes one space each;
    what no terminal can show (lone surrogates, unassigned and private characters) becomes U+FFFD.
    """
    if not text.isprintable():
        text = _printable(text)
    if len(text) > limit:
        return text[: max(0, limit - 1)] + ELLIPSIS if limit > 0 else ""
    return text


def _printable(text: str) -> str:
    if "\x1b" in text or not text.isascii():
        text = _SEQUENCES.sub("", text)
    if "\t" in text:
        text = text.replace("\n", " ").replace("\r", " ").expandtabs(TAB_WIDTH)
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _stand_in(char) for char in text)


@lru_cache(maxsize=4096)
def _stand_in(char: str) -> str:
    """What stands for a character that is not printable."""
    if char.isspace():
        return " "
    category = unicodedata.category(char)
    return "" if category in ("Cc", "Cf") else "�"


def named_values(pairs: Iterable[str]) -> dict[str, str]:
    """`NAME=value` pairs, such as variables, by their names."""
    return dict(pair.partition("=")[::2] for pair in pairs)


def counted(number: int, word: str) -> str:
    """`1 load`, `2 loads`, `3 benches`."""
    plural = f"{word}es" if word.endswith("ch") else f"{word}s"
    return f"{number} {word if number == 1 else plural}"
