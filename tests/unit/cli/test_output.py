"""Output that cannot be written, and Ctrl+C before a verb has begun, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ddtui.core.local_time import in_local_time

FULL = Path("/dev/full")
# Stands in for the operator's Ctrl+C at a moment that a test can choose: while modules are loaded.
INTERRUPTED = """
import builtins, sys
real, wanted = builtins.__import__, sys.argv[1]
def load(name, *args, **kwargs):
    if name == wanted:
        raise KeyboardInterrupt
    return real(name, *args, **kwargs)
builtins.__import__ = load
from ddtui.cli import main
sys.argv = ["ddtui", "--version"]
main()
"""


def run(*argv: str, stdout: int | None = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *argv],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )


def test_moments_that_others_noted_in_utc_are_shown_in_local_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "UTC-02:00")  # as POSIX writes what is two hours before
    time.tzset()
    try:
        noted = "ada@desk since 2027-01-15T23:30:00Z: experiments"
        assert in_local_time(noted) == "ada@desk since 2027-01-16 01:30:00: experiments"
        for other in ("2027-99-99T99:99:99Z", "x2027-01-15T23:30:00Z", "2027-01-15T23:30"):
            assert in_local_time(other) == other
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
@pytest.mark.parametrize("words", [["--help"], ["--version"], ["hosts"], ["hosts", "--json"]])
def test_a_full_disk_is_told(words: list[str]) -> None:
    with FULL.open("w") as full:
        done = run("-m", "ddtui", *words, stdout=full.fileno())
    assert done.stderr == "error: cannot write the output: No space left on device\n"
    assert done.returncode == 1


def test_a_reader_that_goes_away_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    done = run("-m", "ddtui", "--version", stdout=write)
    os.close(write)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("module", ["typer", "ddtui.cli.root", "msgspec"])
def test_an_interruption_while_modules_are_loaded(module: str) -> None:
    done = run("-c", INTERRUPTED, module)
    assert (done.returncode, done.stderr) == (130, "")


def test_a_character_that_the_output_has_no_code_for_is_no_fault() -> None:
    code = (
        "from ddtui.cli import main, output, root\nroot.app = lambda: output.emit('7 °C')\nmain()"
    )
    env = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=env
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "7 ?C\n", "")
