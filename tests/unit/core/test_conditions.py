"""Conditions: what they mean, and how their mistakes are told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddtui.core.conditions import LONGEST, BadCondition, read_condition
from ddtui.core.launch import Value

VALUES: dict[str, Value] = {
    "topk": 4,
    "budget": 8,
    "window": None,
    "block_size": 16,
    "algorithm": "DDTREE",
    "graphs_off": True,
    "flag:mem-fraction-static": "0.85",
    "env:HF_HOME": "/hub",
    "preset": "base",
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("topk <= budget", True),
        ("top-k > budget", False),
        ("block_size > 8 or budget < 16", True),
        ("block-size > 8 and budget > 16", False),
        ("not budget == 8", False),
        ("4 <= topk <= budget < 9", True),
        ("4 < topk <= budget", False),
        ("budget in (4, 8)", True),
        ("budget not in (4, 8)", False),
        ("window in (2048, none)", True),
        ("budget >= (topk - 1) * (block_size - 1)", False),
        ("budget + 1 == 9 and budget % 3 == 2 and budget // 3 == 2 and budget / 2 == 4", True),
        ("-budget < -7", True),
        ("2 + 2 * 3 == 8", True),
        ("algorithm == 'DDTREE' and preset != \"other\"", True),
        ("graphs_off", True),
        ("graphs_off == true AND NOT graphs_off == 1", True),
        ("flag:mem-fraction-static >= 0.8 and flag:--mem-fraction-static == 0.85", True),
        ("env:HF_HOME == '/hub'", True),
        ("window == none", True),
        ("window != none", False),
        # `none` leaves it to the server: nothing is known of its size.
        ("window >= 2048", None),
        ("not window >= 2048", None),
        ("window >= 2048 or topk == 4", True),
        ("window >= 2048 and topk == 5", False),
        ("window * 2 > 5 and topk == 4", None),
        ("sink > 1", None),
    ],
)
def test_what_a_condition_means(text: str, expected: bool | None) -> None:
    assert read_condition(text).holds(VALUES) is expected


def test_the_settings_it_speaks_of() -> None:
    text = "top_k <= budget and (flag:--x == 1 or topk > 2)"
    assert read_condition(text).names == ("topk", "budget", "flag:x")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("topk = 4", "did not expect '='; did you mean ==?\n    topk = 4\n         ^"),
        ("topk <= budgt", "there is no knob 'budgt'; did you mean budget?"),
        ("topk <= budgt", "\n    topk <= budgt\n            ^"),
        ("topk && budget", "did not expect '&'; did you mean and?"),
        ("(budget > 4", "expected ) here\n    (budget > 4\n               ^"),
        ("budget > ", "expected a value or a name here"),
        ("budget > 4 topk", "did not expect 'topk' here"),
        ("budget in 4", "expected values in parentheses after `in`"),
        ("budget not 4", "expected `in` after `not`"),
        ("algorithm == 'DDTREE", "this text has no end"),
        ("budget > 0x10", "cannot read '0x10'"),
        ("budget ** 9 > 1", "expected a value or a name here"),
        ("__import__('os')", "there is no knob '__import__'"),
        ("budget.real > 1", "cannot read '.real > 1'"),
        ("  ", "expected a condition"),
        ("4", "compares nothing"),
        ("budget + 1", "compares nothing"),
        ("budget > 1 and " * 40, f"is longer than {LONGEST} characters"),
        ("(" * 200 + "budget > 1", "is nested too deeply"),
        ("not " * 100 + "budget > 1", "is nested too deeply"),
    ],
)
def test_a_mistake_is_shown_where_it_is(text: str, told: str) -> None:
    with pytest.raises(BadCondition) as error:
        read_condition(text)
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("budget < 'many'", "8 and 'many' cannot be compared by size\n    budget < 'many'\n"),
        ("algorithm + 1 > 2", "'DDTREE' is no number"),
        ("budget / (topk - 4) > 1", "divides by zero"),
        ("budget" + " * 999999999999" * 30 + " / 3 > 1", "the number is too large"),
    ],
)
def test_what_cannot_be_judged_is_told(text: str, told: str) -> None:
    with pytest.raises(BadCondition) as error:
        read_condition(text).holds(VALUES)
    assert told in str(error.value)


NUMBERS = st.integers(-3, 3)
COMPARED = st.tuples(
    st.sampled_from(["budget", "topk", "2"]),
    st.sampled_from(["<", "<=", "==", "!=", ">", ">="]),
    st.sampled_from(["budget", "topk", "1"]),
).map(" ".join)
CONDITIONS = st.recursive(
    COMPARED,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(" ".join),
        inner.map(lambda each: f"not ({each})"),
        inner.map(lambda each: f"({each})"),
    ),
    max_leaves=6,
)


@given(text=CONDITIONS, budget=NUMBERS, topk=NUMBERS)
def test_it_means_what_python_means(text: str, budget: int, topk: int) -> None:
    expected = eval(text, {"__builtins__": {}}, {"budget": budget, "topk": topk})
    assert read_condition(text).holds({"budget": budget, "topk": topk}) is expected


@given(text=st.text(alphabet="budgetopk<>=!()+-*/%,'\" 0123456789.andorti&|$", max_size=60))
def test_no_text_does_more_than_be_refused(text: str) -> None:
    refused = None
    try:
        read_condition(text).holds({"budget": 8, "topk": 4})
    except BadCondition as error:
        refused = error
    assert refused is None or 0 <= refused.at <= len(refused.text)
