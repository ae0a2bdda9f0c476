"""What a server says and what cannot be is left out of a cell, and told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from ddtui.bench.believable import drafts_of
from ddtui.core.generation import Speculation
from ddtui.core.measurement import Cell
from tests.support.stub_engine import Schedule, StubEngine, chunk
from tests.unit.bench.test_bench import measure, plan


class Saying(StubEngine):
    """Ends each answer of 10 tokens with `meta`."""

    meta: dict[str, Any]

    async def _stream(
        self, path: str, number: int, plan: Schedule, fault: str, send: Callable[[bytes], None]
    ) -> None:
        send(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
            b"transfer-encoding: chunked\r\n\r\n"
        )
        last = {"completion_tokens": 10, "finish_reason": {"type": "length"}} | self.meta
        for text, meta in (("x", {"completion_tokens": 1}), ("xx", last)):
            await asyncio.sleep(0.1)
            event = json.dumps({"text": text, "meta_info": meta}).encode()
            send(chunk(b"data: %s\n\n" % event))
        send(chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")


def measured(budget: int = 16, **meta: Any) -> Cell:
    engine = Saying()
    engine.meta = meta
    wanted = plan(endpoint="generate", output_tokens=10, warmup_batches=0)
    (cell,) = measure(engine, wanted, budget=budget)
    assert len(msgspec.json.encode(cell)) < 4000
    assert msgspec.json.decode(msgspec.json.encode(cell), type=Cell) == cell
    return cell


def doubts(cell: Cell) -> list[str]:
    return [note for note in cell.notes if note.startswith("not believed, and left out: ")]


def drafts(passes: int, accepted: int, histogram: list[int] | None = None) -> dict[str, Any]:
    told = {"spec_verify_ct": passes, "spec_num_correct_drafts": accepted}
    return told | ({"spec_correct_drafts_histogram": histogram} if histogram else {})


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (drafts(2, 10**9, [1, 1]), "1000000000 accepted drafts of 10 tokens"),
        (drafts(2, 60), "an acceptance length of 31.0 in answers of 10 tokens"),
        (drafts(10**6, 3), "1000000 verifications of 10 tokens"),
    ],
)
def test_drafts_that_cannot_be_give_no_acceptance(said: dict[str, Any], why: str) -> None:
    cell = measured(**said)
    assert (cell.acceptance_length, cell.acceptance_macro, cell.node_use) == (None, None, None)
    assert (cell.step_time, cell.positions) == (None, ())
    assert any(why in doubt for doubt in doubts(cell))
    assert cell.tpot is not None


@pytest.mark.parametrize("bars", [[5, -5], [-5, 3], [1] * 20_000, [10**9, 1]])
def test_histogram_that_cannot_be_gives_no_positions(bars: list[int]) -> None:
    cell = measured(**drafts(2, 7, bars))
    assert cell.positions == ()
    assert cell.passes == 0
    assert cell.acceptance_length is not None
    assert cell.acceptance_length.median == 4.5
    assert len(doubts(cell)) == 1


def test_node_use_above_one_is_left_out() -> None:
    cell = measured(budget=3, **drafts(2, 8))
    assert cell.node_use is None
    assert cell.acceptance_length is not None
    assert any("a node use of 1.33" in doubt for doubt in doubts(cell))


def test_time_that_is_none_is_left_out() -> None:
    cell = measured(first_token_latency=-7)
    assert cell.server_ttft is None
    assert any("a TTFT of -7 s" in doubt for doubt in doubts(cell))


@pytest.mark.parametrize(
    ("tokens", "counts"),
    [
        # Real answers of SGLang 0.5.23: of NGRAM, and of DFlash in blocks of 8.
        (32, Speculation(8, 25, (0, 0, 0, 7, 1))),
        (32, Speculation(9, 26, (3, 1, 1, 1, 0, 0, 1, 2))),
        # The last pass accepted a whole block of 16, of which two tokens were left to give.
        (3, Speculation(1, 15, (0,) * 15 + (1,))),
        (1, Speculation(1, 0, (1,))),
        (100, Speculation(40)),
    ],
)
def test_what_engines_say_is_believed(tokens: int, counts: Speculation) -> None:
    assert drafts_of(counts, tokens) == (counts, "")


def test_sound_counts_leave_no_doubt() -> None:
    cell = measured(first_token_latency=0.1, **drafts(2, 7, [0, 0, 0, 1, 1]))
    assert doubts(cell) == []
    assert cell.passes == 4 * 3 * 2
    assert cell.node_use == pytest.approx(3.5 / 16)
