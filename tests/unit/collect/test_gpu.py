from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from ddtui.collect import gpu_smi
from ddtui.collect.base import Context, SourceTrouble
from ddtui.collect.gpu_csv import (
    MIB,
    ended,
    lost_gpu,
    normal_bus_id,
    parse_gpu_row,
    parse_processes,
    refused_field,
    without_field,
)
from ddtui.collect.gpu_smi import GpuProcessCollector, GpuSmiCollector, Ticks, mark_members
from ddtui.collect.observed import Observed
from ddtui.collect.programs import GPU, GPU_FIELDS, GPU_PROCESSES, LEFT_OVER
from ddtui.collect.settings import HostSettings
from ddtui.core.gpus import Concern, throttle_reasons, throttle_words
from ddtui.core.samples import (
    Gpu,
    GpuProcess,
    GpuProcessSample,
    GpuSample,
    SourceSample,
    SourceStatus,
)
from ddtui.engines.sglang import SGLANG
from ddtui.hosts.base import Completed
from tests.unit.collect.fakes import FakeHost, ImpatientNudge, Recorder, Script, collecting

CAPTURES = Path(__file__).resolve().parents[2] / "fixtures" / "nvidia-smi"


def capture(name: str, section: str) -> list[str]:
    """The lines of a section of a capture."""
    text = (CAPTURES / name).read_text()
    return text.split(f"## {section}\n", 1)[1].split("\n## ", 1)[0].splitlines()


def row(index: int, **cells: str) -> str:
    values = {
        "index": str(index),
        "uuid": f"GPU-{index}",
        "name": "NVIDIA RTX PRO 6000",
        "pci.bus_id": f"00000000:{index + 1:02X}:00.0",
        "memory.used": "1024",
        "memory.total": "97887",
        "mig.mode.current": "[N/A]",
    } | {name.replace("__", "."): value for name, value in cells.items()}
    return ", ".join(values.get(field, "[N/A]") for field in GPU_FIELDS)


