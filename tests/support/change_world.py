"""A controller over the scripted host, and a store that keeps what was put as a disk would."""

from __future__ import annotations

import asyncio
from typing import cast

import msgspec

from ddtui.collect.settings import HostSettings
from ddtui.control.carrying_out import Watching
from ddtui.control.controller import Controller
from ddtui.control.host_actions import UnitActions
from ddtui.control.planner import Planner
from ddtui.control.reconfiguration import Limits
from ddtui.core.change_record import ChangeRecord, StepRecord
from ddtui.engines.sglang import SGLANG
from ddtui.hosts.base import Host
from tests.support.scripted_host import ScriptedHost, Watched
from tests.support.scripted_machine import PORT, UNIT, Machine, Script

FRAGMENT = """[Service]
ExecStart=/opt/venv/bin/python -m sglang.launch_server --model-path /models/kimi --port 30000 \\
    --speculative-algorithm DFLASH --speculative-draft-model-path /models/draft \\
    --speculative-dflash-block-size 8
"""


class KeptChanges:
    """A ChangeStore in memory: records are kept as JSON, so that nothing is shared."""

    def __init__(self) -> None:
        self.rows: dict[str, bytes] = {}

    def put(self, record: ChangeRecord) -> None:
        """See ChangeStore."""
        self.rows[record.id] = msgspec.json.encode(record)

    def step(self, record: ChangeRecord, _step: StepRecord) -> None:
        """See ChangeStore."""
        self.put(record)

    def history(
        self,
        host: str,
        *,
        simulated: bool = False,
        unit: str = "",
        most: int = 100,
    ) -> list[ChangeRecord]:
        """See ChangeStore."""
        rows = [msgspec.json.decode(row, type=ChangeRecord) for row in self.rows.values()]
        return rows[::-1][:most]

    def unfinished(self, host: str, unit: str, *, simulated: bool = False) -> ChangeRecord | None:
        """See ChangeStore."""
        found = self.history(host, unit=unit, simulated=simulated, most=1)
        return found[0] if found and not found[0].ending else None

    def last_in_force(self, host: str, unit: str, *, simulated: bool = False) -> str | None:
        """See ChangeStore."""
        for each in self.history(host, unit=unit, simulated=simulated):
            if each.is_proved:
                return each.proved_drop_in
        return None


class ChangeWorld:
    """Host, what is known of it, and one operator. Made inside a running loop."""

    def __init__(self, script: Script, seed: int = 0, limits: Limits | None = None) -> None:
        self.machine = Machine(script, FRAGMENT)
        self.host = ScriptedHost(self.machine, seed)
        self.watched = Watched(self.host)
        self.store = KeptChanges()
        self.limits = limits or Limits()
        self.log: list[tuple[float, str, str]] = []
        """Each step, and words within one: when, which, what."""
        self.machine.start(age=10_000)

    def control(self) -> Controller:
        """A ddtui that has just been started."""
        host = cast(Host, self.host)  # it has what ddtui's changes use
        watching = Watching(SGLANG, self.watched.snapshot, lambda: PORT, self.watched.clock)
        return Controller(
            lambda: UnitActions(host, "system", UNIT),
            watching,
            Planner(host, HostSettings(unit=UNIT)),
            self.store,
            limits=self.limits,
            who="ada@desk",
        )

    def heard(self, _record: ChangeRecord, step: StepRecord) -> None:
        """A listener."""
        self.log.append((asyncio.get_running_loop().time(), step.step, step.detail))

    def steps(self) -> list[tuple[float, str]]:
        """Each step once, with the time at which it began."""
        found: list[tuple[float, str]] = []
        for at, step, _ in self.log:
            if not found or found[-1][1] != step:
                found.append((at, step))
        return found
