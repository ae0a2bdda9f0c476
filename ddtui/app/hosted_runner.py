"""A runner in this process, over a host that is watched already; and who else runs the queue."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import msgspec

from ddtui.app.problems import problem_of
from ddtui.bench.progress import Progress
from ddtui.core.snapshot import History
from ddtui.experiments.presence import Holder, holder_of
from ddtui.experiments.report import RunEvent, RunnerView
from ddtui.experiments.runner import Runner
from ddtui.hosts.base import HostError
from ddtui.store import Stale, StoreError
from ddtui.ui.queue_source import RunView
from ddtui.ui.source import ControlProblem

POINT = 0.5
"""Seconds that one point of the live curve stands for."""
MOST_POINTS = 1200
STOP_SECONDS = 20.0
"""How long a runner is waited for at the end of ddtui; what is kept by then is carried on."""

Listener = Callable[[RunEvent], None]
MakeRunner = Callable[[Listener], AbstractAsyncContextManager[Runner]]
"""A runner with a store of its own, that tells what happens. Raises StoreError, HostError."""

log = logging.getLogger(__name__)


class HostedRunner:
    """Starts and stops a runner here, and tells how far it is."""

    def __init__(self, make: MakeRunner, presence: Path, clock: Callable[[], float]) -> None:
        """`presence` is the file that says who runs the host's queue on this machine."""
        self._make = make
        self._presence = presence
        self._clock = clock
        self._runner: Runner | None = None
        self._task: asyncio.Task[None] | None = None
        self._began = 0.0
        self._stopping = False
        self._ended = ""
        self._said = ""
        self._trouble: ControlProblem | None = None
        self._curve: dict[int, float] = {}
        self._curve_of = ""
        self._holder: Holder | None = None
        self._unreadable = ""
        self.elsewhere = ""
        """Who runs it on another machine, as the host says."""

    @property
    def here(self) -> bool:
        """Whether it runs in this process."""
        return self._task is not None and not self._task.done()

    @property
    def stopping(self) -> bool:
        """Whether it runs here and was asked to stop."""
        return self.here and self._stopping

    def start(self) -> None:
        """Begin, unless it runs here already."""
        if self.here:
            return
        self._stopping, self._ended, self._said = False, "", ""
        self._began = self._clock()
        self._task = asyncio.create_task(self._run(), name="runner of the screen")

    async def _run(self) -> None:
        try:
            async with self._make(self._heard) as runner:
                self._runner = runner
                if not self._stopping:
                    await runner.start()
        except (HostError, StoreError, OSError) as error:
            self._trouble = problem_of(error)
        except Stale as error:
            self._trouble = ControlProblem(f"another runner has taken over: {error}")
        except Exception as error:
            log.exception("the runner here")
            self._trouble = ControlProblem(
                f"a fault in ddtui: {type(error).__name__}: {error}",
                "What was kept can be carried on: start it again.",
            )
        finally:
            self._runner = None
            self._holder = None
            self._ended = self._said or "ended before anything was run"

    def _heard(self, event: RunEvent) -> None:
        if event.what == "finished":
            self._said = event.text

    def ask_to_stop(self) -> None:
        """Begin to end it."""
        self._stopping = True
        if self._runner is not None:
            self._runner.ask_to_stop()

    async def stop(self) -> None:
        """End it cleanly, and wait for that."""
        if self._task is None or self._task.done():
            return
        self.ask_to_stop()
        _, late = await asyncio.wait({self._task}, timeout=STOP_SECONDS)
        for task in late:  # what is kept is kept: the next runner goes on from there
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def take_trouble(self) -> ControlProblem | None:
        """Why it came to nothing, once."""
        trouble, self._trouble = self._trouble, None
        return trouble

    # ---- what is shown -------------------------------------------------------------------------

    def look(self) -> None:
        """Note how fast the bench is. Called about every second."""
        progress = self._progress
        if progress is None or self._runner is None:
            return
        of = _cell_of(self._runner.state)
        if of != self._curve_of:
            self._curve_of, self._curve = of, {}
        now = self._clock()
        last = progress.series[-1][0] if progress.series else 0.0
        for at, rate in progress.series:
            self._curve[int((now - last + at) // POINT)] = rate
        for old in sorted(self._curve)[:-MOST_POINTS]:
            del self._curve[old]

    async def look_who(self) -> None:
        """Note which other process of this machine runs the queue. Called about every second."""
        if self.here:
            return
        try:
            holder, self._unreadable = await asyncio.to_thread(holder_of, self._presence), ""
        except StoreError as error:
            holder, self._unreadable = None, f"{error.what}: {error.why}"
        # One begun here meanwhile has the file itself.
        self._holder = None if self.here else holder

    @property
    def _progress(self) -> Progress | None:
        return None if self._runner is None else self._runner.state.progress

    @property
    def view(self) -> RunView:
        """Who runs it, and how far it is: as it was looked up last. Read with each painting."""
        if self.here:
            return self._view_here()
        if (holder := self._holder) is not None:
            return RunView(
                where="this machine",
                who=holder.who,
                since=holder.since,
                pid=holder.pid,
                log=holder.log,
                ended=self._ended,
            )
        if self.elsewhere:
            return RunView(where="elsewhere", who=self.elsewhere, ended=self._ended)
        return RunView(ended=self._ended, unknown=self._unreadable)

    def _view_here(self) -> RunView:
        view = RunView(where="here", since=self._began, stopping=self._stopping)
        if self._runner is None:
            return view
        state = self._runner.state
        known = state.progress is not None and self._curve_of == _cell_of(state)
        points = sorted(self._curve.items()) if known else []
        return msgspec.structs.replace(
            view,
            who=state.who,
            step=state.step,
            detail=state.detail,
            waiting=state.waiting,
            progress=state.progress,
            curve=History(tuple(at * POINT for at, _ in points), tuple(x for _, x in points)),
            eta_seconds=state.eta_seconds,
        )


def _cell_of(state: RunnerView) -> str:
    """What a curve is of."""
    experiment, progress = state.experiment, state.progress
    return f"{experiment.id if experiment else ''} {progress.cell if progress else ''}"
