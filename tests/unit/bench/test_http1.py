from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddtui.bench.http1 import HEAD_LIMIT, AnswerParser, Malformed

CHUNKED = (
    b"HTTP/1.1 100 Continue\r\n\r\n"
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: 1\r\n\r\n"
    b"5\r\nhello\r\n1;name=value\r\n \r\nA\r\nworld\r\n012\r\n0\r\nTrailer: x\r\n\r\n"
)
COUNTED = b"HTTP/1.1 404 Not Found\r\ncontent-length: 5\r\n\r\nhello"
UNTIL_CLOSE = b"HTTP/1.0 200\r\n\r\nhello"


def parse(data: bytes, cuts: list[int], *, ends: bool = False) -> tuple[AnswerParser, bytes]:
    parser, body = AnswerParser(), b""
    marks = sorted({min(cut, len(data)) for cut in cuts})
    for start, stop in zip([0, *marks], [*marks, len(data)], strict=True):
        body += b"".join(parser.feed(data[start:stop]))
    if ends:
        parser.end()
    return parser, body


@given(st.lists(st.integers(0, 200), max_size=40))
def test_chunks_cut_at_any_byte(cuts: list[int]) -> None:
    parser, body = parse(CHUNKED, cuts)
    assert body == b"hello world\r\n012"
    assert parser.complete
    assert parser.reusable
    assert parser.head
    assert parser.head.status == 200
    assert parser.head.values(b"x-a") == [b"1"]


@given(st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=8), st.data())
def test_a_read_a_chunk_brings_what_any_cut_brings(
    chunks: list[bytes], data: st.DataObject
) -> None:
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    reads = [b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks]
    parser = AnswerParser()
    parser.feed(head)
    assert [parser.feed(read) for read in reads] == [[chunk] for chunk in chunks]
    assert parser.feed(b"0\r\n\r\n") == []
    assert parser.reusable
    whole = head + b"".join(reads) + b"0\r\n\r\n"
    cuts = data.draw(st.lists(st.integers(0, len(whole)), max_size=10))
    assert parse(whole, cuts)[1] == b"".join(chunks)


@pytest.mark.parametrize("read", [b"5\r\nhell\r\n", b"5\r\nhello!\r\n", b"0x5\r\nhello\r\n"])
def test_chunk_that_lies_about_its_size(read: bytes) -> None:
    parser = AnswerParser()
    parser.feed(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    with pytest.raises(Malformed):
        parser.feed(read + b"5\r\nworld\r\n")


def test_chunk_whose_beginning_looks_whole_waits_for_its_rest() -> None:
    parser = AnswerParser()
    parser.feed(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    assert parser.feed(b"c\r\nhello\r\n") == [b"hello\r\n"]
    assert parser.feed(b"world\r\n") == [b"world"]


@given(st.lists(st.integers(0, 60), max_size=10))
def test_counted_body_cut_at_any_byte(cuts: list[int]) -> None:
    parser, body = parse(COUNTED, cuts)
    assert (body, parser.complete, parser.reusable) == (b"hello", True, True)


def test_body_that_lasts_until_the_connection_ends() -> None:
    parser, body = parse(UNTIL_CLOSE, [20])
    assert not parser.complete
    parser.end()
    assert (body, parser.complete, parser.reusable) == (b"hello", True, False)


@pytest.mark.parametrize(
    ("head", "reusable"),
    [
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0", False),
        (b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 0", True),
        (b"HTTP/1.1 204 No Content", True),
    ],
)
def test_whether_the_connection_can_be_used_again(head: bytes, reusable: bool) -> None:
    parser, _ = parse(head + b"\r\n\r\n", [])
    assert parser.complete
    assert parser.reusable is reusable


def test_answer_to_head_has_no_body_and_more_than_the_answer_spoils_the_connection() -> None:
    parser = AnswerParser(head_only=True)
    assert parser.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n") == []
    assert parser.reusable
    parser, body = parse(COUNTED + b"HTTP/1.1 200", [])
    assert (body, parser.complete, parser.reusable) == (b"hello", True, False)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "not a status line"),
        (b"SSH-2.0-OpenSSH_9.2", "not an answer of HTTP/1"),
        (b"HTTP/2 200\r\n\r\n", "not a status line"),
        (b"HTTP/1.1 999 X\r\n\r\n", "not a status line"),
        (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "not a header"),
        (b"HTTP/1.1 200 OK\r\nA: 1\r\n folded\r\n\r\n", "not a header"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n", "not a content-length"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", "content-length"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9999999999999\r\n\r\n", "content-length of"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n", "is not understood"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n", "not the size"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nabc", "longer than"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + b"1" * 2000, "does not end"),
        (b"HTTP/1.1 200 OK\r\nA: " + b"x" * HEAD_LIMIT, "longer than 64 KiB"),
    ],
)
def test_malformed_answers_are_refused(data: bytes, said: str) -> None:
    with pytest.raises(Malformed, match=said):
        parse(data, [])


@pytest.mark.parametrize("data", [b"", b"HTTP/1.1 200 OK\r\n", CHUNKED[:-4], COUNTED[:-1]])
def test_connection_that_ends_too_soon(data: bytes) -> None:
    with pytest.raises(Malformed, match="ended"):
        parse(data, [], ends=True)


@given(st.binary(max_size=300))
def test_no_bytes_break_it(data: bytes) -> None:
    try:
        parse(data, [len(data) // 2], ends=True)
    except Malformed:
        return
