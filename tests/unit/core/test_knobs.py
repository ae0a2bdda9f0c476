"""Names of knobs: one spelling, however an engine labels them."""

from __future__ import annotations

import pytest

from ddtui.core.knobs import KNOBS, by_name
from ddtui.engines.sglang.knobs import SERVER, SPECULATION


def test_labels_become_names() -> None:
    shown = {"block size": "8", "top-k": "4", "verify width": "9", "KV dtype": "fp8", "budget": "8"}
    assert by_name(shown) == {
        "block_size": "8",
        "topk": "4",
        "verify_width": "9",
        "kv_dtype": "fp8",
        "budget": "8",
    }
    assert by_name(by_name(shown)) == by_name(shown)


def test_the_first_of_two_labels_of_one_knob_counts() -> None:
    assert by_name({"tree width": "4", "top-k": "1"}) == {"topk": "4"}


@pytest.mark.parametrize("label", [label for label, _ in (*SPECULATION, *SERVER)])
def test_a_label_is_one_word(label: str) -> None:
    (name,) = by_name({label: "1"})
    assert name in KNOBS or " " not in name
