"""Accounts that log in and run no commands, and those that only talk too much."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ddtui.core.samples import LinkState
from ddtui.hosts.base import Completed, Program
from ddtui.hosts.ssh import probe
from tests.host.gpuhost import GpuHost
from tests.host.watching import Watching

BASHRC = "/home/ops/.bashrc"


@pytest.fixture
def account(gpuhost: GpuHost) -> Iterator[GpuHost]:
    kept = gpuhost.exec("cat", BASHRC, check=False).stdout
    yield gpuhost
    gpuhost.exec("usermod", "-s", "/bin/bash", "ops")
    gpuhost.write(BASHRC, kept)
    force(gpuhost, "")


def force(host: GpuHost, command: str) -> None:
    """Let sshd run this in place of whatever is asked for; nothing: no longer."""
    config = "/etc/ssh/sshd_config"
    host.sh(
        'sed -i "/^ForceCommand /d" "$1"; [ -z "$2" ] || echo "ForceCommand $2" >> "$1"; '
        "systemctl reload ssh",
        config,
        command,
    )


async def seen(host: GpuHost, *states: LinkState) -> tuple[str, str]:
    """What the link says when it is in one of these states."""
    watching = Watching(host, "llm-none.service")
    await watching.start()
    try:
        known = await watching.until(lambda known: known.link.state in states, what="the link")
    finally:
        await watching.close()
    return known.link.detail, known.link.remedy


@pytest.mark.parametrize("shell", ["/bin/false", "/usr/sbin/nologin"])
async def test_a_shell_that_runs_nothing(account: GpuHost, shell: str) -> None:
    account.exec("usermod", "-s", shell, "ops")
    detail, remedy = await seen(account, LinkState.REFUSED)
    assert "does not run commands" in detail
    assert ("not available" in detail) == (shell != "/bin/false")
    assert "getent passwd" in remedy


async def test_a_start_up_file_that_exits(account: GpuHost) -> None:
    account.write(BASHRC, "echo 'only by appointment'; exit 1\n")
    detail, remedy = await seen(account, LinkState.REFUSED)
    assert detail.endswith("does not run commands: only by appointment (status 1)")
    assert ".bashrc" in remedy


async def test_a_command_that_is_forced(account: GpuHost) -> None:
    force(account, "internal-sftp")
    detail, remedy = await seen(account, LinkState.REFUSED)
    assert "does not run commands" in detail
    assert "ForceCommand" in remedy


async def test_a_start_up_file_that_hangs(
    account: GpuHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "PATIENCE", 1.0)
    account.write(BASHRC, "exec 9<> <(:); read -t 30 -u 9\n")
    detail, remedy = await seen(account, LinkState.RETRYING)
    assert "has run no command within 1 s" in detail
    assert remedy


async def test_a_start_up_file_that_talks_and_asks(account: GpuHost) -> None:
    account.write(BASHRC, "echo Welcome; echo noise >&2; read -p 'Name? ' name; echo hello $name\n")
    detail, _ = await seen(account, LinkState.LIVE, LinkState.REFUSED)
    assert detail.startswith("ops@")


async def test_what_start_up_files_print_is_no_programs_output(account: GpuHost) -> None:
    account.write(BASHRC, "date; echo noise >&2\n")
    watching = Watching(account, "llm-none.service")
    await watching.start()
    try:
        await watching.until_live()
        script = "printf 'one\\ntwo'; echo oops >&2; exit 3"
        done = await watching.host.run(Program("ddtui:echo", script))
        assert done == Completed(3, b"one\ntwo", b"oops\n")
        script = "echo one; echo two; echo oops >&2"
        async with watching.host.stream(Program("ddtui:echo", script)) as stream:
            assert [line async for line in stream.lines()] == [b"one", b"two"]
        assert stream.stderr_tail in {"", "oops\n"}
    finally:
        await watching.close()
