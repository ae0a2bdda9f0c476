"""What the simulated host answers to the programs of `ddtui.collect.programs`, by their label.

A handler writes what the real script prints. Long ones end with their standard input, as the
scripts do.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence

import asyncssh

from ddtui.collect import programs
from ddtui.control.programs import SERVER_HELP
from ddtui.demo import answers
from ddtui.demo.config import VERSION
from ddtui.demo.control_programs import CONTROL
from ddtui.demo.gpu_query import FIELDS, gpu_row
from ddtui.demo.help_text import help_text
from ddtui.demo.journal import CursorRefused, Entry
from ddtui.demo.machine import Machine
from ddtui.demo.program_calls import Call, Handler
from ddtui.hosts.base import Program
from ddtui.hosts.command import parse_command_line
from ddtui.hosts.ssh.probe import PROBE, TOKEN

_UNIT_LOOK = 0.4
"""How often the unit's watcher looks, in seconds."""
_UNIT_SIGN = 2.0
"""Seconds between signs of life of the unit's watcher."""


async def run_program(machine: Machine, process: asyncssh.SSHServerProcess[bytes]) -> None:
    """Serve one session: find the program by its label, run it, send its exit status."""
    command = process.command or ""
    try:
        program, arguments = parse_command_line(command)
        label = program.label
    except ValueError:
        words = command.split()
        label, arguments = (words[0] if words else "an interactive shell"), []
    call = Call(machine, process, arguments)
    handler, lasting = _HANDLERS.get(label, (None, False))
    try:
        if handler is None:
            call.complain(f"bash: {label}: command not found on the simulated host")
            process.exit(127)
        elif lasting:
            process.exit(await _until_silence(call, handler))
        else:
            process.exit(await handler(call))
    except (BrokenPipeError, ConnectionError, asyncssh.Error):
        process.close()  # the client went away: nobody is left to tell


async def _until_silence(call: Call, handler: Handler) -> int:
    """Run until the handler ends, standard input ends, or no heartbeat comes for too long."""
    work = asyncio.ensure_future(handler(call))
    watch = asyncio.create_task(_heartbeats(call))
    try:
        await asyncio.wait({work, watch}, return_when=asyncio.FIRST_COMPLETED)
        return work.result() if work.done() else 143
    finally:
        for task in (work, watch):
            task.cancel()
        await asyncio.gather(work, watch, return_exceptions=True)


async def _heartbeats(call: Call) -> None:
    """Return at the end of standard input or of the host's patience."""
    try:
        while True:
            async with asyncio.timeout(programs.HEARTBEAT_LIMIT):
                if not await call.process.stdin.readline():
                    return
    except (TimeoutError, asyncssh.Error):
        return


# ---- GPUs and the machine -----------------------------------------------------------------------


async def _gpu(call: Call) -> int:
    fields = call.argument(1).split(",")
    unknown = [name for name in fields if name not in FIELDS]
    if unknown:
        await call.write(f'Field "{unknown[0]}" is not a valid field to query.\n\n')
        return 2
    asked = call.argument(3)
    wanted = {word.upper().removeprefix("00000000:") for word in asked.split(",") if word}
    interval = max(1, int(call.argument(2, "1000"))) / 1000
    loop, world = asyncio.get_running_loop(), call.machine.world
    due = loop.time()
    while True:
        world.advance()
        rows = [
            gpu_row(gpu, fields)
            for gpu in world.gpus
            if not wanted or gpu.bus_id.removeprefix("00000000:") in wanted
        ]
        await call.write("\n".join(rows) + "\n")
        due = max(due + interval, loop.time())
        await asyncio.sleep(due - loop.time())


async def _gpu_processes(call: Call) -> int:
    await call.write(answers.gpu_processes(call.machine))
    return 0


async def _system(call: Call) -> int:
    interval = max(0.05, float(call.argument(0, "1")))
    while True:
        await call.write(answers.system_frame(call.machine, call.argument(1)))
        await asyncio.sleep(interval)


async def _listener(call: Call) -> int:
    port, group = int(call.argument(0, "0")), call.argument(1)
    await call.write(answers.listener(call.machine, port, group))
    return 0


async def _checkpoint(call: Call) -> int:
    text = answers.checkpoint(call.argument(0))
    if text is None:
        call.complain(f"no such folder: {call.argument(0)}")
        return 3
    await call.write(text)
    return 0


# ---- the unit -----------------------------------------------------------------------------------


