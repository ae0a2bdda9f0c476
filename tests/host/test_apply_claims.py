"""What an ending claims, on a real systemd: what runs, what is on disk, and what was not proved."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from ddtui.control.controller import NotPossible
from ddtui.control.host_actions import RightMissing
from ddtui.core.change_record import StepRecord
from ddtui.core.launch import Request, Value
from ddtui.core.snapshot import ReadinessState
from tests.host.changing import SUDOERS, Changer, changer, grant
from tests.host.gpuhost import DFLASH, GpuHost, engine_command, exec_line, wait_until
from tests.host.test_apply_troubles import ESCAPE, ORPHAN, orphan_of
from tests.host.test_verbs import Ddtui
from tests.host.watching import Watcher

UNIT = "llm-claims.service"
BLOCK = "speculative-dflash-block-size"
FOLDER = f"/etc/systemd/system/{UNIT}.d"
DROP_IN = f"{FOLDER}/50-ddtui.conf"
FOREIGN = f"{FOLDER}/60-other.conf"


@pytest.fixture
def host(gpuhost: GpuHost) -> Iterator[GpuHost]:
    gpuhost.exec("rm", "-f", "/etc/sudoers.d/ops")
    grant(gpuhost, UNIT)
    yield gpuhost
    gpuhost.remove_unit(UNIT)
    gpuhost.nvidia_smi()
    gpuhost.exec("rm", "-f", SUDOERS)


def command(*flags: str) -> list[str]:
    return engine_command(*DFLASH, *flags)


def install(host: GpuHost, *flags: str, service: str = "") -> None:
    """The engine's unit, run by the user that ddtui logs in as."""
    host.install_unit(UNIT, command(*flags), user="ops", service=service)


@pytest.fixture
async def ops(host: GpuHost, watcher: Watcher, tmp_path: Path) -> AsyncIterator[Changer]:
    install(host)
    async with changer(watcher, UNIT, tmp_path) as each:
        await each.watching.until_state(ReadinessState.READY)
        yield each


def running(host: GpuHost) -> list[str]:
    """The words of the main process."""
    return host.exec("cat", f"/proc/{host.main_pid(UNIT)}/cmdline").stdout.split("\0")[:-1]


def flag(host: GpuHost, name: str = BLOCK) -> str:
    words = running(host)
    return words[words.index(f"--{name}") + 1]


def asked(**flags: Value) -> Request:
    return Request(flags={BLOCK: 16} | {name.replace("_", "-"): v for name, v in flags.items()})


def left_beside(host: GpuHost) -> list[str]:
    """Files of the drop-in's folder, but for those that systemd reads."""
    names = host.sh(f"ls -A {FOLDER} 2>/dev/null", check=False).split()
    return [name for name in names if not name.endswith(".conf")]


def at(ops: Changer, step: str, do: Callable[[], object]) -> None:
    """Do something on the host as soon as the change is at a step, once."""
    done: list[str] = []

    def heard(each: StepRecord) -> None:
        if each.step == step and not done:
            done.append(step)
            do()

    ops.on = heard


async def test_a_report_that_is_refused_is_told(
    host: GpuHost, watcher: Watcher, tmp_path: Path
) -> None:
    install(host, "--api-key", "sk-4f9a8b7c6d5e4f3a")
    async with changer(watcher, UNIT, tmp_path) as ops:
        await ops.watching.until_state(ReadinessState.READY)
        record = await ops.apply(request=asked())
        assert (record.ending, flag(host)) == ("in force", "16")
        assert record.doubt.startswith("command line proved; the server's own report could not be")
        assert "401" in record.doubt
        assert [each["outcome"] for each in record.proofs] == ["not reported"]
        (kept,) = ops.store.reconfigurations.history(host.name)
        assert kept.ended_as == f"in force ({record.doubt})"
        assert "sk-4f9a" not in json.dumps(kept.proofs + kept.evidence)


async def test_values_with_quotes_come_into_force(host: GpuHost, ops: Changer) -> None:
    value = """it's {"a": "b c"} C:\\x $HOME 50%"""
    record = await ops.apply(request=asked(served_model_name=value), policy="never")
    assert record.ending == "in force", record.cause
    assert (record.doubt, flag(host, "served-model-name")) == ("", value)
    back = await ops.control.rollback(ops.heard)
    assert (back.ending, back.doubt) == ("rolled back", ""), back.cause
    assert value not in running(host)


