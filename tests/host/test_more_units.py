"""Units as operators write them: forked, boxed in, of a passing user, moved, with odd values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ddtui.core.launch import Request
from ddtui.core.snapshot import ReadinessState, Verdict
from tests.host.changing import SUDOERS, Changer, changer, grant
from tests.host.gpuhost import (
    DFLASH,
    GpuHost,
    engine_command,
    exec_line,
    project_binds,
    wait_until,
)
from tests.host.test_verbs import Ddtui
from tests.host.watching import Watcher

UNIT = "llm-more.service"
BLOCK = "speculative-dflash-block-size"
FOLDER = f"/etc/systemd/system/{UNIT}.d"
RUNTIME = f"/run/systemd/system/{UNIT}.d"
WORDS = engine_command(*DFLASH)
OWN_NAME = ["@" + WORDS[0], "engine", *WORDS[1:]]


@pytest.fixture
def host(gpuhost: GpuHost) -> Iterator[GpuHost]:
    gpuhost.exec("rm", "-f", "/etc/sudoers.d/ops")
    grant(gpuhost, UNIT)
    yield gpuhost
    gpuhost.remove_unit(UNIT)
    gpuhost.exec("rm", "-f", SUDOERS)


def flag(host: GpuHost, name: str = BLOCK) -> str:
    words = host.exec("cat", f"/proc/{host.main_pid(UNIT)}/cmdline").stdout.split("\0")
    return words[words.index(f"--{name}") + 1]


async def there_and_back(host: GpuHost, ops: Changer) -> None:
    """A change comes into force without a doubt, and is taken back."""
    ready = await ops.watching.until_state(ReadinessState.READY)
    evidence = {each.name: each.verdict for each in ready.readiness.evidence}
    assert evidence["port owner"] in {Verdict.PROVED, Verdict.CONSISTENT}
    record = await ops.apply(request=Request(flags={BLOCK: 16}))
    assert (record.ending, record.doubt, flag(host)) == ("in force", "", "16"), record.steps[-1]
    record = await ops.control.rollback(ops.heard)
    assert (record.ending, record.doubt, flag(host)) == ("rolled back", "", "8"), record.steps[-1]


FORKED = ["/usr/bin/setsid", "--fork", *WORDS]
DAEMON = [
    *("/usr/sbin/start-stop-daemon", "--start", "--background", "--make-pidfile"),
    *("--pidfile", "/run/llm-more/pid", "--startas", WORDS[0], "--", *WORDS[1:]),
]
LINES = {
    "forking": (FORKED, "ops", "Type=forking"),
    "pidfile": (
        DAEMON,
        "ops",
        "Type=forking\nPIDFile=/run/llm-more/pid\nRuntimeDirectory=llm-more",
    ),
    "dynamic-user": (WORDS, "", "DynamicUser=yes"),
    "strict": (WORDS, "ops", "ProtectSystem=strict\nProtectHome=read-only\nPrivateTmp=yes"),
    "no-proc": (WORDS, "dev", "ProtectProc=invisible\nProcSubset=pid\nPrivateUsers=yes"),
    "kill-process": (WORDS, "ops", "KillMode=process"),
    "kill-mixed": (WORDS, "ops", "KillMode=mixed\nSendSIGHUP=yes"),
    "delegated": (WORDS, "ops", "Delegate=yes"),
    "sub-cgroup": (WORDS, "ops", "Delegate=yes\nDelegateSubgroup=main"),
    "oneshot-pre": (WORDS, "ops", "ExecStartPre=/bin/sleep 1\nExecStopPost=/bin/sleep 1"),
    "slice": (WORDS, "ops", "Slice=gpu-llm.slice\nCPUAccounting=yes"),
    "restart-always": (WORDS, "ops", "Restart=always\nRestartSec=1"),
    "exec": (WORDS, "ops", "Type=exec\nNice=5"),
}


@pytest.mark.parametrize("name", LINES)
async def test_there_and_back(host: GpuHost, watcher: Watcher, tmp_path: Path, name: str) -> None:
    words, user, service = LINES[name]
    # A private /tmp would hide a checkout that lies there.
    seen = "".join(f"\nBindReadOnlyPaths={each}" for each in project_binds())
    host.install_unit(UNIT, words, user=user, service=service + seen)
    async with changer(watcher, UNIT, tmp_path) as ops:
        await there_and_back(host, ops)


async def test_a_process_with_another_name(host: GpuHost, watcher: Watcher, tmp_path: Path) -> None:
    host.install_unit(UNIT, "@" + exec_line([WORDS[0], *WORDS]), user="ops")
    async with changer(watcher, UNIT, tmp_path) as ops:
        await ops.watching.until_state(ReadinessState.READY)
        plan = await ops.plan(Request(flags={BLOCK: 16}))
        (note,) = [each.text for each in plan.findings if each.rule == "server-flags"]
        assert "unrecognized arguments: --help" in note  # by the engine, which has none
        await there_and_back(host, ops)


async def test_odd_values_stay_as_they_are(host: GpuHost, watcher: Watcher, tmp_path: Path) -> None:
    service = (
        "Environment=\"QUOTED=a 'b' \\\"c\\\"\" PERCENT=100%% 'DOLLAR=$HOME ${X}'\n"
        "Environment=EMPTY= UNIT_NAME=%n BACK=a\\\\b SEMI=a;b"
    )
    host.install_unit(UNIT, WORDS, user="ops", service=service)

    def environment() -> set[str]:
        found = host.exec("cat", f"/proc/{host.main_pid(UNIT)}/environ").stdout.split("\0")
        return {
            each
            for each in found
            if not each.startswith(("INVOCATION_ID", "SYSTEMD_EXEC", "JOURNAL"))
        }

    before = environment()
    assert "QUOTED=a 'b' \"c\"" in before
    async with changer(watcher, UNIT, tmp_path) as ops:
        await ops.watching.until_state(ReadinessState.READY)
        plan = await ops.control.plan(Request(flags={BLOCK: 16}))
        record = await ops.control.apply(plan, ops.heard)
        assert (record.ending, record.doubt) == ("in force", "")
        assert environment() == before
        odd = "x \"y\" 'z' 50% $HOME ${A} \\\\ ;"
        record = await ops.apply(request=Request(environment={"QUOTED": odd, "PERCENT": None}))
        assert (record.ending, record.doubt) == ("in force", ""), record.steps[-1]
        assert f"QUOTED={odd}" in environment()
        assert not [each for each in environment() if each.startswith("PERCENT=")]
        assert (await ops.control.rollback(ops.heard)).ending == "rolled back"
        assert environment() == before


@pytest.mark.parametrize("name", ["override.conf", "40-runtime.conf"])
async def test_drop_ins_until_the_next_boot(
    host: GpuHost, watcher: Watcher, tmp_path: Path, name: str
) -> None:
    """As `systemctl edit --runtime` makes them: read beneath ddtui's, or over it, by their name."""
    host.install_unit(UNIT, WORDS, user="ops")
    other = engine_command(*DFLASH, "--context-length", "4096")
    host.write(f"{RUNTIME}/{name}", f"[Service]\nExecStart=\nExecStart={exec_line(other)}\n")
    host.systemctl("daemon-reload")
    host.systemctl("restart", UNIT)
    async with changer(watcher, UNIT, tmp_path) as ops:
        await ops.watching.until_state(ReadinessState.READY)
        await ops.watching.until(lambda known: known.unit and "4096" in known.unit.command_line)
        if name.startswith("40"):
            await there_and_back(host, ops)
            assert flag(host, "context-length") == "4096"
            return
        with pytest.raises(Exception, match=f"{RUNTIME}/{name} sets ExecStart after"):
            await ops.control.plan(Request(flags={BLOCK: 16}))
        assert flag(host) == "8"


