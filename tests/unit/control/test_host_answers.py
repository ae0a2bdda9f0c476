"""Answers of programs on the host: whatever comes, reading them fails on none."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddtui.control.held import baseline, parse_held
from ddtui.control.host_actions import parse_look
from ddtui.control.unit_files import parse_unit_files

ENDLESS = "9" * 5000
"""Python refuses to read so many digits."""

_WORD = st.sampled_from(
    ["1", "0", "-", ENDLESS, str(2**63), "²", "", " ", ",", "=", "$'\\x41'", "\\ ", "GPU-a"]
) | st.text(max_size=6)
_REST = st.lists(_WORD, max_size=10).map("".join) | st.lists(_WORD, max_size=8).map(" ".join)


def lines(*kinds: str) -> st.SearchStrategy[str]:
    """Lines that begin as a program's do."""
    line = st.builds("{} {}".format, st.sampled_from(kinds), _REST | _REST.map(", ".join))
    return st.lists(line, max_size=6).map("\n".join)


@given(lines("@unit", "@socket", "@listens", "@gpu", "@app", "@process", "@end", ""))
def test_no_text_makes_reading_who_holds_what_fail(text: str) -> None:
    held = parse_held(text, "/llm.service")
    msgspec.json.encode(baseline(held))  # as it is kept with a change


@given(lines("@show", "@cat", "@environment", "@ours", "@unread", "@user root", ""))
def test_no_text_makes_reading_the_units_files_fail(text: str) -> None:
    parse_unit_files(text.encode("utf-8", "replace"))


@given(lines("NRestarts=", "MainPID=", "ActiveState=").map(str.splitlines))
def test_no_text_makes_a_look_at_the_unit_fail(text: list[str]) -> None:
    parse_look(text)


@pytest.mark.parametrize("number", [ENDLESS, str(2**63), "٣"])
def test_what_is_no_possible_number_counts_as_none(number: str) -> None:
    told = f"@unit {number}\n@listens {number} 5\n@gpu GPU-a, {number}, 9\n"
    told += f"@gpu GPU-b, 1, {number}\n"
    held = parse_held(told + f"@app 7, GPU-b, {number}, x\n@process 7 100 {number} / a b\n")
    assert (held.unit_pids, held.port_pids, held.gpus) == ((), (), {})
    assert held.indexes == {"GPU-b": 1}
    assert held.apps == {"GPU-b": {7: None}}
    assert held.processes[7].uid is None
    facts = parse_look([f"MainPID={number}", f"NRestarts={number}", "ActiveState=active"])
    assert (facts.main_pid, facts.restarts, facts.active) == (0, 0, "active")
    told = f"@user root {number}\n@show {number} -\nLoadState=loaded\n"
    assert parse_unit_files(told.encode()).uid == -1
