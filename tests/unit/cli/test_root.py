"""The command as a process: help, version, wrong use, and how long it takes to start."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ddtui
from ddtui.cli.exit_codes import ExitCode
from ddtui.demo.scenarios import SCENARIOS

DDTUI = [sys.executable, "-m", "ddtui"]


def ddtui_(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*DDTUI, *arguments], capture_output=True, text=True, timeout=60, check=False, **options
    )  # type: ignore[call-overload]


def test_version_and_help() -> None:
    assert ddtui_("--version").stdout == f"ddtui {ddtui.__version__}\n"
    help_text = ddtui_("-h").stdout
    for verb in ("connect", "status", "doctor", "init", "hosts", "config", "presets", "knobs"):
        assert f"\n  {verb} " in help_text


def test_help_fits_a_terminal_of_80_columns() -> None:
    help_text = ddtui_("--help", env=os.environ | {"COLUMNS": "80"}).stdout
    assert "..." not in help_text.partition("Commands:")[2]
    assert max(map(len, help_text.splitlines())) <= 80
    for verbs in (("config",), ("queue",)):
        assert "..." not in ddtui_(*verbs, "--help").stdout.partition("Commands:")[2]
    options = ddtui_("connect", "--help").stdout
    for scenario in SCENARIOS:
        assert re.search(rf"\b{scenario}[,.]", options), scenario


@pytest.mark.parametrize("arguments", [["nope"], ["status"], ["status", "a", "--nope"]])
def test_wrong_use_is_told_on_stderr(arguments: list[str]) -> None:
    done = ddtui_(*arguments)
    assert done.returncode == ExitCode.USAGE
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert re.search(r"(?m)^ +usage: ddtui .*\n +`ddtui .*--help` explains it$", done.stderr)


def test_a_reader_that_goes_away_is_no_traceback(config_file: Path) -> None:
    done = subprocess.run([*DDTUI, "config", "print"], capture_output=True, check=False)
    assert done.returncode == 0
    closed = subprocess.run(
        ["bash", "-c", '"$@" | true; exit "${PIPESTATUS[0]}"', "x", *DDTUI, "config", "print"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in closed.stderr


def test_connect_needs_a_terminal(config_file: Path) -> None:
    done = ddtui_("connect", "demo", stdin=subprocess.DEVNULL)
    assert done.returncode == ExitCode.USAGE
    assert "needs a terminal" in done.stderr
    assert "ddtui status" in done.stderr


@pytest.mark.parametrize(
    "arguments", [["--help"], ["hosts"], ["config", "print"], ["config", "path"]]
)
def test_verbs_that_reach_no_host_load_nothing_heavy(arguments: list[str]) -> None:
    code = (
        "import sys\n"
        "from ddtui.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([m for m in ('textual','asyncssh','httpx','sqlalchemy') if m in sys.modules],"
        " file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    assert done.stderr.splitlines()[-1] == "[]"
