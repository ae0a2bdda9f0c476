"""A row's command brings back its configuration, whatever the unit was left in meanwhile."""

from __future__ import annotations

import shlex
from itertools import pairwise
from typing import Any

import msgspec

from ddtui.config.assignments import parse_assignments
from ddtui.core.launch import Request
from ddtui.core.measurement import Measurement, Provenance
from ddtui.experiments.reproducing import assignments_of
from ddtui.experiments.results import results_view
from tests.unit.experiments.results_world import cell, experiment, measured

BUDGET, BLOCK, DRAFT = "--speculative-ddtree-budget", "--dflash-block-size", "--num-draft-tokens"


def launched(budget: int, block: int, *more: str, **fields: Any) -> Measurement:
    """A measurement with its command line, as the server reported it."""
    argv = ("serve", "--port", "30000", BUDGET, str(budget), BLOCK, str(block), *more)
    fields.setdefault("environment", {})
    told = Provenance(
        engine="sglang",
        argv=(*argv, DRAFT, str(block)),
        environment=fields.pop("environment"),
    )
    knobs = {"budget": str(budget), "block_size": str(block), "draft_tokens": str(block)}
    return measured(budget, (cell(100.0 + budget),), provenance=told, knobs=knobs, **fields)


def asked_by(found: list[Measurement], requests: dict[int, Request]) -> dict[str, Request]:
    """What the command of each row asks for, by its title."""
    queue = [
        experiment(budget, request=request, title=f"budget {budget}", sweep="")
        for budget, request in requests.items()
    ]
    view = results_view("ct200", found, queue)
    result = {}
    for row in view.rows:
        words = shlex.split(row.reproduce)
        sets = [after for word, after in pairwise(words) if word == "--set"]
        result[f"budget {row.knobs['budget']}"] = parse_assignments(sets)
    return result


def test_what_it_was_made_on_is_said_where_something_else_was_measured_too() -> None:
    found = [launched(8, 8), launched(12, 8), launched(35, 16)]
    requests = {
        8: Request(),
        12: Request(knobs={"budget": 12}),
        35: Request(knobs={"budget": 35, "block_size": 16}),
    }
    asked = asked_by(found, requests)
    block = {BLOCK[2:]: "8", DRAFT[2:]: "8"}
    assert (asked["budget 8"].knobs, asked["budget 8"].flags) == (
        {},
        {BUDGET[2:]: "8", **block},
    )
    assert (asked["budget 12"].knobs, asked["budget 12"].flags) == ({"budget": 12}, block)
    # Its knobs say it all: no flag is said twice.
    assert (asked["budget 35"].knobs, asked["budget 35"].flags) == (
        {"budget": 35, "block_size": 16},
        {},
    )


def test_a_flag_that_only_others_have_is_taken_away() -> None:
    found = [launched(8, 8), launched(12, 8, "--disable-radix-cache", "--context-length", "4096")]
    requests = {
        8: Request(knobs={"budget": 8}),
        12: Request(knobs={"budget": 12}, flags={"context-length": "4096"}),
    }
    asked = asked_by(found, requests)
    assert asked["budget 8"].flags == {"disable-radix-cache": None, "context-length": None}
    assert asked["budget 12"].flags == {"context-length": "4096", "disable-radix-cache": True}


def test_variables_that_an_experiment_has_asked_for_are_said_of_each() -> None:
    found = [
        launched(8, 8, environment={"PATH": "/bin", "TOPK": "6"}),
        launched(12, 8, environment={"PATH": "/usr/bin"}),
    ]
    failed = Request(environment={"NEVER": "1"})
    requests = {8: Request(environment={"TOPK": "6"}), 12: Request(knobs={"budget": 12}), 9: failed}
    asked = asked_by(found, requests)
    assert asked["budget 8"].environment == {"TOPK": "6"}
    assert asked["budget 12"].environment == {"TOPK": None}


def test_what_is_the_same_everywhere_or_secret_or_of_another_unit_is_not_said() -> None:
    found = [
        launched(8, 8, "--api-key", "sesame-1"),
        launched(12, 8, "--api-key", "sesame-2"),
        launched(16, 32, unit="other.service"),
    ]
    asked = asked_by(found, {8: Request(knobs={"budget": 8}), 12: Request(knobs={"budget": 12})})
    assert asked["budget 8"] == Request(knobs={"budget": 8})
    assert asked["budget 12"] == Request(knobs={"budget": 12})


def test_a_measurement_without_its_command_line_says_what_was_asked() -> None:
    found = [launched(8, 8), launched(12, 16), measured(16, (cell(9.0),), provenance=Provenance())]
    asked = asked_by(found, {16: Request(knobs={"budget": 16})})
    assert asked["budget 16"] == Request(knobs={"budget": 16})


def test_the_text_of_a_flag_stays_a_text() -> None:
    request = Request(flags={"quantization": "none", "a": "True", "b": True, "c": None, "d": "x"})
    words, _ = assignments_of(request)
    assert words == [
        *("text:quantization=none", "text:a=True", "flag:b=true", "flag:c=none", "flag:d=x")
    ]
    assert msgspec.structs.replace(parse_assignments(words), preset="") == request