class TestRows:
    def test_rows_of_a_real_driver(self) -> None:
        header = capture("csv.txt", "csv idle")[0]
        fields = [re.sub(r" \[.*\]", "", name) for name in header.split(", ")]
        lines = capture("csv.txt", "csv noheader nounits")
        gpus = [parse_gpu_row(line, fields) for line in lines]
        assert [gpu and gpu.index for gpu in gpus] == [0, 1]
        gpu = gpus[0]
        assert gpu is not None
        assert gpu.name == "NVIDIA H200"
        assert gpu.memory_total == 143771 * MIB
        assert gpu.memory_used == 0
        assert gpu.fan is None
        assert gpu.power == pytest.approx(97.41)
        assert gpu.throttle_reasons == 1
        assert gpu.mig_enabled is False
        assert gpu.ecc_uncorrected == 0
        assert gpu.performance_state == "P0"
        assert (gpu.pcie_generation, gpu.pcie_width) == (5, 16)
        assert not gpu.lost

    @pytest.mark.parametrize(
        "nothing", ["[N/A]", "N/A", "[Not Supported]", "[Unknown Error]", "ERR!", "", "nan"]
    )
    def test_what_a_board_does_not_have_is_none(self, nothing: str) -> None:
        gpu = parse_gpu_row(row(0, power__draw=nothing, temperature__gpu=nothing), GPU_FIELDS)
        assert gpu is not None
        assert gpu.power is None
        assert gpu.temperature is None
        assert not gpu.lost

    def test_a_name_with_commas(self) -> None:
        gpu = parse_gpu_row(row(3, name="NVIDIA RTX 6000, Ada, 48GB"), GPU_FIELDS)
        assert gpu is not None
        assert gpu.name == "NVIDIA RTX 6000, Ada, 48GB"
        assert gpu.memory_total == 97887 * MIB

    @pytest.mark.parametrize("words", ["[GPU is lost]", "[GPU requires reset]", "[Unknown Error]"])
    def test_a_lost_gpu_keeps_its_row(self, words: str) -> None:
        gpu = parse_gpu_row(row(2, memory__used=words), GPU_FIELDS)
        assert gpu is not None
        assert gpu.lost == words.strip("[]")
        assert gpu.memory_used is None

    def test_mig(self) -> None:
        gpu = parse_gpu_row(row(0, mig__mode__current="Enabled"), GPU_FIELDS)
        assert gpu is not None
        assert gpu.mig_enabled is True

    @pytest.mark.parametrize(
        "line", ["", "0", "No devices were found", ", , ,", '"', "0, GPU-0, name, bus"]
    )
    def test_what_is_no_row(self, line: str) -> None:
        assert parse_gpu_row(line, GPU_FIELDS) is None

    @pytest.mark.parametrize(
        ("cells", "field"),
        [
            ({"memory__used": "-5"}, "memory_used"),
            ({"memory__used": "99999"}, "memory_used"),
            ({"memory__total": "-1"}, "memory_total"),
            ({"memory__total": "9" * 400}, "memory_total"),
            ({"utilization__gpu": "101"}, "utilization"),
            ({"utilization__memory": "-1"}, "memory_utilization"),
            ({"power__draw": "1e300"}, "power"),
            ({"power__limit": "-5"}, "power_limit"),
            ({"temperature__gpu": "2000"}, "temperature"),
            ({"fan__speed": "-1"}, "fan"),
            ({"clocks__current__sm": "1e9"}, "sm_clock"),
            ({"ecc__errors__uncorrected__volatile__total": "9" * 5000}, "ecc_uncorrected"),
            ({"pcie__link__width__current": "9999"}, "pcie_width"),
            ({"clocks_event_reasons__active": "-0x4"}, "throttle_reasons"),
            ({"clocks_event_reasons__active": "0x" + "f" * 5000}, "throttle_reasons"),
        ],
    )
    def test_figures_that_no_gpu_has_are_none(self, cells: dict[str, str], field: str) -> None:
        gpu = parse_gpu_row(row(0, **cells), GPU_FIELDS)
        assert gpu is not None
        assert getattr(gpu, field) is None
        assert gpu.name == "NVIDIA RTX PRO 6000"

    @pytest.mark.parametrize(
        "cells",
        [
            {"uuid": "NVIDIA H200"},
            {"pci__bus_id": "580.95.05"},
            {"power__draw": "97,41"},
        ],
    )
    def test_rows_that_are_shifted_or_of_no_gpu_are_none(self, cells: dict[str, str]) -> None:
        assert parse_gpu_row(row(0, **cells), GPU_FIELDS) is None

    @pytest.mark.parametrize("index", ["1024", "9" * 5000, "-1", "²", "1.0"])
    def test_an_index_of_no_gpu(self, index: str) -> None:
        assert parse_gpu_row(row(0).replace("0", index, 1), GPU_FIELDS) is None

    def test_decimal_commas_give_no_row(self) -> None:
        line = row(0, driver_version="580.95", power__draw="97,41", power__limit="600,00")
        assert parse_gpu_row(line, GPU_FIELDS) is None

    def test_secrets_in_names_are_masked(self) -> None:
        (process,) = parse_processes("7, GPU-1, 10, python --api-key hush --tp 8")
        assert process.name == "python --api-key <redacted> --tp 8"
        assert parse_processes("9" * 5000 + ", GPU-1, 10, x") == []
        (process,) = parse_processes("7, GPU-1, -10, x")
        assert process.memory is None
        gpu = parse_gpu_row(row(0, name="HF_TOKEN=hush"), GPU_FIELDS)
        assert gpu is not None
        assert gpu.name == "HF_TOKEN=<redacted>"
        assert "hush" not in ended(1, "x --api-key hush", "").detail

    def test_a_name_cannot_restyle_the_screen(self) -> None:
        gpu = parse_gpu_row(row(0, name="\x1b[31mevil"), GPU_FIELDS)
        assert gpu is not None
        assert gpu.name == "evil"


