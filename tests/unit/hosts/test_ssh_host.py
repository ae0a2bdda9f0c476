"""SshHost against a real SSH server inside this process."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncssh
import pytest

from ddtui.core.reach import Reach
from ddtui.core.samples import LinkSample, LinkState
from ddtui.hosts.base import (
    Completed,
    HostError,
    HostKeyChanged,
    HostKeyUnknown,
    LinkDown,
    LinkRefused,
    Program,
    ProgramTimeout,
)
from ddtui.hosts.ssh import SshHost, SshTarget, connection, probe, supervisor
from tests.unit.hosts.server import SshLab, ssh_lab
from tests.unit.hosts.waiting import eventually, keygen

ECHO = Program("ddtui:echo", 'echo "$0|$1"; cat; echo oops >&2; exit 3')


class States:
    """The states that a host went through; each can be waited for."""

    def __init__(self, host: SshHost) -> None:
        self.samples: list[LinkSample] = []
        self._changed = asyncio.Event()
        host.on_link(self._add)

    def _add(self, sample: LinkSample) -> None:
        self.samples.append(sample)
        self._changed.set()

    async def reach(self, state: LinkState, after: int = 0) -> LinkSample:
        async with asyncio.timeout(20):
            while True:
                for sample in self.samples[after:]:
                    if sample.state is state:
                        return sample
                self._changed.clear()
                await self._changed.wait()


@asynccontextmanager
async def connected(lab: SshLab, **changes: object) -> AsyncIterator[SshHost]:
    host = SshHost("lab", lab.target(**changes))
    await host.start()
    try:
        await host.wait_live()
        yield host
    finally:
        await host.close()


async def refused(target: SshTarget) -> LinkRefused:
    """What a host says that will not become live."""
    host = SshHost("lab", target)
    states = States(host)
    await host.start()
    try:
        with pytest.raises(LinkRefused) as caught:
            await host.wait_live()
        assert host.link.state is LinkState.REFUSED
        assert host.link.detail == caught.value.what
        assert host.link.remedy == caught.value.remedy
        with pytest.raises(LinkRefused):
            await host.run(ECHO)
    finally:
        await host.close()
    assert (await states.reach(LinkState.CLOSED)).at
    return caught.value


async def failed(target: SshTarget) -> LinkSample:
    """What a host shows after a try that failed."""
    host = SshHost("lab", target)
    states = States(host)
    await host.start()
    try:
        return await states.reach(LinkState.RETRYING)
    finally:
        await host.close()


# ---- programs -----------------------------------------------------------------------------------


async def test_short_programs(lab: SshLab) -> None:
    async with connected(lab) as host:
        assert host.kind is Reach.SSH
        assert not host.simulated
        assert host.link.detail == f"ops@127.0.0.1:{lab.port}"
        done = await host.run(ECHO, "it's \\ $x", stdin=b"in\xff")
        assert done == Completed(3, b"ddtui:echo|it's \\ $x\nin\xff", b"oops\n")
        # A program that ends without reading its input is no error.
        assert (await host.run(Program("ddtui:t", "exit 5"), stdin=b"x" * 100_000)).status == 5
        with pytest.raises(ProgramTimeout, match=r"ddtui:t did not end within 0.2 s"):
            await host.run(Program("ddtui:t", "sleep 60"), timeout=0.2)
        assert (await host.run(Program("ddtui:t", "echo on"))).stdout == b"on\n"
    assert "timeout -k 2 16 bash -c" in lab.commands[1]


async def test_streams(lab: SshLab) -> None:
    script = "echo a; printf 'b\\xff\\n'; echo why >&2; head -c 1000000 /dev/zero >&2; exit 4"
    async with connected(lab) as host:
        async with host.stream(Program("ddtui:t", script)) as stream:
            assert [line async for line in stream.lines()] == [b"a", b"b\xff"]
            assert stream.status == 4
        async with host.stream(Program("ddtui:t", "read -r x; echo gone >&2; sleep 60")) as stream:
            pass
    assert "timeout" not in lab.commands[1]


async def test_leaving_a_stream_ends_its_program(lab: SshLab, tmp_path: Path) -> None:
    script = 'echo go; while read -r -t 30 _; do :; done; echo "$?" > "$1/ended"'
    async with connected(lab) as host:
        async with host.stream(Program("ddtui:t", script), str(tmp_path)) as stream:
            async for line in stream.lines():
                assert line == b"go"
                break
        assert await eventually((tmp_path / "ended").exists)


async def test_at_most_three_short_programs_at_once(lab: SshLab, tmp_path: Path) -> None:
    script = 'mkdir "$1/$$"; ls "$1" | wc -l; sleep 0.1; rmdir "$1/$$"'
    async with connected(lab) as host:
        results = await asyncio.gather(
            *(host.run(Program("ddtui:t", script), str(tmp_path)) for _ in range(9))
        )
    assert 1 < max(int(done.stdout) for done in results) <= 3


async def test_a_session_that_is_refused_is_asked_for_again(
    lab: SshLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_CHANNEL_PATIENCE", (0.01, 0.01, 0.01))
    async with connected(lab) as host:
        lab.refuse_sessions = 2
        assert (await host.run(Program("ddtui:t", "echo on"))).stdout == b"on\n"
        lab.refuse_sessions = 100
        with pytest.raises(HostError, match="refused another session") as caught:
            await host.run(Program("ddtui:t", "echo on"))
        assert "MaxSessions" in caught.value.remedy
        assert not isinstance(caught.value, LinkDown)
        lab.refuse_sessions = 0
        assert host.link.state is LinkState.LIVE
        assert (await host.run(Program("ddtui:t", "echo on"))).stdout == b"on\n"


# ---- the link -----------------------------------------------------------------------------------


async def test_a_lost_connection_is_told_everywhere_and_made_again(
    lab: SshLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "_SHORTEST_PAUSE", 0.01)
    async with connected(lab) as host:
        states = States(host)
        running = asyncio.create_task(host.run(Program("ddtui:t", "sleep 60")))
        async with host.stream(Program("ddtui:t", "echo a; sleep 60")) as stream:
            lines = stream.lines()
            assert await anext(lines) == b"a"
            lab.cut()
            with pytest.raises(LinkDown, match="connection closed by"):
                await anext(lines)
        with pytest.raises(LinkDown):
            await running
        down = await states.reach(LinkState.RETRYING)
        assert down.detail == f"connection closed by 127.0.0.1:{lab.port}"
        assert down.retry_at is not None
        await states.reach(LinkState.LIVE)
        await host.wait_live()
        assert (await host.run(Program("ddtui:t", "echo on"))).stdout == b"on\n"
        assert host.link.attempt == 0


async def test_while_it_is_down_programs_fail_at_once_with_the_reason(lab: SshLab) -> None:
    async with connected(lab) as host:
        states = States(host)
        await lab.stop()
        lab.cut()
        await states.reach(LinkState.RETRYING)
        with pytest.raises(LinkDown, match="connection"):
            await host.run(ECHO)
        with pytest.raises(LinkDown, match="connection"):
            async with host.stream(ECHO):
                pass


async def test_retry_now_ends_the_pause(lab: SshLab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "_SHORTEST_PAUSE", 3600.0)
    monkeypatch.setattr(supervisor, "LONGEST_PAUSE", 3600.0)
    await lab.stop()
    host = SshHost("lab", lab.target())
    states = States(host)
    await host.start()
    down = await states.reach(LinkState.RETRYING)
    assert down.detail == f"connection refused by 127.0.0.1:{lab.port}"
    assert down.attempt == 1
    assert down.retry_at
    assert down.retry_at - down.at > 2000
    await lab.listen()
    host.retry_now()
    await states.reach(LinkState.LIVE)
    await host.close()
    await host.close()
    assert host.link.state is LinkState.CLOSED
    with pytest.raises(LinkDown):
        await host.wait_live()


async def test_close_while_connecting_returns_at_once(lab: SshLab) -> None:
    mute = socket.create_server(("127.0.0.1", 0))  # accepts in the kernel, says nothing
    with contextlib.closing(mute):
        host = SshHost("lab", lab.target(port=mute.getsockname()[1]))
        await host.start()
        connection, _ = await asyncio.to_thread(mute.accept)
        with contextlib.closing(connection):
            async with asyncio.timeout(2):
                await host.close()


async def test_a_server_that_says_nothing_is_given_up(lab: SshLab) -> None:
    mute = socket.create_server(("127.0.0.1", 0))
    with contextlib.closing(mute):
        down = await failed(lab.target(port=mute.getsockname()[1], connect_timeout=0.3))
    assert "timed out after 0.3 s" in down.detail
    assert "SSH server does not answer" in down.detail


async def test_names_that_do_not_exist_and_bad_ones(lab: SshLab) -> None:
    for name in ("no-such-host.invalid", "bad name", "a" * 70 + ".example"):
        down = await failed(lab.target(host=name))
        assert down.detail == f"name not known: {name}"
        assert "check the name" in down.remedy


async def test_waking_from_sleep_drops_the_connection(
    lab: SshLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "_TICK", 0.02)
    slept, looks = 0.0, 0

    def clock() -> float:
        nonlocal looks
        looks += 1
        return 1000.0 + slept

    host = SshHost("lab", lab.target(), clock=clock)
    states = States(host)
    await host.start()
    await host.wait_live()
    slept, before = 15.0, looks
    async with asyncio.timeout(20):
        while looks < before + 3:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert host.link.state is LinkState.LIVE, "a small step of the clock is no sleep"
    slept = 15.0 + 3600.0
    down = await states.reach(LinkState.RETRYING)
    assert down.detail == "this computer stood still for 3600 s"
    await states.reach(LinkState.LIVE, after=len(states.samples))
    await host.close()


# ---- keys ---------------------------------------------------------------------------------------


def known_hosts_file(path: Path, name: str, key: asyncssh.SSHKey) -> Path:
    path.write_text(f"{name} {key.export_public_key('openssh').decode()}")
    return path


async def test_an_unknown_key_is_shown_then_accepted(lab: SshLab, tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    host = SshHost("lab", lab.target(host_keys=(), user_known_hosts=(file,)))
    states = States(host)
    await host.start()
    with pytest.raises(HostKeyUnknown) as caught:
        await host.wait_live()
    assert caught.value.fingerprint == lab.host_key.get_fingerprint()
    assert caught.value.address == f"127.0.0.1:{lab.port}"
    pending = host.pending_key
    assert pending is caught.value
    assert not file.exists(), "nothing is trusted before the operator says so"
    with pytest.raises(HostError, match="no host key with this fingerprint"):
        host.accept_host_key("SHA256:other")
    host.accept_host_key(caught.value.fingerprint)
    await states.reach(LinkState.LIVE)
    assert host.pending_key is None
    assert f"[127.0.0.1]:{lab.port}" in file.read_text()
    await host.close()


async def test_a_changed_key_is_a_hard_stop(lab: SshLab, tmp_path: Path) -> None:
    other = asyncssh.generate_private_key("ecdsa-sha2-nistp256")
    name = f"[127.0.0.1]:{lab.port}"
    file = known_hosts_file(tmp_path / "known_hosts", name, other)
    changed = await refused(lab.target(host_keys=(), user_known_hosts=(file,)))
    assert isinstance(changed, HostKeyChanged)
    assert f"{file} line 1" in changed.what
    assert lab.host_key.get_fingerprint() in changed.what
    pinned = await refused(lab.target(host_keys=(other.convert_to_public(),)))
    assert isinstance(pinned, HostKeyChanged)


async def test_a_revoked_key_is_refused(lab: SshLab, tmp_path: Path) -> None:
    name = f"[127.0.0.1]:{lab.port}"
    file = known_hosts_file(tmp_path / "known_hosts", f"@revoked {name}", lab.host_key)
    refusal = await refused(lab.target(host_keys=(), user_known_hosts=(file,)))
    assert "revoked" in refusal.what
    assert not isinstance(refusal, HostKeyUnknown)


async def test_a_host_certificate_of_a_known_authority(tmp_path: Path) -> None:
    authority = asyncssh.generate_private_key("ssh-ed25519")
    async with ssh_lab() as lab:
        await lab.stop()
        lab.host_certificate = authority.generate_host_certificate(
            lab.host_key, "box", principals=["thebox"]
        )
        await lab.listen()
        file = known_hosts_file(tmp_path / "known_hosts", "@cert-authority thebox", authority)
        good = {"host_keys": (), "user_known_hosts": (file,), "host_key_alias": "thebox"}
        async with connected(lab, **good) as host:
            assert host.link.state is LinkState.LIVE
        assert isinstance(
            await refused(lab.target(**(good | {"host_key_alias": "other"}))), HostKeyUnknown
        )


async def test_denied_says_who_and_with_what(lab: SshLab, tmp_path: Path) -> None:
    wrong, locked = tmp_path / "wrong", tmp_path / "locked key"
    asyncssh.generate_private_key("ssh-ed25519").write_private_key(wrong)
    keygen("-t", "ed25519", "-N", "secret", "-f", locked)
    files = (wrong, locked, tmp_path / "missing")
    denied = await refused(lab.target(client_keys=(), identity_files=files))
    assert "permission denied (publickey): user ops" in denied.what
    assert f"keys tried: {wrong}; {locked} has a passphrase" in denied.what
    assert denied.remedy == f"unlock the key in the agent: ssh-add '{locked}'"
    none = await refused(lab.target(client_keys=(), identity_files=()))
    assert "keys tried: none found" in none.what
    assert "authorized_keys" in none.remedy


async def test_an_unlocked_file_logs_in(lab: SshLab, tmp_path: Path) -> None:
    lab.client_key.write_private_key(tmp_path / "id")
    async with connected(lab, client_keys=(), identity_files=(tmp_path / "id",)) as host:
        assert (await host.run(Program("ddtui:t", "echo on"))).stdout == b"on\n"


# ---- accounts that log in and run nothing -------------------------------------------------------


@pytest.mark.parametrize(
    ("shell", "said"),
    [
        ("exit 1", "it prints nothing (status 1)"),
        ("echo; echo 'This account is not available.'; exit 1", "This account is not available."),
        ("echo 'no shell' >&2; exit 254", "no shell (status 254)"),
        ('printf "you asked for: %s\\n" "$1"', "you asked for: exec bash"),
        ("cat", "it prints nothing (status 0)"),
        ("printf '\\033[2Jfree text\\n'; head -c 9000000 /dev/zero", "free text (status 0)"),
    ],
)
async def test_an_account_that_runs_no_commands_is_told(lab: SshLab, shell: str, said: str) -> None:
    lab.shell = shell
    refusal = await refused(lab.target())
    assert "the account's shell or ForceCommand does not run commands: " in refusal.what
    assert said in refusal.what
    assert "echo hello" in refusal.remedy
    assert await eventually(lambda: lab.open == 0), "nothing is left of the login"


async def test_a_shell_that_hangs_is_told_and_tried_again(
    lab: SshLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "PATIENCE", 0.3)
    lab.shell = "sleep 60"
    host = SshHost("lab", lab.target())
    states = States(host)
    await host.start()
    try:
        down = await states.reach(LinkState.RETRYING)
        assert "the account's shell has run no command within 0.3 s" in down.detail
        assert down.remedy
        lab.shell = 'echo "Welcome!"; echo noise >&2; eval "$1"'
        await states.reach(LinkState.LIVE)
        said = await host.run(Program("ddtui:t", "echo on"))
        assert said == Completed(0, b"on\n", b"")
    finally:
        await host.close()


# ---- the way there ------------------------------------------------------------------------------


async def test_through_a_jump_host(lab: SshLab) -> None:
    async with ssh_lab() as gate:
        jump = gate.target(name="gate")
        async with connected(lab, jump=jump) as host:
            assert host.link.detail == f"ops@127.0.0.1:{lab.port} via gate"
            assert (await host.run(Program("ddtui:t", "echo on"))).stdout == b"on\n"
            states = States(host)
            lab.cut()
            await states.reach(LinkState.RETRYING)
            assert await eventually(lambda: gate.open == 0), "the way there goes with the target"
            await states.reach(LinkState.LIVE)
            assert gate.open == 1
            gate.cut()
            await states.reach(LinkState.RETRYING, after=len(states.samples))
        gate.forwarding = False
        refusal = await refused(lab.target(jump=jump))
        assert "the jump host gate does not forward" in refusal.what
        gate.forwarding = True
        await lab.stop()
        down = await failed(lab.target(jump=jump))
        assert down.detail.startswith(f"the jump host gate cannot reach 127.0.0.1:{lab.port}")
        await gate.stop()
        down = await failed(lab.target(jump=jump))
        assert down.detail == f"jump host gate: connection refused by 127.0.0.1:{gate.port}"


PROXY = (
    "python3 -c 'import socket,sys,threading,os\n"
    's=socket.create_connection(("127.0.0.1",PORT))\n'
    "def up():\n"
    "    while d:=os.read(0,65536): s.sendall(d)\n"
    "threading.Thread(target=up,daemon=True).start()\n"
    "while d:=s.recv(65536): os.write(1,d)'"
)


async def test_through_a_proxy_command(lab: SshLab) -> None:
    command = PROXY.replace("PORT", str(lab.port))
    async with connected(lab, host="nowhere.invalid", proxy_command=command) as host:
        assert (await host.run(Program("ddtui:t", "echo on"))).stdout == b"on\n"
    failing = "sh -c 'echo noise >&2; echo no way through >&2; exit 3'"
    down = await failed(lab.target(proxy_command=failing))
    assert "the ProxyCommand" in down.detail
    assert down.detail.endswith("no way through")


async def test_a_target_that_is_asked_for_before_every_try(lab: SshLab) -> None:
    asked = 0

    async def target() -> SshTarget:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise LinkRefused("the configuration is bad", "mend it")
        return lab.target()

    host = SshHost("demo", target, kind=Reach.DEMO, simulated=True)
    states = States(host)
    await host.start()
    assert (await states.reach(LinkState.REFUSED)).remedy == "mend it"
    host.retry_now()
    assert (await states.reach(LinkState.LIVE)).source == "demo"
    assert host.simulated
    await host.close()
