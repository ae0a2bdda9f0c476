"""Code that wants to take the machine with it does not; nor does it outlive ddtui.

Safe to run: whatever multiplies runs only after a bounded attempt has shown that it cannot.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import sys
import textwrap
import time

import psutil
import pytest

from ddtui.bench import sandbox as sandbox_module
from ddtui.bench.sandbox import LIMITS, Sandbox
from ddtui.core.measurement import Verdict
from tests.unit.bench.sandboxed import ALLOW_ALL, ATTEMPT, FORKS, judged, left_behind, returned

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
    if name == "a program in its place" and not sandbox.command.bubblewrap:
        verdict = Verdict.ERROR  # it is refused
    # What is ended by its time alone need not take long here.
    seconds = 1.0 if verdict is Verdict.TIMEOUT else 20.0
    found = await judged(textwrap.dedent(code), sandbox, seconds=seconds)
    assert found.verdict is verdict, found


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
