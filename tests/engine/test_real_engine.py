"""ddtui follows a real SGLang: its load, its readiness, its figures, a changed configuration.

What is measured is printed at the end: seconds after the unit was started.
"""

from __future__ import annotations

import asyncio
import re
import time
from asyncio import to_thread
from collections.abc import Iterator
from statistics import mean

import pytest

from ddtui.core.events import Phase
from ddtui.core.samples import AnySample, HealthSample, ListenerOwner, ListenerSample
from ddtui.core.snapshot import Alert, Evidence, PhaseStatus, ReadinessState, Snapshot, Verdict
from tests.engine.sglang_unit import SIMULATED_ACCEPTANCE, UNIT, RealEngine
from tests.host.measured import RESULTS, measured
from tests.host.watching import Watcher, Watching

LOAD = 300.0
"""Seconds that a start may take on a machine that does much else."""
FIRED_UP = "The server is fired up and ready to roll!"
ALREADY_IN_USE = "address already in use"


@pytest.fixture
def unit(engine: RealEngine) -> Iterator[RealEngine]:
    yield engine
    engine.remove()


class Timeline:
    """When things were first seen, in seconds after the start of an invocation."""

    def __init__(self, title: str, watching: Watching) -> None:
        self.title = title
        self.began = time.time()
        self.seen: dict[str, float] = {}
        self._watching = watching
        watching.monitor.add_listener(self._take)

    def _take(self, sample: AnySample) -> None:
        if isinstance(sample, HealthSample) and sample.status is not None:
            self.mark(f"{sample.endpoint} {sample.status}")
        elif isinstance(sample, ListenerSample) and sample.owner is ListenerOwner.UNIT:
            self.mark("port held by the unit")

    def mark(self, what: str, at: float | None = None) -> None:
        """Note that something was seen for the first time."""
        self.seen.setdefault(what, (time.time() if at is None else at) - self.began)

    def report(self, invocation: str) -> None:
        """Add what the log and the states of readiness say, and print all of it."""
        for line in self._watching.state.log.since(0):
            if line.invocation == invocation:
                if FIRED_UP in line.text:
                    self.mark("log: fired up", line.stamp)
                elif "Uvicorn running on" in line.text:
                    self.mark("log: Uvicorn running", line.stamp)
        for at, state in self._watching.readiness:
            if at >= self.began:
                self.mark(f"ddtui: {state}", at)
        for what, seconds in sorted(self.seen.items(), key=lambda pair: pair[1]):
            measured(f"{self.title}: {what}", seconds)


def evidence(known: Snapshot) -> dict[str, Evidence]:
    return {each.name: each for each in known.readiness.evidence}


def alert(known: Snapshot, key: str) -> Alert | None:
    return next((each for each in known.alerts if each.key == key), None)


async def ready(watching: Watching, invocation: str) -> Snapshot:
    """Ready under this invocation, by all the evidence there is."""
    return await watching.until(
        lambda known: (
            known.unit
            and known.unit.invocation == invocation
            and known.readiness.state is ReadinessState.READY
            and all(each.verdict is Verdict.PROVED for each in known.readiness.evidence)
        ),
        LOAD,
        "ready with all evidence proved",
    )


async def figures_while(watching: Watching, engine: RealEngine) -> tuple[list[float], list[float]]:
    """Live tok/s and acceptance lengths that ddtui shows while requests run; checks them."""
    running = asyncio.create_task(to_thread(engine.generate, 6, 1500))
    rates, lengths = [], []
    while not running.done():
        known = watching.now()
        rate, length = known.engine.throughput, known.engine.acceptance_length
        if rate is not None and not rate.stale(known.at) and rate.value > 0:
            rates.append(rate.value)
        if length is not None and not length.stale(known.at):
            lengths.append(length.value)
        await asyncio.wait([running], timeout=0.25)
    answers = await running
    tokens = sum(each["completion_tokens"] for each in answers)
    seconds = max(each["e2e_latency"] for each in answers)
    truth = mean(each["spec_accept_length"] for each in answers)
    RESULTS.append(
        f"requests: {len(answers)}, {tokens} tokens in {seconds:.1f} s ="
        f" {tokens / seconds:.0f} tok/s, acceptance length {truth:.2f} by their own figures"
    )
    for name, values in (("tok/s", rates), ("acceptance length", lengths)):
        assert values, name
        RESULTS.append(
            f"ddtui showed {name}: {len(values)} looks, {min(values):.2f} to {max(values):.2f},"
            f" mean {mean(values):.2f}"
        )
    # Its gauges are of single intervals, and the last requests run alone: the order must be right.
    assert tokens / seconds / 3 < mean(rates) < 3 * tokens / seconds
    assert abs(mean(lengths) - truth) < 0.6
    return rates, lengths


