"""A host's key that nobody knows yet is asked about on the plain terminal, over real SSH."""

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import asyncssh
import pytest

from ddtui.cli.exit_codes import ExitCode
from ddtui.demo.machine import Machine
from ddtui.demo.server import USERNAME, DemoServer


def write_configuration(folder: Path, config: Path, port: int) -> None:
    (folder / "ssh_config").write_text(
        f"Host sim\n  HostName 127.0.0.1\n  Port {port}\n  User {USERNAME}\n"
        f"  IdentityFile {folder}/key\n  IdentityAgent none\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {folder}/known_hosts\n  GlobalKnownHostsFile /dev/null\n"
    )
    config.mkdir()
    (config / "config.toml").write_text(f'[hosts.sim]\nssh_config = "{folder}/ssh_config"\n')


@pytest.fixture
async def server(tmp_path: Path, folders: Path) -> AsyncIterator[DemoServer]:
    """A host that SSH reaches as `sim`, whose key is in no known_hosts file."""
    machine = Machine()
    server = DemoServer(machine)
    await server.start()
    machine.start()
    server.client_key.write_private_key(tmp_path / "key")
    write_configuration(tmp_path, folders, server.port)
    yield server
    await server.close()
    await machine.close()


async def init(typed: str) -> tuple[int, str, str]:
    """Run `ddtui init sim --force` on a terminal and type a line when it asks."""
    master, slave = os.openpty()
    try:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "ddtui", "init", "sim", "--force"),
            stdin=slave,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        assert child.stdout is not None
        assert child.stderr is not None
        told = b""
        async with asyncio.timeout(60):
            while b"from now on: " not in told and (more := await child.stderr.read(1000)):
                told += more
            os.write(master, typed.encode())
            told += await child.stderr.read()
            out = await child.stdout.read()
            return await child.wait(), out.decode(), told.decode()
    finally:
        os.close(slave)
        os.close(master)


async def test_a_key_accepted_with_yes_is_recorded_and_the_verb_goes_on(
    server: DemoServer, tmp_path: Path, folders: Path
) -> None:
    status, out, told = await init("yes\n")
    fingerprint = server.host_key.get_fingerprint()
    assert re.search(rf"fingerprint +{re.escape(fingerprint)}", told), told
    assert re.search(r"key type +ssh-ed25519", told)
    assert f"127.0.0.1:{server.port}" in told
    assert status == ExitCode.OK, told
    recorded = asyncssh.read_known_hosts(str(tmp_path / "known_hosts"))
    trusted, *_ = asyncssh.match_known_hosts(recorded, "127.0.0.1", "127.0.0.1", server.port)
    assert {key.get_fingerprint() for key in trusted} == {fingerprint}
    assert 'unit = "' in out
    assert "ssh_config" in (folders / "config.toml").read_text()
    status, _, told = await init("")
    assert status == ExitCode.OK
    assert "fingerprint" not in told


@pytest.mark.parametrize("typed", ["y\n", "\n", "YES\n", "no\n"])
async def test_anything_but_yes_leaves_everything_as_it_is(
    server: DemoServer, tmp_path: Path, typed: str
) -> None:
    status, out, told = await init(typed)
    assert (status, out) == (ExitCode.REFUSED, "")
    assert "was not accepted" in told
    assert not (tmp_path / "known_hosts").exists()


async def test_a_changed_key_is_a_hard_stop(server: DemoServer, tmp_path: Path) -> None:
    other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
    (tmp_path / "known_hosts").write_text(f"[127.0.0.1]:{server.port} {other}")
    status, _, told = await init("")
    assert status == ExitCode.REFUSED
    assert "CHANGED" in told
    assert "from now on" not in told


@pytest.mark.usefixtures("server")
async def test_verbs_that_ask_nobody_say_how_an_unknown_key_is_accepted() -> None:
    for verb in ("status", "doctor", "diagnose"):
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "ddtui", verb, "sim"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(60):
            told, _ = await child.communicate()
        assert "`ddtui connect sim` asks in a terminal" in " ".join(told.decode().split()), verb