class TestComplaints:
    def test_a_field_that_the_driver_does_not_know(self) -> None:
        line = capture("csv.txt", "bad field")[0]
        assert refused_field(line) == "nonsense"
        assert refused_field("0, GPU-0") is None

    def test_an_older_name_then_none(self) -> None:
        fields: tuple[str, ...] = ("index", "clocks_event_reasons.active", "pstate")
        fields = without_field(fields, "clocks_event_reasons.active")
        assert fields == ("index", "clocks_throttle_reasons.active", "pstate")
        assert without_field(fields, "clocks_throttle_reasons.active") == ("index", "pstate")

    @pytest.mark.parametrize(
        ("line", "bus", "why"),
        [
            (
                "Unable to determine the device handle for GPU0000:06:00.0: Unknown Error",
                "0000:06:00.0",
                "Unknown Error",
            ),
            (
                "Unable to determine the device handle for GPU 00000000:C1:00.0: GPU is lost."
                "  Reboot the system to recover this GPU",
                "0000:c1:00.0",
                "GPU is lost.  Reboot the system to recover this GPU",
            ),
        ],
    )
    def test_a_lost_gpu(self, line: str, bus: str, why: str) -> None:
        assert lost_gpu(line) == (bus, why)
        assert lost_gpu("0, GPU-0, NVIDIA H200") is None

    def test_bus_ids_are_spelled_alike(self) -> None:
        assert normal_bus_id("00000000:C1:00.0") == normal_bus_id("0000:c1:00.0")

    @pytest.mark.parametrize(
        ("status", "word", "state"),
        [
            (127, "no nvidia-smi", SourceStatus.ABSENT),
            (9, "driver is not running", SourceStatus.ABSENT),
            (12, "libnvidia-ml", SourceStatus.ABSENT),
            (15, "fallen off the bus", SourceStatus.FAILED),
        ],
    )
    def test_exit_codes(self, status: int, word: str, state: SourceStatus) -> None:
        trouble = ended(status, "", "its words")
        assert word in trouble.detail
        assert "its words" in trouble.detail
        assert trouble.remedy
        assert trouble.status is state

    def test_an_unknown_code_is_told_with_its_words(self) -> None:
        trouble = ended(255, "some\nwords", "")
        assert isinstance(trouble, SourceTrouble)
        assert trouble.detail == "nvidia-smi ended with status 255: some words"


class TestTicks:
    def test_a_tick_ends_where_the_index_wraps(self) -> None:
        ticks = Ticks()
        assert ticks.add(Gpu(0)) == []
        assert ticks.add(Gpu(1)) == []
        assert [gpu.index for gpu in ticks.add(Gpu(0))[0]] == [0, 1]

    def test_a_full_tick_is_passed_on_at_once(self) -> None:
        ticks = Ticks()
        for index in range(8):
            ticks.add(Gpu(index))
        ticks.flush()
        done = [ticks.add(Gpu(index)) for index in range(8)]
        assert done[:7] == [[]] * 7
        assert len(done[7][0]) == 8
        assert not ticks.waiting

    def test_one_gpu(self) -> None:
        ticks = Ticks()
        assert ticks.add(Gpu(0)) == []
        assert ticks.add(Gpu(0)) == [(Gpu(0),), (Gpu(0),)]

    def test_a_lost_gpu_stays_in_its_place(self) -> None:
        ticks = Ticks()
        for index in (0, 1, 2):
            ticks.add(Gpu(index, bus_id=f"0000:0{index}:00.0", name=f"n{index}"))
        ticks.flush()
        ticks.mark_lost("0000:01:00.0", "GPU is lost")
        ticks.add(Gpu(0))
        ticks.add(Gpu(2))
        tick = ticks.flush()
        assert [(gpu.index, gpu.name, gpu.lost) for gpu in tick] == [
            (0, "", ""),
            (1, "n1", "GPU is lost"),
            (2, "", ""),
        ]

    def test_a_gpu_lost_before_it_was_seen_takes_the_free_number(self) -> None:
        ticks = Ticks()
        ticks.mark_lost("0000:05:00.0", "Unknown Error")
        ticks.add(Gpu(0))
        ticks.add(Gpu(2))
        assert [gpu.index for gpu in ticks.flush()] == [0, 1, 2]


