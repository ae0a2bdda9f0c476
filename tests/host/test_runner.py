"""A queue on the real host: a runner and a second operator, and runners that have no terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.host.gpuhost import AT_ONCE, GpuHost, wait_until
from tests.host.queueing import (
    BLOCK,
    PLAN,
    UNIT,
    check,
    ddtui,
    host,
    operator,
    queue,
    runner,
    starts,
    to_the_end,
)
from tests.host.test_verbs import Ddtui

__all__ = ["ddtui", "host"]
ENDLESS = """
[bench.endless]
concurrency = [1]
output_tokens = 256
repeats = 100
requests = 100
coding = false
"""
"""What is measured with it is being measured until somebody ends it."""


def test_a_second_operator_is_told_who_runs_them(host: GpuHost, ddtui: Ddtui) -> None:
    with ddtui.config.open("a") as file:
        file.write(ENDLESS)
    added = ddtui.run(*("queue", "gpu", "add", "--set", f"flag:{BLOCK}=8", "--plan", "endless"))
    assert added.returncode == 0, added.stderr
    other = operator(host, ddtui.folder / "other")
    process = runner(ddtui)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if json.loads(line).get("step") == "measuring":
                break
        assert other.run("queue", "gpu", "add", "--set", f"flag:{BLOCK}=8").returncode == 0
        refused = other.run("run", "gpu")
        assert refused.returncode == 8, refused.stderr
        assert "the experiments are being run by" in refused.stderr
        status = json.loads(other.run("run", "gpu", "--status", "--json").stdout)
        assert "since" in status["elsewhere"]
        # No change is under way; who makes one is told whose measurement that ends.
        asked = other.run("apply", "gpu", "--set", f"flag:{BLOCK}=32")
        assert asked.returncode == 7, asked.stderr
        assert "warning: experiments are being run on gpu by " in asked.stderr
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()
    # Freed as soon as the host has seen that it is gone: its heartbeat would be missed later.
    wait_until(lambda: other.run("run", "gpu", "--status").stdout.startswith("nobody"), AT_ONCE)


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
    with host.held():  # the first one needs no load: it ends, and the second one is under way
        with shell(*words, env=ddtui.env, folder=ddtui.folder) as terminal:
            assert "begun 0" in said(terminal, "begun ")
        pid = json.loads(status("--status", "--json"))["here"]["pid"]
        assert f"(process {pid} on this machine)" in status("--status")
        wait_until(lambda: ended(status), pause=0.5)
        assert "it has stopped" in status("--stop")
        assert status("--status").startswith("nobody")
    to_the_end(ddtui)
    check(ddtui, host, before)


# ---- on the host itself ------------------------------------------------------------------------


def of_the_host(*words: str) -> str:
    """A command line of ddtui there."""
    return shlex.join([sys.executable, "-m", "ddtui", *words])


@pytest.fixture
def there(host: GpuHost) -> Callable[..., str]:
    """Ddtui on the host, each time over a login of its own; a new installation for each test."""
    home = host.sh("echo ~ops").strip()
    host.sh('rm -rf "$1/.config/ddtui" "$1/.local"', home)
    host.write(f"{home}/.config/ddtui/config.toml", f'[hosts.local]\nunit = "{UNIT}"\n{PLAN}')
    host.exec("chown", "-R", "ops:", f"{home}/.config")

    def run(*words: str, before: str = "", told: str = "2>&1") -> str:
        done = subprocess.run(
            ["ssh", "-F", str(host.ssh_config), host.name, f"{before}{of_the_host(*words)} {told}"],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def states(there: Callable[..., str]) -> list[str]:
    """Of all experiments."""
    listed = json.loads(there("queue", "local", "list", "--json", told=""))["experiments"]
    return [each["state"] for each in listed]


def test_it_runs_on_the_host_itself(
    host: GpuHost, there: Callable[..., str], tmp_path: Path
) -> None:
    """Begun over SSH with `ddtui run local --detach`; the session is cut off then."""

    def status(*words: str) -> str:
        return there("run", "local", *words, told="")

    for size in (8, 16):
        there("queue", "local", "add", "--set", f"flag:{BLOCK}={size}", "--plan", "tiny")
    command = f"{of_the_host('run', 'local', '--detach')}; echo begun $?; cat"
    words = ("ssh", "-F", str(host.ssh_config), "-tt", host.name, command)
    with host.held():  # the first one needs no load: it ends, and the second one is under way
        with shell(*words, env=dict(os.environ), folder=tmp_path) as terminal:
            assert "begun 0" in said(terminal, "begun ")
        wait_until(lambda: ended(status), pause=0.5)
        assert "on this machine" in status("--status")
        assert "it has stopped" in status("--stop")
    there("run", "local")
    assert states(there) == ["done", "done"]


@pytest.fixture
def ending_logins(gpuhost: GpuHost) -> Iterator[None]:
    """A host whose logind ends all that a login has begun."""
    file = "/etc/systemd/logind.conf.d/ending.conf"
    gpuhost.write(file, "[Login]\nKillUserProcesses=yes\n")
    gpuhost.sh("systemctl restart systemd-logind && loginctl enable-linger ops")
    yield
    gpuhost.sh('loginctl disable-linger ops; rm "$1"; systemctl restart systemd-logind', file)


@pytest.mark.usefixtures("ending_logins")
def test_how_to_outlive_a_login_is_told_and_so_it_does(
    host: GpuHost, there: Callable[..., str]
) -> None:
    def nobody() -> bool:
        return there("run", "local", "--status").startswith("nobody")

    there("queue", "local", "add", "--set", f"flag:{BLOCK}=16", "--plan", "tiny")
    with host.held():  # it is not done before it is ended with its login
        assert "systemd-run --user --scope ddtui run local" in there("run", "local", "--detach")
        wait_until(nobody, what="its end", pause=0.5)
        scope = "export XDG_RUNTIME_DIR=/run/user/$(id -u); systemd-run --quiet --user --scope "
        assert "KillUserProcesses" not in there("run", "local", "--detach", before=scope)
        assert not nobody()
    wait_until(nobody, 200, "its end", pause=1.0)
    assert states(there) == ["done"]
