"""Code that wants out, wants to pass, or wants to take the machine with it: it does neither.

Safe to run: whatever multiplies runs only after a bounded attempt has shown that it cannot.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import hashlib
import json
import os
import signal
import socket
import sys
import textwrap
import time
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from ddtui.bench import sandbox as sandbox_module
from ddtui.bench.sandbox import LIMITS, Sandbox
from ddtui.core.measurement import Verdict
from tests.unit.bench.sandboxed import SECRET, found, judged, left_behind

FORKS = 300
"""An attempt that a machine survives where nothing holds."""
ATTEMPT = f"""
import os, time
def solve(_):
    started = 0
    for _ in range({FORKS}):
        try:
            if os.fork() == 0:
                time.sleep(1)
                os._exit(0)
            started += 1
        except OSError:
            break
    return started
"""
ALLOW_ALL = bytes.fromhex("06000000 0000ff7f")
"""A filter that lets every call through."""


@pytest.fixture(params=["isolated", "limited"])
async def sandbox(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Sandbox]:
    """Each way to run code, after it has shown to start no process at all."""
    isolation = await found(request.param, monkeypatch)
    assert isolation.sandbox is not None
    assert await returned(ATTEMPT, isolation.sandbox) == b'{"value": 0}\n'
    yield isolation.sandbox
    assert left_behind(isolation.sandbox) == []


@pytest.fixture
async def isolated(monkeypatch: pytest.MonkeyPatch) -> Sandbox:
    """Bubblewrap's sandbox."""
    sandbox = (await found("isolated", monkeypatch)).sandbox
    assert sandbox is not None
    return sandbox


async def returned(code: str, sandbox: Sandbox) -> bytes:
    ending = await sandbox.run(textwrap.dedent(code), "solve", [[7]], seconds=5.0)
    return ending.output


# ---- each wall by itself ------------------------------------------------------------------------


async def test_the_process_limit_alone_holds(isolated: Sandbox) -> None:
    unfiltered = dataclasses.replace(isolated.command, filter_program=ALLOW_ALL)
    assert await returned(ATTEMPT, dataclasses.replace(isolated, command=unfiltered)) == (
        b'{"value": 0}\n'
    )


async def test_the_filter_alone_holds_processes(
    isolated: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox_module, "LIMITS", {**LIMITS, "NPROC": 2 * FORKS})
    assert await returned(ATTEMPT, isolated) == b'{"value": 0}\n'


