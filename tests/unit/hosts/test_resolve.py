"""The real `ssh -G` on real configuration files."""

from __future__ import annotations

import getpass
import os
import pwd
import shutil
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ddtui.hosts.base import LinkDown, LinkRefused
from ddtui.hosts.ssh.resolve import build_target, parse_settings, resolve
from tests.unit.hosts.waiting import eventually, has_ended

pytestmark = pytest.mark.skipif(shutil.which("ssh") is None, reason="OpenSSH's ssh is missing")

Config = Callable[[str], Path]


@pytest.fixture
def config(tmp_path: Path) -> Config:
    def write(text: str) -> Path:
        path = tmp_path / "config"
        path.write_text(text)
        return path

    return write


async def test_an_alias_with_all_that_matters(config: Config, tmp_path: Path) -> None:
    path = config(
        f"""
        Host ct200
          HostName 10.1.2.3   # an inline comment
          Port 2222
          User ops
          IdentityFile "{tmp_path}/my keys/id"
          IdentityFile ~/.ssh/%n-%p
          CertificateFile {tmp_path}/id-cert.pub
          IdentityAgent {tmp_path}/agent.sock
          IdentitiesOnly yes
          UserKnownHostsFile "{tmp_path}/known hosts" {tmp_path}/more
          GlobalKnownHostsFile /dev/null
          HostKeyAlias CT200-key
          HashKnownHosts yes
          StrictHostKeyChecking no
          ConnectTimeout 7
          ServerAliveInterval 1m
          Compression yes
          AddressFamily inet
        """
    )
    target = await resolve("ct200", ssh_config=path)
    assert (target.name, target.host, target.port, target.username) == (
        "ct200",
        "10.1.2.3",
        2222,
        "ops",
    )
    assert target.identity_files == (
        tmp_path / "my keys" / "id",
        Path.home() / ".ssh" / "ct200-2222",
    )
    assert target.certificate_files == (tmp_path / "id-cert.pub",)
    assert target.agent_path == str(tmp_path / "agent.sock")
    assert target.identities_only
    assert target.user_known_hosts == (tmp_path / "known hosts", tmp_path / "more")
    assert target.global_known_hosts == (Path("/dev/null"),)
    assert target.key_name == "ct200-key"
    assert target.hash_known_hosts
    assert target.connect_timeout == 7
    assert target.keepalive_interval == 4, "a silent cut must be told within 15 s"
    assert target.compression
    assert target.address_family == socket.AF_INET
    assert target.jump is None
    assert target.proxy_command == ""


