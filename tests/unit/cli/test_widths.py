"""Verbs in a terminal of 80 columns: no word is broken, and no row of a table."""

from __future__ import annotations

import pytest

from tests.unit.cli.conftest import Run

WIDTH = 80


@pytest.mark.parametrize("words", [("knobs", "demo"), ("diagnose", "demo"), ("hosts",)])
def test_no_line_is_wider_than_the_terminal(
    run: Run, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    done = run(*words)
    lines = (done.stdout + done.stderr).splitlines()
    assert lines
    assert [each for each in lines if len(each) > WIDTH] == []


def test_the_doctor_goes_on_under_what_it_found(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    lines = run("doctor", "demo").stdout.splitlines()
    at = next(n for n, each in enumerate(lines) if "rights to act" in each)
    assert lines[at].endswith("sudo allows all 7 commands for llm-sglang.service")
    assert lines[at + 1] == f"{'':30}without a password"


def test_what_a_plan_tells_goes_on_under_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    said = run("apply", "demo", "block16", "--dry-run").stderr.splitlines()
    at = next(n for n, each in enumerate(said) if each.startswith("warning: block size 16"))
    assert said[at + 1].startswith("       ")
    assert [each for each in said[:-1] if len(each) > WIDTH] == []
