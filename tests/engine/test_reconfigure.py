"""A real SGLang is reconfigured twice through `ddtui apply`, and its own report proves it.

What is measured is printed at the end: seconds of each step, and how long after the engine's own
words ddtui called it in force.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from ddtui.control.rights import sudoers_lines
from tests.engine.sglang_unit import PORT, UNIT, RealEngine
from tests.host.measured import RESULTS, measured

LOAD = 400.0
"""Seconds that a change may take on a machine that does much else."""
FIRED_UP = "The server is fired up and ready to roll!"
BLOCK, WINDOW = "speculative-dflash-block-size", "speculative-draft-window-size"
SUDOERS = "/etc/sudoers.d/ddtui"


@pytest.fixture
def unit(engine: RealEngine) -> Iterator[RealEngine]:
    host = engine.host
    host.exec("rm", "-f", "/etc/sudoers.d/ops")
    host.write(SUDOERS, "\n".join([*sudoers_lines("ops", UNIT), ""]), mode=0o440)
    engine.install(f"--{BLOCK}", "8")
    until(lambda: fired_up(engine), "the engine's first start")
    yield engine
    engine.remove()
    host.exec("rm", "-f", SUDOERS)


def until(look: Any, what: str) -> None:
    end = time.monotonic() + LOAD
    while not look():
        assert time.monotonic() < end, what
        time.sleep(0.5)


def fired_up(engine: RealEngine) -> float | None:
    """When the present invocation said so, by the journal; Unix seconds."""
    invocation = engine.host.show(UNIT, "InvocationID")
    options = ("--output=json", "--no-pager", "--quiet", f"_SYSTEMD_INVOCATION_ID={invocation}")
    for line in engine.host.exec("journalctl", *options, timeout=60).stdout.splitlines():
        entry = json.loads(line)
        if isinstance(entry["MESSAGE"], str) and FIRED_UP in entry["MESSAGE"]:
            return int(entry["__REALTIME_TIMESTAMP"]) / 1e6
    return None


def apply(engine: RealEngine, folder: Path, *assignments: str) -> dict[str, Any]:
    """`ddtui apply` as an operator runs it; its record."""
    homes = ("CONFIG", "DATA", "STATE", "CACHE")
    env = os.environ | {f"XDG_{name}_HOME": str(folder / name) for name in homes}
    config = folder / "CONFIG" / "ddtui" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    host = engine.host
    config.write_text(
        f'[hosts.gpu]\nssh = "{host.name}"\nssh_config = "{host.ssh_config}"\nunit = "{UNIT}"\n'
    )
    command = [sys.executable, "-m", "ddtui", "apply", "gpu", "--yes", "--json"]
    done = subprocess.run(
        [*command, *(word for each in assignments for word in ("--set", each))],
        env=env,
        capture_output=True,
        text=True,
        timeout=LOAD,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    record: dict[str, Any] = json.loads(done.stdout)
    return record


def test_it_is_reconfigured_twice_and_says_so_itself(unit: RealEngine, tmp_path: Path) -> None:
    assert unit.server_info()["speculative_num_draft_tokens"] == 8
    late = []
    for title, block, window in (("there", 16, 64), ("and back", 8, None)):
        record = apply(unit, tmp_path, f"flag:{BLOCK}={block}", f"flag:{WINDOW}={window or 'none'}")
        assert record["ending"] == "in force"
        assert {each["outcome"] for each in record["proofs"]} == {"in force"}
        assert {each["name"] for each in record["proofs"]} == {BLOCK, WINDOW}
        told = unit.server_info()
        assert told["speculative_num_draft_tokens"] == block
        assert told["speculative_draft_window_size"] == window
        assert unit.host.show(UNIT, "InvocationID") == record["invocation"]
        for phase in record["phases"]:
            measured(f"{title}: {phase['step']}", phase["seconds"])
        said = fired_up(unit)
        assert said is not None
        steps = {each["step"]: each["at"] for each in record["steps"]}
        late.append(steps["verifying"] - said)
        measured(f"{title}: called ready after the engine's own words", late[-1])
        measured(f"{title}: in force after the engine's own words", steps["in force"] - said)
        assert steps["verifying"] >= said - 0.05  # never before it
    RESULTS.append(f"port {PORT}: ready {median(late) * 1000:.0f} ms after its words (median)")
