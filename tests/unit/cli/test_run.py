"""`ddtui run` and `ddtui bench` on the simulated host, as a shell sees them."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from ddtui.app import run_tools
from ddtui.core.local_time import moment
from ddtui.demo.host import DemoHost
from ddtui.experiments import telling
from ddtui.experiments.presence import ask_to_stop, holder_of, presence_file, present
from ddtui.experiments.report import database_words
from ddtui.store import Store, StoreError, data_folder, database
from ddtui.store.lock_wait import Held
from tests.support.database_locker import database_locked

PLAN = """
[bench.tiny]
concurrency = [1]
output_tokens = 16
repeats = 1
requests = 2
warmup_batches = 1
coding = false

[bench.seen]  # long enough for a sample of the GPUs meanwhile
concurrency = [1]
output_tokens = 256
repeats = 1
requests = 2
warmup_batches = 1
coding = false
"""
Run = Callable[..., Result]


@pytest.fixture
def demo(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulated host on which a load takes a second, and a plan that takes one too."""
    folders.mkdir()
    (folders / "config.toml").write_text(PLAN)
    create = DemoHost.create

    async def quick(**options: Any) -> DemoHost:
        return await create(**options | {"speed": 500.0})

    monkeypatch.setattr(DemoHost, "create", quick)


def queued(run: Run, *budgets: int, plan: str = "tiny") -> None:
    for budget in budgets:
        added = run("queue", "demo", "add", "--set", f"budget={budget}", "--plan", plan)
        assert added.exit_code == 0, added.output


