"""Keys out of files and out of a real ssh-agent."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncssh
import pytest

from ddtui.hosts.ssh.keys import gather_identities
from ddtui.hosts.ssh.target import SshTarget
from tests.unit.hosts.waiting import keygen

pytestmark = pytest.mark.skipif(
    shutil.which("ssh-agent") is None, reason="OpenSSH's ssh-agent is missing"
)


def generate(path: Path, passphrase: str = "") -> Path:
    keygen("-t", "ed25519", "-N", passphrase, "-C", path.name, "-f", path)
    return path


class Agent:
    """A running ssh-agent."""

    def __init__(self, socket: Path) -> None:
        self.socket = str(socket)

    def add(self, key: Path) -> None:
        subprocess.run(["ssh-add", "-q", str(key)], env={"SSH_AUTH_SOCK": self.socket}, check=True)


@pytest.fixture
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    socket = tmp_path_factory.mktemp("agent") / "s"
    process = subprocess.Popen(
        ["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    process.stdout.readline()  # it prints its variables once it listens
    yield Agent(socket)
    process.terminate()
    process.wait()
    process.stdout.close()


Target = Callable[..., SshTarget]


def target(*files: Path, **changes: object) -> SshTarget:
    settings: dict[str, object] = {
        "name": "box",
        "host": "box",
        "username": "ops",
        "identity_files": files,
    }
    return SshTarget(**(settings | changes))  # type: ignore[arg-type]


async def test_the_order_is_that_of_openssh(tmp_path: Path, agent: Agent) -> None:
    other, named, only_file = (generate(tmp_path / name) for name in ("other", "named", "file"))
    agent.add(other)
    agent.add(named)
    found = await gather_identities(
        target(tmp_path / "missing", only_file, named, agent_path=agent.socket)
    )
    assert found.tried == ["named (agent)", "other (agent)", str(only_file)]
    assert len(found.keys) == 3
    found.close()


async def test_identities_only_keeps_the_agents_other_keys_out(
    tmp_path: Path, agent: Agent
) -> None:
    other, named = generate(tmp_path / "other"), generate(tmp_path / "named")
    agent.add(other)
    agent.add(named)
    named.unlink()  # the public half is left: enough to choose the agent's key
    found = await gather_identities(target(named, agent_path=agent.socket, identities_only=True))
    assert found.tried == ["named (agent)"]
    nothing = await gather_identities(target(agent_path=agent.socket, identities_only=True))
    assert nothing.keys == []
    for identities in (found, nothing):
        identities.close()


async def test_a_locked_file_is_used_once_the_agent_holds_it(tmp_path: Path, agent: Agent) -> None:
    locked = generate(tmp_path / "locked key", "secret")
    before = await gather_identities(target(locked, agent_path=agent.socket))
    assert before.keys == []
    assert before.locked == [locked]
    assert before.remedy == f"unlock the key in the agent: ssh-add '{locked}'"
    keygen("-p", "-P", "secret", "-N", "", "-f", locked)
    agent.add(locked)
    keygen("-p", "-P", "", "-N", "secret", "-f", locked)
    locked.with_name("locked key.pub").unlink()  # the locked file itself tells its public key
    after = await gather_identities(target(locked, agent_path=agent.socket))
    assert after.tried == ["locked key (agent)"]
    assert after.locked == []
    for identities in (before, after):
        identities.close()


async def test_a_public_key_as_identity_file_chooses_from_the_agent(
    tmp_path: Path, agent: Agent
) -> None:
    key = generate(tmp_path / "id")
    agent.add(key)
    public = tmp_path / "id.pub"
    found = await gather_identities(target(public, agent_path=agent.socket, identities_only=True))
    assert found.tried == ["id (agent)"]
    assert found.problems == []
    found.close()


async def test_an_agent_that_is_gone_is_told(tmp_path: Path) -> None:
    key = generate(tmp_path / "id")
    found = await gather_identities(target(key, agent_path=str(tmp_path / "gone")))
    assert found.tried == [str(key)]
    assert "agent does not answer" in found.problems[0]


async def test_files_that_are_no_keys_are_told(tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("not a key\n")
    found = await gather_identities(target(tmp_path / "bad", tmp_path))
    assert found.keys == []
    assert len(found.problems) == 2
    assert str(tmp_path / "bad") in found.problems[0]


async def test_a_certificate_goes_with_its_key(tmp_path: Path) -> None:
    key = generate(tmp_path / "id")
    authority = asyncssh.generate_private_key("ssh-ed25519")
    certificate = tmp_path / "elsewhere-cert.pub"
    authority.generate_user_certificate(
        asyncssh.read_public_key(tmp_path / "id.pub"), "ops"
    ).write_certificate(certificate)
    found = await gather_identities(target(key, certificate_files=(certificate,)))
    assert [pair.has_cert for pair in found.keys] == [True, False]