async def _unit(call: Call) -> int:
    unit, clock = call.machine.unit, call.machine.clock
    properties = call.argument(2).split(",")
    last, said_at = "", 0.0
    while True:
        if call.ours:
            shown = unit.show(properties)
        else:
            shown = answers.missing_unit(call.argument(1), properties)
        command = unit.invocation.command if call.ours and unit.main_pid and unit.invocation else ()
        if shown != last:
            lines = [f"@show 0 {clock():.6f}", shown]
            if command:
                lines += ["@cmdline", *(shlex.quote(word) for word in command)]
            await call.write("\n".join([*lines, "@end"]) + "\n")
            last, said_at = shown, clock()
        elif clock() - said_at >= _UNIT_SIGN:
            await call.write(f"@same {clock():.6f}\n")
            said_at = clock()
        await asyncio.sleep(_UNIT_LOOK)


async def _units(call: Call) -> int:
    if call.argument(0) != "user":
        await call.write(answers.units(call.machine))
    return 0


# ---- the journal --------------------------------------------------------------------------------


def _lines(call: Call, entries: Sequence[Entry]) -> bytes:
    journal = call.machine.journal
    return b"".join(journal.to_json(entry) + b"\n" for entry in entries)


async def _journal(call: Call) -> int:
    journal, cursor = call.machine.journal, call.argument(2)
    if not call.ours:
        await asyncio.Event().wait()
    try:
        position = journal.after(cursor) if cursor else journal.last(int(call.argument(3, "10")))
    except CursorRefused:
        call.complain("Failed to seek to cursor: Invalid argument")
        return 1
    async for entries in journal.follow(position):
        for start in range(0, len(entries), 200):
            await call.write(_lines(call, entries[start : start + 200]))
    return 0


async def _journal_invocation(call: Call) -> int:
    if not call.ours:
        return 0
    identifier, most = call.argument(2), int(call.argument(3, "1000"))
    found = [
        entry
        for entry in call.machine.journal.entries()
        if identifier
        in (entry.fields.get("_SYSTEMD_INVOCATION_ID"), entry.fields.get("INVOCATION_ID"))
    ]
    kept = found[:most] if call.argument(4, "last") == "first" else found[-most:]
    await call.write(_lines(call, kept))
    return 0


async def _kernel(call: Call) -> int:  # noqa: ARG001  # the simulated kernel has nothing to say
    return 0


# ---- facts and files ----------------------------------------------------------------------------


async def _facts(call: Call) -> int:
    await call.write(answers.facts(call.machine))
    return 0


async def _read_file(call: Call) -> int:
    path = call.argument(0)
    text = call.machine.unit.files.get(path)
    if text is None:
        call.complain(f"head: cannot open '{path}' for reading: No such file or directory")
        return 1
    await call.write(text.encode()[: int(call.argument(1, "65536"))])
    return 0


async def _server_help(call: Call) -> int:
    words = list(call.arguments[2:])
    program = call.machine.unit.command[0]
    if program not in words:
        call.complain(f"no such program: {words[-1] if words else ''}")
        return 127
    await call.write(f"@server {VERSION} 1764000000 /opt/llm/venv/lib/python3.11/sglang\n")
    if call.argument(0) == "help":
        await call.write(f"@help\n{help_text()}")
    return 0


def _by_label(*known: tuple[Program, Handler, bool]) -> dict[str, tuple[Handler, bool]]:
    return {program.label: (handler, lasting) for program, handler, lasting in known}


async def _probe(call: Call) -> int:
    await call.write(f"{TOKEN}\n")
    return 0


_HANDLERS = _by_label(
    (PROBE, _probe, False),
    (programs.GPU, _gpu, True),
    (programs.GPU_PROCESSES, _gpu_processes, False),
    (programs.SYSTEM, _system, True),
    (programs.UNIT, _unit, True),
    (programs.JOURNAL, _journal, True),
    (programs.JOURNAL_INVOCATION, _journal_invocation, False),
    (programs.KERNEL, _kernel, False),
    (programs.LISTENER, _listener, False),
    (programs.CHECKPOINT, _checkpoint, False),
    (programs.UNITS, _units, False),
    (programs.FACTS, _facts, False),
    (programs.READ_FILE, _read_file, False),
    *CONTROL,
    (SERVER_HELP, _server_help, False),
)
"""Label to handler, and whether the program lasts until its standard input ends."""
