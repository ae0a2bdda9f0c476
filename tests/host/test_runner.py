"""A queue on the real host: runners that are killed, that are followed, and that have no terminal.

DDTUI_RUNNER_KILLS=100 kills at as many random moments; at a few it is done always.
"""

from __future__ import annotations

import json
import os
import pty
import random
import select
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from ddtui.store import Store
from tests.host.changing import SUDOERS, grant
from tests.host.gpuhost import DFLASH, GpuHost, engine_command, wait_until
from tests.host.measured import measured
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
BOUNDARIES = (
    *(("taken up", ""), ("step", "planning"), ("step", "loading")),
    *(("change", each) for each in ("planned", "locked", "written", "reloaded", "stopping")),
    *(("change", each) for each in ("releasing", "starting", "loading", "verifying", "in force")),
    *(("step", "measuring"), ("cell", ""), ("step", "recording"), ("ended", "")),
    ("leaving", ""),
)
"""Events of a run right after which its runner is killed, in the order in which they come."""
MOMENTS = int(os.environ.get("DDTUI_RUNNER_KILLS", "2"))
"""Random moments at which a runner is killed."""
SHARE = min(4, MOMENTS)
"""As many of them in one queue."""
Event = dict[str, Any]


@pytest.fixture
def host(gpuhost: GpuHost) -> Iterator[GpuHost]:
    gpuhost.exec("rm", "-f", "/etc/sudoers.d/ops")
    grant(gpuhost, UNIT)
    words = engine_command(*DFLASH, load_seconds=2.0)
    gpuhost.install_unit(UNIT, words, user="ops")
    wait_until(lambda: any("ready to roll" in line for line in gpuhost.journal(UNIT)), 30)
    yield gpuhost
    gpuhost.remove_unit(UNIT)
    gpuhost.exec("rm", "-f", SUDOERS)


@pytest.fixture
def ddtui(host: GpuHost, tmp_path: Path) -> Ddtui:
    made = Ddtui(tmp_path, host)
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


def runner(ddtui: Ddtui) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "ddtui", "run", "gpu", "--json"],
        env=ddtui.env,
        cwd=ddtui.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def killed_at(ddtui: Ddtui, wanted: Callable[[Event], bool]) -> tuple[bool, list[Event]]:
    """Run until an event and kill the runner there; whether that event came, and all events."""
    process, seen = runner(ddtui), []
    assert process.stdout is not None
    try:
        for line in process.stdout:
            seen.append(json.loads(line))
            if wanted(seen[-1]):
                return True, seen
        process.wait(60)
        return False, seen
    finally:
        process.kill()
        process.communicate()


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
        events, said = process.communicate(timeout=200)
    finally:
        process.kill()
    assert process.returncode == 0, said
    return [json.loads(each) for each in events.splitlines()]


def check_cells(events: Iterable[Event]) -> None:
    """No cell that was told as kept is measured again."""
    cells = [(each["title"], each["text"][:10]) for each in events if each["what"] == "cell"]
    assert len(cells) == len(set(cells)), cells


def at(what: str, words: str) -> Callable[[Event], bool]:
    def wanted(event: Event) -> bool:
        said = event.get("step", "") if what == "step" else event.get("text", "")
        return event["what"] == what and (not words or said.partition(":")[0] == words)

    return wanted


def boundary_of(event: Event) -> int:
    """Which of the boundaries an event is; -1 for none."""
    return next((n for n, each in enumerate(BOUNDARIES) if at(*each)(event)), -1)


def from_boundary(number: int) -> Callable[[Event], bool]:
    """A boundary, or a later one: a runner may get past it before it is dead, and tells it once."""
    return lambda event: boundary_of(event) >= number