async def test_defaults(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", "/nowhere/agent")
    target = await resolve("box.example.org", ssh_config=config(""))
    assert (target.host, target.port, target.username) == (
        "box.example.org",
        22,
        getpass.getuser(),
    )
    assert target.connect_timeout == 10
    assert target.agent_path == "/nowhere/agent"
    assert Path.home() / ".ssh" / "id_ed25519" in target.identity_files
    assert target.user_known_hosts[0].name == "known_hosts"
    assert target.key_name == "box.example.org"
    assert not target.identities_only


@pytest.mark.parametrize(
    ("value", "environment", "path"),
    [
        ("none", {"SSH_AUTH_SOCK": "/a"}, None),
        ("SSH_AUTH_SOCK", {"SSH_AUTH_SOCK": "/a"}, "/a"),
        ("SSH_AUTH_SOCK", {}, None),
        ("$OTHER_AGENT", {"OTHER_AGENT": "/b"}, "/b"),
        # ssh takes the home from the user database, whatever HOME says.
        ("~/agent", {}, str(Path(pwd.getpwuid(os.getuid()).pw_dir) / "agent")),
    ],
)
async def test_identity_agent(
    config: Config,
    monkeypatch: pytest.MonkeyPatch,
    value: str,
    environment: dict[str, str],
    path: str | None,
) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    for name, content in environment.items():
        monkeypatch.setenv(name, content)
    target = await resolve("box", ssh_config=config(f"Host box\n IdentityAgent {value}\n"))
    assert target.agent_path == path


async def test_user_and_port_in_the_name(config: Config) -> None:
    target = await resolve(
        "ssh://kim@box:2022", ssh_config=config("Host box\n HostName 10.9.9.9\n")
    )
    assert (target.username, target.host, target.port) == ("kim", "10.9.9.9", 2022)
    assert (await resolve("kim@box", ssh_config=config(""))).username == "kim"


async def test_include_and_match_exec(config: Config, tmp_path: Path) -> None:
    (tmp_path / "more").write_text('Match exec "test %n = box"\n  Port 2201\n')
    path = config(f"Include {tmp_path}/more\nMatch exec false\n  User nobody\n")
    target = await resolve("box", ssh_config=path)
    assert target.port == 2201
    assert target.username == getpass.getuser()
    assert (await resolve("other", ssh_config=path)).port == 22


async def test_a_chain_of_jump_hosts_each_with_its_own_settings(config: Config) -> None:
    path = config(
        """
        Host inner
          HostName 10.0.0.9
          ProxyJump first,kim@second:2022
        Host first
          HostName 192.0.2.1
          User gate
          ProxyJump outer
        Host second
          HostName 192.0.2.2
          ProxyJump never-used
        Host outer
          HostName 192.0.2.3
          Port 443
        """
    )
    target = await resolve("inner", ssh_config=path)
    legs = [(leg.name, leg.username, leg.address) for leg in target.legs()]
    assert legs == [
        ("outer", getpass.getuser(), "192.0.2.3:443"),
        ("first", "gate", "192.0.2.1:22"),
        ("second", "kim", "192.0.2.2:2022"),
        ("inner", getpass.getuser(), "10.0.0.9:22"),
    ]


@pytest.mark.parametrize(
    ("jump", "expected"),
    [
        ("[2001:db8::1]:2022", ("2001:db8::1", 2022)),
        ("[2001:db8::1]", ("2001:db8::1", 22)),
        ("ssh://gate:2200", ("gate", 2200)),
    ],
)
async def test_forms_of_a_jump_host(config: Config, jump: str, expected: tuple[str, int]) -> None:
    target = await resolve(
        "inner", ssh_config=config(f"Host inner\n ProxyJump {jump}\nHost *\n User kim\n")
    )
    assert target.jump
    assert (target.jump.host, target.jump.port) == expected


async def test_a_jump_host_that_jumps_through_itself_is_refused(config: Config) -> None:
    path = config("Host a\n ProxyJump b\nHost b\n ProxyJump a\n")
    with pytest.raises(LinkRefused, match=r"more than 8 jump hosts") as caught:
        await resolve("a", ssh_config=path)
    assert "ProxyJump" in caught.value.remedy


async def test_proxy_command_with_its_tokens(config: Config) -> None:
    path = config(
        "Host box\n HostName 10.0.0.1\n User kim\n ProxyCommand nc -x p%% %h %p # %r %n\n"
    )
    target = await resolve("box", ssh_config=path)
    assert target.proxy_command.startswith("nc -x p% 10.0.0.1 22")
    none = await resolve("box", ssh_config=config("Host box\n ProxyCommand none\n"))
    assert none.proxy_command == ""


async def test_what_ssh_says_of_a_bad_configuration_is_passed_on(config: Config) -> None:
    path = config("Host box\n  Prot 22\n")
    with pytest.raises(LinkRefused, match=r"line 2: Bad configuration option: prot") as caught:
        await resolve("box", ssh_config=path)
    assert "ssh -G box" in caught.value.remedy


async def test_a_name_is_never_taken_for_an_option(config: Config, tmp_path: Path) -> None:
    with pytest.raises(LinkRefused):
        await resolve(f"-oProxyCommand=touch {tmp_path}/ran", ssh_config=config(""))
    assert not (tmp_path / "ran").exists()


async def test_without_ssh_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LinkRefused, match="not installed") as caught:
        await resolve("box")
    assert "openssh-client" in caught.value.remedy


async def test_a_match_exec_that_hangs_is_ended(
    config: Config, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys.modules[resolve.__module__], "_SSH_PATIENCE", 0.5)
    path = config(f'Match exec "echo $$ > {tmp_path}/pid; exec sleep 60"\n  Port 1\n')
    with pytest.raises(LinkDown, match="did not answer") as caught:
        await resolve("box", ssh_config=path)
    assert "Match exec" in caught.value.remedy
    pid = int((tmp_path / "pid").read_text())
    assert await eventually(lambda: has_ended(pid))


def test_unknown_tokens_and_variables_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEYS", "/keys")
    monkeypatch.delenv("UNSET", raising=False)
    settings = parse_settings("hostname h\nidentityfile ${KEYS}/%h-%C-${UNSET}\n")
    assert build_target("h", settings).identity_files == (Path("/keys/h-%C-${UNSET}"),)
