"""READY is never said where it is not so, whatever answers on the engine's port."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from ddtui.core.samples import ListenerOwner
from ddtui.core.snapshot import ReadinessState, Snapshot, Verdict
from tests.host.gpuhost import DFLASH, ENGINE, GpuHost, engine_command, wait_until
from tests.host.watching import Watcher, Watching

OTHER = "other.service"
# Answers everything with one status; says of itself whatever SGLang would say.
PRETENDER = """
import http.server, sys
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        health = self.path.startswith("/health")
        self.send_response(int(sys.argv[2]) if health else 200)
        self.end_headers()
        self.wfile.write(b"{}")
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Answer)
for word in sys.argv[3:]:
    print(word, file=sys.stderr, flush=True)
server.serve_forever()
"""
UVICORN = "INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)"
READY = "[2026-11-29 12:00:00] The server is fired up and ready to roll!"


@pytest.fixture
def host(gpuhost: GpuHost) -> Iterator[GpuHost]:
    gpuhost.write("/opt/pretender/sglang/__init__.py", "")
    gpuhost.write("/opt/pretender/sglang/launch_server.py", PRETENDER)
    yield gpuhost
    gpuhost.remove_unit(ENGINE)
    gpuhost.remove_unit(OTHER)


def pretender(status: int, *says: str) -> list[str]:
    return ["/usr/bin/python3", "/opt/pretender/sglang/launch_server.py", "30000", str(status),
            *says]  # fmt: skip


def port_open(host: GpuHost) -> bool:
    return ":7530 " in host.exec("cat", "/proc/net/tcp").stdout


async def never_ready(watching: Watching, seconds: float = 4.0) -> Snapshot:
    """Look on for a while; READY must not have been said for a moment."""
    await asyncio.sleep(seconds)
    assert ReadinessState.READY not in [state for _, state in watching.readiness]
    return watching.now()


def owner(known: Snapshot) -> ListenerOwner | None:
    return known.listener.owner if known.listener else None


def evidence(known: Snapshot, name: str) -> Verdict:
    return next(each.verdict for each in known.readiness.evidence if each.name == name)


@pytest.mark.parametrize("user", ["ops", "root"])
async def test_another_program_has_the_port_and_says_200(
    host: GpuHost, watcher: Watcher, user: str
) -> None:
    host.install_unit(OTHER, pretender(200), user="nobody")
    wait_until(lambda: port_open(host))
    host.install_unit(ENGINE, engine_command(*DFLASH), user=user)
    watching = await watcher.watch(ENGINE)
    await watching.until(lambda known: owner(known) is ListenerOwner.FOREIGN, what="its owner")
    known = await never_ready(watching)
    assert evidence(known, "port owner") is Verdict.AGAINST
    assert any("Errno 98" in text for text in watching.texts())


async def test_an_earlier_engine_outside_the_unit_still_answers(
    host: GpuHost, watcher: Watcher
) -> None:
    command = engine_command(*DFLASH)
    host.install_unit(OTHER, command, user="ops")
    host.until_ready(OTHER)
    # The same command line: only who holds the port tells them apart.
    host.install_unit(ENGINE, command, user="ops")
    watching = await watcher.watch(ENGINE)
    await watching.until(lambda known: owner(known) is ListenerOwner.FOREIGN, what="its owner")
    known = await never_ready(watching)
    assert evidence(known, "port owner") is Verdict.AGAINST
    # It becomes ready by itself once it owns the port.
    host.systemctl("stop", OTHER)
    host.systemctl("restart", ENGINE)
    await watching.until_state(ReadinessState.READY)


async def test_the_unit_answers_and_is_still_warming_up(host: GpuHost, watcher: Watcher) -> None:
    host.install_unit(ENGINE, pretender(503, UVICORN), user="ops")
    watching = await watcher.watch(ENGINE)
    await watching.until(lambda known: owner(known) is ListenerOwner.UNIT, what="its owner")
    await watching.until(lambda known: "503" in str(known.readiness.evidence), what="503")
    await never_ready(watching)


async def test_the_log_says_ready_and_health_does_not(host: GpuHost, watcher: Watcher) -> None:
    host.install_unit(ENGINE, pretender(503, UVICORN, READY), user="ops")
    watching = await watcher.watch(ENGINE)
    await watching.until(lambda known: "503" in str(known.readiness.evidence), what="503")
    await watching.until(lambda _: READY in watching.texts(), what="the line")
    known = await never_ready(watching)
    assert evidence(known, "log") is Verdict.PROVED
    assert evidence(known, "health") is Verdict.MISSING


async def test_ready_is_taken_back_when_the_process_stops(host: GpuHost, watcher: Watcher) -> None:
    host.install_unit(ENGINE, engine_command(*DFLASH), user="ops")
    watching = await watcher.watch(ENGINE)
    await watching.until_state(ReadinessState.READY)
    host.systemctl("kill", "-s", "KILL", ENGINE)
    known = await watching.until_state(ReadinessState.FAILED)
    assert "killed" in known.readiness.summary
