"""The scripts themselves, run by a real bash on this machine."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ddtui.collect import programs
from ddtui.collect.gpu_csv import parse_gpu_row
from ddtui.collect.system_proc import parse_frame
from ddtui.hosts.base import Program
from ddtui.hosts.local import LocalHost


@pytest.fixture
async def host() -> AsyncIterator[LocalHost]:
    host = LocalHost()
    await host.start()
    yield host
    await host.close()


def executable(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/bash\n{script}")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("program", programs.ALL_PROGRAMS, ids=lambda program: program.label)
def test_bash_reads_every_script(program: Program) -> None:
    done = subprocess.run(["bash", "-n", "-c", program.script], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert program.label.startswith("ddtui:")


def test_labels_are_different() -> None:
    labels = [program.label for program in programs.ALL_PROGRAMS]
    assert len(set(labels)) == len(labels)


async def test_frames_of_the_machine(host: LocalHost) -> None:
    frame: list[str] = []
    frames = []
    async with host.stream(programs.SYSTEM, "0.05", "") as stream:
        async for line in stream.lines():
            if line != b"@end":
                frame.append(line.decode())
                continue
            frames.append(parse_frame(frame)[0])
            frame = []
            if len(frames) == 2:
                break
    first, second = frames
    assert first.cores == os.cpu_count()
    assert first.memory_total
    assert first.memory_available
    assert first.uptime is not None
    assert second.uptime is not None
    assert second.uptime >= first.uptime
    assert second.cpu_total is not None
    assert first.cpu_total is not None
    assert second.cpu_total >= first.cpu_total


async def test_nvidia_smi_is_looked_for(host: LocalHost) -> None:
    answer = await host.run(programs.GPU_PROCESSES, "/no/such/nvidia-smi", "")
    assert answer.status == 127
    assert answer.stderr == b"/no/such/nvidia-smi not found\n"


async def test_the_gpu_program_passes_rows_on(host: LocalHost, tmp_path: Path) -> None:
    smi = executable(
        tmp_path / "nvidia-smi",
        'echo "$@" >&2\nwhile :; do echo "0, NVIDIA \\"X\\""; sleep 0.05; done\n',
    )
    rows = []
    async with host.stream(programs.GPU, str(smi), "index,name", "50", "0000:01:00.0") as stream:
        async for line in stream.lines():
            rows.append(parse_gpu_row(line.decode(), ("index", "name")))
            if len(rows) == 3:
                break
        said = stream.stderr_tail
    assert [row and row.index for row in rows] == [0, 0, 0]
    assert "--id=0000:01:00.0 --query-gpu=index,name --format=csv,noheader,nounits -lms 50" in said


async def test_the_gpu_programs_end_is_its_own(host: LocalHost, tmp_path: Path) -> None:
    smi = executable(tmp_path / "nvidia-smi", "echo broken; exit 15\n")
    async with host.stream(programs.GPU, str(smi), "index", "50") as stream:
        assert [line async for line in stream.lines()] == [b"broken"]
        assert stream.status == 15


def alive(pid: str) -> bool:
    """Whether a process has not ended (a zombie has)."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and " Z " not in stat.read_text()


def content(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""


@pytest.mark.parametrize("how", ["end of input", "killed"])
async def test_nothing_is_left_running(tmp_path: Path, how: str) -> None:
    pids = tmp_path / "pids"
    smi = executable(tmp_path / "nvidia-smi", f"echo $$ > {pids}; exec sleep 1000\n")
    read, write = os.pipe()
    process = await asyncio.create_subprocess_exec(
        *("bash", "-c", programs.GPU.script, "ddtui:gpu", str(smi), "index", "1000"), stdin=read
    )
    os.close(read)
    async with asyncio.timeout(10):
        while not content(pids):  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.01)
        if how == "killed":
            process.kill()  # as a host that is short of memory would
        os.close(write)
        await process.wait()
        while alive(content(pids)):  # noqa: ASYNC110 - another process ends
            await asyncio.sleep(0.01)


DEAF = "trap '' TERM HUP INT\necho $$ > {pids}\nsleep 1000 &\nwait\nwait\n"


async def test_a_child_deaf_to_signals_is_killed(host: LocalHost, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    smi = executable(tmp_path / "nvidia-smi", DEAF.format(pids=pids))
    async with host.stream(programs.GPU, str(smi), "index", "50"):
        async with asyncio.timeout(10):
            while not content(pids):  # noqa: ASYNC110 - another process writes it
                await asyncio.sleep(0.01)
    async with asyncio.timeout(10):
        while alive(content(pids)):  # noqa: ASYNC110 - another process ends
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("program", [programs.GPU, programs.GPU_PROCESSES], ids=lambda p: p.label)
async def test_no_second_one_beside_one_that_hangs(
    host: LocalHost, tmp_path: Path, program: Program
) -> None:
    smi = executable(tmp_path / "nvidia-smi", f"echo $$ > {tmp_path}/pids; read -t 1000 <> <(:)\n")
    nobody = 2**22 + 1  # above the kernel's highest pid: who started it is gone
    hangs = await asyncio.create_subprocess_exec(
        str(smi), env={**os.environ, "DDTUI_CHILD_OF": str(nobody)}
    )
    try:
        async with asyncio.timeout(10):
            while not content(tmp_path / "pids"):  # noqa: ASYNC110 - another process writes it
                await asyncio.sleep(0.01)
        answer = await host.run(program, str(smi), "index", "50")
        assert answer.status == programs.LEFT_OVER
        assert f"process {hangs.pid} (state S)".encode() in answer.stderr
    finally:
        hangs.kill()
        await hangs.wait()


async def test_one_that_is_looked_after_hinders_nobody(host: LocalHost, tmp_path: Path) -> None:
    smi = executable(tmp_path / "nvidia-smi", "while :; do echo 0; sleep 0.05; done\n")
    async with host.stream(programs.GPU, str(smi), "index", "50") as first:
        assert await anext(first.lines()) == b"0"
        async with host.stream(programs.GPU, str(smi), "index", "50") as second:
            assert await anext(second.lines()) == b"0"


async def test_the_units_pids_follow_the_processes(host: LocalHost, tmp_path: Path) -> None:
    smi = executable(tmp_path / "nvidia-smi", "echo 5, GPU-1, 7, x\n")
    answer = await host.run(programs.GPU_PROCESSES, str(smi), "")
    assert answer.stdout == b"5, GPU-1, 7, x\n@unit\n"
    assert answer.status == 0


async def test_why_no_service_is_found(host: LocalHost, tmp_path: Path) -> None:
    from ddtui.collect.unit import NoServiceManager, find_units
    from ddtui.engines.sglang import SGLANG

    for name in ("tr", "sort", "xargs"):
        (tmp_path / name).symlink_to(f"/usr/bin/{name}")
    bare = Program("ddtui:units", f"PATH={tmp_path}\n{programs.UNITS.script}")
    answer = await host.run(bare, "system")
    assert answer.stdout == b"@none command not found\n"
    executable(tmp_path / "systemctl", "echo 'No bus' >&2; exit 1\n")
    answer = await host.run(bare, "system")
    booted = os.path.isdir("/run/systemd/system")  # noqa: ASYNC240, PTH112 - once, and local
    assert answer.stdout.split(b" ", 1)[1].strip() == (
        b"No bus" if booted else b"not been booted with systemd"
    )
    if not booted:
        with pytest.raises(NoServiceManager, match="not booted with systemd"):
            await find_units(host, SGLANG, "system")
