"""`ddtui diagnose` as it is run: a process of its own, files, pipes, the simulated host."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ddtui.cli.exit_codes import ExitCode
from tests.unit.cli.conftest import Run

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
CAPTURE = FIXTURES / "sglang" / "sglang-dflash.log"
PORT = FIXTURES / "sglang" / "sglang-fail-port-in-use.log"
KEYS = ["engine", "version", "ready", "failed", "cause", "phases", "config", "decode"]


def ddtui(*arguments: str, folder: Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "ddtui", "diagnose", *arguments],
        input=stdin,
        capture_output=True,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[3])},
        timeout=60,
        check=False,
    )


def document(text: str | bytes) -> dict[str, Any]:
    found = json.loads(text)
    assert list(found) == KEYS
    return dict(found)


def test_json_of_a_file_in_a_process_of_its_own(tmp_path: Path) -> None:
    done = ddtui(str(PORT), "--json", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    found = document(done.stdout)
    assert found["engine"] == "sglang"
    assert (found["ready"], found["failed"]) == (False, True)
    assert list(found["cause"]) == ["id", "title", "evidence", "remedy", "link"]
    assert found["cause"]["id"] == "http-port-taken"
    assert "Errno 98" in found["cause"]["evidence"][0]
    assert found["config"]["port"] == 31003
    assert [list(phase) for phase in found["phases"]] == [["name", "start", "end"]] * 3
    assert found["decode"] == {
        "count": 0,
        "median_tokens_per_second": None,
        "median_acceptance_length": None,
        "notes": [],
    }


def test_json_of_a_pipe_in_a_process_of_its_own(tmp_path: Path) -> None:
    for arguments in (("-", "--json"), ("--json",)):
        done = ddtui(*arguments, folder=tmp_path, stdin=CAPTURE.read_bytes())
        found = document(done.stdout)
        assert (found["ready"], found["failed"], found["cause"]) == (True, False, None)
        assert found["decode"]["count"] == 8
        assert found["decode"]["median_acceptance_length"] == 4.16
        assert found["phases"][-1]["name"] == "ready"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "it is empty"),
        (bytes(range(256)) * 16, "it is no text"),
        (b"Dear diary,\ntoday nothing failed.\n", "none of its 2 lines is from an engine's log"),
        (b"\n\n\n", "none of its 3 lines"),
        (b"# HELP sglang:token_usage The usage.\nsglang:token_usage 0.5\n", "none of its 2 lines"),
        (b"usage: launch_server.py [-h]\n  --model-path X  see sglang.io\n", "none of its 2 lines"),
    ],
)
def test_what_is_no_log(data: bytes, said: str, tmp_path: Path) -> None:
    done = ddtui("-", folder=tmp_path, stdin=data)
    assert (done.returncode, done.stdout) == (ExitCode.NOT_A_LOG, b"")
    assert said in done.stderr.decode()
    assert b"Traceback" not in done.stderr


def test_a_file_that_cannot_be_read(run: Run, tmp_path: Path) -> None:
    missing = run("diagnose", str(tmp_path / "none.log"))
    assert missing.exit_code == ExitCode.FAILED
    assert "there is no file" in missing.output
    assert f"ls {tmp_path}" in missing.output
    (tmp_path / "engine.log").touch()
    misspelt = run("diagnose", str(tmp_path / "engin.log"))
    assert f"in {tmp_path}; did you mean 'engine.log'?" in misspelt.output
    nowhere = run("diagnose", str(tmp_path / "no" / "engine.log"))
    assert f"there is no folder {tmp_path / 'no'} either" in nowhere.output
    assert "a host is named as one of: local, demo" in run("diagnose", "other.log").output
    folder = run("diagnose", str(tmp_path) + "/")
    assert folder.exit_code == ExitCode.FAILED
    assert "cannot be read" in folder.output
    assert "it is a folder: name a log in it" in folder.output


def test_a_cut_log_is_read_as_far_as_it_goes(run: Run, tmp_path: Path) -> None:
    packed = gzip.compress(PORT.read_bytes())
    log = tmp_path / "engine.log.gz"
    log.write_bytes(packed[:-20])
    result = run("diagnose", str(log))
    assert result.exit_code == 0, result.output
    assert "its compressed data is cut off: read as far as it goes" in result.stderr
    assert "31003" in result.stdout
    log.write_bytes(packed[:12])
    result = run("diagnose", str(log))
    assert result.exit_code == ExitCode.NOT_A_LOG
    assert "copy it once more, whole" in result.stderr


def test_the_text_says_it_all(run: Run) -> None:
    failed = run("diagnose", str(PORT)).output
    for part in ("failed", "http-port-taken", "Errno 98", "remedy", "loading target", "port 31003"):
        assert part in failed
    served = run("diagnose", str(CAPTURE)).output
    for part in ("was ready, then stopped", "4.16 median", "tok/s median of 8 lines", "DFLASH"):
        assert part in served


def test_an_unknown_failure_is_shown_as_its_own_line(run: Run) -> None:
    text = (
        '  File "/x/sglang/srt/a.py", line 1, in f\nTraceback (most recent call last):\n'
        '  File "/x/sglang/srt/a.py", line 1, in f\n    f()\nZeroDivisionError: division by zero\n'
        "[2026-11-29 17:00:00] Received sigquit from a child process. It usually means\n"
    )
    found = document(run("diagnose", "-", "--json", input=text).output)
    assert found["cause"]["id"] == "unrecognized"
    assert found["cause"]["title"] == "ZeroDivisionError: division by zero"


@pytest.mark.usefixtures("config_file")
def test_a_name_that_is_a_file_and_a_host(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "demo").write_bytes(PORT.read_bytes())
    as_host = run("diagnose", "demo")
    assert "demo is taken as the host; for the file of that name: ./demo" in as_host.output
    assert "llm-sglang.service (simulated)" in as_host.output
    as_file = run("diagnose", "./demo")
    assert "http-port-taken" in as_file.output
    (folder / "crash").write_bytes(PORT.read_bytes())
    other = run("diagnose", "crash")
    assert "crash is taken as the file of that name" in other.output
    assert "http-port-taken" in other.output


def test_the_simulated_host(run: Run) -> None:
    result = run("diagnose", "demo", "--json")
    found = document(result.output)
    assert (found["ready"], found["failed"], found["cause"]) == (True, False, None)
    assert found["config"]["speculative_algorithm"] == "DDTREE"


def saved_by_the_log_screen(capture: Path, file: Path) -> Path:
    from ddtui.collect.saved_log import SavedLog
    from ddtui.ui.log_files import write_new
    from ddtui.ui.log_filter import LogLine

    with capture.open("rb") as stream:
        kept = list(SavedLog(stream, now=time.time()).lines())
    write_new(file, [LogLine(n, line, text=line.text) for n, line in enumerate(kept)])
    return file


@pytest.mark.parametrize("capture", [CAPTURE, PORT])
def test_the_log_that_ddtui_saves_tells_what_the_original_does(
    run: Run, tmp_path: Path, capture: Path
) -> None:
    saved = saved_by_the_log_screen(capture, tmp_path / "saved.log")
    found, original = (document(run("diagnose", str(p), "--json").stdout) for p in (saved, capture))
    assert found == original


def test_a_log_in_an_unknown_form_says_so(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "strange.log"
    lines = CAPTURE.read_text().splitlines()
    file.write_text("".join(f"~engine~ {line}\n" for line in lines))
    result = run("diagnose", str(file))
    assert result.exit_code == ExitCode.NOT_A_LOG
    assert "a form that is not known: ~engine~ [" in result.stderr


def test_a_log_that_stands_upside_down_says_so(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "reversed.log"
    file.write_text("\n".join(reversed(CAPTURE.read_text().splitlines())))
    result = run("diagnose", str(file))
    assert result.exit_code == ExitCode.NOT_A_LOG
    assert "its newest lines come first" in result.stderr
    assert "tac FILE | ddtui diagnose -" in result.stderr


def test_when_and_how_a_ready_engine_ended(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "killed.log"
    prefix = "2027-06-07T10:00:00+00:00 ct200"
    lines = CAPTURE.read_text().splitlines()
    served = next(n for n, line in enumerate(lines) if "fired up" in line)
    file.write_text(
        "".join(f"{prefix} python[7]: {line}\n" for line in lines[: served + 1])
        + "2027-06-07T11:00:00+00:00 ct200 systemd[1]: llm.service: Main process exited,"
        " code=killed, status=9/KILL\n"
        "2027-06-07T11:00:00+00:00 ct200 systemd[1]: llm.service: Failed with result 'signal'.\n"
    )
    result = run("diagnose", str(file))
    assert result.exit_code == 0
    assert "not ended" not in result.stdout
    assert "ended       2027-06-07 11:00:00 UTC  llm.service: Main process exited" in result.stdout
