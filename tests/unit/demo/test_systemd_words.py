"""How the simulated systemd prints what a unit sets."""

from __future__ import annotations

import pytest

from ddtui.collect.systemd_text import split_words
from ddtui.demo.systemd import printed


@pytest.mark.parametrize(
    "assignment",
    [
        "A=1",
        "A=",
        "A=two words",
        'A=a b; \u2026 "q" \'z',
        "A=it's",
        'A="',
        r"A=\x41 $HOME `id` \\",
        "A=\u00e9t\u00e9 et hiver",
        "A=1\n2",
    ],
)
def test_a_word_is_read_as_it_was_set(assignment: str) -> None:
    others = ["B=1", "C=two words"]
    assert split_words(" ".join(map(printed, [assignment, *others]))) == [assignment, *others]
