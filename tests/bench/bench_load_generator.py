"""What a streamed event costs the load generator, and how late it is stamped, beside others.

An engine in C streams an event each 20 ms for each of 1, 64 and 256 streams; each client runs in a
process of its own, directly and through a real sshd. Engine, sshd and client have a core each where
there are three. CPU is of the client's process, with what it does of SSH. Wanted: as cheap as raw
aiohttp directly, at most half of stock httpx through SSH. Then the whole bench beside SGLang's own
(`beside_sglang.py`).
"""

from __future__ import annotations

import getpass
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median

import asyncssh

from tests.bench import beside_sglang

STREAMS = (1, 64, 256)
EVENTS = 100
INTERVAL_US = 20_000
TOKENS = 4
ROUNDS = 3
ROOT = Path(__file__).parents[2]
DIRECT = ("ours", "stock_httpx", "raw_aiohttp")
THROUGH_SSH = ("ours_ssh", "stock_httpx_ssh", "stock_httpx_forward", "raw_aiohttp_forward")


def run() -> dict[str, object]:
    """Figures by number of streams and client; why there are none for a client that is missing."""
    if shutil.which("gcc") is None:
        return {"skipped": "gcc is not installed, which compiles the stub engine"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        binary = folder / "stub_engine"
        source = Path(__file__).with_name("stub_engine.c")
        subprocess.run(["gcc", "-O2", "-o", str(binary), str(source)], check=True)
        path = _aiohttp(folder)
        with _engine(binary) as port, _sshd(folder) as ssh_port:
            settings = {
                "port": port,
                "ssh_port": ssh_port,
                "folder": name,
                "path": path,
                "user": getpass.getuser(),
                "events": EVENTS,
            }
            clients = [*DIRECT, *(THROUGH_SSH if ssh_port else ())]
            if path is None:
                clients = [each for each in clients if not each.startswith("raw_aiohttp")]
            found: dict[str, object] = {
                f"{streams}_streams": _compared(clients, {**settings, "streams": streams})
                for streams in STREAMS
            }
            return {**found, "beside_sglang": beside_sglang.compared(port, EVENTS, TOKENS)}


def _compared(clients: list[str], settings: dict[str, object]) -> dict[str, object]:
    """Medians over the rounds, the clients one after the other in each, and their ratios."""
    costs: dict[str, list[dict[str, float]]] = {client: [] for client in clients}
    for _ in range(ROUNDS):
        for client in clients:
            # What is measured of its cost is without the reading of the server's stamps.
            told = _client(client, {**settings, "stamps": False})
            if client.startswith("ours"):
                told |= {
                    key: value
                    for key, value in _client(client, {**settings, "stamps": True}).items()
                    if key.startswith("late")
                }
            costs[client].append(told)
    found: dict[str, object] = {
        client: {key: round(median(each[key] for each in rounds), 2) for key in rounds[0]}
        for client, rounds in costs.items()
    }

    def ratio(one: str, other: str) -> float | None:
        if one not in costs or other not in costs:
            return None
        parts = [median(each["cpu_us_an_event"] for each in costs[name]) for name in (one, other)]
        return round(parts[0] / parts[1], 2)

    found["ours_to_raw_aiohttp"] = ratio("ours", "raw_aiohttp")
    found["ours_to_stock_httpx"] = ratio("ours", "stock_httpx")
    found["ours_to_stock_httpx_through_ssh"] = ratio("ours_ssh", "stock_httpx_ssh")
    found["ours_through_ssh_to_stock_httpx_forward"] = ratio("ours_ssh", "stock_httpx_forward")
    return found


def _client(name: str, settings: dict[str, object]) -> dict[str, float]:
    argv = [sys.executable, "-m", "tests.bench.load_clients", name]
    told = subprocess.run(
        argv,
        cwd=ROOT,
        input=json.dumps(settings),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if told.returncode:
        raise RuntimeError(f"{name} failed: {told.stderr[-2000:]}")
    figures: dict[str, float] = json.loads(told.stdout)
    return figures


def _aiohttp(folder: Path) -> list[str] | None:
    """Where aiohttp is, for that client alone: ddtui does not need it."""
    if find_spec("aiohttp"):
        return []
    target = folder / "aiohttp"
    argv = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target), "aiohttp"]
    done = subprocess.run(argv, capture_output=True, check=False)
    return None if done.returncode else [str(target)]


def _to_core(pid: int, number: int) -> None:
    """The client takes the last one; servers share the first where there are but two."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(pid, {cores[max(0, min(number, len(cores) - 2))]})


@contextmanager
def _engine(binary: Path) -> Iterator[int]:
    argv = [str(binary), str(EVENTS), str(INTERVAL_US), str(TOKENS)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as process:
        _to_core(process.pid, 0)
        try:
            assert process.stdout
            yield int(process.stdout.readline())
        finally:
            process.kill()


@contextmanager
def _sshd(folder: Path) -> Iterator[int]:
    """A real sshd on loopback, with keys of its own; port 0 where there is none."""
    program = shutil.which("sshd") or "/usr/sbin/sshd"
    if not Path(program).exists():
        yield 0
        return
    for name in ("host", "client"):
        key = asyncssh.generate_private_key("ssh-ed25519")
        key.write_private_key(folder / name)
        key.write_public_key(folder / f"{name}.pub")
        (folder / name).chmod(0o600)
    shutil.copy(folder / "client.pub", folder / "authorized_keys")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    options = {
        "ListenAddress": "127.0.0.1",
        "Port": port,
        "HostKey": folder / "host",
        "AuthorizedKeysFile": folder / "authorized_keys",
        "StrictModes": "no",
        "UsePAM": "no",
        "PermitRootLogin": "prohibit-password",
        "PidFile": "none",
    }
    words = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    argv = [program, "-D", "-e", "-f", "/dev/null", *words]
    with subprocess.Popen(argv, stderr=subprocess.DEVNULL) as process:
        _to_core(process.pid, 1)
        try:
            _wait_open(port)
            yield port
        finally:
            process.terminate()


def _wait_open(port: int) -> None:
    for _ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError("sshd does not listen")
