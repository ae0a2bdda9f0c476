from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddtui.core.text import clean


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("  indented  ", "  indented  "),
        ("bars █ and é and 漢字", "bars █ and é and 漢字"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[1;1Hhome", "home"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPq#0;2\x1b\\text", "text"),
        ("\x9b31mred", "red"),
        ("\x9d0;title\x9ctext", "text"),
        ("\x1b(Btext\x1b=", "text"),
        ("an open \x1b]0; sequence loses nothing", "an open ]0; sequence loses nothing"),
        ("a\x1b", "a"),
        ("bell\x07 null\x00 del\x7f next\x85line", "bell null del next line"),
        ("a\tb", "a       b"),
        ("abc\tb", "abc     b"),
        ("two\nlines\r", "two lines "),
        ("\u202eevil\u202c \u2066x\u2069", "evil x"),
        ("zero\u200bwidth\u200d\ufeff", "zerowidth"),
        ("no\u00a0break\u3000wide", "no break wide"),
        ("lone \ud800 surrogate", "lone \ufffd surrogate"),
        ("private \ue0b0", "private \ufffd"),
    ],
)
def test_what_is_left_of_a_text(text: str, expected: str) -> None:
    assert clean(text, 1000) == expected


@pytest.mark.parametrize(
    ("limit", "expected"), [(6, "abcdef"), (5, "abcd…"), (1, "…"), (0, ""), (-1, "")]
)
def test_the_cap(limit: int, expected: str) -> None:
    assert clean("abcdef", limit) == expected


@pytest.mark.parametrize(
    "opening", ["\x9d", "\x90", "\x9b", "\x98", "\x1b]", "\x9d\x9b\x90", "\x9da"]
)
def test_many_openings_without_an_end_are_read_once(opening: str) -> None:
    # Reading on to the end of the text from each of them would take minutes.
    result = clean(f"{opening * 100_000}é", 300_000)
    assert result.replace("]", "").lstrip("a") == "é"


def test_what_begins_a_sequence_ends_the_string_before_it() -> None:
    assert clean("\x9done\x9dtwo\x07 three", 100) == "one three"
    assert clean("\x1b]one\x9b31mtwo\x07", 100) == "]onetwo"


def test_sequences_do_not_count_for_the_cap() -> None:
    assert clean("\x1b[31m" * 1000 + "red", 3) == "red"


@given(st.text())
def test_what_is_left_is_printable_encodable_and_left_alone(text: str) -> None:
    result = clean(text, 50)
    assert len(result) <= 50
    assert result.isprintable()
    result.encode("utf-8")
    assert not {unicodedata.category(char) for char in result} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert clean(result, 50) == result


@given(st.binary())
def test_random_bytes_are_no_error(data: bytes) -> None:
    assert clean(data.decode("utf-8", "replace"), 100).isprintable()
    assert clean(data.decode("latin-1"), 100).isprintable()