class TestCollector:
    async def test_ticks_become_samples(
        self, host: FakeHost, recorder: Recorder, context: Context
    ) -> None:
        later = [asyncio.Event(), asyncio.Event()]
        host.scripts[GPU.label] = [
            Script([row(0), row(1), later[0], row(0), row(1), later[1], row(0), row(1)], stays=True)
        ]
        settings = HostSettings(gpu_interval=0.01)
        async with collecting(GpuSmiCollector(settings, context), host, recorder):
            await recorder.until(lambda: len(recorder.of(GpuSample)) == 1)
            later[0].set()
            await recorder.until(lambda: len(recorder.of(GpuSample)) == 2)
            later[1].set()
            await recorder.until(lambda: len(recorder.of(GpuSample)) == 3)
        assert [len(sample.gpus) for sample in recorder.of(GpuSample)] == [2, 2, 2]
        assert recorder.of(SourceSample)[-1].status is SourceStatus.LIVE

    async def test_of_a_flood_only_the_newest_tick_counts(
        self, host: FakeHost, recorder: Recorder, context: Context
    ) -> None:
        flood = [row(index, clocks__current__sm=str(n)) for n in range(3000) for index in range(2)]
        host.scripts[GPU.label] = [Script(flood, stays=True)]
        settings = HostSettings(gpu_interval=0.1)
        async with collecting(GpuSmiCollector(settings, context), host, recorder):
            await recorder.until(
                lambda: any(s.gpus[1].sm_clock == 2999.0 for s in recorder.of(GpuSample))
            )
        assert len(recorder.of(GpuSample)) <= 3

    @pytest.mark.parametrize(
        ("lines", "words"),
        [
            (
                ["usage: nvidia-smi [\x1b[1moptions]"],
                "prints what is no reading: usage: nvidia-smi",
            ),
            ([], "said nothing for"),
        ],
    )
    async def test_only_rows_count_as_heard(
        self,
        host: FakeHost,
        recorder: Recorder,
        context: Context,
        monkeypatch: pytest.MonkeyPatch,
        lines: list[str],
        words: str,
    ) -> None:
        monkeypatch.setattr(gpu_smi, "SILENCE_LIMIT", 0.02)
        host.scripts[GPU.label] = [Script(lines, stays=True)]
        settings = HostSettings(gpu_interval=0.01)
        async with collecting(GpuSmiCollector(settings, context), host, recorder):
            nudge = context.nudge
            assert isinstance(nudge, ImpatientNudge)
            await recorder.until(lambda: len(recorder.of(SourceSample)) >= 2)
            while len(nudge.waits) < 7:  # noqa: ASYNC110 - tells nobody
                await asyncio.sleep(0.01)
        said = recorder.of(SourceSample)[1]
        assert said.status is SourceStatus.FAILED
        assert words in said.detail
        assert said.remedy
        assert nudge.waits[:6] == [15, 30, 60, 120, 240, 300]  # each may leave a process behind

    async def test_a_process_that_hangs_is_told(
        self, host: FakeHost, recorder: Recorder, context: Context
    ) -> None:
        words = "process 12 (state D) of an earlier look still hangs"
        host.scripts[GPU.label] = [Script([], status=LEFT_OVER, stderr=words)]
        async with collecting(GpuSmiCollector(HostSettings(), context), host, recorder):
            await recorder.until(lambda: len(recorder.of(SourceSample)) >= 2)
        assert words in recorder.of(SourceSample)[1].detail
        host.answers[GPU_PROCESSES.label] = lambda *_: Completed(LEFT_OVER, b"", words.encode())
        processes = GpuProcessCollector(HostSettings(), Observed(SGLANG), context)
        told = Recorder()
        async with collecting(processes, host, told):
            await told.until(lambda: len(told.of(SourceSample)) >= 2)
        assert words in told.of(SourceSample)[1].detail

    async def test_a_refused_field_is_replaced_and_that_is_remembered(
        self, host: FakeHost, recorder: Recorder, context: Context
    ) -> None:
        def refusal(field: str) -> Script:
            return Script([f'Field "{field}" is not a valid field to query.', ""], status=2)

        host.scripts[GPU.label] = [
            refusal("clocks_event_reasons.active"),
            refusal("temperature.memory"),
            Script([], status=0),
            Script([], stays=True),
        ]
        async with collecting(GpuSmiCollector(HostSettings(), context), host, recorder):
            await recorder.until(lambda: len(host.calls) >= 1)
            while len(host.arguments(GPU.label)) < 4:
                await recorder.until(lambda: True)
                await context.nudge.wait(0)
        asked = [args[1].split(",") for args in host.arguments(GPU.label)]
        assert "clocks_event_reasons.active" in asked[0]
        assert "clocks_throttle_reasons.active" in asked[1]
        assert "temperature.memory" not in asked[2]
        assert asked[3] == asked[2]
        failures = [s for s in recorder.of(SourceSample) if "valid field" in s.detail]
        assert failures == []

    async def test_no_nvidia_smi(
        self, host: FakeHost, recorder: Recorder, context: Context
    ) -> None:
        host.scripts[GPU.label] = [Script([], status=127, stderr="nvidia-smi not found in /bin")]
        async with collecting(GpuSmiCollector(HostSettings(), context), host, recorder):
            await recorder.until(lambda: len(recorder.of(SourceSample)) == 2)
        said = recorder.of(SourceSample)[-1]
        assert said.status is SourceStatus.ABSENT
        assert "no nvidia-smi" in said.detail
        assert said.remedy

    async def test_a_gpu_that_falls_off_the_bus_leaves_the_others(
        self, host: FakeHost, recorder: Recorder, context: Context
    ) -> None:
        line = "Unable to determine the device handle for GPU0000:02:00.0: Unknown Error"
        host.scripts[GPU.label] = [
            Script([row(0), row(1), row(2), row(0), row(1), row(2), line], status=15),
            Script([row(0), row(2), row(0), row(2), row(0)], stays=True),
        ]
        async with collecting(GpuSmiCollector(HostSettings(), context), host, recorder):
            await recorder.until(
                lambda: any(gpu.lost for s in recorder.of(GpuSample) for gpu in s.gpus)
            )
        gpus = recorder.of(GpuSample)[-1].gpus
        assert [(gpu.index, gpu.lost) for gpu in gpus] == [(0, ""), (1, "Unknown Error"), (2, "")]
        first, second = host.arguments(GPU.label)[:2]
        assert len(first) == 3
        assert second[3] == "00000000:01:00.0,00000000:03:00.0"
        said = recorder.of(SourceSample)[-1]
        assert said.status is SourceStatus.LIVE
        assert "GPU 1 does not answer" in said.detail

    async def test_processes(self, host: FakeHost, recorder: Recorder, context: Context) -> None:
        rows = [
            ",".join([cells[0], cells[2], cells[3].removesuffix(" MiB"), cells[1]])
            for line in capture("loaded.txt", "compute-apps loaded")[1:]
            for cells in [line.split(", ")]
        ]
        output = "\n".join([*rows, "@unit", "580", "581", ""])
        host.answers[GPU_PROCESSES.label] = lambda *_: Completed(0, output.encode(), b"")
        collector = GpuProcessCollector(HostSettings(), Observed(SGLANG), context)
        async with collecting(collector, host, recorder):
            await recorder.until(lambda: bool(recorder.of(GpuProcessSample)))
        found = recorder.of(GpuProcessSample)[0].processes
        assert [(process.pid, process.name, process.in_unit) for process in found] == [
            (580, "python3", True),
            (580, "python3", True),
        ]
        assert found[0].memory == 41834 * MIB


