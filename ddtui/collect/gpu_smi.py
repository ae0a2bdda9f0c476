"""GPUs by nvidia-smi: one looping program for the readings, a short one for the processes."""

from __future__ import annotations

import asyncio
import logging

import msgspec

from ddtui.collect.base import Context, Emit, Report, Restart, SourceTrouble, lines_of, supervise
from ddtui.collect.gpu_csv import (
    ended,
    lost_gpu,
    normal_bus_id,
    parse_gpu_row,
    parse_processes,
    refused_field,
    without_field,
)
from ddtui.collect.observed import Observed
from ddtui.collect.programs import GPU, GPU_FIELDS, GPU_PROCESSES, LEFT_OVER
from ddtui.collect.settings import HostSettings
from ddtui.core.bounded import bounded_int
from ddtui.core.redact import safe_text
from ddtui.core.samples import (
    Collector,
    Gpu,
    GpuProcess,
    GpuProcessSample,
    GpuSample,
    SourceStatus,
)
from ddtui.hosts.base import Host

log = logging.getLogger(__name__)

SOURCE = "nvidia-smi"
TICK_PATIENCE = 0.1
"""Seconds after which the rows of a tick are passed on although a GPU is missing among them."""
SILENCE_LIMIT = 5.0
"""Seconds, beside three intervals, without any row after which the program is started anew."""
HANGS = (15.0, 300.0)
"""Seconds between two starts, at least and at most, of an nvidia-smi that gives no row at all: each
may leave a process on the host that nothing ends."""
MOST_LINES = 4096
"""Lines that may wait to be read; a program that prints faster than it is read waits."""
FLOOD = 64
"""Lines at a time that are read: more can only be older ticks."""
ALL_AGAIN = 60.0
"""Seconds after which GPUs that were left out as lost are asked for again."""


class Ticks:
    """Collects rows into ticks: a new one begins where the index does not rise."""

    def __init__(self) -> None:
        self._rows: dict[int, Gpu] = {}
        self._expected = 0
        self._buses: dict[str, Gpu] = {}
        self._lost: dict[str, str] = {}

    @property
    def waiting(self) -> bool:
        """Whether a tick has begun and is not complete."""
        return bool(self._rows)

    @property
    def answering(self) -> list[str]:
        """Bus ids of the GPUs that are known and not lost."""
        return [gpu.bus_id for bus, gpu in self._buses.items() if bus not in self._lost]

    @property
    def lost(self) -> bool:
        """Whether a GPU is known to be lost."""
        return bool(self._lost)

    def mark_lost(self, bus: str, why: str) -> None:
        """The driver says that a GPU does not answer."""
        self._lost[bus] = why

    def forget_lost(self) -> None:
        """Lost GPUs are to be asked for again."""
        self._lost.clear()

    def add(self, gpu: Gpu) -> list[tuple[Gpu, ...]]:
        """Take a row; returns the ticks that it completes."""
        done = []
        if self._rows and gpu.index <= max(self._rows):
            done.append(self.flush())
        self._rows[gpu.index] = gpu
        if gpu.bus_id:
            bus = normal_bus_id(gpu.bus_id)
            self._buses[bus] = gpu
            if not gpu.lost:
                self._lost.pop(bus, None)
        if len(self._rows) >= self._expected > 0:
            done.append(self.flush())
        return done

    def flush(self) -> tuple[Gpu, ...]:
        """The rows so far as a tick, with the lost GPUs among them."""
        self._expected = len(self._rows)
        gpus, self._rows = self._rows, {}
        for bus, why in self._lost.items():
            gpu = self._lost_gpu(bus, why, set(gpus))
            gpus[gpu.index] = gpu
        return tuple(gpus[index] for index in sorted(gpus))

    def _lost_gpu(self, bus: str, why: str, taken: set[int]) -> Gpu:
        known = self._buses.get(bus)
        if known is not None and known.index not in taken:
            return Gpu(known.index, known.uuid, known.name, known.bus_id, known.driver, lost=why)
        index = next(number for number in range(len(taken) + 1) if number not in taken)
        return Gpu(index, bus_id=bus, lost=why)


