from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from ddtui.collect.base import Context
from ddtui.collect.listener import ListenerCollector, Sockets, owner_of, parse_sockets
from ddtui.collect.observed import Observed
from ddtui.collect.programs import LISTENER
from ddtui.core.samples import (
    JournalLine,
    JournalSample,
    ListenerOwner,
    ListenerSample,
    SourceSample,
    SourceStatus,
    UnitSample,
    UnitStatus,
)
from ddtui.engines.sglang import SGLANG
from ddtui.hosts.base import Completed
from ddtui.hosts.local import LocalHost
from tests.unit.collect.fakes import FakeHost, Recorder, collecting


def test_lines() -> None:
    text = (
        "@socket 1501 77\n@process 9 1501 readable\n@process 10 1501 unreadable\n@holds 9 77\n"
        "@other 9 77 python3 x\n@socket x\n@what\n\n@end\n"
    )
    assert parse_sockets(text) == Sockets(
        {77: 1501}, {77: 9}, frozenset({1501}), 1, 1, {77: (9, "python3 x")}
    )


@pytest.mark.parametrize(("told", "user"), [("1501", 1501), ("[not set]", 0), ("", None)])
def test_the_user_of_a_hidden_unit(told: str, user: int | None) -> None:
    assert parse_sockets(f"@unit {told}\n@end").configured == user


def test_names_are_redacted_and_numbers_bounded() -> None:
    long = "9" * 5000
    sockets = parse_sockets(
        f"@other 7 70 x --api-key hush\n@other {long} 71 y\n@socket 0 {long}\n"
        f"@process 5 {long} readable\n@holds ² 5\n@end"
    )
    assert sockets == Sockets(readable=1, others={70: (7, "x --api-key <redacted>")})


@pytest.mark.parametrize(
    ("sockets", "owner", "pid"),
    [
        (Sockets(), ListenerOwner.NOBODY, None),
        (Sockets({7: 0}, {7: 91}, frozenset({0}), 1), ListenerOwner.UNIT, 91),
        (Sockets({7: 0}, {}, frozenset({0}), 2), ListenerOwner.FOREIGN, None),
        (Sockets({7: 5}, {}, frozenset({5}), 0, 2), ListenerOwner.SAME_USER, None),
        (Sockets({7: 6}, {}, frozenset({5}), 0, 2), ListenerOwner.FOREIGN, None),
        (Sockets({7: 6}, {}, frozenset(), 0, 2), ListenerOwner.UNKNOWN, None),
        # hidden processes: the unit's own User= tells
        (Sockets({7: 6}, unreadable=2, configured=6), ListenerOwner.SAME_USER, None),
        (Sockets({7: 6}, unreadable=2, configured=5), ListenerOwner.FOREIGN, None),
        (Sockets({7: 6}, unreadable=2, configured=0), ListenerOwner.UNKNOWN, None),
        (Sockets({7: 6}), ListenerOwner.UNKNOWN, None),
        (Sockets({7: 6}, others={7: (3, "nginx")}), ListenerOwner.FOREIGN, 3),
        # IPv4 and IPv6: one of the unit's is enough
        (Sockets({7: 6, 8: 6}, {8: 91}, frozenset({6}), 1), ListenerOwner.UNIT, 91),
    ],
)
def test_owners(sockets: Sockets, owner: ListenerOwner, pid: int | None) -> None:
    found = owner_of(sockets)
    assert found[:2] == (owner, pid)
    assert found[2]


def test_a_containers_sockets_are_not_seen() -> None:
    sockets = Sockets({7: 0}, {}, frozenset({0}), 1)
    assert owner_of(sockets, in_container=True)[0] is ListenerOwner.UNKNOWN


