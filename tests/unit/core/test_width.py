from __future__ import annotations

import pytest

from ddtui.core.width import cell_len, clip, padded


@pytest.mark.parametrize(
    ("text", "columns"),
    [("abc", 3), ("漢字", 4), ("e\u0301", 1), ("👩\u200d👩\u200d👧", 2), ("a\u200bb", 2)],
)
def test_a_text_takes_the_columns_of_a_terminal(text: str, columns: int) -> None:
    assert cell_len(text) == columns
    assert clip(text, columns) == text
    assert cell_len(padded(text, 7, right=True)) == 7
    for width in range(columns):
        assert cell_len(clip(text, width)) <= width


def test_a_cut_text_says_so() -> None:
    assert clip("budget 16", 8) == "budget…"  # no blank before the ellipsis
    assert clip("budget 16", 1) == "…"
    assert clip("budget 16", 0) == ""
