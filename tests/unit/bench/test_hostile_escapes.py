"""Code that wants out of its sandbox stays in it."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import socket
from pathlib import Path

import pytest

from ddtui.bench import sandbox as sandbox_module
from ddtui.bench.sandbox import LIMITS, Sandbox
from tests.unit.bench.sandboxed import ALLOW_ALL, found, left_behind, returned

_WALK = r"""
import os, sys
def solve(x):
    found = []
    for root, folders, files in os.walk("/"):
        found += [each for each in folders if each == "ddtui"]
        for name in files:
            if name.endswith(".toml"):
                with open(os.path.join(root, name), "rb") as file:
                    found += [name] * (b"=> raises ValueError" in file.read())
    found += [each for each in ("/proc", "/dev", "/sys", "/tmp", "/home", "/root", "/etc", "/var",
        "/run", "/mnt", "/opt", "/boot", PLACE) if os.path.lexists(each)]
    found += [key for key in os.environ if key not in ("PWD", "LC_CTYPE")]
    found += sys.argv[1:]
    found.append(sys.stdin.read())
    for each in range(32):
        try:
            found.append(os.read(each, 100).decode())
        except OSError:
            pass
    return [each for each in found if each]
"""


async def test_there_is_nothing_to_see(isolated: Sandbox) -> None:
    """No other file, process, environment or descriptor; and ddtui is nowhere."""
    package = str(Path(sandbox_module.__file__).parent.parent)
    assert await returned(_WALK.replace("PLACE", repr(package)), isolated) == b'{"value": []}\n'


async def test_tests_are_hidden_where_ddtui_lies_beside_the_interpreter(
    isolated: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a package installs it into the system's folders: `wsgiref` stands for it."""
    where = "import wsgiref\ndef solve(x):\n    return list(wsgiref.__path__)[0]"
    place = json.loads(await returned(where, isolated))["value"]
    monkeypatch.setattr(sandbox_module, "_PACKAGE", place)
    again = (await found("isolated", monkeypatch)).sandbox
    assert again is not None
    code = f"import os\ndef solve(x):\n    return os.listdir({place!r})"
    assert await returned(code, again) == b'{"value": []}\n'
    assert await returned(code, isolated) != b'{"value": []}\n'


_ESCAPES = r"""
import ctypes, os, resource, signal, socket, subprocess, sys, tempfile
libc = ctypes.CDLL(None, use_errno=True)
def attempts():
    yield "kill all", lambda: os.kill(-1, signal.SIGKILL)
    yield "kill parent", lambda: os.kill(os.getppid(), signal.SIGKILL)
    yield "kill 1", lambda: os.kill(1, signal.SIGKILL)
    yield "kill group", lambda: os.killpg(os.getpgid(0), signal.SIGKILL)
    yield "process", lambda: subprocess.Popen([sys.executable, "-c", ""]).wait()
    yield "spawn", lambda: os.posix_spawn(sys.executable, [sys.executable], {})
    yield "limits", lambda: resource.setrlimit(resource.RLIMIT_NPROC, (9, 9))
    yield "parent's limits", lambda: resource.prlimit(os.getppid(), resource.RLIMIT_CPU)
    for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, socket.AF_NETLINK):
        yield "socket", lambda: socket.socket(family)
    yield "socketpair", lambda: socket.socketpair()
    for folder in ("/", "/tmp", "/dev/shm", "/usr", "/usr/lib", "/proc", "/var/tmp", HOME):
        path = os.path.join(folder, "ddtui-escaped")
        yield "write " + path, lambda: open(path, "w")
        yield "append " + path, lambda: open(path, "a")
        yield "mkdir " + path, lambda: os.mkdir(path)
        yield "symlink " + path, lambda: os.symlink("/etc/passwd", path)
        yield "mkfifo " + path, lambda: os.mkfifo(path)
    yield "unlink", lambda: os.unlink(sys.executable)
    yield "unlink victim", lambda: os.unlink(VICTIM)
    yield "truncate victim", lambda: os.truncate(VICTIM, 0)
    yield "open victim", lambda: os.open(VICTIM, os.O_RDWR)
    yield "rename victim", lambda: os.rename(VICTIM, VICTIM + ".gone")
    yield "link victim", lambda: os.link(VICTIM, VICTIM + ".more")
    yield "chmod victim", lambda: os.chmod(VICTIM, 0o777)
    yield "touch victim", lambda: os.utime(VICTIM)
    yield "temporary file", lambda: tempfile.TemporaryFile()
    yield "memfd", lambda: os.memfd_create("x")
    yield "chroot", lambda: os.chroot("/")
    yield "setuid", lambda: os.setuid(0)
    yield "nice", lambda: os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)
    for name, arguments in {
        "ptrace": (16, os.getppid(), 0, 0), "unshare": (0x10000000 | 0x20000,), "setns": (3, 0),
        "mount": (b"x", b"/", b"tmpfs", 0, 0), "umount2": (b"/", 2), "shmget": (0, 1 << 20, 0o1600),
        "msgget": (0, 0o1600), "semget": (0, 1, 0o1600), "inotify_init": (),
        "process_vm_readv": (os.getppid(), 0, 0, 0, 0, 0), "mq_open": (b"/x", 0o102, 0o600, 0),
        "pivot_root": (b"/", b"/"), "fanotify_init": (0, 0), "sethostname": (b"x", 1),
        "prctl": (1, 0, 0, 0, 0),
    }.items():
        def call():
            if getattr(libc, name)(*arguments) < 0:
                raise OSError(ctypes.get_errno(), name)
        yield name, call
    for number in {"x86_64": (425, 323, 298, 321, 248, 434, 435, 437, 0x40000039 - 0x40000000),
            "aarch64": (425, 282, 241, 280, 217, 434, 435, 437)}[os.uname().machine]:
        def call():
            if libc.syscall(number, 0, 0, 0, 0, 0) < 0:
                raise OSError(ctypes.get_errno(), "call")
        yield "call %d" % number, call
    def own():
        import fcntl
        fcntl.fcntl(0, fcntl.F_SETOWN, os.getppid())
    yield "owner", own

def solve(x):
    done = []
    for name, attempt in attempts():
        try:
            attempt()
        except (OSError, ValueError, AttributeError):
            continue
        done.append(name)
    return done
"""


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A file that its whole machine may write."""
    tmp_path.chmod(0o777)
    victim = tmp_path / "victim"
    victim.write_text("whole")
    victim.chmod(0o666)
    return victim


async def test_no_call_leads_out(sandbox: Sandbox, victim: Path) -> None:
    code = _ESCAPES.replace("VICTIM", repr(str(victim))).replace("HOME", repr(str(victim.parent)))
    assert await returned(code, sandbox) == b'{"value": []}\n'
    assert {each.name: each.read_text() for each in sorted(victim.parent.iterdir())} == {
        "victim": "whole"
    }


_READING = r"""
import glob, os, sys
def solve(x):
    found = []
    for path in (VICTIM, "/etc/passwd", "/proc/self/environ", "/proc/%d/environ" % os.getppid(),
            "/proc/%d/cmdline" % os.getppid(), "/proc/self/maps", "/dev/null", "/dev/tty", "/",
            PACKAGE, *glob.glob(PACKAGE + "/bench/tasks/*"), sys.executable):
        try:
            os.close(os.open(path, os.O_RDONLY))
        except OSError:
            continue
        found.append(path)
    return found