def events(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_queue_is_run_to_its_end(run: Run, demo: None) -> None:
    queued(run, 8, 12, plan="seen")
    ran = run("run", "demo", "--json")
    assert ran.exit_code == 0, ran.stderr
    found = events(ran)
    ended = [each for each in found if each["what"] == "ended"]
    assert [(each["title"], each["state"]) for each in ended] == [
        ("budget 8", "done"),
        ("budget 12", "done"),
    ]
    assert [each.get("reloaded", False) for each in ended] == [False, True]
    assert found[-1]["what"] == "finished"
    assert "acceptance length" in ran.stderr
    store = Store.open()
    measurements = store.measurements.of_host("demo", simulated=True)
    store.close()
    assert len(measurements) == 2
    for each in measurements:
        assert each.state == "complete"
        assert each.simulated
        assert not each.disturbed
        told = each.provenance
        assert told.engine == "sglang"
        assert len(told.gpus) == 8
        assert told.driver
        assert told.argv
        assert told.server_args
        assert told.prompts_hash
        assert told.clocks_mhz
    assert measurements[0].provenance.load_seconds
    assert measurements[0].knobs["budget"] == "12"
    # Each run has a simulated host of its own: the queue is empty, and nothing is to be done.
    assert run("run", "demo").exit_code == 0


def test_a_failed_experiment_is_told_by_the_exit_status(run: Run, demo: None) -> None:
    assert run("queue", "demo", "add", "--set", "window=4", "--plan", "tiny").exit_code == 0
    queued(run, 8)
    ran = run("run", "demo")
    assert ran.exit_code == 1
    assert "draft window 4 is smaller" in ran.stderr
    assert "1 done; 1 failed" in ran.stderr


def test_once_takes_one(run: Run, demo: None) -> None:
    queued(run, 8, 8)
    assert run("run", "demo", "--once").exit_code == 0
    listed = json.loads(run("queue", "demo", "list", "--json").stdout)
    assert sorted(each["state"] for each in listed["experiments"]) == ["done", "pending"]
    assert "ended: 1 done" in run("run", "demo", "--status").stdout


def test_a_database_that_another_process_holds_is_waited_for(
    run: Run, demo: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.1)
    queued(run, 8)
    with database_locked(data_folder() / "ddtui.sqlite3") as locker:

        def words(held: Held | None) -> str:
            if held is not None:
                locker.let_go()
            return database_words(held)

        monkeypatch.setattr(telling, "database_words", words)
        ran = run("run", "demo", "--json")
    assert ran.exit_code == 0, ran.stderr
    held, free = (each["text"] for each in events(ran) if "the database" in each.get("text", ""))
    assert held.startswith("the database is held by ")
    assert held.endswith("; waiting for it, 10 min at most")
    assert free == "the database is free again"


def test_a_database_that_is_never_freed_ends_the_run_and_loses_nothing(
    run: Run, demo: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.1)
    monkeypatch.setattr(run_tools, "DATABASE_SECONDS", 0.5)
    queued(run, 8)
    with database_locked(data_folder() / "ddtui.sqlite3"):
        ran = run("run", "demo")
        assert ran.exit_code == 1
        assert "has kept it locked for" in ran.stderr
        assert "end the process that holds it" in ran.stderr
    assert "pending: 1" in run("run", "demo", "--status").stdout
    assert run("run", "demo").exit_code == 0


def test_what_is_in_force_is_measured(run: Run, demo: None) -> None:
    measured = run("bench", "demo", "--plan", "tiny", "--json")
    assert measured.exit_code == 0, measured.stderr
    found = json.loads(measured.stdout)
    assert found["state"] == "complete"
    assert found["cells"][0]["user_rate"]["median"] > 0
    table = run("bench", "demo", "--plan", "tiny", "--no-coding")
    assert "tok/s each" in table.stdout
    assert "(simulated)" in table.stdout
    assert run("bench", "demo", "--plan", "none-such").exit_code == 2


def test_what_is_not_ready_is_not_measured(
    run: Run, folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders.mkdir()
    (folders / "config.toml").write_text(PLAN)
    create = DemoHost.create

    async def loading(**options: Any) -> DemoHost:
        return await create(**options | {"scenario": "loading"})

    monkeypatch.setattr(DemoHost, "create", loading)
    refused = run("bench", "demo", "--plan", "tiny")
    assert refused.exit_code == 5, refused.output
    assert "ready" in refused.stderr


def test_a_second_runner_is_refused(run: Run, demo: None) -> None:
    queued(run, 8)
    with present(presence_file("demo", simulated=True), "bob@lab", 1_800_000_000.0):
        for verb in ("run", "bench"):
            refused = run(verb, "demo")
            assert refused.exit_code == 8
            assert f"bob@lab since {moment(1_800_000_000.0)} (process" in refused.stderr
            assert "ddtui run demo --stop" in refused.stderr
        status = json.loads(run("run", "demo", "--status", "--json").stdout)
        assert status["here"]["who"] == "bob@lab"
        assert status["pending"] == 1
        assert status["ended"] == {}
        shown = run("run", "demo", "--status").stdout
        assert f"run by bob@lab since {moment(1_800_000_000.0)} (process" in shown
    assert "nobody runs the experiments of demo" in run("run", "demo", "--status").stdout
    assert "nobody runs the experiments of demo" in run("run", "demo", "--stop").stdout


def test_what_excludes_one_another_is_refused(run: Run) -> None:
    assert run("run", "demo", "--detach", "--stop").exit_code == 2


def test_only_the_process_that_holds_the_lock_is_asked_to_stop(tmp_path: Path) -> None:
    file = tmp_path / "runners" / "x.json"
    assert ask_to_stop(file) is None
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        with present(file, "ada@desk", 1.0) as mine:
            assert file.stat().st_mode & 0o777 == 0o600
            assert ask_to_stop(file) == mine
            assert heard == [signal.SIGTERM]
            text = file.read_bytes()
            # The number of a process is another one's by now: nobody is signalled.
            file.write_bytes(text.replace(str(mine.started).encode(), b"1.5"))
            assert ask_to_stop(file) is None
            assert heard == [signal.SIGTERM]
        file.write_bytes(text)
        assert ask_to_stop(file) is None  # not locked: it is gone
        assert holder_of(file) is None
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_look_at_who_runs_keeps_no_runner_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "runners" / "x.json"
    with present(file, "ada@desk", 1.0):
        pass
    looking = os.open(file, os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)
    monkeypatch.setattr(time, "sleep", lambda _: fcntl.flock(looking, fcntl.LOCK_UN))
    with present(file, "bob@lab", 2.0) as mine:
        assert holder_of(file) == mine
    os.close(looking)


def test_a_file_that_cannot_be_read_is_told_of_by_name(run: Run) -> None:
    file = presence_file("demo", simulated=True)
    file.parent.mkdir(parents=True)
    file.symlink_to("elsewhere")
    for verb in ("--status", "--stop"):
        told = run("run", "demo", verb)
        assert told.exit_code == 1
        assert f"error: cannot read in {file} who runs" in told.stderr


def test_a_full_disk_is_told_of_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(StoreError, match="who runs"), present(tmp_path / "x.json", "ada", 1.0):
        pass


def ddtui(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ddtui", *arguments]
    run = subprocess.run
    return run(command, check=False, capture_output=True, text=True, timeout=60, **options)


def test_a_detached_runner_outlives_its_starter_and_stops_when_asked(
    run: Run, folders: Path, tmp_path: Path
) -> None:
    folders.mkdir()
    (folders / "config.toml").write_text(PLAN.replace("output_tokens = 16", "output_tokens = 4096"))
    queued(run, 8)
    started = ddtui("run", "demo", "--detach", "--json", start_new_session=True)
    assert started.returncode == 0, started.stderr
    told = json.loads(started.stdout)
    try:
        assert os.getsid(told["pid"]) == told["pid"]
        log = Path(told["log"])
        assert log.stat().st_mode & 0o777 == 0o600
        end = time.monotonic() + 30
        while (status := json.loads(ddtui("run", "demo", "--status", "--json").stdout))[
            "experiment"
        ] is None or status["experiment"]["step"] != "measuring":
            assert time.monotonic() < end, log.read_text()
        assert status["here"]["pid"] == told["pid"]
        assert status["here"]["log"] == told["log"]
        second = ddtui("run", "demo", "--detach")
        assert second.returncode == 8
        assert "the experiments are being run by" in second.stderr
    finally:
        stopped = ddtui("run", "demo", "--stop")
    assert stopped.returncode == 0, stopped.stderr
    assert "it has stopped" in stopped.stdout
    assert "stopped" in log.read_text()
    listed = json.loads(run("queue", "demo", "list", "--json").stdout)
    assert [each["state"] for each in listed["experiments"]] == ["pending"]


def test_a_detached_run_that_cannot_have_a_log_is_not_started(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    refused = run("run", "demo", "--detach")
    assert refused.exit_code == 1
    assert "error: the runner's log cannot be made: " in refused.stderr
    assert "fault" not in refused.stderr