async def test_another_drop_in_decides_over_a_change_and_its_rollback(
    host: GpuHost, ops: Changer
) -> None:
    """What was asked for runs, and another flag that nobody asked for: it is not in force."""
    words = command("--context-length", "4096")
    words[words.index(f"--{BLOCK}") + 1] = "16"
    line = exec_line(words)

    def meddle() -> None:
        host.write(FOREIGN, f"[Service]\nExecStart=\nExecStart={line}\n")

    at(ops, "written", meddle)
    record = await ops.apply(request=asked())
    assert record.ending == "degraded"
    assert record.cause is not None
    assert "context-length is 4096, expected not set" in record.cause["title"]
    assert f"{FOREIGN} decides over it" in record.cause["title"]
    said = record.steps[-1].detail
    assert "the rollback failed as well" in said
    assert f"{BLOCK} is 16, expected 8" in said
    assert f"the old configuration is on disk, beneath {FOREIGN}" in said
    assert flag(host, "context-length") == "4096"
    assert left_beside(host) == []


async def test_a_drop_in_that_systemd_has_not_read_is_seen(host: GpuHost, ops: Changer) -> None:
    host.write(f"{FOLDER}/40-nice.conf", "[Service]\nNice=3\n")
    plan = await ops.plan(asked())
    (finding,) = [each for each in plan.findings if each.rule == "drop-in-not-read"]
    assert "40-nice.conf" in finding.text
    host.write(FOREIGN, f"[Service]\nExecStart=\nExecStart={exec_line(command())}\n")
    with pytest.raises(NotPossible, match="would hide a change"):
        await ops.control.plan(asked())
    host.exec("rm", FOREIGN)
    host.systemctl("daemon-reload")
    plan = await ops.plan(asked())
    assert not [each for each in plan.findings if each.rule == "drop-in-not-read"]


async def test_what_somebody_stopped_is_not_started_again(host: GpuHost, ops: Changer) -> None:
    at(ops, "loading", lambda: host.systemctl("stop", UNIT))
    record = await ops.apply(request=asked(), policy="always")
    assert record.ending == "failed"
    assert "somebody stopped the unit meanwhile" in record.steps[-1].detail
    assert "THE ENGINE IS DOWN" in record.steps[-1].detail
    assert host.show(UNIT, "ActiveState") == "inactive"
    ops.on = lambda _: None
    back = await ops.control.rollback(ops.heard)
    assert (back.ending, flag(host)) == ("rolled back", "8")


async def test_it_goes_back_past_a_reinstalled_unit_only_by_force(
    host: GpuHost, ops: Changer
) -> None:
    assert (await ops.apply(request=asked())).ending == "in force"
    host.remove_unit(UNIT)
    install(host, "--context-length", "4096")
    await ops.ready_anew(host)
    plan = await ops.control.rollback_plan()
    assert plan.blocked
    with pytest.raises(NotPossible, match="is not the one that this was in force with"):
        await ops.control.rollback(ops.heard)
    assert flag(host, "context-length") == "4096"
    record = await ops.control.rollback(ops.heard, force=True)
    assert (record.ending, flag(host)) == ("rolled back", "16")
    assert "--context-length" not in running(host)


async def test_an_engine_in_the_background_of_a_script_is_refused(
    host: GpuHost, ops: Changer
) -> None:
    host.remove_unit(UNIT)
    script = " ".join(command()) + " & wait"
    host.install_unit(UNIT, exec_line(["/bin/bash", "-c", script]), user="ops")
    with pytest.raises(NotPossible, match="put into the background") as refused:
        await ops.control.plan(asked())
    assert "exec" in refused.value.remedy


async def test_a_refused_stop_leaves_the_engine_running(
    host: GpuHost, watcher: Watcher, tmp_path: Path
) -> None:
    install(host)
    refusal = f"{FOLDER}/10-refuse.conf"
    host.write(refusal, "[Unit]\nRefuseManualStop=yes\n")
    host.systemctl("daemon-reload")
    async with changer(watcher, UNIT, tmp_path) as ops:
        await ops.watching.until_state(ReadinessState.READY)
        before = host.show(UNIT, "InvocationID")
        record = await ops.apply(request=asked())
        assert record.ending == "failed"
        said = record.steps[-1].detail
        assert "nothing was stopped" in said
        assert "the engine runs the old configuration" in said
        assert "the old configuration is on disk" in said
        assert (host.show(UNIT, "InvocationID"), flag(host)) == (before, "8")
        assert "ExecStart" not in host.exec("cat", DROP_IN).stdout
        assert host.show(UNIT, "NeedDaemonReload") == "no"
        assert left_beside(host) == []
    host.exec("rm", refusal)
    host.systemctl("daemon-reload")


