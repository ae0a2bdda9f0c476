"""The runner of the screens, as they see it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from ddtui.app.hosted_runner import HostedRunner, Listener, MakeRunner
from ddtui.bench.progress import Progress, Step
from ddtui.core.experiment import Experiment
from ddtui.core.launch import Request
from ddtui.experiments.presence import present
from ddtui.experiments.report import RunnerView
from ddtui.experiments.runner import Runner
from ddtui.ui.glyphs import UNICODE
from ddtui.ui.queue_rows import who_row
from ddtui.ui.queue_source import QueueView, RunView

never = cast("MakeRunner", None)
"""Of a runner that nobody starts."""


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


async def test_another_process_is_looked_up_apart_from_the_painting(tmp_path: Path) -> None:
    file = tmp_path / "runners" / "presence.json"
    hosted = HostedRunner(never, file, lambda: 1_000.0)
    with present(file, "ada@desk", 1.0) as other:
        assert hosted.view == RunView()  # nothing was looked up yet
        await hosted.look_who()
        file.unlink()
        assert (hosted.view.where, hosted.view.pid) == ("this machine", other.pid)
    await hosted.look_who()
    assert hosted.view == RunView()


async def test_a_file_that_cannot_be_read_ends_nothing_and_is_told(tmp_path: Path) -> None:
    file = tmp_path / "presence.json"
    file.symlink_to(tmp_path / "elsewhere")
    hosted = HostedRunner(never, file, lambda: 1_000.0)
    await hosted.look_who()
    run = hosted.view
    assert run.where == "nobody"
    assert str(file) in run.unknown
    assert "not known" in who_row(QueueView(run=run), UNICODE).text
