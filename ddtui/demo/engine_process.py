"""The simulated SGLang as a real program, for tests under a real service manager.

    python -m ddtui.demo.engine_process --port N --load-seconds S [any SGLang flag ...]

It prints SGLang's lines to standard error (progress bars with carriage returns), opens the port
after the load, answers 503 on /health while it warms up, drains on SIGTERM, and has one child
process a rank. Own flags:

    --load-seconds S          how long the start takes (20)
    --simulate-failure NAME   fail as in ddtui.demo.failures (`--simulate-failure list` names them)
    --simulate-traffic        serve a background stream of made-up requests
    --simulate-seed N         of all that is random (0)
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace

from ddtui.demo.config import ArgumentsRefused, EngineConfig, parse
from ddtui.demo.engine import SimulatedEngine
from ddtui.demo.failures import FAILURES, Exit
from ddtui.demo.http import serve_connection
from ddtui.demo.routes import Routes
from ddtui.demo.startup import FULL_LOAD_SECONDS

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_REFUSAL_DELAY = 0.5
"""Seconds of imports before arguments are looked at."""


FAILURE_VARIABLE = "DDTUI_SIMULATE_FAILURE"
"""Names a failure where a flag for it would be refused before the start."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run until the engine ends; returns its exit status."""
    own = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    own.add_argument("--load-seconds", type=float, default=20.0)
    own.add_argument("--simulate-failure", default=os.environ.get(FAILURE_VARIABLE))
    own.add_argument("--simulate-traffic", action="store_true")
    own.add_argument("--simulate-seed", type=int, default=0)
    given = list(sys.argv[1:] if argv is None else argv)
    options, flags = own.parse_known_args(given)
    if options.simulate_failure == "list":
        for name, failure in FAILURES.items():
            sys.stdout.write(f"{name:16} {failure.description}\n")
        return 0
    if options.simulate_failure not in (None, *FAILURES):
        own.error(f"no failure '{options.simulate_failure}': there are {', '.join(FAILURES)}")
    if options.load_seconds <= 0:
        own.error("--load-seconds must be above 0")
    if not any(flag.split("=")[0] in ("--model-path", "--model") for flag in flags):
        flags = ["--model-path", "/models/simulated", *flags]
    try:
        # It reports its whole command line, as the real one does.
        config = replace(parse(flags, os.environ), command=tuple(given))
    except ArgumentsRefused as refused:
        signal.sigtimedwait([signal.SIGTERM], _REFUSAL_DELAY)
        sys.stderr.write(refused.text)
        return refused.status
    children = [_spawn(f"sglang::scheduler_TP{rank}") for rank in range(config.tp)]
    children.append(_spawn("sglang::detokenizer"))
    try:
        ended = asyncio.run(_run(config, options))
    finally:
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    if ended.code == "killed":
        if ended.status != signal.SIGKILL:
            signal.signal(ended.status, signal.SIG_DFL)
        os.kill(os.getpid(), ended.status)
    return ended.status


def _spawn(title: str) -> int:
    """A child that does nothing, under the name of one of SGLang's processes; it dies with us."""
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    libc.prctl(_PR_SET_NAME, title.encode()[:15])
    # A service manager's SIGTERM goes to every process: the launcher decides when its ranks end.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while os.getppid() == parent:
        signal.pause()
    os._exit(0)


async def _run(config: EngineConfig, options: argparse.Namespace) -> Exit:
    server: asyncio.Server | None = None
    connections: set[asyncio.Task[None]] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            connections.add(task)
            task.add_done_callback(connections.discard)
        host, port = writer.get_extra_info("peername")[:2]
        await serve_connection(reader, writer, Routes(engine), f"{host}:{port}")

    async def listen() -> None:
        nonlocal server
        server = await asyncio.start_server(answer, config.bind_host, config.port)

    def write(_at: float, _role: str, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()

    engine = SimulatedEngine(
        config,
        write,
        speed=FULL_LOAD_SECONDS / options.load_seconds,
        seed=options.simulate_seed,
        failure=options.simulate_failure,
        traffic=options.simulate_traffic,
        opener=listen,
    )
    engine.main_pid = os.getpid()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, engine.terminate)
    ended = await engine.run()
    if server is not None:
        server.close()
    for task in list(connections):
        task.cancel()
    await asyncio.gather(*connections, return_exceptions=True)
    return ended


if __name__ == "__main__":
    sys.exit(main())