@pytest.mark.parametrize(
    ("step", "lost", "said"),
    [
        ("reloaded", "systemctl stop", "nothing was stopped; the unit is active (running)"),
        ("written", "daemon-reload", "until `systemctl daemon-reload`"),
        ("locked", "/usr/bin/mv", "nothing was stopped; the unit is active (running)"),
    ],
)
async def test_a_right_that_goes_in_the_middle(
    host: GpuHost, ops: Changer, step: str, lost: str, said: str
) -> None:
    before = host.show(UNIT, "InvocationID")
    at(ops, step, lambda: grant(host, UNIT, without=lost))
    record = await ops.apply(request=asked())
    assert record.ending == "failed"
    told = record.steps[-1].detail
    assert said in told
    assert "the engine runs the old configuration" in told
    assert record.cause is not None
    assert "ops ALL=(root) NOPASSWD:" in record.cause["remedy"]
    assert lost in record.cause["remedy"]
    assert (host.show(UNIT, "InvocationID"), flag(host)) == (before, "8")
    # Without the right to rename it, what was written beside can be emptied only, and it is said.
    beside = left_beside(host)
    assert beside in ([], ["50-ddtui.conf.new"])
    if beside:
        assert host.exec("cat", f"{DROP_IN}.new").stdout == ""
        assert "stays, empty" in record.cause["title"]
    grant(host, UNIT)
    ops.on = lambda _: None
    assert (await ops.apply(request=asked())).ending == "in force"
    assert left_beside(host) == []


async def test_a_right_with_a_password_is_missing_before_anything_is_touched(
    host: GpuHost, ops: Changer
) -> None:
    stop = f"/usr/bin/systemctl stop {UNIT}"
    host.sh('echo "ops ALL=(root) PASSWD: $1" >> "$2"', stop, SUDOERS)
    with pytest.raises(RightMissing) as missing:
        await ops.apply(request=asked())
    (line,) = missing.value.lines
    assert stop in line
    assert host.exec("test", "-e", DROP_IN, check=False).returncode == 1


async def test_what_never_ran_is_no_place_to_go_back_to(host: GpuHost, ops: Changer) -> None:
    """12 was proved; 14 was written by hand and never started; 16 fails: 12 comes back."""
    assert (await ops.apply(request=Request(flags={BLOCK: 12}))).ending == "in force"
    text = host.exec("cat", DROP_IN).stdout
    edited = re.sub(rf'({BLOCK}"? )12\b', r"\g<1>14", text)
    assert edited != text
    host.write(DROP_IN, edited)
    host.systemctl("daemon-reload")
    await ops.watching.until(lambda known: known.unit and not known.unit.needs_daemon_reload)
    plan = await ops.plan(asked(simulate_failure="oom"))
    (warning,) = [each for each in plan.findings if each.rule == "unit-not-running-as-written"]
    assert f"{BLOCK} is 12, and is written as 14" in warning.text
    record = await ops.apply(request=asked(simulate_failure="oom"))
    assert (record.ending, record.was_ready, flag(host)) == ("rolled back", False, "12")
    assert left_beside(host) == []


# ---- as a process --------------------------------------------------------------------------------


@pytest.fixture
def ddtui(host: GpuHost, tmp_path: Path) -> Ddtui:
    made = Ddtui(tmp_path, host)
    made.write_config(unit=UNIT)
    return made


def ready(host: GpuHost) -> None:
    host.until_ready(UNIT)


def test_a_rollback_shows_its_diff_and_on_a_dry_run_changes_nothing(ddtui: Ddtui) -> None:
    host = ddtui.host
    install(host)
    ready(host)
    done = ddtui.run("apply", "gpu", "--yes", "--set", f"flag:{BLOCK}=16")
    assert done.returncode == 0, done.stderr
    before = host.show(UNIT, "InvocationID")
    shown = ddtui.run("rollback", "gpu", "--dry-run")
    assert shown.returncode == 0, shown.stderr
    (row,) = [line.split() for line in shown.stderr.splitlines() if f"--{BLOCK}" in line]
    assert row[-2:] == ["16", "8"]
    told = ddtui.run("rollback", "gpu", "--dry-run", "--json")
    (change,) = json.loads(told.stdout)["changes"]
    assert (change["name"], change["before"], change["after"]) == (BLOCK, "16", "8")
    assert (host.show(UNIT, "InvocationID"), flag(host)) == (before, "16")
    asked_only = ddtui.run("rollback", "gpu")
    assert asked_only.returncode == 7
    assert host.show(UNIT, "InvocationID") == before


