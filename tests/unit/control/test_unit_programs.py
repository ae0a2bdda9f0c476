"""The programs that act on a unit, run by a real bash; systemctl is a stand-in."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ddtui.control.host_actions import parse_verify
from ddtui.control.unit_programs import VERIFY_UNIT
from ddtui.hosts.base import Program

UNIT = "engine.service"
FRAGMENT = "[Unit]\nDescription=x\n[Service]\nExecStart=/bin/true\n"


class UserUnit:
    """A unit of a user's own manager, in a home of its own."""

    def __init__(self, home: Path, fragment: str = FRAGMENT) -> None:
        self.home = home
        self.folder = home / ".config/systemd/user"
        self.folder.mkdir(parents=True)
        self.fragment = self.folder / UNIT
        self.fragment.write_text(fragment)
        self.file = self.folder / f"{UNIT}.d/50-ddtui.conf"
        stand_in = home / "bin/systemctl"
        stand_in.parent.mkdir()
        stand_in.write_text(
            f"#!/bin/sh\necho 'FragmentPath={self.fragment}'\n"
            f"[ ! -e '{self.file}' ] || echo 'DropInPaths={self.file}'\n"
        )
        stand_in.chmod(0o755)

    def run(self, program: Program, *arguments: str, said: str = "") -> subprocess.CompletedProcess:
        return subprocess.run(
            ["bash", "-c", program.script, program.label, "user", UNIT, *arguments],
            input=said,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
            env={
                "PATH": f"{self.home}/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "HOME": str(self.home),
                "XDG_RUNTIME_DIR": str(self.home / "bin"),
                "LC_ALL": "C",
            },
        )


needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here"
)


@pytest.fixture
def unit(tmp_path: Path) -> UserUnit:
    return UserUnit(tmp_path)


def verified(unit: UserUnit, drop_in: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    found = parse_verify(unit.run(VERIFY_UNIT, said=drop_in).stdout, UNIT)
    return found.errors, found.warnings


COMMAND = "[Service]\nExecStart=\nExecStart="


@needs_systemd
def test_what_systemd_ignores_blocks_nothing(unit: UserUnit) -> None:
    unit.fragment.write_text(FRAGMENT + "Colour=red\nRestart=sometimes\n")
    errors, warnings = verified(unit, f"{COMMAND}/bin/echo\n")
    assert errors == ()
    assert any("Unknown key" in each for each in warnings)
    assert any("sometimes" in each for each in warnings)


@needs_systemd
def test_a_command_that_is_not_there_is_told(unit: UserUnit) -> None:
    (error,) = verified(unit, f"{COMMAND}/none/such\n")[0]
    assert "/none/such is not executable" in error


@needs_systemd
def test_what_was_wrong_before_blocks_no_change(unit: UserUnit) -> None:
    unit.fragment.write_text(FRAGMENT + "ExecStartPost=/none/post\n")
    errors, warnings = verified(unit, f"{COMMAND}/bin/echo\n")
    assert errors == ()
    assert any("/none/post" in each for each in warnings)
    (error,) = verified(unit, f"{COMMAND}/none/such\n")[0]
    assert "/none/such" in error


@needs_systemd
def test_what_is_wrong_in_the_present_drop_in_is_no_new_fault(unit: UserUnit) -> None:
    unit.file.parent.mkdir()
    unit.file.write_text(f"# a line\n{COMMAND}/none/such\n")
    assert verified(unit, f"{COMMAND}/none/such\n")[0] == ()
