from __future__ import annotations

import asyncio
import itertools

from hypothesis import given
from hypothesis import strategies as st

from ddtui.hosts.streams import (
    LINE_LIMIT,
    STDERR_TAIL,
    LineSplitter,
    RunningProgram,
    attended,
    behind,
    capture,
    exit_status,
)


def feed_all(splitter: LineSplitter, chunks: list[bytes]) -> list[bytes]:
    return [line for chunk in chunks for line in splitter.feed(chunk)]


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=8))
def test_lines_do_not_depend_on_how_they_were_cut(data: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    chunks = [data[a:b] for a, b in itertools.pairwise(edges)]
    assert feed_all(LineSplitter(), chunks) == data.split(b"\n")[:-1]


@given(st.binary(max_size=100), st.lists(st.integers(0, 100), max_size=6), st.integers(1, 9))
def test_lines_are_capped_however_they_were_cut(data: bytes, cuts: list[int], cap: int) -> None:
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    chunks = [data[a:b] for a, b in itertools.pairwise(edges)]
    assert feed_all(LineSplitter(cap), chunks) == [line[:cap] for line in data.split(b"\n")[:-1]]


def test_a_line_of_ninety_thousand_characters_is_whole() -> None:
    assert LineSplitter().feed(b"x" * 90_000 + b"\n") == [b"x" * 90_000]


def test_an_endless_line_costs_no_more_than_its_cap() -> None:
    splitter = LineSplitter()
    for _ in range(20):
        assert splitter.feed(b"x" * (1 << 17)) == []
    assert splitter.feed(b"\nnext\n") == [b"x" * LINE_LIMIT, b"next"]


class Feed:
    """A reader over chunks."""

    def __init__(self, *chunks: bytes) -> None:
        self.chunks = list(chunks)

    async def read(self, most: int) -> bytes:
        return self.chunks.pop(0) if self.chunks else b""


async def test_capture_reads_on_past_its_cap() -> None:
    feed = Feed(b"abc", b"def", b"ghi")
    assert await capture(feed.read, 4) == b"abcd"
    assert feed.chunks == []


async def finish() -> int:
    return 7


async def test_a_program_has_a_status_only_after_its_end_and_keeps_the_tail_of_stderr() -> None:
    program = RunningProgram(
        Feed(b"one\ntw", b"o\npartial").read,
        Feed(b"x" * 5000, b"the end \xff").read,
        finish,
    )
    before = program.status
    assert before is None
    async with attended(program, lambda _: None):
        assert [line async for line in program.lines()] == [b"one", b"two"]
        assert program.status == 7
        await asyncio.sleep(0)
    assert program.stderr_tail.endswith("the end \N{REPLACEMENT CHARACTER}")
    assert len(program.stderr_tail) <= STDERR_TAIL


async def test_heartbeats_are_sent_until_the_context_ends() -> None:
    beats: list[bytes] = []
    third = asyncio.Event()

    def write(data: bytes) -> None:
        beats.append(data)
        if len(beats) == 3:
            third.set()

    program = RunningProgram(Feed().read, Feed().read, finish)
    async with attended(program, write, interval=0.001):
        await third.wait()
    count = len(beats)
    await asyncio.sleep(0.01)
    assert beats == [b"\n"] * count


def test_a_signal_has_the_status_that_a_shell_gives_it() -> None:
    assert exit_status(3) == 3
    assert exit_status(-9) == 137


@given(st.binary(max_size=60), st.binary(max_size=60), st.lists(st.integers(1, 9), max_size=9))
def test_what_comes_before_a_mark_is_left_out(before: bytes, after: bytes, cuts: list[int]) -> None:
    mark = b"@mark\n"
    noise = before.replace(b"@", b"")

    async def read_all(data: bytes) -> bytes:
        rest, sizes = bytearray(data), iter([*cuts, *itertools.repeat(7, 40)])

        async def read(_most: int) -> bytes:
            chunk = bytes(rest[: (size := next(sizes, 7))])
            del rest[:size]
            return chunk

        return await capture(behind(read, mark))

    assert asyncio.run(read_all(noise + mark + after)) == after
    assert asyncio.run(read_all(noise)) == noise