async def test_a_load_its_figures_and_a_changed_configuration(
    unit: RealEngine, watcher: Watcher
) -> None:
    unit.install(start=False)
    watching = await watcher.watch(UNIT)
    await watching.until_state(ReadinessState.STOPPED)
    timeline = Timeline("first start", watching)
    unit.host.systemctl("start", UNIT)
    invocation = unit.host.show(UNIT, "InvocationID")
    known = await ready(watching, invocation)
    timeline.mark("ddtui: every piece of evidence proved")
    timeline.report(invocation)
    # Never before the engine itself: until it has warmed up, both endpoints answer 503. /health
    # generates a token, and may come after /ready, which is enough.
    # (The states are noted before this test hears of the sample, hence the little room.)
    said = [timeline.seen[each] for each in ("/health 200", "/ready 200") if each in timeline.seen]
    assert timeline.seen["ddtui: ready"] >= min(said) - 0.1
    assert timeline.seen["ddtui: ready"] > timeline.seen["/health 503"]
    states = [state for at, state in watching.readiness if at >= timeline.began]
    assert states.count(ReadinessState.READY) == 1
    RESULTS.append(f"states: {', '.join(states)}")
    RESULTS.extend(f"evidence {each.name}: {each.detail}" for each in evidence(known).values())
    assert known.load is not None
    assert known.load.finished
    done = {each.phase for each in known.load.phases if each.status is PhaseStatus.DONE}
    assert {Phase.TARGET, Phase.DRAFTER, Phase.KV_CACHE, Phase.WARMUP, Phase.READY} <= done
    RESULTS.append(
        "phases: "
        + ", ".join(
            f"{each.phase} {each.status}"
            + (f" {each.ended - each.began:.1f} s" if each.began and each.ended else "")
            for each in known.load.phases
        )
    )
    known = await watching.until(lambda known: "block size" in known.engine.knobs)
    RESULTS.append(f"knobs before: {dict(known.engine.knobs)} ({known.engine.knobs_source})")
    assert known.engine.knobs["block size"] == "8"
    simulated = alert(known, "simulated-acceptance")
    assert simulated is not None
    assert "simulated" in simulated.text
    RESULTS.append(f"alert: {simulated.text}")

    _, lengths = await figures_while(watching, unit)
    assert abs(mean(lengths) - SIMULATED_ACCEPTANCE) < 0.6

    unit.drop_in("--speculative-dflash-block-size", "16", "--speculative-draft-window-size", "64")
    timeline = Timeline("restart with a drop-in", watching)
    await to_thread(unit.host.systemctl, "restart", UNIT)
    timeline.mark("systemctl restart returned")
    invocation = unit.host.show(UNIT, "InvocationID")
    known = await ready(watching, invocation)
    timeline.report(invocation)
    assert known.unit is not None
    assert any("50-experiment.conf" in each for each in known.unit.drop_ins)
    known = await watching.until(lambda known: known.engine.knobs.get("block size") == "16")
    RESULTS.append(f"knobs after: {dict(known.engine.knobs)} ({known.engine.knobs_source})")
    assert known.engine.knobs["window"] == "64"
    assert known.engine.knobs_source == "/server_info"
    told = unit.server_info()
    assert told["speculative_num_draft_tokens"] == 16
    assert told["speculative_draft_window_size"] == 64


async def test_what_the_engine_refuses_is_told_in_its_own_words(
    unit: RealEngine, watcher: Watcher
) -> None:
    watching = await watcher.watch(UNIT)
    began = time.time()
    unit.install("--speculative-algorithm", "DDTREE")
    known = await watching.until_state(ReadinessState.FAILED, seconds=LOAD)
    measured("refused algorithm: seen as failed", time.time() - began)
    words = "does not know this speculative algorithm"
    known = await watching.until(lambda known: words in known.readiness.summary, 5, words)
    RESULTS.append(f"refused: {known.readiness.summary}")
    refusal = alert(known, "readiness")
    assert refusal is not None
    assert "DDTree" in refusal.text
    assert any("Unknown speculative algorithm name: DDTREE" in text for text in watching.texts())
    assert known.unit is not None
    assert known.unit.exit_status not in (0, None)


async def test_another_engine_on_the_port_never_makes_it_ready(
    unit: RealEngine, watcher: Watcher
) -> None:
    other = "other-engine.service"
    host = unit.host
    unit.install()
    # The same service under another name, started first: it has the port.
    host.sh(
        'sed "s/test service/earlier/" "/etc/systemd/system/$1" > "/etc/systemd/system/$2"'
        ' && systemctl stop "$1" && systemctl daemon-reload && systemctl start "$2"',
        UNIT,
        other,
    )
    try:
        watching = await watcher.watch(UNIT)
        end = time.monotonic() + LOAD
        while not any(FIRED_UP in text for text in await to_thread(host.journal, other)):
            assert time.monotonic() < end, "the earlier engine did not start"
            await asyncio.sleep(0.5)
        began = time.time()
        host.systemctl("start", UNIT)

        def said() -> list[str]:
            lines = watching.state.log.since(0)
            return [
                line.text
                for line in lines
                if line.stamp >= began and re.search(f"{FIRED_UP}|{ALREADY_IN_USE}", line.text)
            ]

        await watching.until(lambda _: said(), LOAD, "the port in use")
        measured("port in use: the engine notices after", time.time() - began)
        await asyncio.sleep(8)
        assert ReadinessState.READY not in [state for _, state in watching.readiness]
        known = watching.now()
        RESULTS.append(f"port in use: {known.readiness.state}: {known.readiness.summary}")
        RESULTS.append(f"port in use, the engine's own words: {[text[-90:] for text in said()]}")
    finally:
        await to_thread(host.systemctl, "kill", "-s", "KILL", UNIT, check=False)
        await to_thread(host.remove_unit, other)
