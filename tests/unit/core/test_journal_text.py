from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddtui.core.journal_text import BAR, split_message

BAR_0 = "Multi-thread loading shards:   0% Completed | 0/6 [00:00<?, ?it/s]"
BAR_1 = "Multi-thread loading shards:  33% Completed | 2/6 [00:00<00:01, 2.50it/s]"
CAPTURE = "Capturing batches (bs=8 avail_mem=12.34 GB):  50%|#####     | 4/8 [00:02<00:02, 1.9it/s]"
LINE = "[2026-11-29 17:22:19 TP0] some other line"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("plain", [("plain", False)]),
        (LINE, [(LINE, False)]),
        ("", []),
        ("   ", []),
        ("\r\r", []),
        (BAR_1, [(BAR_1, True)]),
        (CAPTURE, [(CAPTURE, True)]),
        (f"{BAR_0}\r{BAR_1}", [(BAR_0, True), (BAR_1, True)]),
        (f"\r{BAR_0}\r{BAR_1}\r", [(BAR_0, True), (BAR_1, True)]),
        (f"{BAR_0}\r{BAR_1}{LINE}", [(BAR_0, True), (BAR_1, True), (LINE, False)]),
        (
            f"{BAR_1}/x/awq.py:53: UserWarning: y",
            [(BAR_1, True), ("/x/awq.py:53: UserWarning: y", False)],
        ),
        (f"{BAR_1}      ", [(BAR_1, True)]),
        (f"{BAR_1}\x1b[A", [(BAR_1, True)]),
        (f"\x1b[A{BAR_1}\x1b[A", [(BAR_1, True)]),
        (f"  indented\r{BAR_1}", [("  indented", False), (BAR_1, True)]),
        (f"{BAR_0}{BAR_1}{LINE}", [(BAR_0, True), (BAR_1, True), (LINE, False)]),
        # Text that a user sent may look like anything; it is never cut.
        (
            f"{LINE} with [2026-11-29 17:22:19] another stamp",
            [(f"{LINE} with [2026-11-29 17:22:19] another stamp", False)],
        ),
        (f"{LINE}: '{BAR_1}{LINE}'", [(f"{LINE}: '{BAR_1}{LINE}'", False)]),
        (f"https://x.html{LINE}", [(f"https://x.html{LINE}", False)]),
        # tqdm without a description, without an end, with units, with hours.
        (
            "  0%|          | 0/36 [00:00<?, ?it/s]",
            [("0%|          | 0/36 [00:00<?, ?it/s]", True)],
        ),
        ("12it [00:01, 9.4it/s]", [("12it [00:01, 9.4it/s]", True)]),
        (
            "model.safetensors:  45%|████▌     | 2.20G/4.90G [1:10:00<00:12, 220MB/s]",
            [("model.safetensors:  45%|████▌     | 2.20G/4.90G [1:10:00<00:12, 220MB/s]", True)],
        ),
        ("100% sure", [("100% sure", False)]),
        ("a: 50% Completed", [("a: 50% Completed", False)]),
    ],
)
def test_lines_of_a_message(message: str, expected: list[tuple[str, bool]]) -> None:
    assert split_message(message) == expected


PIECES = st.sampled_from(
    [BAR_0, BAR_1, CAPTURE, LINE, "\r", " ", "\x1b[A", "33%|", "12it [", "[", "]"]
)


@settings(max_examples=500)
@given(st.lists(st.one_of(PIECES, st.text(max_size=10)), max_size=8).map("".join))
def test_nothing_but_bars_and_blanks_around_them_is_lost(message: str) -> None:
    lines = split_message(message)
    position = 0
    for text, is_bar in lines:
        assert text.strip()
        assert "\r" not in text
        found = message.find(text, position)
        assert found >= 0
        between = message[position:found]
        assert not between.replace("\x1b[A", "").strip()
        assert not is_bar or BAR.match(text) is not None
        position = found + len(text)
    assert not message[position:].replace("\x1b[A", "").strip()


@given(st.text())
def test_no_text_is_an_error(message: str) -> None:
    for text, _ in split_message(message):
        assert text
