from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import httpx
import pytest

from ddtui.core.reach import Reach
from ddtui.core.samples import LinkSample, LinkState
from ddtui.hosts.base import HostError, LinkDown, Program, ProgramTimeout
from ddtui.hosts.local import LocalHost
from tests.unit.hosts.waiting import eventually, has_ended


@pytest.fixture
async def host() -> LocalHost:
    host = LocalHost(clock=lambda: 100.0)
    await host.start()
    return host


async def test_it_is_live_from_start_to_close() -> None:
    host = LocalHost(clock=lambda: 100.0)
    seen: list[LinkSample] = []
    host.on_link(seen.append)
    with pytest.raises(LinkDown, match="not started"):
        await host.wait_live()
    await host.start()
    await host.wait_live()
    assert host.kind is Reach.LOCAL
    assert not host.simulated
    await host.close()
    await host.close()
    assert [sample.state for sample in seen] == [LinkState.LIVE, LinkState.CLOSED]
    assert seen[0].at == 100.0
    with pytest.raises(LinkDown, match="closed"):
        await host.wait_live()


async def test_a_short_program_gets_its_arguments_and_its_input(host: LocalHost) -> None:
    program = Program("ddtui:t", 'echo "$0|$1"; cat; echo oops >&2; exit 3')
    done = await host.run(program, "a 'b' \\ $c", stdin=b"in\xff")
    assert (done.status, done.stdout, done.stderr) == (
        3,
        b"ddtui:t|a 'b' \\ $c\nin\xff",
        b"oops\n",
    )


async def test_a_program_has_no_terminal_and_its_own_session(host: LocalHost) -> None:
    script = "{ : < /dev/tty; } 2>/dev/null && echo tty; ps -o sid= -p $$"
    done = await host.run(Program("ddtui:t", script))
    assert b"tty" not in done.stdout
    assert int(done.stdout) != os.getsid(0)


async def test_a_program_that_hangs_is_ended_with_its_children(host: LocalHost) -> None:
    program = Program("ddtui:t", "trap '' TERM; sleep 61 & echo $! > \"$1\"; wait; wait")
    note = Path(os.environ.get("TMPDIR", "/tmp")) / f"ddtui-test-{os.getpid()}"
    try:
        with pytest.raises(ProgramTimeout, match=r"did not end within 0\.3 s"):
            await host.run(program, str(note), timeout=0.3)
        assert await eventually(lambda: has_ended(int(note.read_text())))
    finally:
        note.unlink(missing_ok=True)


async def test_lines_come_while_the_program_runs_and_leaving_ends_it(host: LocalHost) -> None:
    program = Program("ddtui:t", "sleep 62 & echo $! $$; read -r line; echo got; wait")
    async with host.stream(program) as stream:
        async for line in stream.lines():
            child, parent = (int(word) for word in line.split())
            break
    assert await eventually(lambda: has_ended(child))
    assert await eventually(lambda: has_ended(parent))


async def test_a_streams_end_has_its_status_and_its_last_words(host: LocalHost) -> None:
    program = Program("ddtui:t", "echo a; echo b; echo why >&2; printf cut; kill -9 $$")
    async with host.stream(program) as stream:
        assert [line async for line in stream.lines()] == [b"a", b"b"]
        assert stream.status == 137
    assert stream.stderr_tail == "why\n"


async def test_stderr_that_floods_does_not_block_the_lines(host: LocalHost) -> None:
    program = Program("ddtui:t", "head -c 1000000 /dev/zero >&2; echo done")
    async with host.stream(program) as stream:
        assert [line async for line in stream.lines()] == [b"done"]


async def test_at_most_three_short_programs_run_at_once(host: LocalHost, tmp_path: Path) -> None:
    script = 'mkdir "$1/$$"; ls "$1" | wc -l; sleep 0.1; rmdir "$1/$$"'
    results = await asyncio.gather(
        *(host.run(Program("ddtui:t", script), str(tmp_path)) for _ in range(9))
    )
    assert max(int(done.stdout) for done in results) <= 3


async def test_close_ends_what_runs(host: LocalHost) -> None:
    program = Program("ddtui:t", "echo $$; sleep 63")
    async with host.stream(program) as stream:
        lines = stream.lines()
        pid = int(await anext(lines))
        await host.close()
        assert [line async for line in lines] == []
    assert await eventually(lambda: has_ended(pid))


async def test_without_bash_it_says_what_to_install(
    host: LocalHost, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostError, match="bash is not installed") as caught:
        await host.run(Program("ddtui:t", "true"))
    assert "install bash" in caught.value.remedy


async def test_http_ignores_the_environments_proxies(
    host: LocalHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, httpx.AsyncClient(transport=host.transport()) as client:
        assert (await client.get(f"http://127.0.0.1:{port}/")).text == "ok"


async def test_killing_ddtui_leaves_nothing_behind(tmp_path: Path) -> None:
    code = (
        "import asyncio\n"
        "from ddtui.hosts.base import Program\n"
        "from ddtui.hosts.local import LocalHost\n"
        "async def main():\n"
        "    host = LocalHost(); await host.start()\n"
        "    script = 'echo $$; while :; do read -r -t 30 || exit; done'\n"
        "    async with host.stream(Program('ddtui:t', script)) as stream:\n"
        "        async for line in stream.lines(): print(line.decode(), flush=True)\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout
    pid = int(await process.stdout.readline())
    process.kill()
    await process.wait()
    assert await eventually(lambda: has_ended(pid))
