"""On the test host (root needed): start to the first GPU row beside its floor, and the load we put
there.

The floor is what plain `ssh HOST nvidia-smi` takes. The host's nvidia-smi replays captures in bash
and costs more than the real one, so it is left out of the load.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from tests.bench.terminal import Terminal
from tests.host.gpuhost import (
    DFLASH,
    ENGINE,
    GpuHost,
    HostMissing,
    engine_command,
    project_binds,
    running_host,
)

ROUNDS = 5
SECONDS = 30.0


def run() -> dict[str, object]:
    """Figures, or why there are none."""
    try:
        serving = engine_command(*DFLASH, "--simulate-traffic", load_seconds=1)
        with (
            running_host(project_binds()) as host,
            tempfile.TemporaryDirectory() as folder,
            host.unit(ENGINE, serving),
        ):
            return _measure(host, Path(folder))
    except HostMissing as missing:
        return {"skipped": str(missing)}


def _measure(host: GpuHost, folder: Path) -> dict[str, object]:
    config = folder / "config.toml"
    config.write_text(f'[hosts.{host.name}]\nssh_config = "{host.ssh_config}"\nunit = "{ENGINE}"\n')
    environment = {"DDTUI_CONFIG_FILE": str(config), "DDTUI_DATA_DIR": str(folder / "data")}
    argv = [sys.executable, "-m", "ddtui", "connect", host.name]
    query = "nvidia-smi --query-gpu=index,memory.used --format=csv,noheader"
    floors, firsts = [], []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        ssh = ["ssh", "-F", str(host.ssh_config), host.name, query]
        subprocess.run(ssh, check=True, capture_output=True, env={**os.environ})
        floors.append(time.perf_counter() - began)
        with Terminal(argv, environment=environment) as terminal:
            # a figure of the first row of the captures
            if terminal.until([b"140.4"], 20) is None:
                raise RuntimeError("no GPU row was painted within 20 s")
            firsts.append(time.perf_counter() - terminal.began)
    with Terminal(argv, environment=environment) as terminal:
        terminal.read(8)
        before = _processor_seconds(host)
        here = terminal.cost(SECONDS)
        after = _processor_seconds(host)
    return {
        "floor_ssh_nvidia_smi_s": round(median(floors), 3),
        "first_gpu_row_s": round(median(firsts), 3),
        "beyond_floor_s": round(median(firsts) - median(floors), 3),
        "load_on_the_host_percent_of_a_core": {
            name: round(100 * (after[name] - before.get(name, 0.0)) / SECONDS, 2) for name in after
        },
        "ddtui_here": here,
    }


def _processor_seconds(host: GpuHost) -> dict[str, float]:
    """Processor time so far of what we run there and of what works for it, by name."""
    script = 'for p in /proc/[0-9]*; do echo "$(tr "\\0\\n" "  " <$p/cmdline) @ $(<$p/stat)"; done'
    tick = os.sysconf("SC_CLK_TCK")
    totals = dict.fromkeys(("programs", "journalctl", "sshd", "systemd", "total"), 0.0)
    for line in host.sh(script + " 2>/dev/null", check=False).splitlines():
        command, _, stat = line.rpartition(" @ ")
        name = _name(command)
        if name is None or not stat:
            continue
        fields = stat.rpartition(") ")[2].split()
        own, ended_children = sum(map(int, fields[11:13])), sum(map(int, fields[13:15]))
        # what a program's own loop starts and waits for; PID 1 waits for the whole host
        spent = own + (ended_children if name == "programs" else 0)
        totals[name] += spent / tick
        totals["total"] += spent / tick
    return totals


def _name(command: str) -> str | None:
    if "nvidia-smi" in command or "ddtui:gpu" in command:
        return None
    if "ddtui:" in command:
        return "programs"
    if command.startswith("journalctl"):
        return "journalctl"
    if command.startswith("sshd: ops"):
        return "sshd"
    return "systemd" if command.startswith("/lib/systemd/systemd ") else None


if __name__ == "__main__":
    print(json.dumps(run(), indent=1))
