"""The SSH link against a real sshd: faults, residue, keys, login shells."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from asyncio import to_thread
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from ddtui.core.samples import LinkSample, LinkState
from ddtui.hosts.base import HostError, HostKeyChanged, HostKeyUnknown, LinkDown, Program
from ddtui.hosts.ssh import SshHost
from tests.host.gpuhost import AT_ONCE, PATIENCE, GpuHost, wait_until

pytestmark = pytest.mark.host

# The host has the shells of this machine.
SHELLS = [each for each in ("/bin/sh", "/usr/bin/zsh", "/usr/bin/fish") if Path(each).exists()]
ON = Program("ddtui:on", "echo on")
# As the long programs do: ends with its input, or after 45 s of silence.
LOOP = Program(
    "ddtui:loop",
    "while :; do echo tick; if read -r -t 0.5 _; then n=0; else [ $? -gt 128 ] || exit 0; "
    "n=$((n + 1)); [ $n -lt 90 ] || exit 0; fi; done",
)


class Link:
    """A host and every state that its link went through."""

    def __init__(self, host: SshHost) -> None:
        self.host = host
        self.samples: list[LinkSample] = []
        self._changed = asyncio.Event()
        host.on_link(self._add)

    def _add(self, sample: LinkSample) -> None:
        self.samples.append(sample)
        self._changed.set()

    async def reach(self, state: LinkState, since: int) -> LinkSample:
        """The first sample of `state` after the `since`th one."""
        async with asyncio.timeout(PATIENCE):
            while True:
                for sample in self.samples[since:]:
                    if sample.state is state:
                        return sample
                self._changed.clear()
                await self._changed.wait()

    async def echoes(self) -> bool:
        """Whether a program answers."""
        return (await self.host.run(ON)).stdout == b"on\n"


@asynccontextmanager
async def linked(name: str, ssh_config: Path) -> AsyncIterator[Link]:
    host = SshHost(name, ssh_config=ssh_config)
    link = Link(host)
    await host.start()
    try:
        async with asyncio.timeout(PATIENCE):
            await host.wait_live()
        yield link
    finally:
        await host.close()


@pytest.fixture
async def link(gpuhost: GpuHost) -> AsyncIterator[Link]:
    async with linked(gpuhost.name, gpuhost.ssh_config) as link:
        yield link
    await to_thread(wait_until, lambda: not gpuhost.programs("ddtui:loop"), AT_ONCE, "left running")


async def followed(host: SshHost) -> asyncio.Task[str]:
    """A stream that runs until the link breaks, and has said something; gives what it is told."""
    runs = asyncio.Event()

    async def follow() -> str:
        try:
            async with host.stream(LOOP) as stream:
                async for _ in stream.lines():
                    runs.set()
        except LinkDown as exc:
            return exc.what
        return "ended"

    task = asyncio.create_task(follow())
    await runs.wait()
    return task


# ---- faults -------------------------------------------------------------------------------------


async def test_a_silent_cut_is_told_in_time_and_mended(link: Link, gpuhost: GpuHost) -> None:
    follower = await followed(link.host)
    seen = len(link.samples)
    await to_thread(gpuhost.link, "cut")
    try:
        down = await link.reach(LinkState.RETRYING, seen)
        assert "no answer from" in down.detail
        assert "no answer from" in await follower
        with pytest.raises(LinkDown):
            await link.host.run(ON)
    finally:
        await to_thread(gpuhost.heal)
    seen = len(link.samples)
    link.host.retry_now()
    await link.reach(LinkState.LIVE, seen - 1)
    assert await link.echoes()
    # The old connection's program has no heartbeat: it ends although sshd knows of nothing.
    await to_thread(wait_until, lambda: not gpuhost.programs("ddtui:loop"), what="left running")


async def test_a_short_cut_is_survived(link: Link, gpuhost: GpuHost) -> None:
    seen = len(link.samples)
    async with link.host.stream(LOOP) as stream:
        lines = stream.lines()
        assert await anext(lines) == b"tick"
        await to_thread(gpuhost.link, "cut")
        await asyncio.sleep(3)
        await to_thread(gpuhost.heal)
        async with asyncio.timeout(PATIENCE):
            for _ in range(8):
                assert await anext(lines) == b"tick"
    assert link.samples[seen:] == []


async def test_a_reset_is_told_at_once_then_refused(link: Link, gpuhost: GpuHost) -> None:
    follower = await followed(link.host)
    seen = len(link.samples)
    await to_thread(gpuhost.link, "reset")
    try:
        down = await link.reach(LinkState.RETRYING, seen)
        assert "connection reset by" in down.detail
        assert "connection reset by" in await follower
        again = await link.reach(LinkState.RETRYING, len(link.samples))
        assert again.detail == f"connection refused by {gpuhost.address}:22"
    finally:
        await to_thread(gpuhost.heal)
    link.host.retry_now()
    await link.reach(LinkState.LIVE, seen)
    assert await link.echoes()


async def test_a_frozen_host_is_told_apart(link: Link, gpuhost: GpuHost) -> None:
    seen = len(link.samples)
    await to_thread(gpuhost.freeze)
    try:
        await link.reach(LinkState.RETRYING, seen)
        link.host.retry_now()
        down = await link.reach(LinkState.RETRYING, len(link.samples))
        assert "accepts connections, but its SSH server does not answer" in down.detail
    finally:
        await to_thread(gpuhost.thaw)
    link.host.retry_now()
    await link.reach(LinkState.LIVE, seen)


async def test_restarting_sshd_keeps_the_link(link: Link, gpuhost: GpuHost) -> None:
    seen = len(link.samples)
    await to_thread(gpuhost.systemctl, "restart", "ssh")
    assert await link.echoes()
    assert link.samples[seen:] == []


async def test_a_host_that_crashes_and_boots(link: Link, gpuhost: GpuHost) -> None:
    seen = len(link.samples)
    await to_thread(gpuhost.crash)
    try:
        down = await link.reach(LinkState.RETRYING, seen)
        assert f"connection closed by {gpuhost.address}:22" in down.detail
    finally:
        await to_thread(gpuhost.boot)
    link.host.retry_now()
    await link.reach(LinkState.LIVE, seen)
    assert await link.echoes()


async def test_a_host_that_lets_nobody_in_for_now_is_tried_again(
    link: Link, gpuhost: GpuHost
) -> None:
    await to_thread(gpuhost.sh, "echo maintenance > /run/nologin")
    try:
        seen = len(link.samples)
        await to_thread(gpuhost.sh, "pkill -u ops -f 'sshd: ops'")
        await link.reach(LinkState.RETRYING, seen)
        down = await link.reach(LinkState.RETRYING, len(link.samples))
        assert "during login" in down.detail
        assert "nologin" in down.remedy
    finally:
        await to_thread(gpuhost.sh, "rm -f /run/nologin")
    link.host.retry_now()
    await link.reach(LinkState.LIVE, seen)


async def test_more_sessions_than_sshd_allows(link: Link) -> None:
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(10):
            stream = await stack.enter_async_context(link.host.stream(LOOP))
            assert await anext(stream.lines()) == b"tick"
        with pytest.raises(HostError, match="refused another session") as caught:
            await link.host.run(ON)
        assert "MaxSessions" in caught.value.remedy
        assert link.host.link.state is LinkState.LIVE
    assert await link.echoes()


# ---- residue ------------------------------------------------------------------------------------

VICTIM = """
import asyncio, sys
from pathlib import Path
from ddtui.hosts.base import Program
from ddtui.hosts.ssh import SshHost
async def main():
    host = SshHost(sys.argv[1], ssh_config=Path(sys.argv[2]))
    await host.start()
    await host.wait_live()
    asyncio.get_running_loop().create_task(
        host.run(Program("ddtui:hang", "sleep 300"), timeout=2))
    async with host.stream(Program("ddtui:loop", sys.argv[3])) as stream:
        async for _ in stream.lines():
            print("up", flush=True)
