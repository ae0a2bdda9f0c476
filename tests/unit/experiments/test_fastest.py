"""The one line that says which configuration is the fastest."""

from __future__ import annotations

import msgspec

from ddtui.core.measurement import Spread
from ddtui.experiments.comparison import Standing, compared
from ddtui.experiments.fastest import fastest_words
from ddtui.experiments.rows import Row
from tests.unit.experiments.results_world import cell


def row(title: str, rate: float, work: str = "coding", *, scatter: float = 0.001) -> Row:
    values = (rate * (1 - scatter), rate, rate * (1 + scatter))
    own = msgspec.structs.replace(cell(rate), user_rate=Spread(rate, *values[::2], values))
    base = msgspec.structs.replace(
        cell(100.0), user_rate=Spread(100.0, 99.9, 100.1, (99.9, 100.0, 100.1))
    )
    return Row(
        title=title, state="measured", work=work, cell=own, comparison=compared(own, base, 0.01)
    )


def test_the_fastest_is_named_with_what_cannot_be_told_from_it() -> None:
    rows = [row("a", 100.0), row("b", 120.0), row("c", 120.5), row("d", 90.0)]
    (told,) = fastest_words(rows, 0.01)
    assert told.startswith("fastest: c: 120.5 tok/s per user, +20.5 % [")
    assert told.endswith("] against the baseline; not to be told from it: b")


def test_nothing_is_the_fastest_where_nothing_is_faster() -> None:
    words = "nothing is faster than the baseline by more than can be told"
    assert fastest_words([row("a", 100.0), row("b", 100.3)], 0.01) == [words]


def test_one_that_scatters_does_not_hide_another_one_that_is_faster() -> None:
    rows = [row("a", 100.0), row("b", 120.0), row("c", 125.0, scatter=0.2)]
    assert rows[2].comparison.standing is Standing.TIE
    (told,) = fastest_words(rows, 0.01)
    assert told.startswith("fastest: b: 120.0 tok/s per user")
    assert told.endswith("not to be told from it: c")


def test_each_kind_of_work_has_its_own() -> None:
    rows = [row("a", 100.0), row("b", 120.0), row("c", 150.0, "chat"), row("d", 160.0, "chat")]
    first, second = fastest_words([*rows, row("e", 900.0, "reasoning")], 0.01)
    assert first.startswith("fastest: b")
    assert first.endswith("(coding)")
    assert second.startswith("fastest: d")
    assert second.endswith("(chat)")
    assert fastest_words(rows[:1], 0.01) == []
