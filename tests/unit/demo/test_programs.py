"""What the simulated host answers over SSH to the programs that run on real ones."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncssh
import pytest

from ddtui.collect import programs
from ddtui.demo.machine import MODEL_PATH, UNIT_NAME
from ddtui.hosts.base import Program
from ddtui.hosts.command import command_line
from tests.unit.demo.conftest import Connect

GROUP = f"/system.slice/{UNIT_NAME}"


async def run(
    connection: asyncssh.SSHClientConnection, program: Program, *args: str
) -> tuple[int | None, str, str]:
    done = await connection.run(command_line(program, args), input="")
    return done.exit_status, str(done.stdout), str(done.stderr)


@asynccontextmanager
async def lines_of(
    connection: asyncssh.SSHClientConnection, program: Program, *args: str
) -> AsyncIterator[asyncssh.SSHReader[bytes]]:
    process = await connection.create_process(command_line(program, args), encoding=None)
    yield process.stdout
    process.stdin.write_eof()
    async with asyncio.timeout(5):
        await process.wait_closed()
    assert process.exit_status == 143


def message(entry: dict[str, Any]) -> str:
    text = entry["MESSAGE"]
    return bytes(text).decode() if isinstance(text, list) else text


async def test_gpu_rows_are_csv_and_come_at_the_asked_interval(connect: Connect) -> None:
    _, connection = await connect()
    fields = ",".join(programs.GPU_FIELDS)
    began = time.monotonic()
    async with lines_of(connection, programs.GPU, "", fields, "150") as out:
        rows = [(await out.readline()).decode().rstrip("\n").split(", ") for _ in range(24)]
    assert time.monotonic() - began >= 0.3  # three ticks are two intervals apart
    assert {len(row) for row in rows} == {len(programs.GPU_FIELDS)}
    assert [row[0] for row in rows] == [str(index) for index in range(8)] * 3
    assert {row[programs.GPU_FIELDS.index("memory.total")] for row in rows} == {"97887"}
    assert {row[programs.GPU_FIELDS.index("power.limit")] for row in rows} == {"600.00"}
    used = [int(row[programs.GPU_FIELDS.index("memory.used")]) for row in rows]
    assert all(80_000 < value < 97_887 for value in used)
    int(rows[0][programs.GPU_FIELDS.index("clocks_event_reasons.active")], 16)


async def test_gpu_selection_and_unknown_field(connect: Connect) -> None:
    machine, connection = await connect()
    bus = machine.world.gpus[2].bus_id
    async with lines_of(connection, programs.GPU, "", "index,pci.bus_id", "100", bus) as out:
        assert [await out.readline() for _ in range(2)] == [f"2, {bus}\n".encode()] * 2
    status, out_text, _ = await run(connection, programs.GPU, "", "index,nonsense", "100")
    assert status == 2
    assert out_text.startswith('Field "nonsense" is not a valid field to query.')


async def test_gpu_processes_are_the_units_ranks(connect: Connect) -> None:
    machine, connection = await connect()
    status, text, _ = await run(connection, programs.GPU_PROCESSES, "")
    rows = [line.split(", ") for line in text.splitlines()]
    assert status == 0
    assert [int(row[0]) for row in rows] == [
        machine.unit.processes()[f"TP{rank}"] for rank in range(8)
    ]
    assert rows[3][3] == "sglang::scheduler_TP3"


async def test_system_frames_hold_proc_files_and_the_ranks_io(connect: Connect) -> None:
    _, connection = await connect()
    async with lines_of(connection, programs.SYSTEM, "0.1", GROUP) as out:
        frame: list[str] = []
        while not frame or frame[-1] != "@end":
            frame.append((await out.readline()).decode().rstrip("\n"))
    heads = [line.split()[0:2] for line in frame if line.startswith("@")]
    assert [head[-1] for head in heads if head[0] == "@file"] == [
        "stat",
        "meminfo",
        "loadavg",
        "net/dev",
        "diskstats",
        "uptime",
    ]
    assert ["@cores", "64"] in heads
    io = [line.split() for line in frame[frame.index("@io") + 1 : -1]]
    read = sum(int(size) for _, size in io)
    assert len(io) == 10
    assert read > 548e9
    disk = next(line.split() for line in frame if " nvme1n1 " in line)
    assert int(disk[5]) * 512 > read


async def test_unit_frames_follow_a_restart(connect: Connect) -> None:
    machine, connection = await connect("idle")
    properties = ",".join(programs.UNIT_PROPERTIES)
    async with lines_of(connection, programs.UNIT, "system", UNIT_NAME, properties) as out:
        first = await read_frame(out)
        assert first["ActiveState"] == "active"
        assert first["@cmdline"].startswith("/opt/llm/venv/bin/python -m sglang.launch_server ")
        job = asyncio.create_task(machine.unit.restart())
        seen = {first["InvocationID"]}
        async with asyncio.timeout(20):
            while len(seen) < 2:
                seen.add((await read_frame(out))["InvocationID"])
        await job
    missing = Program(programs.UNIT.label, programs.UNIT.script)
    async with lines_of(connection, missing, "system", "no.service", properties) as out:
        assert (await read_frame(out))["LoadState"] == "not-found"


async def read_frame(out: asyncssh.SSHReader[bytes]) -> dict[str, str]:
    frame: dict[str, str] = {}
    command: list[str] | None = None
    while True:
        line = (await out.readline()).decode().rstrip("\n")
        assert line or frame, "the program ended"
        if line == "@end":
            return frame | {"@cmdline": " ".join(command or [])}
        if line == "@cmdline":
            command = []
        elif command is not None:
            command.append(line)
        elif not line.startswith("@"):
            name, _, value = line.partition("=")
            frame[name] = value


async def test_listener_belongs_to_the_units_main_process(connect: Connect) -> None:
    machine, connection = await connect()
    _, text, _ = await run(connection, programs.LISTENER, "30000", GROUP, "")
    lines = text.splitlines()
    inode = next(line.split()[2] for line in lines if line.startswith("@socket"))
    assert f"@holds {machine.unit.main_pid} {inode}" in lines
    _, text, _ = await run(connection, programs.LISTENER, "8000", GROUP, "")
    assert text == "@end\n"


async def test_checkpoint_sizes_and_missing_folder(connect: Connect) -> None:
    _, connection = await connect()
    status, text, _ = await run(connection, programs.CHECKPOINT, MODEL_PATH, "", "")
    sizes = [int(line.split()[1]) for line in text.splitlines() if line.startswith("@file")]
    assert (status, len(sizes), sum(sizes)) == (0, 64, 548_000_000_000)
    config = text[text.index("@config\n") + 8 : text.index("@end")]
    assert json.loads(config)["model_type"] == "kimi_k25"
    status, _, complaint = await run(connection, programs.CHECKPOINT, "/nowhere", "", "")
    assert (status, complaint) == (3, "no such folder: /nowhere\n")


async def test_journal_decodes_and_a_cursor_loses_and_repeats_nothing(connect: Connect) -> None:
    machine, connection = await connect("idle")
    everything = [entry.number for entry in machine.journal.entries()]
    args = ("system", UNIT_NAME)
    async with lines_of(connection, programs.JOURNAL, *args, "", "1000") as out:
        first = [json.loads(await out.readline()) for _ in range(40)]
    cursor = first[-1]["__CURSOR"]
    async with lines_of(connection, programs.JOURNAL, *args, cursor, "") as out:
        rest = [json.loads(await out.readline()) for _ in range(len(everything) - 40)]
        machine.unit.engine.warn("one more line")  # type: ignore[union-attr]
        rest.append(json.loads(await out.readline()))
    messages = [message(entry) for entry in first + rest]
    assert messages == [entry.message() for entry in machine.journal.entries()]
    assert messages[-1].endswith("] one more line")
    assert [int(entry["__REALTIME_TIMESTAMP"]) for entry in first + rest] == sorted(
        int(entry["__REALTIME_TIMESTAMP"]) for entry in first + rest
    )
    glued = [entry for entry in first + rest if isinstance(entry["MESSAGE"], list)]
    assert glued, "a bar's carriage returns make its entry an array of bytes"
    assert all("\r" in message(entry) for entry in glued)
    assert max(len(text) for text in messages) > 4096  # server_args=


async def test_journal_refuses_what_is_no_cursor(connect: Connect) -> None:
    _, connection = await connect()
    status, _, complaint = await run(connection, programs.JOURNAL, "system", UNIT_NAME, "x", "")
    assert (status, complaint) == (1, "Failed to seek to cursor: Invalid argument\n")


async def test_journal_of_one_invocation_holds_the_managers_lines(connect: Connect) -> None:
    machine, connection = await connect("idle")
    invocation = machine.unit.invocation
    assert invocation is not None
    args = ("system", UNIT_NAME, invocation.identifier)
    _, text, _ = await run(connection, programs.JOURNAL_INVOCATION, *args, "3", "first")
    entries = [json.loads(line) for line in text.splitlines()]
    assert len(entries) == 3
    assert message(entries[0]).startswith(f"Started {UNIT_NAME}")
    assert entries[0]["UNIT"] == UNIT_NAME
    assert entries[1]["_SYSTEMD_INVOCATION_ID"] == invocation.identifier
    _, text, _ = await run(connection, programs.JOURNAL_INVOCATION, *args, "1")
    assert message(json.loads(text)).endswith("The server is fired up and ready to roll!")


async def test_facts_units_and_files(connect: Connect) -> None:
    machine, connection = await connect()
    _, text, _ = await run(connection, programs.FACTS, UNIT_NAME, "")
    assert text.count("@gpu ") == 8
    assert text.endswith("@end\n")
    _, text, _ = await run(connection, programs.UNITS, "system")
    blocks = text.split("\n\n")
    assert f"Id={UNIT_NAME}" in blocks[0]
    assert len(blocks) == 4
    fragment = machine.unit.fragment
    _, text, _ = await run(connection, programs.READ_FILE, fragment, "20")
    assert text == machine.unit.files[fragment][:20]
    status, _, complaint = await run(connection, programs.READ_FILE, "/etc/shadow", "20")
    assert (status, "/etc/shadow" in complaint) == (1, True)


@pytest.mark.parametrize("command", ["exec bash -c 'id' ddtui:new", "rm -rf /", "uptime"])
async def test_an_unknown_command_is_named_and_refused(connect: Connect, command: str) -> None:
    _, connection = await connect()
    done = await connection.run(command)
    assert done.exit_status == 127
    assert ("ddtui:new" if "ddtui" in command else command.split(maxsplit=1)[0]) in str(done.stderr)


async def test_only_the_demos_own_key_is_let_in(connect: Connect) -> None:
    _, connection = await connect()
    port = connection.get_extra_info("peername")[1]
    with pytest.raises(asyncssh.PermissionDenied):
        await asyncssh.connect(
            "127.0.0.1",
            port,
            username="ops",
            config=None,
            agent_path=None,
            known_hosts=None,
            client_keys=[asyncssh.generate_private_key("ssh-ed25519")],
        )
