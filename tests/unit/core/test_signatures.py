from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddtui.core.signatures import Kind, Place, SignatureError, hint_of, parse_signatures

GOOD = """
[[signature]]
id = "disk-full"
title = "A disk is full"
kind = "root"
patterns = ["No space left on device", "Disk quota \\\\w+"]
unless = "/dev/shm"
cause = "c"
remedy = "r"
"""


def test_a_line_shows_a_signature_once() -> None:
    known = parse_signatures(GOOD, "t")
    line = "OSError: No space left on device, Disk quota exceeded"
    assert [each.id for each in known.matches(line, Place.ENGINE)] == ["disk-full"]
    assert known.matches(line, Place.KERNEL) == []
    assert known.matches("No space left on device: /dev/shm/x", Place.ENGINE) == []
    assert known.matches("Disk quota ", Place.ENGINE) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('id = "disk-full"', 'id = "Disk full"'), "words of a-z"),
        (('kind = "root"', 'kind = "reason"'), "Invalid enum value 'reason'"),
        (('cause = "c"', 'cause = "c"\nwhy = "x"'), "unknown field `why`"),
        (('cause = "c"', 'cause = " "'), "cause is empty"),
        (('cause = "c"', 'cause = "c"\nrank = 101'), "rank 101"),
        (('remedy = "r"\n', ""), "missing required field `remedy`"),
        (('"No space left on device"', '"No space (left"'), "is no regular expression"),
        (('"No space left on device"', '"a|b"'), "4 plain characters"),
        (('"No space left on device"', '"(?i)no space left"'), "4 plain characters"),
        (('unless = "/dev/shm"', 'unless = "["'), "unless"),
        (('unless = "/dev/shm"', 'telling = "["'), "telling"),
        (('unless = "/dev/shm"', 'before = ["(x"]'), "is no regular expression"),
        (('kind = "root"', 'kind = "root"\napplies = ["kernel", "moon"]'), "'moon'"),
        (('kind = "root"', 'kind = "root"\napplies = []'), "names no place"),
        (("[[signature]]", "[[signature"), "t: "),
    ],
)
def test_a_mistake_is_told_with_its_place(change: tuple[str, str], said: str) -> None:
    text = GOOD.replace(*change)
    assert text != GOOD
    with pytest.raises(SignatureError, match=re.escape(said)) as caught:
        parse_signatures(text, "t")
    assert str(caught.value).startswith("t:")


def test_an_id_stands_once() -> None:
    with pytest.raises(SignatureError, match=r"disk-full.*twice"):
        parse_signatures(GOOD + GOOD, "t")


def test_no_patterns_need_another_measure() -> None:
    text = GOOD.replace('patterns = ["No space left on device", "Disk quota \\\\w+"]', "")
    with pytest.raises(SignatureError, match="no patterns"):
        parse_signatures(text, "t")
    note = text.replace('"root"', '"note"\nacceptance_below = 1.5')
    assert parse_signatures(note, "t").all[0].kind is Kind.NOTE


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        (r"plain text", "plain text"),
        (r"\[Errno 98\] error", "[Errno 98] error"),
        (r"TllmGen.*Unsupported", "Unsupported"),
        (r"colou?red", "colo"),
        (r"abcd*efg", "abc"),
        (r"abcdx{0,3}yz", "abcd"),
        (r"one|other", ""),
        (r"(?:one|other) thing", " thing"),
        (r"(?:never this)?sure", "sure"),
        (r"[abc]{2}tail", "tail"),
        (r"exit code \d+ of", "exit code "),
    ],
)
def test_the_hint_stands_in_every_match(pattern: str, hint: str) -> None:
    assert hint_of(pattern) == hint


@given(st.from_regex(r"(a|bc|\.|\\d|x\?|\(ab\|c\)|d\*|[e-g]){1,12}", fullmatch=True), st.data())
def test_the_hint_of_any_pattern_stands_in_what_it_matches(
    pattern: str, data: st.DataObject
) -> None:
    text = data.draw(st.from_regex(pattern, fullmatch=True))
    assert hint_of(pattern) in text