class GpuSmiCollector:
    """Readings of all GPUs, one sample a tick."""

    def __init__(self, settings: HostSettings, context: Context) -> None:
        self._settings = settings
        self._context = context
        self._fields: tuple[str, ...] = GPU_FIELDS
        self._ticks = Ticks()
        self._emitted_at = 0.0

    async def run(self, host: Host, emit: Emit) -> None:
        """See SourceCollector."""
        report = Report(Collector.GPU, SOURCE, emit, self._context.clock)
        await supervise(host, report, lambda: self._stream(host, emit, report), self._context.nudge)

    async def _stream(self, host: Host, emit: Emit, report: Report) -> None:
        interval = self._settings.gpu_interval
        which = ",".join(self._ticks.answering) if self._ticks.lost else ""
        loop = asyncio.get_running_loop()
        began = heard = loop.time()
        arguments = (self._settings.nvidia_smi, ",".join(self._fields), f"{interval * 1000:.0f}")
        messages: list[str] = []
        async with (
            host.stream(GPU, *arguments, *([which] if which else [])) as stream,
            lines_of(stream, MOST_LINES) as lines,
        ):
            while True:
                batch = await lines.batch(TICK_PATIENCE if self._ticks.waiting else interval)
                if batch is None:
                    break
                if self._take(batch, messages, emit, report):
                    heard = loop.time()
                elif self._ticks.waiting and not batch:
                    self._emit(self._ticks.flush(), emit, report)
                if loop.time() - heard > 3 * interval + SILENCE_LIMIT:
                    raise _silent(loop.time() - heard, messages, ever=heard != began)
                if which and loop.time() - began > ALL_AGAIN:
                    self._ticks.forget_lost()
                    raise Restart
                await self._pace(len(batch))
            status, errors = stream.status, stream.stderr_tail
        self._ended(status, messages, errors, which)

    async def _pace(self, lines: int) -> None:
        """Let lines come together when they come faster than they were asked for."""
        half = self._settings.gpu_interval / 2
        wait = self._emitted_at + half - asyncio.get_running_loop().time()
        if lines > FLOOD:
            wait = max(wait, half / 2)
        if wait > 0 and not self._ticks.waiting:
            await asyncio.sleep(wait)

    def _take(self, batch: list[bytes], messages: list[str], emit: Emit, report: Report) -> bool:
        """Read a batch and pass its newest tick on; whether a reading was among the lines."""
        newest: tuple[Gpu, ...] | None = None
        heard = False
        for raw in batch[-FLOOD:]:
            line = raw.decode("utf-8", "replace")
            gpu = parse_gpu_row(line, self._fields)
            if gpu is not None:
                heard = True
                for tick in self._ticks.add(gpu):
                    newest = tick
            elif line.strip():
                lost = lost_gpu(line)
                if lost is not None:
                    self._ticks.mark_lost(*lost)
                messages.append(line)
                del messages[:-5]
        if newest is not None:
            self._emit(newest, emit, report)
        return heard

    def _emit(self, gpus: tuple[Gpu, ...], emit: Emit, report: Report) -> None:
        self._emitted_at = asyncio.get_running_loop().time()
        emit(GpuSample(self._context.clock(), SOURCE, gpus))
        lost = [gpu for gpu in gpus if gpu.lost]
        if lost:
            numbers = ", ".join(str(gpu.index) for gpu in lost)
            report(
                SourceStatus.LIVE,
                f"GPU {numbers} does not answer: {lost[0].lost}",
                "look for Xid errors in `journalctl -k`; it takes a reset or a reboot of the host",
            )
        else:
            report.live()

    def _ended(self, status: int | None, messages: list[str], errors: str, which: str) -> None:
        """Decide what the program's end means. Raises SourceTrouble, or Restart to ask anew."""
        text = "\n".join(messages)
        refused = refused_field(text) or refused_field(errors)
        if refused is not None and refused in self._fields:
            self._fields = without_field(self._fields, refused)
            log.info("nvidia-smi does not know the field %s: asked again without it", refused)
            raise Restart
        for line in errors.splitlines():
            lost = lost_gpu(line)
            if lost is not None:
                self._ticks.mark_lost(*lost)
        if which:  # a selection may be wrong by now (a reset GPU has another number)
            self._ticks.forget_lost()
        if status == LEFT_OVER:
            raise _left_over(errors)
        raise ended(status, text, errors)


def _silent(seconds: float, messages: list[str], *, ever: bool) -> SourceTrouble:
    """No reading came for so long; `ever`: the same program gave some before."""
    pauses = None if ever else HANGS
    if messages:
        said = safe_text(messages[-1], 80)
        return SourceTrouble(
            f"nvidia-smi prints what is no reading: {said}",
            "run `nvidia-smi --query-gpu=index,name --format=csv` on the host: a wrapper in its "
            "place must pass its arguments and its output on",
            pauses=pauses,
        )
    return SourceTrouble(
        f"nvidia-smi said nothing for {seconds:.0f} s: started anew",
        "a hanging driver often means a failing GPU: see `journalctl -k`",
        pauses=pauses,
    )


def _left_over(errors: str) -> SourceTrouble:
    said = safe_text(errors.strip().replace("\n", " "), 120)
    return SourceTrouble(
        f"nvidia-smi hangs on the host and cannot be ended: {said}",
        "see `journalctl -k` for Xid errors; a process in state D goes with a reset or a reboot",
    )


class GpuProcessCollector:
    """The processes that hold GPU memory, and whether they are the unit's."""

    def __init__(self, settings: HostSettings, observed: Observed, context: Context) -> None:
        self._settings = settings
        self._observed = observed
        self._context = context

    async def run(self, host: Host, emit: Emit) -> None:
        """See SourceCollector."""
        report = Report(Collector.GPU_PROCESSES, SOURCE, emit, self._context.clock)
        await supervise(host, report, lambda: self._poll(host, emit, report), self._context.nudge)

    async def _poll(self, host: Host, emit: Emit, report: Report) -> None:
        while True:
            answer = await host.run(
                GPU_PROCESSES, self._settings.nvidia_smi, self._observed.control_group
            )
            output = answer.stdout.decode("utf-8", "replace")
            errors = answer.stderr.decode("utf-8", "replace")
            if answer.status == LEFT_OVER:
                raise _left_over(errors)
            if answer.status != 0:
                raise ended(answer.status, output, errors)
            rows, _, members = output.partition("@unit\n")
            pids = {int(line) for line in members.splitlines() if bounded_int(line) is not None}
            processes = mark_members(parse_processes(rows), pids, self._observed.in_container)
            emit(GpuProcessSample(self._context.clock(), SOURCE, processes))
            report.live()
            await self._context.nudge.wait(self._settings.processes_interval)


def mark_members(
    processes: list[GpuProcess], pids: set[int], in_container: bool
) -> tuple[GpuProcess, ...]:
    """Say of each process whether it is one of `pids`, the unit's: None where that is unknown.

    A container's processes are in a control group of its own, so a unit that starts one says
    nothing of those that are not its own.
    """

    def member(pid: int) -> bool | None:
        if pid in pids:
            return True
        return False if pids and not in_container else None

    return tuple(
        msgspec.structs.replace(process, in_unit=member(process.pid)) for process in processes
    )
