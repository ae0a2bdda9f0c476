"""Output that cannot be written, and Ctrl+C before a verb has begun, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