asyncio.run(main())
"""


async def test_killing_ddtui_leaves_nothing_on_the_host(gpuhost: GpuHost) -> None:
    victim = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", VICTIM, gpuhost.name, str(gpuhost.ssh_config), LOOP.script),
        stdout=asyncio.subprocess.PIPE,
    )
    assert victim.stdout
    assert await victim.stdout.readline() == b"up\n"
    assert await to_thread(gpuhost.programs, "ddtui:loop")
    assert await to_thread(gpuhost.programs, "ddtui:hang")
    victim.kill()
    await victim.communicate()
    await to_thread(wait_until, lambda: not gpuhost.programs(), AT_ONCE, "left running")


# ---- keys ---------------------------------------------------------------------------------------


def config_with(gpuhost: GpuHost, tmp_path: Path, **changes: str) -> Path:
    """The host's SSH configuration with some values changed."""
    lines = []
    for line in gpuhost.ssh_config.read_text().splitlines():
        key = line.split()[0] if line.split() else ""
        lines.append(f"  {key} {changes[key]}" if key in changes else line)
    path = tmp_path / "config"
    path.write_text("\n".join(lines) + "\n")
    return path


async def test_first_contact_then_openssh_agrees(gpuhost: GpuHost, tmp_path: Path) -> None:
    known = tmp_path / "new folder" / "known_hosts"
    config = config_with(gpuhost, tmp_path, UserKnownHostsFile=f'"{known}"')
    host = SshHost(gpuhost.name, ssh_config=config)
    link = Link(host)
    await host.start()
    with pytest.raises(HostKeyUnknown) as caught:
        await host.wait_live()
    fingerprint = await to_thread(gpuhost.sh, "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub")
    assert caught.value.fingerprint in fingerprint
    host.accept_host_key(caught.value.fingerprint)
    await link.reach(LinkState.LIVE, 0)
    await host.close()
    await to_thread(
        subprocess.run,
        ["ssh", "-F", str(config), "-o", "StrictHostKeyChecking=yes", gpuhost.name, "true"],
        check=True,
        timeout=PATIENCE,
    )