@pytest.mark.timeout(600)
def test_killed_at_every_step(host: GpuHost, ddtui: Ddtui) -> None:
    before, began = starts(host), time.monotonic()
    queue(ddtui)
    # The first one needs no load: the boundaries of one that does are those of the second.
    came, told = killed_at(ddtui, at("ended", ""))
    assert came
    reached = set()
    for number in range(len(BOUNDARIES)):
        came, events = killed_at(ddtui, from_boundary(number))
        told += events
        if came:
            reached.add(boundary_of(events[-1]))
        # What a killed runner has left is freed by the host itself.
    check_cells([*told, *to_the_end(ddtui)])
    check(ddtui, host, before)
    missed = [each for number, each in enumerate(BOUNDARIES) if number not in reached]
    assert len(missed) <= 2, missed
    took = time.monotonic() - began
    measured(f"3 measurements, 2 loads, the runner killed at {len(reached)} steps", took)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("seed", range(-(-MOMENTS // SHARE) if SHARE else 0))
def test_killed_at_any_moment(host: GpuHost, ddtui: Ddtui, seed: int) -> None:
    chance = random.Random(seed)
    before, began = starts(host), time.monotonic()
    queue(ddtui)
    reached, told = [], list[Event]()
    for _ in range(SHARE):
        status, events, said = killed_after(ddtui, chance.uniform(0.0, chance.choice((3, 7, 14))))
        told += events
        if status == 0:
            break  # it was faster
        assert status == -signal.SIGKILL, said
        reached.append(place(events))
    check_cells([*told, *to_the_end(ddtui)])
    check(ddtui, host, before)
    took = time.monotonic() - began
    measured(f"3 measurements, 2 loads, the runner killed at: {'; '.join(reached)}", took)


def killed_after(ddtui: Ddtui, seconds: float) -> tuple[int, list[Event], str]:
    """Kill a runner so long after it has begun: its status, its events, and what it said."""
    process = runner(ddtui)
    seen: list[Event] = []
    alarm = threading.Timer(seconds, process.kill)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if not seen:  # to begin takes long on a busy machine
                alarm.start()
            seen.append(json.loads(line))
        _, said = process.communicate(timeout=60)
        return process.returncode, seen, said
    finally:
        alarm.cancel()
        process.kill()


def place(events: list[Event]) -> str:
    """How far a runner had come, by its last event."""
    last = events[-1]
    words = last.get("step", "") if last["what"] == "step" else last.get("text", "")
    return f"{last['what']} {words.partition(':')[0]}".strip()


def test_a_second_operator_is_told_who_runs_them(host: GpuHost, ddtui: Ddtui) -> None:
    queue(ddtui)
    other = Ddtui(ddtui.folder / "other", host)
    other.write_config(unit=UNIT)
    with other.config.open("a") as file:
        file.write(PLAN)
    process = runner(ddtui)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if json.loads(line)["what"] == "step":
                break
        assert other.run("queue", "gpu", "add", "--set", f"flag:{BLOCK}=8").returncode == 0
        refused = other.run("run", "gpu")
        assert refused.returncode == 8, refused.stderr
        assert "the experiments are being run by" in refused.stderr
        status = json.loads(other.run("run", "gpu", "--status", "--json").stdout)
        assert "since" in status["elsewhere"]
        for line in process.stdout:
            if json.loads(line).get("step") == "measuring":
                break
        # No change is under way now; who makes one is told whose measurement that ends.
        asked = other.run("apply", "gpu", "--set", f"flag:{BLOCK}=32")
        assert asked.returncode == 7, asked.stderr
        assert "warning: experiments are being run on gpu by " in asked.stderr
    finally:
        process.kill()
        process.communicate()
    # Freed as soon as the host has seen that it is gone.
    wait_until(lambda: other.run("run", "gpu", "--status").stdout.startswith("nobody"), 20)


# ---- without a terminal ------------------------------------------------------------------------


@contextmanager
def shell(*argv: str, env: dict[str, str], folder: Path) -> Iterator[int]:
    """A program on a terminal of its own, which is hung up at the end, as by a closed window."""
    pid, terminal = pty.fork()
    if not pid:  # pragma: no cover - the other process
        os.chdir(folder)
        os.execvpe(argv[0], argv, env)
    try:
        yield terminal
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)


def said(terminal: int, words: str) -> str:
    """What is said on a terminal until it ends with these words."""
    seen = bytearray()
    while words.encode() not in seen:
        assert select.select([terminal], [], [], 60)[0], bytes(seen)
        seen += os.read(terminal, 1 << 16)
    return seen.decode(errors="replace")


def ended(status: Callable[..., str]) -> int:
    """How many experiments have ended."""
    return sum(json.loads(status("--status", "--json"))["ended"].values())


def test_a_detached_runner_outlives_its_terminal(host: GpuHost, ddtui: Ddtui) -> None:
    before = starts(host)
    queue(ddtui)

    def status(*words: str) -> str:
        done = ddtui.run("run", "gpu", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    command = shlex.join([sys.executable, "-m", "ddtui", "run", "gpu", "--detach"])
    words = ("bash", "--norc", "--noprofile", "-c", f"{command}; echo begun $?; sleep 600")
    with shell(*words, env=ddtui.env, folder=ddtui.folder) as terminal:
        assert "begun 0" in said(terminal, "begun ")
    pid = json.loads(status("--status", "--json"))["here"]["pid"]
    assert f"(process {pid} on this machine)" in status("--status")
    wait_until(lambda: ended(status), 60)
    assert "it has stopped" in status("--stop")
    assert status("--status").startswith("nobody")
    to_the_end(ddtui)
    check(ddtui, host, before)


def test_it_runs_on_the_host_itself(host: GpuHost, tmp_path: Path) -> None:
    """Begun over SSH with `ddtui run local --detach`; the session is cut off then."""
    home = host.sh("echo ~ops").strip()
    config = f"{home}/.config/ddtui/config.toml"
    host.write(config, f'[hosts.local]\nunit = "{UNIT}"\n{PLAN}')
    host.exec("chown", "-R", "ops:", f"{home}/.config")
    ssh = ("ssh", "-F", str(host.ssh_config))

    def command(*words: str) -> str:
        return shlex.join([sys.executable, "-m", "ddtui", *words])

    def there(*words: str) -> str:
        told = subprocess.run(
            [*ssh, host.name, command(*words)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert told.returncode == 0, told.stderr
        return told.stdout

    def status(*words: str) -> str:
        return there("run", "local", *words)

    for size in (8, 16):
        there("queue", "local", "add", "--set", f"flag:{BLOCK}={size}", "--plan", "tiny")
    words = (*ssh, "-tt", host.name, f"{command('run', 'local', '--detach')}; echo begun $?; cat")
    with shell(*words, env=dict(os.environ), folder=tmp_path) as terminal:
        assert "begun 0" in said(terminal, "begun ")
    wait_until(lambda: ended(status), 60)
    assert "on this machine" in status("--status")
    assert "it has stopped" in status("--stop")
    there("run", "local")
    listed = json.loads(there("queue", "local", "list", "--json"))["experiments"]
    assert [each["state"] for each in listed] == ["done", "done"], listed


@pytest.fixture
def ending_logins(gpuhost: GpuHost) -> Iterator[None]:
    """A host whose logind ends all that a login has begun."""
    file = "/etc/systemd/logind.conf.d/ending.conf"
    gpuhost.write(file, "[Login]\nKillUserProcesses=yes\n")
    gpuhost.sh("systemctl restart systemd-logind && loginctl enable-linger ops")
    yield
    gpuhost.sh('loginctl disable-linger ops; rm "$1"; systemctl restart systemd-logind', file)


@pytest.mark.timeout(400)
@pytest.mark.usefixtures("ending_logins")
def test_how_to_outlive_a_login_is_told_and_so_it_does(host: GpuHost, tmp_path: Path) -> None:
    home = host.sh("echo ~ops").strip()
    host.write(f"{home}/.config/ddtui/config.toml", f'[hosts.local]\nunit = "{UNIT}"\n{PLAN}')
    host.exec("chown", "-R", "ops:", f"{home}/.config")
    ssh = ("ssh", "-F", str(host.ssh_config))

    def there(*words: str, before: str = "") -> str:
        command = before + shlex.join([sys.executable, "-m", "ddtui", *words])
        done = subprocess.run(
            [*ssh, host.name, f"{command} 2>&1"],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    there("queue", "local", "add", "--set", f"flag:{BLOCK}=16", "--plan", "tiny")
    assert "systemd-run --user --scope ddtui run local" in there("run", "local", "--detach")
    wait_until(lambda: there("run", "local", "--status").startswith("nobody"), 20)
    scope = "export XDG_RUNTIME_DIR=/run/user/$(id -u); systemd-run --quiet --user --scope "
    assert "KillUserProcesses" not in there("run", "local", "--detach", before=scope)

    def done() -> bool:
        listed = json.loads(there("queue", "local", "list", "--json"))["experiments"]
        assert listed
        assert all(each["state"] != "failed" for each in listed), listed
        return all(each["state"] == "done" for each in listed)

    try:
        wait_until(done, 200)
    except TimeoutError:
        pytest.fail(there("queue", "local", "list") + there("run", "local", "--status"))
