"""The runner of the screens, as they see it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from ddtui.bench.progress import Progress, Step
from ddtui.cli.hosted_runner import HostedRunner, Listener
from ddtui.core.experiment import Experiment
from ddtui.core.launch import Request
from ddtui.experiments.report import RunnerView
from ddtui.experiments.runner import Runner


def measuring(name: str, *series: tuple[float, float]) -> RunnerView:
    experiment = Experiment(id=name, host="ct200", title=name, request=Request())
    progress = Progress(step=Step.MEASURING, cell=1, series=series)
    return RunnerView(host="ct200", who="mara", experiment=experiment, progress=progress)


async def test_no_bench_is_shown_with_the_curve_of_the_one_before(tmp_path: Path) -> None:
    begun, end = asyncio.Event(), asyncio.Event()

    async def start() -> None:
        begun.set()
        await end.wait()

    runner: Any = SimpleNamespace(start=start, ask_to_stop=end.set)
    runner.state = measuring("a", (0.5, 100.0), (1.0, 120.0))

    @asynccontextmanager
    async def made(_: Listener) -> AsyncIterator[Runner]:
        yield cast("Runner", runner)

    hosted = HostedRunner(made, tmp_path / "presence.json", lambda: 1_000.0)
    hosted.start()
    await begun.wait()
    hosted.look()
    assert list(hosted.view.curve.values) == [100.0, 120.0]
    runner.state = measuring("b")
    assert list(hosted.view.curve.values) == []
    hosted.look()
    assert list(hosted.view.curve.values) == []
    await hosted.stop()
    assert not hosted.here
