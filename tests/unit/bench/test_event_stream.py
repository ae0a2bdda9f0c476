from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddtui.bench.event_stream import EVENT_LIMIT, EventSplitter, EventTooLong

STREAM = (
    b'data: {"a":1}\n\n'
    b": a comment\n\n"
    b'event: x\ndata: {"b":\ndata: 2}\nid: 7\n\n'
    b"data:no blank\r\n\r\n"
    b"data: lone returns\r\r"
    b"data: [DONE]\n\n"
)
EVENTS = [b'{"a":1}', b'{"b":\n2}', b"no blank", b"lone returns", b"[DONE]"]


@given(st.lists(st.integers(0, len(STREAM)), max_size=40))
def test_events_cut_at_any_byte(cuts: list[int]) -> None:
    splitter, found = EventSplitter(), []
    marks = sorted(set(cuts))
    for start, stop in zip([0, *marks], [*marks, len(STREAM)], strict=True):
        found += splitter.feed(float(stop), STREAM[start:stop])
    assert [data for _, data in found] == EVENTS
    stamps = [stamp for stamp, _ in found]
    assert stamps == sorted(stamps)


def test_event_has_the_stamp_of_its_last_byte() -> None:
    splitter = EventSplitter()
    assert splitter.feed(1.0, b"data: a\n\nda") == [(1.0, b"a")]
    assert splitter.feed(2.0, b"ta: b") == []
    assert splitter.feed(3.0, b"\n\n") == [(3.0, b"b")]


def test_lone_returns_end_an_event_at_once() -> None:
    splitter = EventSplitter()
    assert splitter.feed(1.0, b"data: a\r\r") == [(1.0, b"a")]
    assert splitter.feed(2.0, b"data: b\r\n\r") == [(2.0, b"b")]
    assert splitter.feed(3.0, b"") == []
    assert splitter.feed(4.0, b"\ndata: c\r\n\r\n") == [(4.0, b"c")]


def test_event_that_is_cut_off_is_dropped_and_one_without_end_refused() -> None:
    splitter = EventSplitter()
    assert splitter.feed(1.0, b"data: a\n") == []
    with pytest.raises(EventTooLong, match="longer than 16 MiB"):
        splitter.feed(1.0, b"x" * EVENT_LIMIT)