async def test_a_watchdog_that_nobody_feeds(
    host: GpuHost, watcher: Watcher, tmp_path: Path
) -> None:
    """Its end is told as the watchdog's, not as a fault of the engine."""
    host.install_unit(UNIT, WORDS, user="ops")
    async with changer(watcher, UNIT, tmp_path) as ops:
        await ops.watching.until_state(ReadinessState.READY)
        host.write(f"{FOLDER}/20-dog.conf", "[Service]\nWatchdogSec=3\nNotifyAccess=all\n")
        host.systemctl("daemon-reload")
        record = await ops.apply(
            request=Request(flags={BLOCK: 16, "load-seconds": "30"}), policy="never"
        )
        assert record.ending == "failed"
        assert record.cause is not None
        assert "watchdog" in f"{record.cause} {record.steps[-1].detail}".lower()


async def test_an_engine_that_moves_its_workers(
    host: GpuHost, watcher: Watcher, tmp_path: Path
) -> None:
    """Delegated: its processes stand in a group beneath the unit's."""
    service = (
        "Delegate=yes\nExecStartPost=+/bin/sh -c 'd=/sys/fs/cgroup/system.slice/%n/workers;"
        " mkdir -p $$d && echo $$MAINPID > $$d/cgroup.procs'"
    )
    host.install_unit(UNIT, WORDS, user="ops", service=service)
    async with changer(watcher, UNIT, tmp_path) as ops:
        group = host.exec("cat", f"/proc/{host.main_pid(UNIT)}/cgroup").stdout
        assert group.strip().endswith("/workers")
        await there_and_back(host, ops)


