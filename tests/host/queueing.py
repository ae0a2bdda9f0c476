"""A queue on the real host and its runner: what the tests of runners share."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ddtui.store import Store
from tests.host import at_a_line
from tests.host.changing import SUDOERS, grant
from tests.host.gpuhost import DFLASH, GpuHost, engine_command
from tests.host.test_verbs import Ddtui

UNIT = "llm-runner.service"
BLOCK = "speculative-dflash-block-size"
PLAN = """
[bench.tiny]
concurrency = [1, 2]
output_tokens = 16
repeats = 1
requests = 2
warmup_batches = 1
coding = false
"""
RUN = ("run", "gpu", "--json")
Event = dict[str, Any]


@pytest.fixture
def host(gpuhost: GpuHost) -> Iterator[GpuHost]:
    gpuhost.exec("rm", "-f", "/etc/sudoers.d/ops")
    grant(gpuhost, UNIT)
    gpuhost.install_unit(UNIT, engine_command(*DFLASH), user="ops")
    gpuhost.until_ready(UNIT)
    yield gpuhost
    gpuhost.remove_unit(UNIT)
    gpuhost.exec("rm", "-f", SUDOERS)


@pytest.fixture
def ddtui(host: GpuHost, tmp_path: Path) -> Ddtui:
    return operator(host, tmp_path)


def operator(host: GpuHost, folder: Path) -> Ddtui:
    """Ddtui with a folder, and so a store, of its own."""
    made = Ddtui(folder, host)
    made.write_config(unit=UNIT)
    with made.config.open("a") as file:
        file.write(PLAN)
    return made


def queue(ddtui: Ddtui) -> None:
    """As it is, and twice another block size: one load, and one back to the baseline."""
    for size, title in ((8, "as it is"), (16, "sixteen"), (16, "sixteen again")):
        added = ddtui.run(
            *("queue", "gpu", "add", "--set", f"flag:{BLOCK}={size}", "--plan", "tiny"),
            *("--title", title),
        )
        assert added.returncode == 0, added.stderr
    assert ddtui.run("queue", "gpu", "leave", "baseline").returncode == 0


def runner(ddtui: Ddtui, command: list[str] | None = None) -> subprocess.Popen[str]:
    """A runner; `command` is another one than ddtui's own."""
    return subprocess.Popen(
        command or [sys.executable, "-m", "ddtui", *RUN],
        env=ddtui.env,
        cwd=ddtui.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def event(what: str, words: str = "") -> str:
    """A pattern for the line of an event: of a step that is so called, or with a text that begins
    so.
    """
    field = "step" if what == "step" else "text"
    return rf'^(?=.*"what": ?"{what}").*' + (rf'"{field}": ?"{words}[":]' if words else "")


def killed_at(ddtui: Ddtui, pattern: str, seconds: float = 250.0) -> tuple[bool, list[Event]]:
    """Run until an event and be killed there; whether that event came, and all events."""
    process = runner(ddtui, at_a_line.command(signal.SIGKILL, pattern, *RUN))
    try:
        events, said = process.communicate(timeout=seconds)
    finally:
        process.kill()
    assert process.returncode in {0, -signal.SIGKILL}, said
    return process.returncode != 0, [json.loads(each) for each in events.splitlines()]


def starts(host: GpuHost, unit: str = UNIT) -> int:
    """How often a unit was started, by the journal."""
    started = "MESSAGE_ID=39f53479d3a045ac8e11786248231fbf"
    command = ["journalctl", "--output=cat", "--no-pager", "--quiet", f"UNIT={unit}", started]
    return len(host.exec(*command).stdout.splitlines())


def check(ddtui: Ddtui, host: GpuHost, before: int) -> None:
    """The same as of an undisturbed run."""
    with closing(Store.open(ddtui.folder / "data" / "ddtui" / "ddtui.sqlite3")) as store:
        experiments = store.experiments.queue("gpu", simulated=False)
        by_id = {each.id: each for each in store.measurements.of_host("gpu", simulated=False)}
        changes = store.reconfigurations.history("gpu")
    assert {each.title: each.state for each in experiments} == {
        "as it is": "done",
        "sixteen": "done",
        "sixteen again": "done",
    }, [each.cause for each in experiments]
    assert sorted(by_id) == sorted(each.measurement for each in experiments)
    for each in experiments:
        found = by_id[each.measurement]
        assert found.state == "complete"
        assert [cell.concurrency for cell in found.cells] == [1, 2]
        assert found.provenance.argv[found.provenance.argv.index(f"--{BLOCK}") + 1] == (
            "8" if each.title == "as it is" else "16"
        )
    assert all(each.ending == "in force" for each in changes)
    assert starts(host) == before + 2
    words = host.exec("cat", f"/proc/{host.main_pid(UNIT)}/cmdline").stdout.split("\0")
    assert words[words.index(f"--{BLOCK}") + 1] == "8"
    assert not host.programs("ddtui:lock")


def to_the_end(ddtui: Ddtui) -> list[Event]:
    process = runner(ddtui)
    try:
        events, said = process.communicate(timeout=250)
    finally:
        process.kill()
    assert process.returncode == 0, said
    return [json.loads(each) for each in events.splitlines()]


def check_cells(events: Iterable[Event]) -> None:
    """No cell that was told as kept is measured again."""
    cells = [(each["title"], each["text"][:10]) for each in events if each["what"] == "cell"]
    assert len(cells) == len(set(cells)), cells
