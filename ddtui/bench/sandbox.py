"""Where model-written code may run: what this machine can isolate, found out by trying it.

`isolated` is bubblewrap with namespaces of its own (no network, no other process, no file but the
interpreter's), a filter of system calls and resource limits. `limited` is the filter, the limits
and Landlock alone: no file but the interpreter's can be opened, but that others exist can be seen.
Code never runs as root, nor in this process.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import ddtui
from ddtui.bench.sandbox_filter import filter_program
from ddtui.bench.sandbox_run import Command, Ending, SandboxFailed, SandboxStuck, run_confined
from ddtui.core.text import clean

SECONDS = 10.0
"""Wall time, and CPU time, that the code of one answer may take for all its calls."""
MEMORY = 512 << 20
"""Bytes of its address space: of all it has, since it gets one process only."""
OUTPUT = 1 << 20
"""Bytes of all results together."""
LIMITS = {
    "NPROC": 0,  # no further process or thread
    "AS": MEMORY,
    "CPU": int(SECONDS),
    "FSIZE": 0,
    "NOFILE": 32,
    "CORE": 0,
    "MEMLOCK": 0,
    "MSGQUEUE": 0,
    "SIGPENDING": 64,
}
"""By name of the resource; soft and hard alike."""

_PACKAGE = str(Path(ddtui.__file__).resolve().parent)
"""Where ddtui is, with the tasks' hidden tests in it."""
_OWN_UID = 0x70000000
"""Of users that nobody else has: far above those of people, services and containers."""
_NOBODY = 65534
_OLDEST = (3, 9)
_PACKAGES = {"site-packages", "dist-packages"}
_SYSTEM = ("/usr/lib", "/usr/lib64", "/lib", "/lib64")
"""Where the interpreter's libraries are."""


@dataclass(frozen=True)
class Sandbox:
    """One way to run code, which has been tried."""

    command: Command
    parent: int | None
    """The process that the code is to die with, where bubblewrap does not see to that."""
    readable: dict[str, bool] | None = None
    """All that the code may read, where bubblewrap does not see to that; of a folder whose value is
    false the names in it alone."""

    async def run(
        self,
        code: str,
        entry: str,
        calls: Sequence[Sequence[Any]],
        *,
        is_class: bool = False,
        seconds: float = SECONDS,
        errors: bool = False,
    ) -> Ending:
        """Run `code` and call `entry` once for each of `calls`; see sandbox_child for both sides.

        Raises:
            SandboxFailed: The sandbox could not be set up.
            SandboxStuck: The code was killed, and does not end.
        """
        asked = {
            "code": code,
            "entry": entry,
            "calls": calls,
            "is_class": is_class,
            "limits": LIMITS,
            # Bubblewrap installs it itself.
            "filter": None if self.command.bubblewrap else self.command.filter_program.hex(),
            "parent": self.parent,
            "readable": self.readable,
        }
        ending = await run_confined(
            self.command, json.dumps(asked).encode(), seconds=seconds, most=OUTPUT, errors=errors
        )
        ready, _, output = ending.output.partition(b"\n")
        if ready != b"ready":
            lines = ending.errors.strip().splitlines() or [f"it ended with {ending.status}"]
            raise SandboxFailed(f"the sandbox does not start: {clean(lines[-1], 200)}")
        return replace(ending, output=output)


@dataclass(frozen=True)
class Isolation:
    """How far this machine can isolate code, and why not further."""

    level: Literal["isolated", "limited", "not run"]
    sandbox: Sandbox | None
    """None if code cannot run here, or may not."""
    why: str = ""
    """What is in the way of a better one; empty for `isolated`."""
    remedy: str = ""
    python: str = ""
    """The interpreter inside."""