async def test_units_that_stop_with_it_are_named(
    host: GpuHost, watcher: Watcher, tmp_path: Path
) -> None:
    """A proxy that requires the engine, and an exporter that is part of it."""
    host.install_unit(UNIT, WORDS, user="ops")
    tied = {"llm-proxy.service": "Requires", "llm-part.service": "PartOf"}
    try:
        for name, how in {**tied, "llm-free.service": "After"}.items():
            host.install_unit(name, "/usr/bin/sleep 9999", unit=f"{how}={UNIT}")
        async with changer(watcher, UNIT, tmp_path) as ops:
            await ops.watching.until_state(ReadinessState.READY)
            plan = await ops.plan(Request(flags={BLOCK: 16}))
            (told,) = [each for each in plan.findings if each.rule == "others-stop"]
            assert set(told.remedy.split()[4:]) == tied.keys()
            rules = {each.rule for each in await ops.control.against_restart()}
            assert "others-stop" in rules
            await there_and_back(host, ops)
            down = [each for each in tied if host.show(each, "ActiveState") == "inactive"]
            assert down == [*tied]  # as was told
            plan = await ops.plan(Request(flags={BLOCK: 16}))
            assert "others-stop" not in {each.rule for each in plan.findings}
    finally:
        for name in (*tied, "llm-free.service"):
            host.remove_unit(name)


async def test_a_unit_of_a_template(host: GpuHost, watcher: Watcher, tmp_path: Path) -> None:
    """What is changed is this instance, and no other one."""
    template, unit = "llm-many@.service", "llm-many@gpu\\x2d0.service"
    line = exec_line(WORDS).replace("/models/kimi", "/models/%p-%I")
    host.sh("ln -sfn kimi /models/llm-many-gpu-0")
    host.install_unit(template, line, user="ops", start=False)
    grant(host, unit)
    try:
        host.systemctl("start", unit)
        async with changer(watcher, unit, tmp_path) as ops:
            await ops.watching.until_state(ReadinessState.READY)
            record = await ops.apply(request=Request(flags={BLOCK: 16}))
            assert (record.ending, record.doubt) == ("in force", ""), record.steps[-1]
            words = host.exec("cat", f"/proc/{host.main_pid(unit)}/cmdline").stdout.split("\0")
            assert "/models/llm-many-gpu-0" in words
            assert (await ops.control.rollback(ops.heard)).ending == "rolled back"
    finally:
        host.remove_unit(unit)
        host.remove_unit(template)
        host.sh("rm -f /models/llm-many-gpu-0")


def test_another_name_of_a_unit(host: GpuHost, tmp_path: Path) -> None:
    """It is one unit, with one drop-in and one lock, whatever it is called."""
    alias = "llm-alias.service"
    host.install_unit(UNIT, WORDS, user="ops", start=False)
    host.sh(f"ln -sfn {UNIT} /etc/systemd/system/{alias}")
    host.systemctl("daemon-reload")
    host.systemctl("restart", UNIT)
    try:
        ddtui = Ddtui(tmp_path, host)
        ddtui.write_config(unit=alias)
        wait_until(lambda: host.sh("ss -Hltn sport = :30000"))
        applied = ddtui.run("apply", "gpu", "--yes", "--json", "--set", f"flag:{BLOCK}=16")
        assert applied.returncode == 0, applied.stderr
        assert json.loads(applied.stdout)["unit"] == UNIT
        assert flag(host) == "16"
        assert host.sh(f"ls {FOLDER}").split() == ["50-ddtui.conf"]
        assert not host.sh(f"ls -d /etc/systemd/system/{alias}.d || :")
    finally:
        host.exec("rm", "-rf", f"/etc/systemd/system/{alias}")


SOCKET = "llm-more.socket"


async def test_a_unit_behind_a_socket(host: GpuHost, watcher: Watcher, tmp_path: Path) -> None:
    """The port of its socket is systemd's: it is not free once the unit has stopped."""
    host.write(
        f"/etc/systemd/system/{SOCKET}",
        "[Socket]\nListenStream=127.0.0.1:30066\n[Install]\nWantedBy=sockets.target\n",
    )
    host.install_unit(UNIT, WORDS, user="ops")
    host.systemctl("stop", UNIT)
    host.systemctl("start", SOCKET)
    host.systemctl("start", UNIT)
    try:
        async with changer(watcher, UNIT, tmp_path) as ops:
            await there_and_back(host, ops)
    finally:
        host.systemctl("stop", SOCKET, check=False)
        host.exec("rm", "-f", f"/etc/systemd/system/{SOCKET}")
        host.systemctl("daemon-reload")
