"""What the simulated host answers to the programs that change a unit (`ddtui.control`)."""

from __future__ import annotations

import asyncio
import hashlib
import shlex

from ddtui.control import unit_programs as programs
from ddtui.control.unit_command import drop_in_path
from ddtui.demo.answers import missing_unit
from ddtui.demo.program_calls import Call, Handler
from ddtui.hosts.base import Program

_LOOKED_AT = (
    *("LoadState", "ActiveState", "SubState", "Result", "InvocationID", "NRestarts"),
    *("MainPID", "NeedDaemonReload", "ControlGroup"),
)


def _drop_in(call: Call) -> str:
    return drop_in_path("system", call.machine.unit.name)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


async def _unit_files(call: Call) -> int:
    unit = call.machine.unit
    if not call.ours:  # as on a host: its properties are told all the same
        shown = missing_unit(call.argument(1), ("LoadState", "FragmentPath", "DropInPaths"))
        blocks = [("show", "-", shown)]
        await _write_blocks(call, blocks, "@none -\n")
        return 0
    shown = unit.show(("LoadState", "FragmentPath", "DropInPaths", "ExecStart"))
    paths = [unit.fragment, *unit.drop_ins]
    cat = "\n\n".join(f"# {path}\n{unit.files[path].rstrip()}" for path in paths) + "\n"
    blocks = [("show", "-", shown), ("cat", "-", cat)]
    own = unit.files.get(_drop_in(call))
    if own is not None:
        blocks.append(("ours", _drop_in(call), own))
    await _write_blocks(call, blocks, "" if own is not None else f"@none {_drop_in(call)}\n")
    return 0


async def _write_blocks(call: Call, blocks: list[tuple[str, str, str]], end: str) -> None:
    await call.write("@user ops 1501 /home/ops\n")
    for kind, path, text in blocks:
        data = text.encode("utf-8", "surrogateescape")
        await call.write(f"@{kind} {len(data)} {path}\n".encode() + data + b"\n")
    await call.write(f"{end}@end\n")


async def _look(call: Call) -> int:
    unit = call.machine.unit
    own = unit.files.get(_drop_in(call)) if call.ours else None
    shown = unit.show(_LOOKED_AT) if call.ours else "LoadState=not-found\nActiveState=inactive"
    await call.write(f"{shown}\nDropIn={_digest(own) if own is not None else ''}\n@end\n")
    return 0


async def _write_drop_in(call: Call) -> int:
    text = (await call.process.stdin.read()).decode("utf-8", "surrogateescape")
    if not call.ours or not text:
        call.complain("nothing came on standard input" if call.ours else "no such unit")
        return 3
    own = call.machine.unit.files.get(_drop_in(call))
    there = "-" if own is None else _digest(own)
    if call.argument(2) not in {"", there} and own != text:
        call.complain(f"{_drop_in(call)} was changed meanwhile")
        return 5
    call.machine.unit.files[_drop_in(call)] = text
    await call.write(f"@written {_digest(text)}\n")
    return 0


async def _verify(call: Call) -> int:
    await call.process.stdin.read()
    await call.write("@folder /tmp/verify\n@status 0\n\n")
    return 0


async def _systemctl(call: Call) -> int:
    unit, verb = call.machine.unit, call.argument(2)
    if not call.ours:
        call.complain(f"Failed to {verb} {call.argument(1)}: Unit not found.")
        return 5
    now = unit.invocation.identifier if unit.invocation else ""
    if call.argument(3) not in {"", now}:
        await call.write(f"@other {now}\n")
        return 0
    if verb == "daemon-reload":
        unit.daemon_reload()
    elif verb == "stop":
        await unit.stop()
    elif verb == "start":
        unit.start()
        await asyncio.sleep(0)  # the job runs before systemctl returns
    elif verb == "reset-failed":
        unit.reset_failed()
    else:
        call.complain(f"Unknown command verb {verb}.")
        return 1
    return 0


async def _rights(call: Call) -> int:
    await call.write("@user ops 1501\n@rule (root) NOPASSWD: ALL\n@end\n")
    return 0


async def _stop_requests(call: Call) -> int:
    lines = [f"@stop {each}" for each in call.machine.unit.stop_jobs]
    await call.write("\n".join([*lines, "@end"]) + "\n")
    return 0


async def _lock(call: Call) -> int:
    key, text = call.argument(0), call.argument(2)
    locks = call.machine.locks
    if key in locks:
        await call.write(f"@held {locks[key]}\n")
        return 0
    locks[key] = text
    try:
        await call.write(f"@locked /run/lock/ddtui-{key}.lock\n")
        await asyncio.Event().wait()  # until its channel ends
    finally:
        del locks[key]
    return 0


async def _lock_holder(call: Call) -> int:
    held = call.machine.locks.get(call.argument(0))
    await call.write(f"@held {held}\n" if held is not None else "@free\n")
    return 0


async def _holders(call: Call) -> int:
    machine, port = call.machine, int(call.argument(2, "0"))
    machine.world.advance()
    unit, engine = machine.unit, machine.unit.engine
    pids = unit.processes()
    lines = [f"@unit {pid}" for pid in pids.values()]
    if machine.engine_on(port) is not None:
        lines += ["@socket 998 900000", f"@listens {unit.main_pid} 900000"]
    for gpu in machine.world.gpus:
        lines.append(f"@gpu {gpu.uuid}, {gpu.index}, {gpu.memory_used}")
        pid = pids.get(f"TP{gpu.index}")
        held = engine.memory(gpu.index) >> 20 if engine is not None and pid else 0
        if held:
            lines.append(f"@app {pid}, {gpu.uuid}, {held}, sglang::scheduler_TP{gpu.index}")
    group = f"/system.slice/{unit.name}"
    lines += [
        f"@process {pid} {pid}00 998 {group} sglang {shlex.quote(f'sglang::{role}')}"
        for role, pid in pids.items()
    ]
    await call.write("\n".join([*lines, "@end"]) + "\n")
    return 0


async def _end_process(call: Call) -> int:
    await call.write("@gone\n")
    return 0


async def _drop_in_sight(call: Call) -> int:
    await call.write("@end\n")
    return 0


async def _disk_room(call: Call) -> int:
    await call.write("@free 512000000000 /tmp\n@end\n")
    return 0


CONTROL: tuple[tuple[Program, Handler, bool], ...] = (
    (programs.UNIT_FILES, _unit_files, False),
    (programs.LOOK, _look, False),
    (programs.WRITE_DROP_IN, _write_drop_in, False),
    (programs.DROP_IN_SIGHT, _drop_in_sight, False),
    (programs.VERIFY_UNIT, _verify, False),
    (programs.SYSTEMCTL_RUN, _systemctl, False),
    (programs.STOP_REQUESTS, _stop_requests, False),
    (programs.RIGHTS, _rights, False),
    (programs.LOCK, _lock, True),
    (programs.LOCK_HOLDER, _lock_holder, False),
    (programs.HOLDERS, _holders, False),
    (programs.END_PROCESS, _end_process, False),
    (programs.DISK_ROOM, _disk_room, False),
)
"""Program, its handler, and whether it lasts until its standard input ends."""
