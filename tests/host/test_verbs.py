"""The command line as a user runs it, against the real host: real processes, a home of its own."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.host.gpuhost import (
    AT_ONCE,
    DFLASH,
    ENGINE,
    PATIENCE,
    GpuHost,
    engine_command,
    wait_until,
)
from tests.host.measured import measured


@pytest.fixture(scope="module")
def engine(gpuhost: GpuHost) -> Iterator[GpuHost]:
    gpuhost.nvidia_smi(state="loaded")
    with gpuhost.unit(ENGINE, engine_command(*DFLASH), user="ops"):
        gpuhost.until_ready(ENGINE)
        yield gpuhost
    gpuhost.nvidia_smi()


@dataclass
class Ddtui:
    """ddtui with files of its own; the host is called `gpu` in its configuration."""

    folder: Path
    host: GpuHost

    @property
    def config(self) -> Path:
        return self.folder / "config" / "ddtui" / "config.toml"

    @property
    def env(self) -> dict[str, str]:
        kept = {key: os.environ[key] for key in ("PATH", "LANG", "LC_ALL") if key in os.environ}
        homes = ("config", "data", "state", "cache")
        return (
            kept
            | {f"XDG_{name.upper()}_HOME": str(self.folder / name) for name in homes}
            | {"HOME": str(self.folder), "TERM": "xterm-256color"}
        )

    def write_config(self, user: str = "", **options: str) -> None:
        lines = [f'ssh = "{self.host.name}{user}"', f'ssh_config = "{self.host.ssh_config}"']
        lines += [f'{key} = "{value}"' for key, value in options.items()]
        self.config.parent.mkdir(parents=True, exist_ok=True)
        self.config.write_text("[hosts.gpu]\n" + "\n".join(lines) + "\n")

    def run(self, *args: str, timeout: float = 150) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "ddtui", *args],
            env=self.env,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )


@pytest.fixture
def ddtui(engine: GpuHost, tmp_path: Path) -> Ddtui:
    made = Ddtui(tmp_path, engine)
    made.write_config(unit=ENGINE)
    return made


def test_status_says_ready_with_its_evidence(ddtui: Ddtui) -> None:
    began = time.time()
    done = ddtui.run("status", "gpu", "--json")
    measured("`ddtui status --json` took", time.time() - began)
    assert done.returncode == 0, done.stderr
    known: dict[str, Any] = json.loads(done.stdout)
    assert known["ready"] is True
    verdicts = {each["name"]: each["verdict"] for each in known["evidence"]}
    assert verdicts["port owner"] == verdicts["health"] == verdicts["configuration"] == "proved"
    assert known["unit"]["name"] == ENGINE
    assert known["unit"]["main_pid"] == ddtui.host.main_pid(ENGINE)
    assert known["knobs"]["block_size"] == "8"
    assert [gpu["memory_used_bytes"] for gpu in known["gpus"]] == [41843 << 20] * 2
    assert known["link"]["state"] == "live"
    assert "environment" not in known["unit"]


def test_status_as_text_and_of_a_unit_that_is_not_there(ddtui: Ddtui) -> None:
    done = ddtui.run("status", "gpu")
    assert done.returncode == 0, done.stderr
    assert "ready" in done.stdout
    assert "H200" in done.stdout
    assert ENGINE in done.stdout
    assert "\x1b" not in done.stdout
    missing = ddtui.run("status", "gpu", "--unit", "llm-nowhere")
    assert missing.returncode == 5
    assert "there is no unit llm-nowhere.service" in missing.stdout


def test_status_of_a_host_that_cannot_be_reached(ddtui: Ddtui) -> None:
    ddtui.host.link("reset")
    try:
        done = ddtui.run("status", "gpu", "--json")
    finally:
        ddtui.host.heal()
    assert done.returncode == 3
    assert "refused" in json.loads(done.stdout)["link"]["detail"]


def test_doctor_finds_nothing_wrong_for_the_operator(ddtui: Ddtui) -> None:
    began = time.time()
    done = ddtui.run("doctor", "gpu", "--json")
    measured("`ddtui doctor` took", time.time() - began)
    assert done.returncode == 0, done.stdout + done.stderr
    found = {each["name"]: each["verdict"] for each in json.loads(done.stdout)["checks"]}
    fine = {name for name, verdict in found.items() if verdict == "OK"}
    assert {"nvidia-smi", "systemd", "engine", "metrics"} <= fine
    assert {name for name in found if "journal" in name} <= fine
    assert {name for name in found if "clock" in name} <= fine
    plain = ddtui.run("doctor", "gpu")
    assert plain.returncode == 0
    assert "nvidia-smi" in plain.stdout


def test_doctor_says_what_a_user_without_rights_lacks(ddtui: Ddtui) -> None:
    ddtui.write_config(user="-dev", unit=ENGINE)
    done = ddtui.run("doctor", "gpu")
    assert "systemd-journal" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    journal = [line for line in done.stdout.splitlines() if "journal" in line.lower()]
    assert any("FAIL" in line or "WARN" in line for line in journal), done.stdout


def test_doctor_without_nvidia_smi(ddtui: Ddtui) -> None:
    ddtui.host.nvidia_smi(present=False)
    try:
        done = ddtui.run("doctor", "gpu")
    finally:
        ddtui.host.nvidia_smi(state="loaded")
    lines = [line for line in done.stdout.splitlines() if "nvidia-smi" in line]
    assert any("WARN" in line and "not found" in line for line in lines), done.stdout


def test_init_finds_the_unit_and_writes_the_section(ddtui: Ddtui) -> None:
    ddtui.write_config()
    refused = ddtui.run("init", "gpu")
    assert refused.returncode == 2
    assert "--force" in refused.stderr
    done = ddtui.run("init", "gpu", "--force")
    assert done.returncode == 0, done.stderr
    section = tomllib.loads(ddtui.config.read_text())["hosts"]["gpu"]
    assert section["unit"] == ENGINE
    assert section["ssh_config"] == str(ddtui.host.ssh_config)
    assert "and as it was before: ssh_config" in done.stderr
    assert ddtui.run("config", "validate").returncode == 0
    assert ddtui.run("status", "gpu").returncode == 0


def test_connect_shows_the_host_and_ends_in_good_order(ddtui: Ddtui) -> None:
    with connected(ddtui) as (process, screen):
        shown = read_until(screen, "READY", "H200")
        assert ENGINE.removesuffix(".service").encode() in shown
        assert wait_until(lambda: len(ddtui.host.programs()) >= 4)
        os.write(screen, b"q")
        read_to_end(screen)
        assert process.wait(PATIENCE) == 0
    wait_until(lambda: not ddtui.host.programs(), AT_ONCE, "left running")


def test_a_killed_connect_leaves_nothing_on_the_host(ddtui: Ddtui) -> None:
    with connected(ddtui) as (process, screen):
        read_until(screen, "READY", "H200")
        wait_until(lambda: len(ddtui.host.programs()) >= 4)
        process.kill()
        killed = time.time()
        read_to_end(screen)
        process.wait(PATIENCE)
    wait_until(lambda: not ddtui.host.programs(), AT_ONCE, "left running")
    measured("residue: nothing runs after kill -9 of `ddtui connect`", time.time() - killed)
    listed = ddtui.host.exec("ps", "-u", "ops", "-o", "args", "--no-headers").stdout
    for word in ("journalctl", "--query-gpu", "systemctl show"):
        assert word not in listed


@contextlib.contextmanager
def connected(ddtui: Ddtui) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """`ddtui connect` on a pseudo-terminal of 160x48."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (48, 160))
    process = subprocess.Popen(
        [sys.executable, "-m", "ddtui", "connect", "gpu"],
        env=ddtui.env,
        cwd=ddtui.folder,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    os.set_blocking(ours, False)
    try:
        yield process, ours
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait(PATIENCE)
        os.close(ours)


def read_some(screen: int) -> bytes | None:
    """What has been drawn since; None at the end."""
    try:
        return os.read(screen, 1 << 16)
    except BlockingIOError:
        return b""
    except OSError:  # the other side is closed
        return None


def read_until(screen: int, *words: str) -> bytes:
    """All that is drawn until each of `words` has been."""
    seen = bytearray()

    def look() -> bool:
        seen.extend(read_some(screen) or b"")
        return all(word.encode() in seen for word in words)

    try:
        wait_until(look)
    except TimeoutError:
        raise AssertionError(f"{words} not drawn: {bytes(seen[-3000:])!r}") from None
    return bytes(seen)


def read_to_end(screen: int) -> None:
    """Take what is still drawn, so that the program is not held up."""
    wait_until(lambda: read_some(screen) is None, what="the screen was not given back")