async def probe(*, limited_allowed: bool = False) -> Isolation:
    """Find the best isolation that holds, by running a check of every wall inside it.

    Args:
        limited_allowed: The operator has said yes to running code with limits alone.
    """
    program = filter_program()
    if sys.platform != "linux" or program is None:
        return Isolation(
            "not run",
            None,
            f"code can be confined on Linux (x86-64, arm64) only, not on {platform.platform()}",
            "start the bench from a Linux machine",
        )
    bubblewrap = shutil.which("bwrap")
    if bubblewrap is None:
        why, remedy = "bubblewrap is not installed", "install the package bubblewrap"
    else:
        why = ""
        for python in _interpreters():
            found, trouble = await _try_all(_isolating(bubblewrap, python, program))
            if found is not None:
                return Isolation("isolated", found, python=python)
            why = why or trouble
        why, remedy = f"bubblewrap does not work here: {why}", _remedy()
    if not limited_allowed:
        return Isolation("not run", None, why, remedy)
    trouble = ""
    for python in _interpreters():
        found, said = await _try_all(_limiting(python, program))
        if found is not None:
            return Isolation("limited", found, why, remedy, python)
        trouble = trouble or said
    return Isolation("not run", None, f"{why}; nor can code be limited: {trouble}", remedy)


def _interpreters() -> list[str]:
    """The system's Python first: a private one may lie where another user cannot read it."""
    candidates = [
        "/usr/bin/python3",
        "/usr/local/bin/python3",
        str(Path(getattr(sys, "_base_executable", sys.executable)).resolve()),
    ]
    return list(dict.fromkeys(each for each in candidates if Path(each).exists()))


def _users() -> list[int | None]:
    """Users to become, best first: root becomes one that shares its limits with nobody."""
    return [_OWN_UID + os.getpid(), _NOBODY] if os.geteuid() == 0 else [None]


def _child_program() -> str:
    return resources.files("ddtui.bench").joinpath("sandbox_child.py").read_text()


def _isolating(bubblewrap: str, python: str, program: bytes) -> list[Sandbox]:
    real = Path(python).resolve()
    library = _library(python)
    argv = [
        *(bubblewrap, "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"),
        *("--cap-drop", "ALL"),
    ]
    bound: list[Path] = []
    for name in (*_SYSTEM, *(["/nix/store"] if real.is_relative_to("/nix/store") else [])):
        path = Path(name)
        if path.is_symlink():
            argv += ["--symlink", str(path.readlink()), name]
        elif path.is_dir():
            argv += ["--ro-bind", name, name]
            bound.append(path)
    if not any(library.is_relative_to(each) for each in bound) and library.is_dir():
        argv += ["--ro-bind", str(library), str(library)]
        bound.append(library)
    if not any(real.is_relative_to(each) for each in bound):
        argv += ["--ro-bind", str(real), str(real)]
    for hidden in _hidden(bound):
        argv += ["--tmpfs", hidden, "--remount-ro", hidden]
    argv += ["--remount-ro", "/", "--chdir", "/", str(real), "-I", "-S", "-B", "-c"]
    argv.append(_child_program())
    return [Sandbox(Command(tuple(argv), True, program, uid), None) for uid in _users()]


def _hidden(bound: list[Path]) -> list[str]:
    """Folders among `bound` that the code must not see: the tasks' tests lie in one of them."""
    package = Path(_PACKAGE)
    found = [package] if any(package.is_relative_to(each) for each in bound) else []
    for root in bound:
        for pattern in ("python3*/site-packages", "python3*/dist-packages"):
            found += [each for each in root.glob(pattern) if each.is_dir()]
    return sorted({str(each) for each in found if not each.is_symlink()})


def _limiting(python: str, program: bytes) -> list[Sandbox]:
    argv = (python, "-I", "-S", "-B", "-c", _child_program())
    readable = _readable(python)
    return [Sandbox(Command(argv, False, program, uid), os.getpid(), readable) for uid in _users()]