def test_orphans_are_ended_by_their_option(ddtui: Ddtui) -> None:
    host = ddtui.host
    install(host, service=ORPHAN)
    ready(host)
    pid = orphan_of(host)
    host.sh(ESCAPE, str(pid))
    host.nvidia_smi(state="loaded", pids=str(pid), used="41843,41843")
    try:
        change = ["apply", "gpu", "--yes", "--end-orphans", "--json"]
        change += ["--set", f"flag:{BLOCK}=16"]
        done = asyncio.run(_while_it_dies(host, pid, lambda: ddtui.run(*change)))
        assert done.returncode == 0, done.stderr
        (told,) = [line for line in done.stderr.splitlines() if "and ended now" in line]
        assert f"left over from the last invocation: {pid} (sleep)" in told
        assert json.loads(done.stdout)["ending"] == "in force"
        assert host.exec("test", "-d", f"/proc/{pid}", check=False).returncode == 1
        assert flag(host) == "16"
    finally:
        host.exec("kill", "-9", str(pid), check=False)


async def _while_it_dies(
    host: GpuHost, pid: int, work: Callable[[], subprocess.CompletedProcess[str]]
) -> subprocess.CompletedProcess[str]:
    """Run `work`; the GPUs get their memory back when the process has ended."""

    def ended() -> bool:
        return host.exec("test", "-d", f"/proc/{pid}", check=False).returncode == 1

    async def give_back() -> None:
        await asyncio.to_thread(wait_until, ended, 150, "its end", 0.3)
        await asyncio.to_thread(host.nvidia_smi)

    giving = asyncio.create_task(give_back())
    done = await asyncio.to_thread(work)
    await giving
    return done


def test_a_missing_right_is_told_with_the_plan_and_before_any_question(ddtui: Ddtui) -> None:
    host = ddtui.host
    install(host)
    ready(host)
    before = host.show(UNIT, "InvocationID")
    grant(host, UNIT, without="systemctl stop")
    line = f"ops ALL=(root) NOPASSWD: /usr/bin/systemctl stop {UNIT}"
    change = ["apply", "gpu", "--set", f"flag:{BLOCK}=16"]
    for verb in ([*change, "--dry-run"], [*change, "--yes"], ["restart", "gpu"]):
        done = ddtui.run(*verb)
        assert done.returncode == 7, done.stderr
        assert line in [each.strip() for each in done.stderr.splitlines()]
        assert "there is no terminal to confirm on" not in done.stderr
    # What is configured already needs no right to be told.
    same = ddtui.run("apply", "gpu", "--set", f"flag:{BLOCK}=8")
    assert (same.returncode, "nothing to change" in same.stderr) == (0, True)
    assert host.show(UNIT, "InvocationID") == before
    assert host.exec("test", "-e", DROP_IN, check=False).returncode == 1


def test_what_is_configured_already_is_in_force_only_where_it_runs(ddtui: Ddtui) -> None:
    """Stopped, loading, ready: the same verb starts it, leaves it alone, and has nothing to do."""
    host = ddtui.host
    install(host)
    ready(host)
    host.systemctl("stop", UNIT)
    same = ("apply", "gpu", "--set", f"flag:{BLOCK}=8", "--yes", "--json")
    started = ddtui.run(*same)
    assert started.returncode == 0, started.stderr
    record = json.loads(started.stdout)
    assert (record["kind"], record["ending"]) == ("restart", "in force")
    assert host.show(UNIT, "ActiveState") == "active"
    before = host.show(UNIT, "InvocationID")
    assert json.loads(ddtui.run(*same).stdout)["why"].startswith("nothing to change: ")
    assert host.show(UNIT, "InvocationID") == before
    host.remove_unit(UNIT)
    host.install_unit(UNIT, engine_command(*DFLASH, load_seconds=90.0), user="ops")
    loading = ddtui.run(*same)
    assert loading.returncode == 5, loading.stderr
    assert "the engine is not ready: " in json.loads(loading.stdout)["why"]
    assert host.show(UNIT, "NRestarts") == "0"
