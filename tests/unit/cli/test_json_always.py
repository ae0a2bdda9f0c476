"""Every verb that has --json prints exactly one document there, however it ends.

The verbs are found in the command line itself: a new one is tried without being named here.
"""

import io
import json
import math
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from ddtui.cli.context import Options
from ddtui.cli.exit_codes import ExitCode
from ddtui.cli.output import emit_json
from ddtui.cli.root import app
from ddtui.config.errors import ConfigError
from ddtui.core.json_text import json_text
from ddtui.hosts.base import HostError, LinkDown, LinkRefused
from ddtui.store import Store
from ddtui.store.errors import StoreError
from tests.unit.experiments.results_world import cell, measured

from .conftest import Run

WORDS = {
    "HOST": "demo",
    "ID": "1",
    "WHICH": "best",
    "FILE|NAME|GRID": "budget=4",
    "[HOST | FILE | -]": "demo",
}
"""What stands for an argument that a verb needs."""
CHANGES = {"apply", "rollback", "restart"}


def verbs() -> Iterator[tuple[str, ...]]:
    """Every verb with --json, as it is typed, and what it needs."""
    yield from _below(typer.main.get_command(app), ())


def _below(command: Any, typed: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    own = tuple(
        WORDS[each.metavar or each.human_readable_name]
        for each in command.params
        if each.param_type_name == "argument"
        and (each.required or each.metavar == "[HOST | FILE | -]")
    )
    options = [option for each in command.params for option in each.opts]
    for name, inner in getattr(command, "commands", {}).items():
        yield from _below(inner, (*typed, *own, name))
    if "--json" in options:
        yield (*typed, *own)


VERBS = sorted(verbs())
IDS = [" ".join(each) for each in VERBS]
ENDING = [each for each in VERBS if each[0] != "doctor"]
"""Verbs that end where the configuration cannot be used; the doctor takes that for a finding."""
FAILURES: dict[str, tuple[BaseException, ExitCode]] = {
    "wrong configuration": (ConfigError.of("is wrong"), ExitCode.USAGE),
    "unreachable": (LinkDown("no answer", "wait"), ExitCode.UNREACHABLE),
    "refused": (LinkRefused("no such key", "ssh-add"), ExitCode.REFUSED),
    "host": (HostError("it cannot", "look"), ExitCode.FAILED),
    "store": (StoreError("it cannot be read", "it is locked", "wait"), ExitCode.FAILED),
    "interrupted": (KeyboardInterrupt(), ExitCode.INTERRUPTED),
    "fault": (RuntimeError("what nobody thought of"), ExitCode.FAILED),
}


def document(out: str) -> Any:
    """The one document that stands on standard output, and nothing else."""
    return json.loads(out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


def test_the_verbs_are_found() -> None:
    assert {("status", "demo"), ("queue", "demo", "add"), ("config", "print"), ("plans",)} <= {
        *VERBS
    }
    assert len(VERBS) >= 25


@pytest.mark.parametrize("verb", ENDING, ids=" ".join)
@pytest.mark.parametrize("failure", FAILURES)
def test_what_fails_is_a_document_too(
    run: Run, folders: Path, monkeypatch: pytest.MonkeyPatch, verb: tuple[str, ...], failure: str
) -> None:
    error, status = FAILURES[failure]

    def load(_: Options) -> None:
        raise error

    monkeypatch.setattr(Options, "load", load)
    done = run(*verb, *add(verb), "--json")
    assert done.exit_code == status
    found = document(done.stdout)
    told = found if verb[0] in CHANGES else found["error"]
    assert set(told) >= {"why", "remedy"}
    assert told["why"]
    if verb[0] in CHANGES:
        assert told["ending"] == "not begun"
    else:
        assert told["status"] == status
    assert told["why"].splitlines()[0] in done.stderr


@pytest.mark.parametrize("verb", VERBS, ids=IDS)
def test_a_wrong_command_line_is_a_document_too(run: Run, verb: tuple[str, ...]) -> None:
    done = run(*verb, "--no-such-option", "--json")
    assert done.exit_code == ExitCode.USAGE
    assert "--no-such-option" in document(done.stdout)["error"]["why"]
    assert "error: no such option: --no-such-option" in done.stderr


@pytest.mark.parametrize("verb", VERBS, ids=IDS)
def test_a_store_that_is_none_is_a_document_too(
    run: Run, folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: tuple[str, ...]
) -> None:
    """A folder that cannot be made: verbs that need no store do what they do, with one document."""
    file = tmp_path / "a file"
    file.write_text("")
    monkeypatch.setenv("DDTUI_DATA_DIR", str(file / "below"))
    done = run(*verb, *add(verb), "--json")
    document(done.stdout)


def add(verb: tuple[str, ...]) -> tuple[str, ...]:
    """What a verb does not do without, though no argument of it is required."""
    return {
        "apply demo": ("--set", "budget=9", "--dry-run"),
        "queue demo add": ("--set", "budget=9"),
        "queue demo edit 1": ("--set", "budget=9"),
        "queue demo move 1": ("--first",),
        "queue demo note 1": ("text",),
        "sweep demo budget=4": ("--dry-run",),
    }.get(" ".join(verb), ())


@pytest.mark.parametrize("encoding", ["utf-8", "iso8859-1", "ascii"])
def test_it_is_utf_8_whatever_the_locale_writes(
    monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding, errors="replace"))
    emit_json({"text": "é – \U0001f600", "no UTF-8": "\udcff"})
    assert json.loads(raw.getvalue().decode("utf-8")) == {"text": "é – \U0001f600", "no UTF-8": "?"}


def test_what_is_no_number_is_null() -> None:
    values = {"nan": math.nan, "infinite": [math.inf, -math.inf]}
    assert json.loads(json_text(values)) == {"nan": None, "infinite": [None, None]}
    assert json_text(values, indent=-1).count("\n") == 0


def test_a_secret_among_words_that_are_not_known_is_not_repeated(run: Run) -> None:
    done = run("apply", "demo", "budget-8", "HF_TOKEN=sesame-1", "--json")
    assert done.exit_code == ExitCode.USAGE
    assert "HF_TOKEN" in document(done.stdout)["error"]["why"]
    assert "sesame" not in done.stdout + done.stderr


def test_the_doctor_takes_a_wrong_configuration_for_a_finding(run: Run, folders: Path) -> None:
    folders.mkdir()
    (folders / "config.toml").write_text("[ui]\nmouse = 3\n")
    done = run("doctor", "demo", "--json")
    assert done.exit_code == ExitCode.FAILED
    found = {each["name"]: each["verdict"] for each in document(done.stdout)["checks"]}
    assert found["configuration"] == "FAIL"


NO_UNIT = (
    ("status", "demo"),
    ("knobs", "demo"),
    ("apply", "demo", "--set", "budget=9", "--yes"),
    ("restart", "demo", "--yes"),
    ("bench", "demo"),
    ("sweep", "demo", "budget=4", "--dry-run"),
    ("diagnose", "demo"),
)


@pytest.mark.parametrize("verb", NO_UNIT, ids=[each[0] for each in NO_UNIT])
def test_a_unit_that_is_not_there_has_one_status(run: Run, verb: tuple[str, ...]) -> None:
    done = run(*verb, "--unit", "no-such", "--json")
    assert done.exit_code == ExitCode.NOT_READY
    assert "there is no unit no-such.service" in done.stdout
    document(done.stdout)


@pytest.mark.parametrize("host", ["demo", "local"])
def test_each_finding_of_the_doctor_has_a_remedy(run: Run, host: str) -> None:
    found = document(run("doctor", host, "--unit", "no-such", "--json").stdout)
    without = [
        each
        for each in found["checks"]
        if each["verdict"] in {"WARN", "FAIL"} and not each["remedy"]
    ]
    assert without == []
    assert found["failed"]


@pytest.fixture
def gone(folders: Path, tmp_path: Path) -> Iterator[None]:
    """A host `gone`, on a port that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        ssh = tmp_path / "ssh_config"
        ssh.write_text(f"Host gone\n  HostName 127.0.0.1\n  Port {taken.getsockname()[1]}\n")
        folders.mkdir()
        (folders / "config.toml").write_text(f'[hosts.gone]\nssh_config = "{ssh}"\n')
        yield


@pytest.mark.usefixtures("gone")
@pytest.mark.parametrize(
    "words",
    [
        ("knobs", "gone"),
        ("diagnose", "gone"),
        ("apply", "gone", "--set", "budget=9", "--yes"),
        ("apply", "gone", "--resume"),
        ("restart", "gone", "--yes"),
        ("rollback", "gone", "--yes"),
        ("sweep", "gone", "budget=4", "--yes"),
        ("bench", "gone"),
        ("run", "gone"),
        ("run", "gone", "--detach"),
    ],
    ids=" ".join,
)
def test_a_host_that_is_down_has_one_status_and_its_reason(
    run: Run, words: tuple[str, ...]
) -> None:
    done = run(*words, "--json")
    assert done.exit_code == ExitCode.UNREACHABLE
    found = document(done.stdout)
    assert "connection refused" in (found if words[0] in CHANGES else found["error"])["why"]
    assert "error: connection refused" in done.stderr


@pytest.mark.usefixtures("gone")
def test_who_runs_experiments_on_a_host_that_is_down_is_told_with_the_reason(run: Run) -> None:
    found = document(run("run", "gone", "--status", "--json").stdout)
    assert found["running"] is False
    assert "connection refused" in found["unknown"]


@pytest.mark.usefixtures("folders")
def test_ctrl_c_leaves_nothing_but_documents(run: Run) -> None:
    assert run("queue", "demo", "add", "--set", "budget=9").exit_code == 0
    child = subprocess.Popen(
        [sys.executable, "-m", "ddtui", "run", "demo", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stderr is not None
    child.stderr.readline()  # it is at work
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=60)
    assert child.returncode == ExitCode.INTERRUPTED
    lines = [document(line) for line in out.decode().splitlines()]
    assert lines[0]["what"] == "started"


def test_what_nobody_confirms_says_how(run: Run) -> None:
    restart = document(run("restart", "demo", "--json").stdout)
    sweep = document(run("sweep", "demo", "budget=4", "--json").stdout)["error"]
    for told in (restart, sweep):
        assert "confirm" in told["why"]
        assert told["remedy"].startswith("add --yes")


def test_a_file_of_results_leaves_a_document_on_standard_output(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    assert document(run("results", "demo", "--json", "--out", str(file)).stdout) == {"written": []}
    store = Store.open()
    try:
        store.measurements.put(measured(8, (cell(170.0),), host="demo", simulated=True))
    finally:
        store.close()
    done = run("results", "demo", "--json", "--out", str(file))
    assert document(done.stdout) == {"written": [str(file)]}
    assert document(file.read_text(encoding="utf-8"))["rows"]