async def test_a_foreign_holder_is_named_and_that_is_asked_once(
    host: FakeHost, recorder: Recorder, context: Context
) -> None:
    def answer(port: str, group: str, name: str, *_: str) -> Completed:
        assert (port, group) == ("30000", "/g")
        other = b"@other 3 7 nginx\n" if name else b""
        return Completed(0, b"@socket 0 7\n@process 9 5 readable\n" + other + b"@end\n", b"")

    host.answers[LISTENER.label] = answer
    observed = Observed(SGLANG, port=30000)
    unit = UnitStatus("a", control_group="/g", invocation="1")
    observed.apply(UnitSample(0.0, "x", unit))
    async with collecting(ListenerCollector(observed, context), host, recorder):
        await recorder.until(lambda: len(recorder.of(ListenerSample)) == 1)
        observed.apply(UnitSample(0.0, "x", UnitStatus("a", control_group="/g", invocation="2")))
        await recorder.until(lambda: len(recorder.of(ListenerSample)) == 2)
    samples = recorder.of(ListenerSample)
    assert [(sample.owner, sample.pid) for sample in samples] == [(ListenerOwner.FOREIGN, 3)] * 2
    assert samples[1].detail == "process 3 (nginx) has it"
    assert [args[2] for args in host.arguments(LISTENER.label)] == ["", "name", ""]


async def test_a_port_that_nobody_named_is_not_looked_at(
    host: FakeHost, recorder: Recorder, context: Context
) -> None:
    host.answers[LISTENER.label] = lambda *_: Completed(0, b"@end\n", b"")
    observed = Observed(SGLANG)
    observed.apply(UnitSample(0.0, "x", UnitStatus("a", load_state="not-found")))
    async with collecting(ListenerCollector(observed, context), host, recorder):
        await recorder.until(lambda: len(recorder.of(SourceSample)) == 2)
        said = recorder.of(SourceSample)[-1]
        assert (said.status, said.detail) == (SourceStatus.WAITING, "port not known yet")
        assert host.calls == []
        unit = UnitStatus("a", command_line=("sglang", "serve", "--port", "8000"))
        observed.apply(UnitSample(0.0, "x", unit))
        await recorder.until(lambda: len(recorder.of(ListenerSample)) == 1)
    assert host.arguments(LISTENER.label)[0][0] == "8000"


async def test_the_engines_word_is_followed_by_a_look(
    host: FakeHost, recorder: Recorder, context: Context
) -> None:
    host.answers[LISTENER.label] = lambda *_: Completed(0, b"@end\n", b"")
    observed = Observed(SGLANG, port=30000)
    observed.apply(UnitSample(0.0, "x", UnitStatus("a", invocation="1")))
    line = JournalLine(1.0, "INFO:     Uvicorn running on http://127.0.0.1:30000", "1")
    async with collecting(ListenerCollector(observed, context), host, recorder):
        await recorder.until(lambda: len(recorder.of(ListenerSample)) == 1)
        async with asyncio.timeout(1):  # the next look would be due in 2 s
            observed.apply(JournalSample(1.0, "journal", (line,), "c"))
            await recorder.until(lambda: len(recorder.of(ListenerSample)) == 2)


async def test_the_real_program_finds_a_real_socket() -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    host = LocalHost()
    await host.start()
    try:
        answer = await host.run(LISTENER, str(port), "", "name")
        # PAM moves a main process out of its unit's group, with its children.
        moved = await host.run(LISTENER, str(port), "", "", str(os.getpid()))
        child_of = await host.run(LISTENER, str(port), "", "", str(os.getppid()))
    finally:
        server.close()
        await server.wait_closed()
        await host.close()
    for said in (moved, child_of):
        found = parse_sockets(said.stdout.decode())
        assert owner_of(found)[:2] == (ListenerOwner.UNIT, os.getpid())
    sockets = parse_sockets(answer.stdout.decode())
    assert answer.status == 0
    assert list(sockets.listening.values()) == [os.getuid()]
    (pid, name) = next(iter(sockets.others.values()))
    assert pid == os.getpid()
    assert name == Path("/proc/self/comm").read_text().strip()  # noqa: ASYNC240
