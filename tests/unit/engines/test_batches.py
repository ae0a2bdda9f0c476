"""Decode and prefill lines of every version (written from the versions' format strings)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddtui.core.events import Decoded, Prefilled
from ddtui.engines.sglang.batches import decoded, prefilled
from tests.unit.engines.captures import events_of

DECODES = [
    (
        "[2025-08-01 10:00:02 TP0] Decode batch. #running-req: 1, #token: 553, token usage: 0.00, "
        "accept len: 2.75, cuda graph: True, gen throughput (token/s): 112.40, #queue-req: 0, ",
        Decoded(112.40, 2.75, None, 1, 0, 0.0, 553, True, stamp=1.0, rank="TP0"),
    ),
    (
        "[2025-08-01 10:00:02] Decode batch. #running-req: 4, #token: 2210, token usage: 0.01, "
        "cuda graph: True, gen throughput (token/s): 301.22, #queue-req: 0, ",
        Decoded(301.22, None, None, 4, 0, 0.01, 2210, True, stamp=1.0),
    ),
    (
        "[2025-09-15 10:00:02 DP0 TP0] Decode batch. #running-req: 2, #full token: 9001, "
        "full token usage: 0.03, #swa token: 4100, swa token usage: 0.02, accept len: 2.61, "
        "cuda graph: True, gen throughput (token/s): 200.10, #queue-req: 0, ",
        Decoded(200.10, 2.61, None, 2, 0, 0.03, 9001, True, stamp=1.0, rank="DP0 TP0"),
    ),
    (
        "[2025-11-20 10:00:02 TP0] Decode batch [57], #running-req: 1, #full token: 4224, "
        "full token usage: 0.02, mamba num: 2, mamba usage: 0.04, accept len: 3.10, "
        "accept rate: 0.78, cuda graph: True, gen throughput (token/s): 187.35, #queue-req: 0, ",
        Decoded(187.35, 3.10, 0.78, 1, 0, 0.04, 4224, True, stamp=1.0, rank="TP0"),
    ),
    (
        "[2026-02-10 10:00:02 TP0] Decode batch, #running-req: 1, #token: 640, token usage: 0.00, "
        "accept len: 3.20, accept rate: 0.80, cuda graph: True, "
        "gen throughput (token/s): 190.00, #queue-req: 0",
        Decoded(190.0, 3.20, 0.80, 1, 0, 0.0, 640, True, stamp=1.0, rank="TP0"),
    ),
    (
        "[2026-05-02 10:00:02 TP0] Decode batch, #running-req: 1, #token: 2048, "
        "token usage: 0.01, accept len: 6.10, accept rate: 0.34, cuda graph: True, "
        "gen throughput (token/s): 429.69, #queue-req: 0",
        Decoded(429.69, 6.10, 0.34, 1, 0, 0.01, 2048, True, stamp=1.0, rank="TP0"),
    ),
    (
        "[2026-07-20 10:00:02 TP0] Decode batch, #running-req: 8, #full token: 22016, "
        "full token usage: 0.04, mamba num: 9, mamba usage: 0.11, accept len: 5.87, "
        "accept rate: 0.32, cuda graph: True, gen throughput (token/s): 1290.44, #queue-req: 2",
        Decoded(1290.44, 5.87, 0.32, 8, 2, 0.11, 22016, True, stamp=1.0, rank="TP0"),
    ),
    (
        "[2026-07-20 10:00:02] Decode batch, #running-req: 8, #token: 9000, token usage: 0.03, "
        "accept len: 3.90, accept rate: 0.41, cap len: 5.20, block accept len: 4.10, "
        "cuda graph: True, gen throughput (token/s): 980.00, #queue-req: 0",
        Decoded(980.0, 3.90, 0.41, 8, 0, 0.03, 9000, True, stamp=1.0),
    ),
    (
        "[2026-10-01 10:00:02 TP0 EP0] Decode batch, #running-req: 4, #token: 33012, "
        "token usage: 0.12, accept len: 4.44, accept rate: 0.49, cuda graph: True, "
        "gen throughput (token/s): 610.72, #queue-req: 5, fwd occupancy: 88.10%, "
        "fwd+idle occupancy: 91.00%",
        Decoded(610.72, 4.44, 0.49, 4, 5, 0.12, 33012, True, stamp=1.0, rank="TP0 EP0"),
    ),
    (
        "[2026-10-01 10:00:02] Decode batch, #running-req: 1, #token: 492, token usage: 0.00, "
        "cuda graph: True, gen throughput (token/s): 71.30, #queue-req: 0",
        Decoded(71.30, None, None, 1, 0, 0.0, 492, True, stamp=1.0),
    ),
    (
        "[2026-10-01 10:00:02] Decode batch, #running-req: 64, #token: 90112, token usage: 0.31, "
        "accept len: 2.02, accept rate: 0.15, cuda graph: False, "
        "gen throughput (token/s): 1033.00, #queue-req: 11",
        Decoded(1033.0, 2.02, 0.15, 64, 11, 0.31, 90112, False, stamp=1.0),
    ),
    (
        "[2026-10-01 10:00:02] Decode batch, #running-req: 2, #token: 90112, token usage: nan, "
        "accept len: nan, npu graph: True, gen throughput (token/s): inf, #queue-req: 1",
        Decoded(None, None, None, 2, 1, None, 90112, True, stamp=1.0),
    ),
]

PREFILLS = [
    (
        "[2025-08-01 10:00:01 TP0] Prefill batch. #new-seq: 1, #new-token: 512, "
        "#cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0, ",
        Prefilled(1, 512, 0, 0, 0, 0.0, None, stamp=1.0, rank="TP0"),
    ),
    (
        "[2025-11-20 10:00:01 TP0] Prefill batch [17], #new-seq: 1, #new-token: 4096, "
        "#cached-token: 128, token usage: 0.02, #running-req: 0, #queue-req: 3, ",
        Prefilled(1, 4096, 128, 0, 3, 0.02, None, stamp=1.0, rank="TP0"),
    ),
    (
        "[2026-02-10 10:00:01 TP0] Prefill batch, #new-seq: 1, #new-token: 512, "
        "#cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0, "
        "input throughput (token/s): 18.91, cuda graph: False",
        Prefilled(1, 512, 0, 0, 0, 0.0, 18.91, stamp=1.0, rank="TP0"),
    ),
    (
        "[2026-05-02 10:00:01 TP0] Prefill batch, #new-seq: 2, #new-token: 1024, "
        "#cached-token: 256, token usage: 0.01, #running-req: 1, #queue-req: 0, "
        "#pending-token: 0, cuda graph: False, input throughput (token/s): 2481.07",
        Prefilled(2, 1024, 256, 1, 0, 0.01, 2481.07, stamp=1.0, rank="TP0"),
    ),
    (
        "[2026-10-01 10:00:01 TP0 EP0] Prefill batch, #new-seq: 1, #new-token: 8192, "
        "#cached-token: 0, full token usage: 0.10, swa token usage: 0.04, #running-req: 3, "
        "#queue-req: 5, #pending-token: 40960, cuda graph: True, "
        "input throughput (token/s): 15210.33, fwd occupancy: 97.20%, fwd+idle occupancy: 97.90%",
        Prefilled(1, 8192, 0, 3, 5, 0.10, 15210.33, stamp=1.0, rank="TP0 EP0"),
    ),
]


@pytest.mark.parametrize(("line", "expected"), DECODES)
def test_decode_lines_of_every_version(line: str, expected: Decoded) -> None:
    assert events_of(line) == [expected]


@pytest.mark.parametrize(("line", "expected"), PREFILLS)
def test_prefill_lines_of_every_version(line: str, expected: Prefilled) -> None:
    assert events_of(line) == [expected]


@given(st.text(max_size=300))
def test_no_text_behind_the_phrase_is_an_error(text: str) -> None:
    assert decoded("Decode batch" + text, 1.0, "").stamp == 1.0
    assert prefilled("Prefill batch" + text, 1.0, "").stamp == 1.0


def test_impossible_figures_are_none() -> None:
    text = (
        f"Decode batch, #running-req: -3, #token: {'9' * 400}, token usage: 5.5,"
        " accept len: 1e300, accept rate: -1, gen throughput (token/s): nan, #queue-req: 1e17"
    )
    event = decoded(text, 1.0, "")
    assert event == Decoded(stamp=1.0, queued=10**17)


@pytest.mark.parametrize("key", ["accept len", "acc len", "acceptance len", "acceptance length"])
def test_the_names_of_the_acceptance_length(key: str) -> None:
    event = decoded(f"Decode batch, #running-req: 1, {key}: 3.25, #queue-req: 0", 1.0, "TP0")
    assert event.acceptance_length == 3.25
