"""The simulated host CT200: hardware, journal, unit and files, and what they are doing."""

from __future__ import annotations

import random
from collections.abc import Callable

from ddtui.core.clock import Clock, system_clock
from ddtui.demo.config import EngineConfig
from ddtui.demo.engine import SimulatedEngine
from ddtui.demo.journal import Journal
from ddtui.demo.scenarios import DEFAULT_SCENARIO, FAILURES_OF, SCENARIOS, SETTLED
from ddtui.demo.startup import FULL_LOAD_SECONDS
from ddtui.demo.systemd import Unit
from ddtui.demo.world import World

UNIT_NAME = "llm-sglang.service"
PORT = 30000
MODEL_PATH = "/models/Kimi-K2.6"
DRAFTER_PATH = "/models/Kimi-K2.6-DFlash"
DEFAULT_SPEED = 57.0
"""Loads run this many times faster than real ones: about 10 s instead of nine minutes."""
WATCHED_SPEED = 22.0
"""The same where the load itself is what one looks at: about 25 s."""
_FRAGMENT = f"/etc/systemd/system/{UNIT_NAME}"
_PAST_START = 5400.0
"""Seconds ago that a serving engine was started."""

UNIT_FILE = f"""[Unit]
Description=SGLang: Kimi K2.6 (simulated)
After=network-online.target

[Service]
Type=simple
User=llm
WorkingDirectory=/opt/llm
Environment=CUDA_HOME=/usr/local/cuda SGLANG_DDTREE_MAX_TOPK=8
ExecStart=/opt/llm/venv/bin/python -m sglang.launch_server \\
    --model-path {MODEL_PATH} --served-model-name kimi-k2.6 --trust-remote-code \\
    --tp-size 8 --host 127.0.0.1 --port {PORT} --mem-fraction-static 0.9 \\
    --context-length 131072 --max-running-requests 16 --attention-backend triton \\
    --speculative-algorithm DDTREE --speculative-draft-model-path {DRAFTER_PATH} \\
    --speculative-dflash-block-size 8 --speculative-ddtree-budget 8 \\
    --speculative-draft-window-size 2048 --enable-metrics \\
    --uvicorn-access-log-exclude-prefixes /health /ready /metrics /server_info /model_info /v1/loads
Restart=on-failure
RestartSec=3
KillMode=mixed
TimeoutStopSec=90

[Install]
WantedBy=multi-user.target
"""


class Machine:
    """The simulated host. Start it inside a running event loop; close it when done."""

    def __init__(
        self,
        *,
        speed: float | None = None,
        seed: int = 0,
        scenario: str = DEFAULT_SCENARIO,
        clock: Clock = system_clock,
    ) -> None:
        if scenario not in SCENARIOS:
            raise ValueError(f"no scenario '{scenario}': there are {', '.join(SCENARIOS)}")
        if speed is None:
            speed = DEFAULT_SPEED if scenario in SETTLED else WATCHED_SPEED
        if speed <= 0:
            raise ValueError(f"speed must be above 0, not {speed}")
        self.scenario = scenario
        self.speed = speed
        self.clock = clock
        self.failure: str | None = FAILURES_OF.get(scenario)
        """The failure that the next starts of the engine run into; None for none."""
        self.traffic = scenario != "idle"
        self.locks: dict[str, str] = {}
        """Who holds each lock, in their words."""
        self._rng = random.Random(seed)
        self._starts = 0
        self._seed = seed
        self.world = World(clock, self._rng, lambda: self.unit.engine)
        self.journal = Journal(self._rng, self.world.booted_at)
        fragment = UNIT_FILE
        if scenario == "failing":
            fragment = fragment.replace("Restart=on-failure\n", "").replace("RestartSec=3\n", "")
        self.unit = Unit(
            UNIT_NAME,
            "SGLang: Kimi K2.6 (simulated)",
            {_FRAGMENT: fragment},
            self.journal,
            self._engine,
            clock=clock,
            rng=self._rng,
        )
        self.unit.on_end = self.world.engine_ended

    def _engine(
        self, config: EngineConfig, output: Callable[[float, str, str], None], main_pid: int
    ) -> SimulatedEngine:
        self._starts += 1
        engine = SimulatedEngine(
            config,
            output,
            clock=self.clock,
            speed=self.speed,
            seed=self._seed * 1000 + self._starts,
            failure=self.failure,
            traffic=self.traffic,
        )
        engine.main_pid = main_pid
        return engine

    def start(self) -> None:
        """Begin the scenario: start the unit now, or as if it had been started long ago."""
        settled = self.scenario in SETTLED
        age = max(_PAST_START, 2 * FULL_LOAD_SECONDS / self.speed) if settled else 0.0
        self.unit.start(age=age)

    async def close(self) -> None:
        """End every task."""
        await self.unit.close()

    def engine_on(self, port: int) -> SimulatedEngine | None:
        """The engine that accepts connections on a port of the host, if one does."""
        engine = self.unit.engine
        return engine if engine and engine.port_open and engine.config.port == port else None
