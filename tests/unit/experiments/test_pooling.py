"""Cells of one kind pooled: as one long measurement would have given them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ddtui.bench.figures import positions
from ddtui.core.measurement import Cell
from ddtui.experiments.pooling import pooled
from tests.unit.experiments.results_world import cell, figure


def part(histogram: tuple[int, ...], **more: Any) -> Cell:
    """A cell of so many verifications by accepted drafts."""
    passes = sum(histogram)
    tokens = passes + sum(accepted * count for accepted, count in enumerate(histogram))
    plain = cell(150.0, tokens / passes, positions=positions(histogram))
    whole = msgspec.structs.replace(plain, **more)
    return msgspec.structs.replace(whole, output_tokens=tokens + whole.requests)


def test_positions_are_those_of_the_added_histograms() -> None:
    short, long = (60, 30, 10), (100, 200, 300, 400)
    added = (160, 230, 310, 400)
    for order in ((short, long), (long, short)):
        found = pooled([part(each) for each in order])
        assert found.positions == pytest.approx(positions(added))
        # Of what the last passes accepted beyond their answers' ends, no token tells.
        told = [part(each, passes=sum(each)) for each in order]
        told[0] = msgspec.structs.replace(told[0], output_tokens=told[0].output_tokens - 50)
        found = pooled(told)
        assert found.positions == pytest.approx(positions(added))
        assert found.passes == sum(added)
        # One of an older ddtui, which did not keep them.
        found = pooled([msgspec.structs.replace(part(order[0]), passes=0), told[1]])
        assert found.positions == pytest.approx(positions(added))
        assert found.passes == 0
    one = part(short)
    assert pooled([one, msgspec.structs.replace(one, positions=())]).positions == one.positions
    assert pooled([cell(150.0), cell(150.0)]).positions == ()


def test_what_the_server_says_has_the_weight_of_what_it_is_of() -> None:
    first = part((1, 1), requests=10, seconds=30.0, server_rate=100.0, server_ttft=0.1)
    second = part((2, 2), requests=30, seconds=10.0, server_rate=200.0, server_ttft=0.2)
    found = pooled([first, second])
    assert found.server_rate == pytest.approx((100.0 * 30 + 200.0 * 10) / 40)
    assert found.server_ttft == pytest.approx((0.1 * 10 + 0.2 * 30) / 40)
    # 600 tokens in 300 passes, and 900 in 225; the first one of each answer is the prefill's.
    first = msgspec.structs.replace(first, output_tokens=610, server_acceptance=2.0)
    second = msgspec.structs.replace(second, output_tokens=930, server_acceptance=4.0)
    found = pooled([first, second])
    assert found.server_acceptance == pytest.approx(1500 / 525)


def test_a_cell_that_does_not_know_a_figure_has_no_part_in_it() -> None:
    """Whichever came last."""
    known = part((1, 1), server_rate=100.0, link_rtt=0.02, acceptance_macro=1.5)
    silent = part((1, 1))
    for order in ([known, silent], [silent, known]):
        found = pooled(order)
        assert (found.server_rate, found.link_rtt, found.acceptance_macro) == (100.0, 0.02, 1.5)
        assert found.server_acceptance is None
    weightless = [msgspec.structs.replace(known, seconds=0.0, server_rate=x) for x in (1.0, 3.0)]
    assert pooled(weightless).server_rate == 2.0


def test_node_use_follows_the_pooled_acceptance_length() -> None:
    budget = 8
    cells = [cell(150.0, length, node_use=(length - 1) / budget) for length in (3.0, 5.0, 5.0)]
    found = pooled(cells)
    assert found.acceptance_length is not None
    assert found.node_use == pytest.approx((found.acceptance_length.median - 1) / budget)


def test_counts_are_added_and_repeats_go_together() -> None:
    found = pooled(
        [
            cell(150.0, errors={"400": 1}, failed=1, notes=("a", "b")),
            cell(160.0, errors={"400": 2, "lost": 1}, failed=3, notes=("b",), steady=False),
        ]
    )
    assert (found.requests, found.failed, found.output_tokens) == (60, 4, 18_000)
    assert found.errors == {"400": 3, "lost": 1}
    assert found.notes == ("a", "b")
    assert not found.steady
    assert found.user_rate is not None
    assert found.user_rate.values == figure(150.0).values + figure(160.0).values
