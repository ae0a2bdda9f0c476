"""A server's report of its command line against the unit's: no right one refused, no wrong one."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable, Sequence

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ddtui.core.reported_command import Comparison, compared
from ddtui.engines.sglang import SGLANG

PROGRAM = ("/opt/venv/bin/python", "-m", "sglang.launch_server")
JOINS: list[Callable[[Sequence[str]], str]] = [" ".join, shlex.join, subprocess.list2cmdline]
VALUES = st.text(alphabet="ab \"'\\{}:,$%-=0", min_size=1, max_size=12)
FLAGS = st.dictionaries(st.sampled_from(["model-path", "a", "bee", "cc-dd"]), VALUES, min_size=1)


def command(flags: dict[str, str]) -> tuple[str, ...]:
    return (*PROGRAM, *(f"--{name}={value}" for name, value in flags.items()))


def reported(asked: Sequence[str], told: str | list[str]) -> Comparison:
    """What comes of the report as a server sends it."""
    body = json.dumps({"model_path": "m", "launch_command": told})
    info, _ = SGLANG.parse_server_info(body, 0.0)
    return compared(asked, info, SGLANG)


@given(FLAGS, st.sampled_from(JOINS), st.booleans())
def test_the_own_command_line_is_never_refused(
    flags: dict[str, str], join: Callable[[Sequence[str]], str], whole: bool
) -> None:
    asked = command(flags)
    assert reported(asked, join(asked if whole else asked[3:])).different == ()
    assert reported(asked, list(asked[3:])) == Comparison(True, ())


@given(FLAGS, FLAGS)
def test_another_one_is_never_taken(flags: dict[str, str], others: dict[str, str]) -> None:
    asked, told = command(flags), " ".join(command(others)[3:])
    # One text is one text: what it was joined from is known to nobody.
    texts = [" ".join(join(words).split()) for words in (asked, asked[3:]) for join in JOINS]
    assume(" ".join(told.split()) not in texts)
    assert not reported(asked, told).exact


@pytest.mark.parametrize(
    "value",
    [
        '{"rope": {"type": "yarn"}}',
        'it\'s "so"',
        "C:\\models\\kimi",
        "/models/kimi two",
        "a  b",
        "50%",
        "$HOME",
        "'quoted'",
    ],
)
def test_values_that_a_joined_text_cannot_keep(value: str) -> None:
    asked = (*PROGRAM, "--model-path", "m", "--x", value, "--tp-size", "8")
    assert reported(asked, " ".join(asked[3:])) == Comparison(True, ())
    assert reported(asked, shlex.join(asked[3:])) == Comparison(True, ())
    other = (*PROGRAM, "--model-path", "m", "--x", value, "--tp-size", "4")
    (tp,) = reported(asked, " ".join(other[3:])).different
    assert (tp.name, tp.asked, tp.told) == ("tp-size", "8", "4")
    other = (*PROGRAM, "--model-path", "m", "--x", value + "z", "--tp-size", "8")
    (changed,) = reported(asked, " ".join(other[3:])).different
    assert changed.name == "x"


def test_a_text_with_two_readings_proves_neither() -> None:
    asked = (*PROGRAM, "--model-path", "m", "--x", "y --tp-size 8")
    assert reported(asked, "--model-path m --x y --tp-size 8") == Comparison(False, ())


def test_another_order_reads_the_same_and_is_no_proof() -> None:
    asked = (*PROGRAM, "--model-path", "m", "--tp-size", "8")
    assert reported(asked, "--tp-size 8 --model-path m") == Comparison(False, ())


@pytest.mark.parametrize("written", [["--api-key", "sk 1\"2'3"], ["--api-key=sk 1\"2'3"]])
@pytest.mark.parametrize("join", JOINS)
def test_a_secret_is_not_kept_and_does_not_differ(
    written: list[str], join: Callable[[Sequence[str]], str]
) -> None:
    masked = [written[0].partition("=")[0], "<redacted>"]
    if "=" in written[0]:
        masked = ["=".join(masked)]
    told = join(["--model-path", "m", *written, "--tp-size", "8"])
    body = json.dumps({"model_path": "m", "launch_command": told})
    info, _ = SGLANG.parse_server_info(body, 0.0)
    assert "1" not in repr(info).replace("at=0.0", "")
    assert not compared((*PROGRAM, "--model-path", "m", *masked, "--tp-size", "8"), info,
                        SGLANG).different  # fmt: skip
    (other,) = compared((*PROGRAM, "--model-path", "m", *masked, "--tp-size", "4"), info,
                        SGLANG).different  # fmt: skip
    assert other.name == "tp-size"


def test_what_a_script_expands_is_not_compared() -> None:
    script = 'cd /x; python -m sglang.launch_server --model-path "$M" --tp-size 8'
    told = reported(("/bin/bash", "-c", script), "--model-path /models/kimi --tp-size 8")
    assert told == Comparison(False, ())
    (tp,) = reported(("/bin/bash", "-c", script), "--model-path /m --tp-size 4").different
    assert tp.name == "tp-size"