def _readable(python: str) -> dict[str, bool]:
    """What an interpreter needs; no packages, ddtui among them. See Sandbox."""
    found = {"/etc/ld.so.cache": True}
    for root in {Path(each).resolve() for each in (*_SYSTEM, _library(python))}:
        for each in _inside(root):
            if each.name.startswith("python3") and each.is_dir():
                found[str(each)] = False
                found |= {str(part): True for part in _inside(each) if part.name not in _PACKAGES}
            else:
                found[str(each)] = True
    package = Path(_PACKAGE)
    return {
        path: whole
        for path, whole in found.items()
        if not (whole and package.is_relative_to(Path(path).resolve()))
    }


def _inside(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _library(python: str) -> Path:
    return Path(python).resolve().parent.parent / "lib"


async def _try_all(candidates: list[Sandbox]) -> tuple[Sandbox | None, str]:
    """The first that holds; or None, and what is wrong with the first one."""
    first = ""
    for each in candidates:
        trouble = await _trouble(each)
        if not trouble:
            return each, ""
        first = first or trouble
    return None, first


_CHECK = """
import os, socket, sys

def check(isolated, oldest, memory, unseen):
    open_walls = []

    def must_fail(name, error, attempt):
        try:
            attempt()
        except error:
            return
        open_walls.append(name)

    def fork():
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)

    must_fail("the process limit", OSError, fork)
    must_fail("the memory limit", MemoryError, lambda: bytearray(memory))
    must_fail("the network", OSError, socket.socket)
    must_fail("files", OSError, lambda: os.close(os.open("/check", os.O_WRONLY | os.O_CREAT)))
    must_fail("reading", OSError, lambda: os.close(os.open("/etc/passwd", os.O_RDONLY)))
    must_fail("folders", OSError, lambda: os.listdir("/etc"))
    must_fail("ddtui's files", OSError, lambda: os.open(unseen[-1], os.O_RDONLY))
    if os.getuid() == 0:
        open_walls.append("root")
    if list(sys.version_info[:2]) < oldest:
        open_walls.append("Python " + sys.version.split()[0])
    if isolated:
        open_walls += [path for path in unseen if os.path.lexists(path)]
        if set(os.environ) - {"PWD", "LC_CTYPE"}:
            open_walls.append("the environment")
    return open_walls
"""


async def _trouble(sandbox: Sandbox) -> str:
    """Try every wall from inside; what is wrong, or nothing."""
    unseen = ["/proc", "/etc", "/tmp", "/var", "/dev", f"{_PACKAGE}/bench/sandbox.py"]  # noqa: S108
    call = [sandbox.command.bubblewrap, list(_OLDEST), MEMORY, unseen]
    try:
        ending = await sandbox.run(_CHECK, "check", [call], errors=True)
    except (SandboxFailed, SandboxStuck) as failed:
        return str(failed)
    try:
        walls = json.loads(ending.output)["value"]
    except (ValueError, KeyError, TypeError):
        said = ending.output.decode(errors="replace") or ending.errors
        return f"the check of its walls failed: {clean(said, 200)}"
    return f"it does not hold: {', '.join(map(str, walls))}" if walls else ""


def _remedy() -> str:
    """What keeps user namespaces from working, by the kernel's own switches."""
    switches = {
        "apparmor_restrict_unprivileged_userns": (
            "1",
            "give bwrap an AppArmor profile that allows `userns` (Ubuntu: "
            "bwrap-userns-restrict of the package apparmor-profiles)",
        ),
        "unprivileged_userns_clone": ("0", "sudo sysctl kernel.unprivileged_userns_clone=1"),
    }
    for name, (closed, remedy) in switches.items():
        path = Path("/proc/sys/kernel", name)
        if path.exists() and path.read_text().strip() == closed:
            return remedy
    path = Path("/proc/sys/user/max_user_namespaces")
    if path.exists() and path.read_text().strip() == "0":
        return "sudo sysctl user.max_user_namespaces=15000"
    return "in a container, start it so that it allows user namespaces; see `bwrap --unshare-all`"
