"""What others put before the lines of a log is taken off, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddtui.core.log_wrapping import Wrapping
from ddtui.core.samples import JournalLine

STAMPED = "[2026-11-29 17:20:47 TP0] Load weight begin. avail mem=90.00 GB"
LOG = [
    STAMPED,
    "Traceback (most recent call last):",
    '  File "/x/scheduler.py", line 1, in run',
    "    run()",
    "ValueError: no",
    "",
]


def stripped(lines: list[str]) -> list[str]:
    wrapping = Wrapping()
    return [wrapping.strip(line) for line in lines]


@pytest.mark.parametrize(
    "prefix",
    [
        "sglang-1  | ",
        "0|llm  | ",
        "(Actor pid=35555) ",
        "(Actor pid=111711, ip=10.15.36.1) ",
        "[pod/llm-0/engine] ",
        "llm-0 engine ",
        "2026-11-29T17:20:47.123456789Z stdout F ",
        "[2026-11-29T17:20:47.703Z] ",
        "2026-11-29 17:20:47,531 - __main__ - INFO - ",
        "2026-11-29 17:20:47 | ERROR | stderr | ",
        "2026-11-29 17:20:47.531 | INFO     | engine:run:7 - ",
        "1779264164793\t2026-11-29T17:20:47.793Z\t",
        "Thu Jan 23 11:55:50 2025[1,1]<stderr>:",
        "[1,0]<stderr>: ",
        "prefill_1.log:5747:",
        "12:",
        "3: ",
        "04-20 13:32:25.784 ",
        "13:32:25 ",
        "[2026-11-29T16:24:02+08:00] job-7 >> (Actor pid=3111) ",
        "> ",
        "> > ",
        "    ",
        "\t",
        "engine-1  | (Actor pid=3) ",
    ],
)
def test_a_wrapping_is_taken_off(prefix: str) -> None:
    assert stripped([prefix + line for line in LOG]) == LOG


def test_a_log_without_a_wrapping_is_left_as_it_is() -> None:
    prompts = ["engine-1  | " + STAMPED, "    " + STAMPED, "12: Traceback (most recent call last):"]
    assert stripped([*LOG, *prompts]) == [*LOG, *prompts]


def test_lines_of_another_form_stay_between_wrapped_ones() -> None:
    lines = ["2026-11-29 17:20:47,531 - __main__ - INFO - " + STAMPED, "Loading: 25% | 1/4", "x"]
    assert stripped(lines) == [STAMPED, "Loading: 25% | 1/4", "x"]


def test_an_empty_line_loses_the_blank_after_its_wrapping() -> None:
    assert stripped(["engine-1  | " + STAMPED, "engine-1  |", "engine-1  | "]) == [STAMPED, "", ""]


def test_what_ray_adds_behind_a_line_is_taken_off_too() -> None:
    prefix = "(Actor pid=1) "
    lines = [prefix + STAMPED, f"{prefix}ValueError: no [repeated 2x across cluster]"]
    assert stripped(lines) == [STAMPED, "ValueError: no"]


def test_vllms_own_names_of_processes_are_no_wrapping() -> None:
    lines = ["(EngineCore pid=2) INFO 11-29 17:20:59 [core.py:140] x", "(APIServer pid=1) INFO:  y"]
    assert stripped(lines) == lines


def test_a_bar_within_a_wrapped_line_is_split_off() -> None:
    wrapping = Wrapping()
    bar = "Loading safetensors checkpoint shards:  25% Completed | 1/4 [00:01<00:04,  1.43s/it]"
    first = JournalLine(1.0, "engine-1  | " + STAMPED, invocation="a", pid=7)
    second = JournalLine(2.0, f"engine-1  | {bar}{STAMPED}", invocation="a", pid=7)
    assert list(wrapping.lines(first)) == [JournalLine(1.0, STAMPED, invocation="a", pid=7)]
    assert list(wrapping.lines(second)) == [
        JournalLine(2.0, bar, invocation="a", pid=7, bar=True),
        JournalLine(2.0, STAMPED, invocation="a", pid=7),
    ]


def test_words_of_the_service_manager_are_never_stripped() -> None:
    wrapping = Wrapping()
    list(wrapping.lines(JournalLine(1.0, "    " + STAMPED)))
    line = JournalLine(2.0, "    indented", from_manager=True)
    assert list(wrapping.lines(line)) == [line]


@given(st.lists(st.text(max_size=60), max_size=20))
def test_no_text_breaks_it(lines: list[str]) -> None:
    assert len(stripped(lines)) == len(lines)


REFUSED = [
    "/opt/venv/lib/python3.11/site-packages/sglang/launch_server.py:71: UserWarning: old",
    "  warnings.warn(",
    "usage: sglang serve [-h] --model-path MODEL_PATH",
    "                    [--host HOST]",
    "sglang serve: error: unrecognized arguments: --bogus",
]


@pytest.mark.parametrize(
    "prefix",
    [
        "engine-1  | ",
        "llm_sglang.1.4kx0@node-1    | ",
        "[pod/sglang-0/server] ",
        "2026-11-29T17:20:47.123456789+08:00 stdout F ",
        "Nov 29 17:20:47 ",
        "> ",
    ],
)
@pytest.mark.parametrize("lines", [REFUSED, REFUSED[2:], REFUSED[-1:], LOG], ids=len)
def test_of_an_engine_that_refuses_its_arguments_too(prefix: str, lines: list[str]) -> None:
    assert stripped([prefix + line for line in lines]) == lines