async def test_another_key_than_on_record(gpuhost: GpuHost, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    await to_thread(
        subprocess.run,
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "other")],
        check=True,
    )
    known.write_text(f"{gpuhost.address} {(tmp_path / 'other.pub').read_text()}")
    config = config_with(
        gpuhost, tmp_path, UserKnownHostsFile=str(known), StrictHostKeyChecking="no"
    )
    host = SshHost(gpuhost.name, ssh_config=config)
    await host.start()
    with pytest.raises(HostKeyChanged) as caught:
        await host.wait_live()
    assert f"{known} line 1" in caught.value.what
    assert "ssh-keygen" in caught.value.remedy
    await host.close()


async def test_through_a_jump_host(gpuhost: GpuHost, tmp_path: Path) -> None:
    text = gpuhost.ssh_config.read_text()
    inner = text.split("Host ")[1].replace(gpuhost.name, "inner", 1)
    inner = inner.replace(f"HostName {gpuhost.address}", "HostName 127.0.0.1")
    jump = f"Host inner\n  ProxyJump {gpuhost.name}\n  HostKeyAlias {gpuhost.address}\n"
    config = tmp_path / "config"
    config.write_text(f"{jump}Host {inner}{text}")
    async with linked("inner", config) as link:
        assert link.host.link.detail == f"ops@127.0.0.1:22 via {gpuhost.name}"
        assert await link.echoes()


# ---- what the host's administrator may have set up ----------------------------------------------


@pytest.mark.parametrize("shell", SHELLS)
async def test_any_login_shell_and_a_talkative_one(gpuhost: GpuHost, shell: str) -> None:
    await to_thread(gpuhost.sh, 'usermod -s "$1" ops; echo hello > /etc/motd', shell)
    try:
        async with linked(gpuhost.name, gpuhost.ssh_config) as link:
            script = "printf '%s\\n' \"$0\" \"$1\" 'a \\\\ b'"
            done = await link.host.run(Program("ddtui:echo", script), "it's \\ $HOME \\'")
            assert done.stdout.decode().splitlines() == [
                "ddtui:echo",
                "it's \\ $HOME \\'",
                "a \\\\ b",
            ]
    finally:
        await to_thread(gpuhost.sh, "usermod -s /bin/bash ops; rm -f /etc/motd")


async def test_http_where_it_is_refused_and_where_it_is_forbidden(gpuhost: GpuHost) -> None:
    async with (
        linked(gpuhost.name, gpuhost.ssh_config) as link,
        httpx.AsyncClient(transport=link.host.transport()) as client,
    ):
        with pytest.raises(httpx.ConnectError, match="connection refused"):
            await client.get("http://127.0.0.1:9/")
    drop_in = "/etc/ssh/sshd_config.d/10-forwarding.conf"
    await to_thread(gpuhost.write, drop_in, "AllowTcpForwarding no\n")
    await to_thread(gpuhost.systemctl, "reload", "ssh")
    try:
        async with (
            linked(gpuhost.name, gpuhost.ssh_config) as link,
            httpx.AsyncClient(transport=link.host.transport()) as client,
        ):
            with pytest.raises(httpx.ConnectError, match="AllowTcpForwarding"):
                await client.get("http://127.0.0.1:22/")
            assert await link.echoes()
    finally:
        await to_thread(gpuhost.exec, "rm", drop_in)
        await to_thread(gpuhost.systemctl, "reload", "ssh")
