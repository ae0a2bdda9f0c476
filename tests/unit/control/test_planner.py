"""What a plan is checked against: past loads, room on disks, the unit's own files."""

from __future__ import annotations

from typing import cast

import pytest

from ddtui.collect.settings import HostSettings
from ddtui.control.planner import Planner
from ddtui.control.unit_command import read_unit
from ddtui.control.unit_text import UnitFile
from ddtui.core.launch import Level, Plan, Request
from ddtui.core.load_history import LoadHistory, LoadRecord
from ddtui.core.samples import Gpu, GpuSample
from ddtui.engines.sglang import SGLANG
from ddtui.hosts.base import Completed, Host, LinkDown, Program
from tests.support.change_world import FRAGMENT as TEXT
from tests.support.change_world import ChangeWorld
from tests.support.scripted_machine import FRAGMENT, UNIT, Script
from tests.support.virtual_time import in_virtual_time

GIB = 2**30
ROOM = "@free 1048576 /tmp\n@free 900000000000 /var/log\n@end\n"


class OnlyDisks:
    """A host that answers for its disks only."""

    name = "ct200"

    def __init__(self, room: str | None) -> None:
        self.room = room
        self.folders: tuple[str, ...] = ()
        self.sight = ""
        self.holders = ""

    async def run(self, program: Program, *args: str, **_: object) -> Completed:
        """See Host."""
        if program.label == "ddtui:drop-in-sight" and self.sight:
            return Completed(0, self.sight.encode(), b"")
        if program.label == "ddtui:holders" and args[2] == "31000":
            return Completed(0, self.holders.encode(), b"")
        if program.label != "ddtui:disk-room":
            return Completed(127, b"", b"")
        if self.room is None:
            raise LinkDown("gone")
        self.folders = args
        return Completed(0, self.room.encode(), b"")


def load(model: str, drafter: str, began: float) -> LoadRecord:
    return LoadRecord(
        model=model,
        drafter=drafter,
        tp=1,
        flags={"mem-fraction-static": "0.9"},
        began=began,
        seconds=500.0,
        memory_target=(80 * GIB,),
        memory_ready=(90 * GIB,),
    )


def planned(
    host: OnlyDisks,
    past: LoadHistory | None = None,
    environment: str = "",
    flags: dict[str, str | int | float | bool | None] | None = None,
) -> Plan:
    async def work() -> Plan:
        world = ChangeWorld(Script())
        world.watched.state.apply(GpuSample(0.0, "nvidia-smi", (Gpu(0, memory_total=96 * GIB),)))
        text = TEXT + environment
        command = read_unit(UNIT, [UnitFile(FRAGMENT, text)], SGLANG.is_command)
        planner = Planner(cast(Host, host), HostSettings(), past=past)
        request = Request(flags={"mem-fraction-static": 0.5, **(flags or {})})
        return await planner.plan(command, request, world.watched.snapshot())

    return in_virtual_time(work())


def test_a_full_disk_forbids_it() -> None:
    host = OnlyDisks(ROOM)
    plan = planned(host, environment="Environment=HF_HOME=/big/hf TRITON_CACHE_DIR=/t NOT=/x\n")
    (finding,) = [each for each in plan.findings if each.rule == "disk-room"]
    assert finding.level is Level.ERROR
    assert "/tmp has 1 MiB free" in finding.text
    assert host.folders == ("/tmp", "/var/log", "/big/hf", "/t")


@pytest.mark.parametrize("room", [None, "", "nonsense\n@free x /y\n"])
def test_without_an_answer_disks_forbid_nothing(room: str | None) -> None:
    assert not [each for each in planned(OnlyDisks(room)).findings if each.rule == "disk-room"]


def test_the_last_load_of_the_same_models_gives_the_estimate() -> None:
    past = LoadHistory(
        [load("/models/kimi", "/models/draft", 1.0), load("/models/other", "/models/draft", 2.0)]
    )
    (finding,) = [
        each for each in planned(OnlyDisks(ROOM), past).findings if each.rule == "memory-estimate"
    ]
    assert "weights took 80.0 GiB a GPU at the last load" in finding.text
    other = LoadHistory([load("/models/other", "/models/draft", 2.0)])
    rules = {each.rule for each in planned(OnlyDisks(ROOM), other).findings}
    assert "memory-estimate" not in rules


@pytest.mark.parametrize(
    ("flags", "sight", "told"),
    [
        ({"api-key": "sk-4f9a8b7c6d5e"}, "@open /etc/systemd/system/e.service\n@end\n", True),
        ({"api-key": "sk-4f9a8b7c6d5e"}, "@end\n", False),
        ({"api-key": "sk-4f9a8b7c6d5e"}, "", False),
        ({"api-key": "$KEY"}, "@open /etc/systemd/system/e.service\n@end\n", False),
        ({}, "@open /etc/systemd/system/e.service\n@end\n", False),
    ],
)
def test_a_secret_that_everybody_will_see_is_told(
    flags: dict[str, str | int | float | bool | None], sight: str, told: bool
) -> None:
    host = OnlyDisks(ROOM)
    host.sight = sight
    found = [each for each in planned(host, flags=flags).findings if each.rule == "secret-in-sight"]
    assert [each.level for each in found] == ([Level.WARNING] if told else [])
    assert all("e.service is not" in each.reason for each in found)


OTHER = "@process 77 500 1000 /system.slice/other.service python x ''"
OWN = f"@process 77 500 1000 /system.slice/{UNIT} python x ''"


@pytest.mark.parametrize(
    ("port", "holders", "said"),
    [
        (31000, f"@socket 1000 5\n@listens 77 5\n{OTHER}\n@end\n", "outside the unit: 77 (python)"),
        (31000, "@socket 0 5\n@end\n", "port 31000 is held outside the unit: another process"),
        (31000, f"@socket 1000 5\n@listens 77 5\n{OWN}\n@end\n", ""),
        (31000, "@end\n", ""),
        (31000, "", ""),
        (70000, "", "there is no port 70000"),
    ],
)
def test_the_port_that_is_asked_for_must_be_free(port: int, holders: str, said: str) -> None:
    """Not only the one that the unit has: the server would notice after minutes of loading."""
    host = OnlyDisks(ROOM)
    host.holders = holders
    found = planned(host, flags={"port": port}).findings
    texts = [each.text for each in found if each.rule.startswith("port-")]
    assert len(texts) == bool(said)
    assert not said or said in texts[0]
