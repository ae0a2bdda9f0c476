"""Synthetic loads of a 548 GB model on eight GPUs, as the sources would have shown them."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from ddtui.core.events import AnyEvent, BarMoved, FiredUp, Phase, PhaseBegan, PhaseEnded, PortOpened
from tests.support.load_replay import Load, Seen

GIB = 2**30
BEGAN = 1_760_000_000.0
CONTEXT = 1_600_000_000
"""CUDA context and communication buffers of one rank, bytes."""


@dataclass(frozen=True)
class Scenario:
    """How a load goes. Speeds are bytes per second over all ranks."""

    name: str
    seed: int
    speed: float = 1.0e9
    tp: int = 8
    size: int = 548_000_000_000
    starting: float = 32.0
    drafter_size: int = 6_000_000_000
    has_drafter: bool = True
    kv_bytes: int = 18 * GIB
    kv_seconds: float = 3.0
    graphs: float = 42.0
    warmup: float = 9.0
    cold: float = 1.0
    """Share of the bytes that come from storage."""
    noise: float = 0.15
    trend: float = 1.0
    """Speed at the end against that at the begin."""
    pauses: tuple[tuple[float, float], ...] = ()
    """(share of the bytes at which it stops, seconds)."""
    shards: int = 64
    bar: str = "closing"
    """`live` one line a state; `closing` all states in one entry when it closes; `none`."""
    slow_rank: tuple[int, float] | None = None
    """A rank and how much slower than the others it is."""
    drafter_last: bool = False
    """As older engines: the drafter after the target's graphs."""
    others: int = 0
    """Memory of other processes on every GPU, bytes."""
    released: float | None = None
    """Seconds after which the previous run's memory is given back."""
    gpu_memory: bool = True
    reads: bool = True
    period: float = 1.0


class _Builder:
    def __init__(self, scenario: Scenario) -> None:
        self.plan = scenario
        self.random = random.Random(scenario.seed)
        self.now = BEGAN
        self.seen: list[Seen] = []
        self.memory = [0.0] * scenario.tp
        self.read = 0.0
        self.speed_state = 0.0
        self.next_sample = BEGAN + 0.4

    def rank(self, index: int) -> str:
        return f"TP{index}" if self.plan.tp > 1 else ""

    def say(self, event: AnyEvent) -> None:
        self.seen.append(Seen(event.stamp, event))

    def all_ranks(self, make: type[PhaseBegan] | type[PhaseEnded], phase: Phase) -> None:
        for index in range(self.plan.tp):
            self.say(make(phase=phase, stamp=self.now + 0.01 * index, rank=self.rank(index)))

    def step(self, seconds: float) -> None:
        """Time passes; samples are taken when they are due."""
        end = self.now + seconds
        while self.next_sample <= end:
            at = self.next_sample
            gpus = {}
            for index, used in enumerate(self.memory):
                old = self.plan.released is not None and at - BEGAN < self.plan.released
                gpus[index] = int(used) + self.plan.others + (88 * GIB if old else 0)
            self.seen.append(
                Seen(
                    at,
                    gpus=gpus if self.plan.gpu_memory else None,
                    reads=int(self.read) if self.plan.reads else None,
                )
            )
            self.next_sample += self.plan.period
        self.now = end

    def starting(self) -> None:
        self.read = 20e6
        total = self.plan.starting
        for _ in range(10):
            self.step(total * 0.07)
            self.read += 28e6 * self.plan.cold
        for index in range(self.plan.tp):
            self.memory[index] += CONTEXT
        self.step(total * 0.3)

    def pace(self, share: float) -> float:
        """Bytes per second now: noise with a memory of some 15 s, a slow first stretch, a trend."""
        self.speed_state = 0.93 * self.speed_state + self.random.gauss(0, self.plan.noise * 0.37)
        ramp = min(1.0, 0.35 + 25 * share)
        trend = 1 + (self.plan.trend - 1) * share
        return self.plan.speed * math.exp(self.speed_state) * ramp * trend

    def weights(self, phase: Phase, size: int, shards: int) -> None:
        plan, tp = self.plan, self.plan.tp
        self.all_ranks(PhaseBegan, phase)
        began, before, read_before = self.now, list(self.memory), self.read
        slow, factor = plan.slow_rank or (-1, 1.0)
        done, told, pauses = 0.0, 0, list(plan.pauses) if phase is Phase.TARGET else []
        ended: set[int] = set()
        used = int(size / tp)
        states: list[tuple[int, int]] = []
        while len(ended) < tp:
            if pauses and done >= pauses[0][0] * size:
                self.step(pauses.pop(0)[1])
            done += self.pace(min(1.0, done / size)) * 0.25
            for index in range(tp):
                share = min(1.0, done / size / (factor if index == slow else 1.0))
                self.memory[index] = before[index] + share * used
                if share >= 1.0 and index not in ended:
                    ended.add(index)
                    self.say(
                        PhaseEnded(
                            phase=phase,
                            stamp=self.now + 0.25,
                            rank=self.rank(index),
                            memory_used=used,
                            seconds=self.now - began,
                        )
                    )
            self.read = max(self.read, read_before + plan.cold * min(size, done + 1.5e9))
            self.step(0.25)
            while told < shards and done >= (told + 1) / shards * size:
                told += 1
                states.append((told, shards))
                if plan.bar == "live":
                    self.bar(phase, *states[-1])
        if plan.bar == "closing":
            for state in states:
                self.bar(phase, *state)

    def bar(self, phase: Phase, done: int, total: int) -> None:
        self.say(BarMoved(phase=phase, done=done, total=total, stamp=self.now))

    def cache(self, share: float) -> None:
        self.step(self.plan.kv_seconds * share * 0.5)
        self.all_ranks(PhaseBegan, Phase.KV_CACHE)
        for index in range(self.plan.tp):
            self.memory[index] += self.plan.kv_bytes * share
        self.step(self.plan.kv_seconds * share * 0.5)
        self.all_ranks(PhaseEnded, Phase.KV_CACHE)

    def capture(self, share: float) -> None:
        self.all_ranks(PhaseBegan, Phase.GRAPHS)
        for _ in range(20):
            self.step(self.plan.graphs * share / 20)
            for index in range(self.plan.tp):
                self.memory[index] += 60e6
        self.all_ranks(PhaseEnded, Phase.GRAPHS)

    def build(self) -> Load:
        plan = self.plan
        self.starting()
        self.weights(Phase.TARGET, plan.size, plan.shards)
        drafter = plan.has_drafter
        if drafter and not plan.drafter_last:
            self.weights(Phase.DRAFTER, plan.drafter_size, 1)
        self.cache(1.0)
        self.capture(0.8)
        if drafter and plan.drafter_last:
            self.weights(Phase.DRAFTER, plan.drafter_size, 1)
            self.cache(0.2)
        self.capture(0.2)
        self.say(PortOpened(stamp=self.now))
        self.step(plan.warmup)
        self.say(FiredUp(stamp=self.now))
        return Load(
            plan.name,
            BEGAN,
            self.now,
            sorted(self.seen, key=lambda each: each.at),
            drafter="drafter" if drafter else None,
            tp=plan.tp,
            size=plan.size,
            drafter_size=plan.drafter_size,
            shards=plan.shards,
        )


def make(scenario: Scenario) -> Load:
    """The load that a scenario describes; the same seed gives the same load."""
    return _Builder(scenario).build()
