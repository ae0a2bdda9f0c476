"""Verbs whose output nobody reads, that cannot be written, or that was closed before they began.

What is done is done to its end; what is only looked at ends quietly.
"""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ddtui.cli.exit_codes import ExitCode
from tests.unit.cli.conftest import Run

DDTUI = [sys.executable, "-m", "ddtui"]
FULL = Path("/dev/full")
PLAN = """
[bench.tiny]
concurrency = [1]
output_tokens = 16
repeats = 1
requests = 2
warmup_batches = 1
coding = false
"""
GONE = [("stdout",), ("stderr",), ("stdout", "stderr")]
CLOSED = ["<&-", ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"]


@contextmanager
def nobody() -> Iterator[int]:
    """A pipe whose reader has gone."""
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


def started(*words: str, gone: tuple[str, ...], **options: Any) -> subprocess.Popen[str]:
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with nobody() as writer:
        streams |= dict.fromkeys(gone, writer)
        return subprocess.Popen(
            [*DDTUI, *words], stdin=subprocess.DEVNULL, text=True, **streams, **options
        )


def ended(*processes: subprocess.Popen[str]) -> list[tuple[int, str, str]]:
    """The exit status of each, and what it has said where that was read."""
    found = []
    for each in processes:
        out, err = each.communicate(timeout=110)
        found.append((each.returncode, out or "", err or ""))
    return found


def in_shell(words: str, closed: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", f'"$@" {words} {closed}', "x", *DDTUI],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def plan(folders: Path) -> None:
    folders.mkdir()
    (folders / "config.toml").write_text(PLAN)


def endings(run: Run) -> list[str]:
    return [each["ending"] for each in json.loads(run("history", "demo", "--json").stdout)]


def states(run: Run) -> list[tuple[str, str]]:
    """State and cause of what is queued."""
    found = json.loads(run("queue", "demo", "list", "--json").stdout)["experiments"]
    return [(each["state"], str((each["cause"] or {}).get("title", ""))) for each in found]


# ---- what is done --------------------------------------------------------------------------------


def test_changes_go_on(run: Run) -> None:
    """All at once: each has a simulated host of its own."""
    applying = [started("apply", "demo", "--set", "budget=9", "--yes", gone=each) for each in GONE]
    assert [code for code, _, _ in ended(*applying)] == [0, 0, 0]
    assert endings(run) == ["in force"] * 3


def test_a_reader_that_goes_in_the_middle_of_a_change(run: Run) -> None:
    process = started("apply", "demo", "--set", "budget=9", "--yes", gone=())
    assert process.stderr is not None
    assert process.stdout is not None
    for line in process.stderr:
        if "  stopping" in line:
            break
    process.stderr.close()
    process.stdout.close()
    assert process.wait(110) == 0
    assert endings(run) == ["in force"]


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
def test_a_change_on_a_full_disk(run: Run) -> None:
    with FULL.open("w") as full:
        silent = subprocess.Popen(
            [*DDTUI, "apply", "demo", "--set", "budget=9", "--yes"],
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=full,
            text=True,
        )
        heard = subprocess.Popen(
            [*DDTUI, "restart", "demo", "--yes", "--json"],
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
        (code, _, _), (other, _, said) = ended(silent, heard)
    assert (code, other) == (0, 0)
    assert "error: cannot write the output: No space left on device" in said
    assert endings(run) == ["in force"] * 2


def test_a_change_outlives_its_terminal(run: Run) -> None:
    pid, terminal = pty.fork()
    if not pid:
        os.execv(sys.executable, [*DDTUI, "apply", "demo", "--set", "budget=9", "--yes"])
    seen = b""
    while b"  stopping" not in seen:
        seen += os.read(terminal, 4096)
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert endings(run) == ["in force"]


@pytest.mark.parametrize("options", [(), ("--json",)])
@pytest.mark.parametrize("gone", GONE)
def test_a_run_goes_on(
    run: Run, plan: None, gone: tuple[str, ...], options: tuple[str, ...]
) -> None:
    assert run("queue", "demo", "add", "--set", "budget=8", "--plan", "tiny").exit_code == 0
    ((code, _, _),) = ended(started("run", "demo", *options, gone=gone))
    assert (code, states(run)) == (0, [("done", "")])


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
def test_a_detached_run_whose_log_is_full(run: Run, plan: None) -> None:
    """As `run --detach` starts it."""
    assert run("queue", "demo", "add", "--set", "budget=8", "--plan", "tiny").exit_code == 0
    reader, writer = os.pipe()
    with FULL.open("wb", buffering=0) as full:
        process = subprocess.Popen(
            [*DDTUI, "run", "demo", "--report-to", str(writer)],
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=full,
            text=True,
            pass_fds=(writer,),
            start_new_session=True,
        )
        os.close(writer)
        with os.fdopen(reader) as pipe:
            assert json.loads(pipe.readline())["running"] is True
        ((code, _, _),) = ended(process)
    assert (code, states(run)) == (0, [("done", "")])


@pytest.mark.parametrize("gone", GONE)
def test_a_measurement_is_kept(run: Run, plan: None, gone: tuple[str, ...]) -> None:
    ((code, _, _),) = ended(started("bench", "demo", "--plan", "tiny", "--json", gone=gone))
    (row,) = json.loads(run("results", "demo", "--json").stdout)["rows"]
    assert (code, row["state"]) == (0, "measured")


@pytest.mark.parametrize("gone", GONE)
def test_a_sweep_is_queued(run: Run, gone: tuple[str, ...]) -> None:
    ((code, _, _),) = ended(started("sweep", "demo", "budget=4,9", "--offline", "--yes", gone=gone))
    assert (code, len(states(run))) == (0, 2)


def test_what_is_queued_tells_so_by_its_status(run: Run) -> None:
    ((code, _, _),) = ended(started("queue", "demo", "add", "--set", "budget=4", gone=GONE[-1]))
    assert (code, len(states(run))) == (0, 1)


# ---- what nobody can confirm ---------------------------------------------------------------------


@pytest.mark.parametrize("gone", GONE)
def test_nothing_is_stopped_that_nobody_confirmed(run: Run, gone: tuple[str, ...]) -> None:
    changing = [
        started(*words, "demo", *more, gone=gone)
        for words, more in ((("apply",), ("--set", "budget=9")), (("restart",), ()))
    ]
    assert [code for code, _, _ in ended(*changing)] == [ExitCode.BLOCKED] * 2
    assert endings(run) == []


def test_a_terminal_that_goes_at_the_question_is_no_yes(run: Run) -> None:
    """Its hang-up ends what has not begun; one that does not hear it takes silence for no."""
    pid, terminal = pty.fork()
    if not pid:
        words = " ".join([*DDTUI, "restart", "demo"])
        os.execv("/bin/sh", ["sh", "-c", f"trap '' HUP; exec {words}"])
    seen = b""
    while not (b"[y/N] " in seen or b"to go on: " in seen):
        seen += os.read(terminal, 4096)
    os.close(terminal)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == ExitCode.BLOCKED
    assert endings(run) == []


# ---- what only looks -----------------------------------------------------------------------------


@pytest.mark.parametrize("words", [("status", "demo"), ("hosts",), ("knobs", "demo", "--json")])
def test_a_look_ends_quietly(run: Run, words: tuple[str, ...]) -> None:
    ((code, _, said),) = ended(started(*words, gone=("stdout",)))
    assert (code, said) == (ExitCode.READER_GONE, "")


@pytest.mark.parametrize(
    "words",
    [
        ("queue", "demo", "show", "1"),
        ("run", "demo", "--status"),
        ("sweep", "demo", "budget=4,9", "--offline", "--dry-run"),
    ],
)
def test_a_look_of_a_verb_that_does_more_ends_quietly(run: Run, words: tuple[str, ...]) -> None:
    assert run("queue", "demo", "add", "--set", "budget=8").exit_code == 0
    ((code, _, _),) = ended(started(*words, gone=("stdout",)))
    assert code == ExitCode.READER_GONE


def test_a_look_without_narration_is_a_look(run: Run) -> None:
    ((code, out, _),) = ended(started("queue", "demo", "list", gone=("stderr",)))
    assert (code, out.partition(":")[0]) == (0, "demo")


# ---- what was closed before ----------------------------------------------------------------------


@pytest.mark.parametrize("closed", CLOSED)
def test_streams_that_were_closed_before(run: Run, closed: str) -> None:
    looked = in_shell("status demo", closed)
    assert looked.returncode == ExitCode.OK
    assert looked.stderr == ""
    assert (looked.stdout == "") == (" >&-" in f" {closed}")
    asked = in_shell("apply demo budget-16", closed)
    assert asked.returncode == ExitCode.BLOCKED
    assert "Error" not in asked.stderr


def test_a_log_from_a_closed_input() -> None:
    done = in_shell("diagnose -", "<&-")
    assert done.returncode == ExitCode.NOT_A_LOG
    assert done.stderr.startswith("error: standard input: it is empty")


def test_a_store_is_never_opened_as_a_standard_stream(run: Run) -> None:
    """Else what another library prints goes into the database."""
    code = (
        "import os, sys\n"
        "from ddtui.cli import main\n"
        "from ddtui.store import Store\n"
        "sys.argv = ['ddtui', 'queue', 'demo', 'list']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([os.readlink(f'/proc/self/fd/{n}') for n in (0, 1, 2)], file=open(3, 'w'))\n"
    )
    done = subprocess.run(
        ["bash", "-c", '"$@" 3>&1 <&- >&- 2>&-', "x", sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == f"{['/dev/null'] * 3}\n"
