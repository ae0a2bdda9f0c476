"""`ddtui run` in a terminal that is closed while it measures."""

from __future__ import annotations

import json
import os
import pty
import sys
import time
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Run

PLAN = """
[bench.tiny]
concurrency = [1]
output_tokens = 4096
repeats = 1
requests = 2
warmup_batches = 1
coding = false
"""
SECONDS = 40.0


def started_in_a_terminal(*arguments: str) -> tuple[int, int]:
    """The process, and our end of its terminal."""
    pid, terminal = pty.fork()
    if not pid:
        os.execv(sys.executable, [sys.executable, "-m", "ddtui", *arguments])
    return pid, terminal


def read_until(terminal: int, words: bytes) -> None:
    seen, end = b"", time.monotonic() + SECONDS
    while words not in seen:
        assert time.monotonic() < end, seen
        seen += os.read(terminal, 4096)


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_closed_terminal_stops_the_run_in_good_order(
    run: Run, folders: Path, options: tuple[str, ...]
) -> None:
    folders.mkdir()
    (folders / "config.toml").write_text(PLAN)
    assert run("queue", "demo", "add", "--set", "budget=8", "--plan", "tiny").exit_code == 0
    pid, terminal = started_in_a_terminal("run", "demo", *options)
    read_until(terminal, b"measuring")
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 130  # not killed by the signal
    (left,) = json.loads(run("queue", "demo", "list", "--json").stdout)["experiments"]
    assert (left["state"], left["step"]) == ("pending", "")
    assert "nobody runs the experiments of demo" in run("run", "demo", "--status").stdout
    (log,) = folders.parent.rglob("ddtui.log")
    assert "what is left is carried on by: ddtui run demo" in log.read_text()


def test_what_is_to_ignore_the_closing_goes_on(run: Run, folders: Path) -> None:
    """As with nohup."""
    folders.mkdir()
    (folders / "config.toml").write_text(PLAN.replace("4096", "16"))
    assert run("queue", "demo", "add", "--set", "budget=8", "--plan", "tiny").exit_code == 0
    pid, terminal = pty.fork()
    if not pid:
        python = f"exec {sys.executable} -m ddtui run demo"
        os.execv("/bin/sh", ["sh", "-c", f"trap '' HUP; {python}"])
    read_until(terminal, b"budget 8")
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    (done,) = json.loads(run("queue", "demo", "list", "--json").stdout)["experiments"]
    assert done["state"] == "done"
