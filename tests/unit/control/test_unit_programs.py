"""The programs that act on a unit, run by a real bash; systemctl is a stand-in."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ddtui.control.drop_in import text_hash
from ddtui.control.host_actions import parse_verify
from ddtui.control.unit_files import parse_unit_files
from ddtui.control.unit_programs import (
    DROP_IN_SIGHT,
    LOOK,
    UNIT_FILES,
    VERIFY_UNIT,
    WRITE_DROP_IN,
)
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
            "#!/bin/sh\ncase $* in *' cat '*)\n"
            f'  for f in {self.fragment} {self.file}; do echo "# $f"; cat $f; echo; done; exit ;;\n'
            f"esac\necho 'FragmentPath={self.fragment}'\n"
            "case $* in *DropInPaths*) ;; *) exit 0 ;; esac\n"
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


def test_drop_ins_that_systemd_has_not_read_are_seen(unit: UserUnit) -> None:
    """With the next reload it takes them up, as a change needs one; the first place counts."""
    own = unit.file.parent
    runtime = unit.home / "bin/systemd/user"
    for path, text in {
        own / "60-later.conf": "[Service]\nNice=1\n",
        own / "50-ddtui.conf": "[Service]\nNice=2\n",
        own / "10-empty.conf": "",
        own / "notes.txt": "x",
        runtime / f"{UNIT}.d/60-later.conf": "[Service]\nNice=3\n",
        runtime / "service.d/20-all.conf": "[Service]\nNice=4\n",
    }.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    said = unit.run(UNIT_FILES)
    found = parse_unit_files(said.stdout.encode())
    assert found.unread == (f"{own}/60-later.conf", f"{runtime}/service.d/20-all.conf")
    names = [Path(each.path).name for each in found.files]
    assert names == [UNIT, "20-all.conf", "50-ddtui.conf", "60-later.conf"]
    assert [each.text for each in found.files][-1] == "[Service]\nNice=1\n"
    (own / "50-ddtui.conf").unlink()
    assert len(parse_unit_files(unit.run(UNIT_FILES).stdout.encode()).unread) == 2


def test_files_are_read_by_themselves_where_cat_ends_early(unit: UserUnit) -> None:
    """It ends at the first file that is gone or closed, and what comes after it would be lost."""
    folder = unit.file.parent
    folder.mkdir()
    (folder / "60-later.conf").write_text("[Service]\nNice=1\n")
    (unit.home / "bin/systemctl").write_text(
        f"#!/bin/sh\ncase $* in *' cat '*) echo '# {unit.fragment}'; exit 1 ;; esac\n"
        "echo LoadState=loaded\n"
        f"echo 'FragmentPath={unit.fragment}'\n"
        f"echo 'DropInPaths={folder}/20-gone.conf {folder}/60-later.conf'\n"
    )
    found = parse_unit_files(unit.run(UNIT_FILES).stdout.encode(), UNIT)
    assert [Path(each.path).name for each in found.files] == [UNIT, "60-later.conf"]
    assert (found.closed, found.trouble) == ((), None)


def test_only_a_whole_drop_in_is_written(unit: UserUnit) -> None:
    """A start-up file of the login shell may have read the beginning."""
    whole = f"# a comment\n{FRAGMENT}"
    orders = ("-", text_hash(whole))
    torn = unit.run(WRITE_DROP_IN, *orders, said=FRAGMENT)
    assert torn.returncode == 3
    assert "start-up file" in torn.stderr
    assert not unit.file.exists()
    done = unit.run(WRITE_DROP_IN, *orders, said=whole)
    assert done.stdout.strip() == f"@written {text_hash(whole)}"


@pytest.mark.parametrize("there", ["/dev/null", ""])
def test_an_empty_drop_in_is_none(unit: UserUnit, there: str) -> None:
    unit.file.parent.mkdir()
    if there:
        unit.file.symlink_to(there)
    else:
        unit.file.write_text("")
    assert "DropIn=\n" in unit.run(LOOK).stdout
    assert unit.run(WRITE_DROP_IN, "-", said=FRAGMENT).returncode == 0
    assert (unit.file.is_symlink(), unit.file.read_text()) == (False, FRAGMENT)


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


def limited(program: Program, unit: UserUnit) -> Program:
    """As it runs for an operator with sudo rights to mkdir, tee and mv only."""
    sudo = unit.home / "bin/sudo"
    sudo.write_text(
        '#!/bin/bash\nshift; [ "$1" = -l ] && { list=1; shift; }\n'
        'case $1 in */mkdir|*/tee|*/mv) [ -n "$list" ] || exec "$@" ;;\n'
        "*) echo 'sudo: a password is required' >&2; exit 1 ;; esac\n"
    )
    sudo.chmod(0o755)
    script = program.script.replace('[ "$scope" = user ] || [ "$UID" = 0 ]', "false")
    assert script != program.script
    return Program(program.label, script)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize(
    ("fragment", "drop_in"),
    [(0o644, 0o644), (0o640, 0o640), (0o600, 0o600), (0o660, 0o660), (0o755, 0o644)],
)
def test_a_drop_in_is_not_wider_than_the_fragment(
    unit: UserUnit, fragment: int, drop_in: int
) -> None:
    unit.fragment.chmod(fragment)
    answer = unit.run(WRITE_DROP_IN, "-", said="[Service]\n")
    assert answer.stdout.startswith("@written ")
    assert mode(unit.file) == drop_in
    assert "@open" not in unit.run(DROP_IN_SIGHT).stdout


def test_one_that_cannot_be_closed_is_told_before(unit: UserUnit) -> None:
    unit.fragment.chmod(0o640)
    assert unit.run(limited(DROP_IN_SIGHT, unit)).stdout == f"@open {unit.fragment}\n@end\n"
    answer = unit.run(limited(WRITE_DROP_IN, unit), "-", said="[Service]\n")
    assert (answer.stdout[:9], answer.stderr) == ("@written ", "")
    assert mode(unit.file) == 0o644


def spoil_reading_back(unit: UserUnit) -> None:
    cmp = unit.home / "bin/cmp"
    cmp.write_text("#!/bin/sh\ncat >/dev/null\nexit 1\n")
    cmp.chmod(0o755)


def test_a_failed_write_leaves_nothing_beside_the_drop_in(unit: UserUnit) -> None:
    spoil_reading_back(unit)
    answer = unit.run(WRITE_DROP_IN, "-", said="[Service]\n")
    assert answer.returncode == 4
    assert "stays" not in answer.stderr
    assert list(unit.file.parent.iterdir()) == []


def test_what_may_not_be_removed_is_emptied_and_told(unit: UserUnit) -> None:
    spoil_reading_back(unit)
    answer = unit.run(limited(WRITE_DROP_IN, unit), "-", said="[Service]\n")
    assert answer.returncode == 4
    assert f"{unit.file}.new stays, empty" in answer.stderr
    assert (unit.file.parent / f"{unit.file.name}.new").read_text() == ""


def test_what_can_be_neither_removed_nor_emptied_is_told(unit: UserUnit) -> None:
    (unit.file.parent / f"{unit.file.name}.new/full").mkdir(parents=True)
    answer = unit.run(WRITE_DROP_IN, "-", said="[Service]\n")
    assert answer.returncode == 1
    assert f"{unit.file}.new stays" in answer.stderr
    assert not unit.file.exists()