def test_process_rows() -> None:
    text = "12, GPU-1, [N/A], /usr/bin/a, b\nno row\n[N/A], GPU-1, 1, x\n13,GPU-2,5,\n"
    assert parse_processes(text) == [
        GpuProcess(12, "GPU-1", "/usr/bin/a, b", None),
        GpuProcess(13, "GPU-2", "", 5 * MIB),
    ]


def test_membership_is_unknown_without_a_control_group() -> None:
    processes = [GpuProcess(1, "a"), GpuProcess(2, "a")]
    assert [p.in_unit for p in mark_members(processes, set(), False)] == [None, None]
    assert [p.in_unit for p in mark_members(processes, {1}, False)] == [True, False]
    assert [p.in_unit for p in mark_members(processes, {1}, True)] == [True, None]


@pytest.mark.parametrize(
    ("mask", "words", "concern"),
    [
        (None, (), Concern.NONE),
        (0, (), Concern.NONE),
        (0x1, ("idle",), Concern.NONE),
        (0x4, ("power cap",), Concern.LIMITED),
        (0x48, ("hw thermal", "hw slowdown"), Concern.SLOWED),
        (0x24, ("sw thermal", "power cap"), Concern.SLOWED),
        (0x1000, ("reason 0x1000",), Concern.LIMITED),
    ],
)
def test_throttle_words(mask: int | None, words: tuple[str, ...], concern: Concern) -> None:
    assert throttle_words(mask) == words
    found = (reason.concern for reason in throttle_reasons(mask))
    assert max(found, default=Concern.NONE) is concern