async def test_without_both_the_attempt_succeeds(
    isolated: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What shows that the two tests above can fail; and all 300 are gone afterwards."""
    monkeypatch.setattr(sandbox_module, "LIMITS", {**LIMITS, "NPROC": 2 * FORKS})
    unfiltered = dataclasses.replace(isolated.command, filter_program=ALLOW_ALL)
    ending = await returned(ATTEMPT, dataclasses.replace(isolated, command=unfiltered))
    assert ending == b'{"value": %d}\n' % FORKS
    assert left_behind(isolated) == []


# ---- taking the machine -------------------------------------------------------------------------

_HOGS = {
    "fork bomb": (
        """
        import os
        def solve(x):
            while True:
                try:
                    os.fork()
                except OSError:
                    pass
        """,
        Verdict.TIMEOUT,
    ),
    "thread bomb": (
        """
        import threading
        def solve(x):
            while True:
                threading.Thread(target=solve, args=(x,)).start()
        """,
        Verdict.ERROR,
    ),
    "memory": (
        """
        def solve(x):
            held = []
            while True:
                held.append(bytearray(16 << 20))
        """,
        Verdict.MEMORY,
    ),
    "memory of many processes": (
        """
        import os
        def solve(x):
            held = []
            while True:
                try:
                    os.fork()
                except OSError:
                    pass
                held.append(bytearray(16 << 20))
        """,
        Verdict.MEMORY,
    ),
    "memory that is kept anew whenever it is refused": (
        """
        def solve(x):
            held = []
            while True:
                try:
                    held.append(bytearray(1 << 20))
                except MemoryError:
                    pass
        """,
        Verdict.TIMEOUT,
    ),
    "endless loop": ("def solve(x):\n    while True: pass", Verdict.TIMEOUT),
    "endless loop at the top": ("def solve(x): pass\nwhile True: pass", Verdict.TIMEOUT),
    "sleep that no signal ends": (
        """
        import os, signal, time
        for each in range(1, 65):
            try:
                signal.signal(each, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        def solve(x):
            os.closerange(0, 100)
            while True:
                time.sleep(1)
        """,
        Verdict.TIMEOUT,
    ),
    "flood of output": (
        """
        import os, sys
        def solve(x):
            while True:
                print("x" * 100000)
                sys.stderr.write("y" * 100000)
                os.write(1, b"z" * 100000)
        """,
        Verdict.TIMEOUT,
    ),
    "flood of results": (
        """
        import os
        def solve(x):
            while True:
                for each in range(3, 32):
                    try:
                        os.write(each, b"z" * 100000)
                    except OSError:
                        pass
        """,
        Verdict.ERROR,
    ),
    "a result too large": ("def solve(x):\n    return 'x' * (100 << 20)", Verdict.ERROR),
    "a program in its place": (
        """
        import os, sys
        def solve(x):
            os.execv(sys.executable, [sys.executable, "-c", "while True: pass"])
        """,
        Verdict.TIMEOUT,
    ),
    "stopping itself": (
        """
        import os, signal
        def solve(x):
            os.kill(os.getpid(), signal.SIGSTOP)
        """,
        Verdict.ERROR,
    ),
}


@pytest.mark.parametrize("name", _HOGS)
async def test_hogs_are_ended(sandbox: Sandbox, name: str) -> None:
    code, verdict = _HOGS[name]
    # What is ended by its time alone need not take long here.
    seconds = 1.0 if verdict is Verdict.TIMEOUT else 20.0
    found = await judged(textwrap.dedent(code), sandbox, seconds=seconds)
    assert found.verdict is verdict, found


# ---- passing without being right ----------------------------------------------------------------

_CHEATS = {
    "exit": "import sys\ndef solve(x):\n    sys.exit(0)",
    "exit at the top": "def solve(x): pass\nraise SystemExit(0)",
    "_exit": "import os\ndef solve(x):\n    os._exit(0)",
    "_exit at the top": "def solve(x): pass\nimport os\nos._exit(0)",
    "printed pass": """
        import os, sys
        def solve(x):
            for each in ('pass', '{"value": 0}', '{"verdict": "pass"}', 'ready'):
                print(each, flush=True)
            for each in range(1, 32):
                try:
                    os.write(each, b'{"value": "pass"}\\n')
                except OSError:
                    pass
            os._exit(0)
        """,
    "more results than tests": """
        import os
        def solve(x):
            for each in range(3, 32):
                try:
                    os.write(each, b'{"value": 1}\\n' * 50)
                except OSError:
                    pass
            return 1
        """,
    "other JSON": """
        import json
        json.JSONEncoder.encode = lambda *_: '{"value": true, "verdict": "pass"}'
        json.dumps = json.JSONEncoder.encode
        def solve(x):
            return x
        """,
    "other builtins": """
        import builtins
        builtins.type = lambda *_: bool
        builtins.isinstance = builtins.issubclass = lambda *_: True
        builtins.len = lambda *_: 1
        builtins.exec = builtins.compile = builtins.str = None
        def solve(x):
            return x
        """,
    "lying object": """
        class Liar(int):
            __eq__ = __le__ = __ge__ = lambda *_: True
            __ne__ = lambda *_: False
            __hash__ = int.__hash__
            __repr__ = __str__ = lambda self: "918273645"
        def solve(x):
            return Liar(0)
        """,
    "lying class": """
        class Meta(type):
            __eq__ = lambda *_: True
            __hash__ = type.__hash__
            __name__ = "int"
        class Liar(metaclass=Meta):
            __eq__ = lambda *_: True
            __hash__ = None
            @property
            def __class__(self):
                return int
        def solve(x):
            return Liar()
        """,
    "closed descriptors": "import os\ndef solve(x):\n    os.closerange(0, 100)\n    return x",
    "true": "def solve(x):\n    return True",
    "nan": "def solve(x):\n    return float('nan')",
    "as text": "def solve(x):\n    return str(918273645)",
    "as float": "def solve(x):\n    return float(918273645)",
    "in a list": "def solve(x):\n    return [918273645]",
    "endless list": "def solve(x):\n    a = []\n    a.append(a)\n    return a",
    "deep list": "def solve(x):\n    a = []\n    for _ in range(100000): a = [a]\n    return a",
    "long number": "def solve(x):\n    return 10 ** 100000",
    "generator": "def solve(x):\n    yield 918273645",
    "coroutine": "async def solve(x):\n    return 918273645",
    "no function": "solve = 918273645",
    "a source too deep": "def solve(x):\n    return " + "-" * 200000 + "1",
    "nothing": "def solve(x):\n    pass",
    "raised": "def solve(x):\n    raise ValueError(918273645)",
    "raised from nowhere": """
        class Odd(BaseException):
            def __str__(self):
                raise Odd
        def solve(x):
            raise Odd
        """,
    "search of all that can be reached": f"""
        import gc, hashlib, sys
        def wanted(value):
            digest = hashlib.sha256(repr(value).encode()).hexdigest()
            return digest == "{hashlib.sha256(repr(SECRET).encode()).hexdigest()}"
        def solve(x):
            frame, seen = sys._getframe(), []
            while frame:
                seen += [*frame.f_locals.values(), *frame.f_globals.values()]
                frame = frame.f_back
            seen += gc.get_objects()
            for each in list(seen):
                if isinstance(each, (str, bytes)):
                    seen += [int(word) for word in each.split() if word.isdigit()]
                seen += gc.get_referents(each)
            for each in seen:
                if type(each) is int and wanted(each):
                    return each
        """,
}


@pytest.mark.parametrize("name", _CHEATS)
async def test_cheats_do_not_pass(sandbox: Sandbox, name: str) -> None:
    found = await judged(textwrap.dedent(_CHEATS[name]), sandbox)
    assert found.verdict in (Verdict.WRONG, Verdict.ERROR, Verdict.MEMORY), found
    assert found.detail


async def test_right_code_passes(sandbox: Sandbox) -> None:
    noisy = f"print('hello')\ndef solve(x):\n    print(x)\n    return {SECRET}"
    assert (await judged(noisy, sandbox)).verdict is Verdict.PASS


# ---- getting out --------------------------------------------------------------------------------

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


# ---- when it is ddtui that ends -----------------------------------------------------------------


async def test_a_cancelled_bench_leaves_nothing(sandbox: Sandbox) -> None:
    for after in (0.0, 0.001, 0.005, 0.02, 0.1, 0.4):
        running = asyncio.create_task(judged("while True: pass\ndef solve(x): pass", sandbox))
        await asyncio.sleep(after)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert left_behind(sandbox) == [], after


async def test_code_dies_with_ddtui(sandbox: Sandbox) -> None:
    script = """
import asyncio, shutil, sys
from ddtui.bench.sandbox import probe
if sys.argv[1] == "limited":
    shutil.which = lambda _: None
async def main():
    sandbox = (await probe(limited_allowed=True)).sandbox
    print("running", flush=True)
    await sandbox.run("while True: pass", "solve", [], seconds=60)
asyncio.run(main())
"""
    level = "isolated" if sandbox.command.bubblewrap else "limited"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, level, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    await process.stdout.readline()
    inside = await asyncio.to_thread(_computing, process.pid)
    process.kill()
    await process.wait()
    _, alive = await asyncio.to_thread(psutil.wait_procs, inside, 10)
    assert alive == []


def _computing(pid: int) -> list[psutil.Process]:
    """All below a process, as soon as one of them computes."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        below = psutil.Process(pid).children(recursive=True)
        with contextlib.suppress(psutil.NoSuchProcess):
            if any(each.cpu_times().user > 0.1 for each in below):
                return below
        time.sleep(0.02)
    raise TimeoutError("no code has begun to run")


async def test_time_is_bounded(isolated: Sandbox) -> None:
    """The wall limit and little more, for code that does all to stay."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    await judged("while True: pass\ndef solve(x): pass", isolated, seconds=1.0)
    assert loop.time() - began < 30
