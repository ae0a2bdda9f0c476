"""What is wrong with a word of the command line is told without the secret that stands in it."""

import pytest

from ddtui.config.assignments import parse_assignments
from ddtui.config.errors import ConfigError
from ddtui.config.grid_text import parse_grid

SECRET = "sesame-open-1"


@pytest.mark.parametrize(
    "words",
    [
        [f"flag:api-key={SECRET}", f"flag:api-key={SECRET}"],
        [f"env:HF-TOKEN={SECRET}"],
        [f"api_key={SECRET}"],
        [f"oops:api-key={SECRET}"],
    ],
)
def test_of_an_assignment(words: list[str]) -> None:
    with pytest.raises(ConfigError) as told:
        parse_assignments(words)
    assert "--set " in str(told.value)
    assert SECRET not in str(told.value)


def test_of_a_grid_and_the_caret_stays_where_it_belongs() -> None:
    with pytest.raises(ConfigError) as told:
        parse_grid(f"env:HF_TOKEN={SECRET} budget=x topk=4")
    what, line, caret = str(told.value).split("\n")
    assert "got 'x'" in what
    assert SECRET not in line
    assert line[caret.index("^")] == "x"