"""


async def test_no_file_but_the_interpreter_s_can_be_opened(sandbox: Sandbox, victim: Path) -> None:
    """The tests that it should pass among them, and what its user could read."""
    package = str(Path(sandbox_module.__file__).parent.parent)
    code = _READING.replace("VICTIM", repr(str(victim))).replace("PACKAGE", repr(package))
    opened = json.loads(await returned(code, sandbox))["value"]
    # Bubblewrap's root has nothing but folders on the way to the interpreter.
    argv = sandbox.command.argv
    python = argv[argv.index("-I") - 1]
    assert set(opened) <= ({"/", python} if sandbox.command.bubblewrap else set())


async def test_whole_library_can_be_used(sandbox: Sandbox) -> None:
    code = """
import importlib
def solve(x):
    for name in ("heapq", "decimal", "dataclasses", "hashlib", "asyncio", "ctypes", "lzma", "ssl",
            "unittest", "email", "xml.etree.ElementTree", "zoneinfo", "encodings.idna", "csv"):
        importlib.import_module(name)
    return "all"
"""
    assert await returned(code, sandbox) == b'{"value": "all"}\n'


async def test_without_landlock_nothing_is_run_with_limits_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without = sandbox_module._child_program().replace("444, 445, 446", "4444, 4444, 4444")
    monkeypatch.setattr(sandbox_module, "_child_program", lambda: without)
    monkeypatch.setattr("shutil.which", lambda _: None)
    isolation = await sandbox_module.probe(limited_allowed=True)
    assert (isolation.level, isolation.sandbox) == ("not run", None)
    assert "the kernel's Landlock" in isolation.why
    assert "bubblewrap" in isolation.remedy


async def test_no_way_of_32_bits_leads_around_the_filter(isolated: Sandbox) -> None:
    """x32's calls have other numbers for the same: the kernel kills at once."""
    if os.uname().machine != "x86_64":
        pytest.skip("x32 is a thing of x86-64")
    code = "import ctypes\ndef solve(x):\n    ctypes.CDLL(None).syscall(0x40000000 + 57)"
    ending = await isolated.run(code, "solve", [[1]])
    assert ending.output == b""
    assert ending.status == 128 + signal.SIGSYS


async def test_no_network(isolated: Sandbox) -> None:
    """Without the filter too: the namespace has no way out."""
    unfiltered = dataclasses.replace(isolated.command, filter_program=ALLOW_ALL)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        code = f"""
        import socket
        def solve(x):
            tried = []
            for address in (("127.0.0.1", {server.getsockname()[1]}), ("192.0.2.1", 80)):
                try:
                    socket.create_connection(address, 1)
                except OSError:
                    continue
                tried.append(address)
            return tried
        """
        assert await returned(code, dataclasses.replace(isolated, command=unfiltered)) == (
            b'{"value": []}\n'
        )
        with pytest.raises(BlockingIOError):
            server.accept()


async def test_daemons_end_without_the_filter_too(
    isolated: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With both walls against processes taken away: bubblewrap's namespace ends them."""
    monkeypatch.setattr(sandbox_module, "LIMITS", {**LIMITS, "NPROC": 50})
    unfiltered = dataclasses.replace(isolated.command, filter_program=ALLOW_ALL)
    code = """
    import os, signal, time
    def solve(x):
        for _ in range(5):
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    signal.signal(signal.SIGTERM, signal.SIG_IGN)
                    os.closerange(0, 100)
                    time.sleep(1000)
                os._exit(0)
        try:
            os.kill(-1, signal.SIGKILL)
        except OSError:
            pass
        return x
    """
    await returned(code, dataclasses.replace(isolated, command=unfiltered))
    assert left_behind(isolated) == []
