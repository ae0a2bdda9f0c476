"""`ddtui diagnose` against a real systemd and journald: a host's last start, saved journals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.host.gpuhost import GpuHost, wait_until

UNIT = "llm-broken.service"
LOGS = Path(__file__).parents[1] / "fixtures" / "failures"
DIES = "/bin/bash -c 'cat /var/tmp/engine.log >&2; kill -9 $$$$'"
"""A unit that says what a log holds, and ends as SGLang ends."""
DIE = "/run/llm-die"


@pytest.fixture(scope="module")
def host(gpuhost: GpuHost) -> Iterator[GpuHost]:
    yield gpuhost
    gpuhost.remove_unit(UNIT)


class Ddtui:
    """ddtui with a configuration of its own, in which the host is called `gpu`."""

    def __init__(self, folder: Path, host: GpuHost) -> None:
        self._folder = folder
        self._env = os.environ | {"HOME": str(folder), "DDTUI_CONFIG_DIR": str(folder)}
        self._env |= {f"XDG_{name}_HOME": str(folder / name) for name in ("DATA", "STATE")}
        (folder / "config.toml").write_text(
            f'[hosts.gpu]\nssh = "{host.name}"\nssh_config = "{host.ssh_config}"\nunit = "{UNIT}"\n'
        )

    def diagnose(self, *args: str, stdin: bytes = b"") -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-m", "ddtui", "diagnose", *args, "--json"],
            env=self._env,
            cwd=Path(__file__).parents[2],
            input=stdin,
            capture_output=True,
            timeout=150,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        found = json.loads(done.stdout)
        assert isinstance(found, dict)
        return found


@pytest.fixture
def ddtui(host: GpuHost, tmp_path: Path) -> Ddtui:
    return Ddtui(tmp_path, host)


def fail_with(host: GpuHost, name: str, service: str = "", unit: str = "") -> None:
    """Start the unit and wait until it has failed as a log says."""
    host.write("/var/tmp/engine.log", (LOGS / f"{name}.log").read_bytes())
    host.install_unit(UNIT, DIES, service=service, unit=unit)
    wait_until(lambda: host.show(UNIT, "ActiveState") == "failed")


@pytest.mark.parametrize(
    "name", ["trtllm-attention-unsupported", "unrecognized", "no-room-for-graphs", "unknown-flag"]
)
def test_the_last_start_of_a_unit(host: GpuHost, ddtui: Ddtui, name: str) -> None:
    fail_with(host, name)
    found = ddtui.diagnose("gpu")
    assert (found["engine"], found["ready"], found["failed"]) == ("sglang", False, True)
    assert found["cause"]["id"] == name
    assert "SIGKILL" not in found["cause"]["title"]


def test_a_program_that_is_not_there(host: GpuHost, ddtui: Ddtui) -> None:
    host.install_unit(UNIT, "/opt/no/such/python -m sglang.launch_server")
    wait_until(lambda: host.show(UNIT, "ActiveState") == "failed")
    assert ddtui.diagnose("gpu")["cause"]["id"] == "program-not-found"


def test_a_crash_loop_up_to_the_start_limit(host: GpuHost, ddtui: Ddtui) -> None:
    fail_with(
        host,
        "unknown-speculative-algorithm",
        service="Restart=on-failure\nRestartSec=100ms",
        unit="StartLimitIntervalSec=60\nStartLimitBurst=3",
    )
    wait_until(lambda: host.show(UNIT, "NRestarts") != "0")
    found = ddtui.diagnose("gpu")
    assert found["cause"]["id"] == "unknown-speculative-algorithm"


@pytest.fixture(scope="module")
def failed(host: GpuHost) -> None:
    """The unit has failed, and not a second time while its journal is read."""
    fail_with(host, "cuda-headers-missing")


@pytest.mark.usefixtures("failed")
@pytest.mark.parametrize(
    "output",
    [
        *("short", "short-precise", "short-iso", "short-iso-precise", "short-full"),
        *("short-unix", "short-monotonic", "with-unit", "json"),
    ],
)
def test_saved_journals_in_every_format(host: GpuHost, ddtui: Ddtui, output: str) -> None:
    saved = host.exec("journalctl", "--all", "--no-pager", f"--output={output}", f"--unit={UNIT}")
    found = ddtui.diagnose("-", stdin=saved.stdout.encode())
    assert (found["engine"], found["ready"], found["failed"]) == ("sglang", False, True)
    assert found["cause"]["id"] == "cuda-headers-missing"
    assert any("status=9/KILL" in line or "signal" in line for line in found["cause"]["evidence"])
    assert found["config"]["api_key"] != "sk-notreal0123456789"


@pytest.mark.parametrize("output", ["short-iso", "json"])
def test_a_journal_of_the_whole_machine(host: GpuHost, ddtui: Ddtui, output: str) -> None:
    fail_with(host, "weights-do-not-fit")
    saved = host.exec("journalctl", "--all", "--no-pager", f"--output={output}", "--boot")
    found = ddtui.diagnose("-", "--unit", UNIT, stdin=saved.stdout.encode())
    assert found["cause"]["id"] == "weights-do-not-fit"


def test_the_kernels_word_is_asked_for(host: GpuHost, ddtui: Ddtui) -> None:
    host.write("/var/tmp/engine.log", (LOGS / "killed.log").read_bytes())
    host.exec("rm", "-f", DIE)
    host.install_unit(UNIT, DIES.replace("kill", f"until [ -e {DIE} ]; do sleep 0.1; done; kill"))
    host.kmsg("NVRM: Xid (PCI:0000:41:00): 79, pid=1, GPU has fallen off the bus.")
    host.exec("touch", DIE)
    wait_until(lambda: host.show(UNIT, "ActiveState") == "failed")
    assert ddtui.diagnose("gpu")["cause"]["id"] == "gpu-fell-off-the-bus"
