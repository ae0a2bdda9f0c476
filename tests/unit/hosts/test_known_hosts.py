from __future__ import annotations

import stat
import subprocess
from pathlib import Path

import asyncssh
import pytest

from ddtui.hosts.base import HostError, HostKeyChanged, HostKeyUnknown, LinkRefused
from ddtui.hosts.ssh.known_hosts import accept_host_key, look_up, refusal
from ddtui.hosts.ssh.target import SshTarget


def new_key(kind: str = "ssh-ed25519") -> asyncssh.SSHKey:
    return asyncssh.generate_private_key(kind).convert_to_public()


def text(key: asyncssh.SSHKey) -> str:
    return " ".join(key.export_public_key("openssh").decode().split()[:2])


def target(file: Path, *, port: int = 22, alias: str = "", hashed: bool = False) -> SshTarget:
    return SshTarget(
        name="box",
        host="Box.example.org",
        port=port,
        username="ops",
        user_known_hosts=(file,),
        host_key_alias=alias,
        hash_known_hosts=hashed,
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "ssh" / "known_hosts"


def write(file: Path, *lines: str) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text("\n".join(lines) + "\n")


def test_plain_wildcard_and_foreign_lines(file: Path) -> None:
    mine, wild, other = new_key(), new_key(), new_key()
    write(
        file,
        "# a comment",
        f"other.example.org,10.0.0.1 {text(other)}",
        "nonsense",
        "box.example.org ssh-ed25519 nonsense",
        f"10.0.0.2,box.example.org {text(mine)} a comment",
        f"*.example.org,!other.example.org {text(wild)}",
        f"|1|bad|hash {text(other)}",
    )
    known = look_up(target(file))
    assert [(record.line, record.key) for record in known.trusted] == [(5, mine), (6, wild)]
    assert known.trusted[0].place == f"{file} line 5"


def test_a_name_hashed_by_ssh_keygen_is_found(file: Path) -> None:
    key = new_key()
    write(file, f"box.example.org {text(key)}", f"elsewhere {text(new_key())}")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(file)], check=True, capture_output=True)
    assert "box" not in file.read_text()
    assert [record.key for record in look_up(target(file)).trusted] == [key]


def test_marked_lines(file: Path) -> None:
    authority, bad = new_key(), new_key()
    write(
        file,
        f"@cert-authority *.example.org {text(authority)}",
        f"@revoked * {text(bad)}",
    )
    known = look_up(target(file))
    assert [record.key for record in known.authorities] == [authority]
    assert known.trusted == []
    assert "revoked" in refusal(target(file), known, bad, "Host key is revoked").remedy
    assert "cert" in known.algorithms()[0]


def test_another_port_has_its_own_name_and_falls_back_to_the_bare_one(file: Path) -> None:
    with_port, alone = new_key(), new_key()
    write(file, f"box.example.org {text(alone)}", f"[box.example.org]:2222 {text(with_port)}")
    known = look_up(target(file, port=2222))
    assert [record.key for record in known.trusted] == [with_port]
    assert [record.key for record in known.by_name_alone] == [alone]
    only_alone = look_up(target(file, port=2200))
    unknown = refusal(target(file, port=2200), only_alone, new_key(), "")
    assert isinstance(unknown, HostKeyUnknown), "another machine may answer on another port"


def test_an_alias_stands_without_port(file: Path) -> None:
    key = new_key()
    write(file, f"thebox {text(key)}", f"box.example.org {text(new_key())}")
    known = look_up(target(file, port=2222, alias="TheBox"))
    assert [record.key for record in known.trusted] == [key]
    assert known.by_name_alone == []


def test_missing_files_know_nothing_and_unreadable_ones_are_an_error(tmp_path: Path) -> None:
    assert look_up(target(tmp_path / "none")).trusted == []
    with pytest.raises(LinkRefused, match="cannot read"):
        look_up(target(tmp_path))


def test_kinds_on_record_are_asked_for_first_and_others_too(file: Path) -> None:
    write(file, f"box.example.org {text(new_key('ecdsa-sha2-nistp256'))}")
    algorithms = look_up(target(file)).algorithms()
    assert algorithms[0] == "ecdsa-sha2-nistp256"
    assert "ssh-ed25519" in algorithms
    assert not any("cert" in name for name in algorithms)


def test_a_changed_key_names_the_line_and_the_command(file: Path) -> None:
    write(file, "# first", f"[box.example.org]:2222 {text(new_key())}")
    box = target(file, port=2222)
    offered = new_key("ecdsa-sha2-nistp256")
    changed = refusal(box, look_up(box), offered, "Host key is not trusted")
    assert isinstance(changed, HostKeyChanged)
    assert f"{file} line 2" in changed.what
    assert offered.get_fingerprint() in changed.what
    assert f"ssh-keygen -f {file} -R '[box.example.org]:2222'" in changed.remedy
    command = changed.remedy.split("remove the old key: ")[1]
    subprocess.run(command, shell=True, check=True, capture_output=True)
    assert look_up(box).trusted == []


@pytest.mark.parametrize("hashed", [False, True])
def test_accepting_records_exactly_the_offered_key(file: Path, hashed: bool) -> None:
    box = target(file, port=2222, hashed=hashed)
    offered = new_key()
    unknown = refusal(box, look_up(box), offered, "")
    assert isinstance(unknown, HostKeyUnknown)
    assert unknown.fingerprint == offered.get_fingerprint()
    assert unknown.key_type == "ssh-ed25519"
    assert unknown.address == "Box.example.org:2222"
    accept_host_key(unknown)
    assert [record.key for record in look_up(box).trusted] == [offered]
    assert ("box.example.org" in file.read_text()) is not hashed
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    found = subprocess.run(
        ["ssh-keygen", "-F", "[box.example.org]:2222", "-f", str(file)],
        capture_output=True,
        check=True,
    )
    assert text(offered) in found.stdout.decode()


def test_accepting_keeps_what_is_there(file: Path) -> None:
    write(file, f"other {text(new_key())}")
    file.write_text(file.read_text().rstrip("\n"))  # a last line without its newline
    file.chmod(0o644)
    before = file.read_text()
    box = target(file)
    unknown = refusal(box, look_up(box), new_key(), "")
    assert isinstance(unknown, HostKeyUnknown)
    accept_host_key(unknown)
    assert file.read_text().startswith(before + "\nbox.example.org ssh-ed25519 ")
    assert stat.S_IMODE(file.stat().st_mode) == 0o644


@pytest.mark.parametrize("where", ["", "/dev/null"])
def test_without_a_file_nothing_can_be_accepted(where: str) -> None:
    unknown = HostKeyUnknown(
        "w", "r", address="a", key_type="k", fingerprint="f", known_hosts_file=where
    )
    with pytest.raises(HostError, match="no file"):
        accept_host_key(unknown)
