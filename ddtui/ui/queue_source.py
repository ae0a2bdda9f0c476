"""What the screens need of a host's queue and of whoever runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from ddtui.bench.progress import Progress
from ddtui.core.experiment import (
    Experiment,
    ExperimentState,
    Leave,
    Place,
    QueueEvent,
    QueueSettings,
)
from ddtui.core.launch import Plan
from ddtui.core.snapshot import History
from ddtui.experiments.eta import Leg, QueueEta
from ddtui.experiments.grid import Expansion
from ddtui.experiments.matching import Matched, Shape
from ddtui.experiments.worked import Worked
from ddtui.ui.source import ControlProblem

Where = Literal["nobody", "here", "this machine", "elsewhere"]


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """Who runs the queue, and how far it is."""

    where: Where = "nobody"
    """`here`: in this ddtui; `this machine`: in another process; `elsewhere`: on another one."""
    who: str = ""
    """user@machine; for one elsewhere as the host tells it."""
    unknown: str = ""
    """Why it is not known whether another process of this machine runs it."""
    since: float | None = None
    """Unix seconds on the operator's clock."""
    pid: int = 0
    log: str = ""
    """The log of a runner without a terminal."""
    step: str = ""
    """Of a runner here: its experiment's, or `leaving` at the end of the queue."""
    detail: str = ""
    waiting: str = ""
    """Why nothing goes on."""
    progress: Progress | None = None
    """Of the bench, while it runs here."""
    curve: History = History()
    """Tokens per second of all streams since the bench began."""
    eta_seconds: float | None = None
    """Until the step under way ends."""
    stopping: bool = False
    ended: str = ""
    """How the last run from here ended; empty before there was one."""

    @property
    def running(self) -> bool:
        """Whether somebody runs the queue."""
        return self.where != "nobody"


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What a measurement gave, in short: its first cell."""

    concurrency: int
    user_rate: float | None = None
    """Tokens per second of one user, median."""
    total_rate: float | None = None
    acceptance: float | None = msgspec.field(default=None, name="acceptance_length")
    """Acceptance length, called so in JSON."""
    passed: int | None = None
    """Coding tasks passed, of `tasks`."""
    tasks: int = 0
    disturbed: bool = False


class QueueView(msgspec.Struct, frozen=True, kw_only=True):
    """A host's queue as it was read last."""

    version: int = -1
    """Grows with every change; below 0 while nothing was read yet."""
    experiments: tuple[Experiment, ...] = ()
    """What runs, what waits in its order, what ended; without secrets."""
    settings: QueueSettings = QueueSettings(host="")
    results: Mapping[str, Result] = {}
    """By id of the experiment."""
    eta: QueueEta | None = None
    """Of what runs and waits; None before it was worked out."""
    checked: bool = False
    """Whether the host has said what each loads; else every one counts as a load."""
    moved: frozenset[str] = frozenset()
    """Ids of those that would be another configuration than when they were added, as they are made
    on what is in force when the queue begins."""
    best: float | None = None
    """Tokens per second of all streams: the most that was measured so far of the cell that the
    bench is at."""
    run: RunView = RunView()
    problem: str = ""
    """Why the queue cannot be read."""

    @property
    def read(self) -> bool:
        """Whether it was read at all."""
        return self.version >= 0

    @property
    def running(self) -> Experiment | None:
        """The one that runs, or was left running by a runner that is gone."""
        found = (each for each in self.experiments if each.state is ExperimentState.RUNNING)
        return next(found, None)

    def in_state(self, *states: ExperimentState) -> list[Experiment]:
        """Those in some states, in their order."""
        return [each for each in self.experiments if each.state in states]

    def find(self, experiment_id: str) -> Experiment | None:
        """The one with an id."""
        return next((each for each in self.experiments if each.id == experiment_id), None)

    def leg(self, experiment_id: str) -> Leg | None:
        """When an experiment ends, where that was worked out."""
        legs = self.eta.legs if self.eta is not None else ()
        return next((each for each in legs if each.id == experiment_id), None)

    @property
    def alive(self) -> bool:
        """Whether there is anything that the monitor should tell of."""
        going_on = (ExperimentState.RUNNING, ExperimentState.PENDING, ExperimentState.HELD)
        return self.run.running or bool(self.in_state(*going_on))


class GridView(msgspec.Struct, frozen=True, kw_only=True):
    """A grid as it is typed: what it expands to, before the host is asked; or what is wrong."""

    expansion: Expansion | None = None
    note: str = ""
    """Why it is not expanded while it is typed: it is large."""
    fault: str = ""
    """May have several lines, with a caret below the place."""


class LikeView(msgspec.Struct, frozen=True, kw_only=True):
    """What "the same with ..." would be, as it is typed."""

    title: str = ""
    reference: Shape | None = None
    """What is matched; None where nothing is."""
    block_size: int = 0
    choices: tuple[Matched, ...] = ()
    """Every policy, the default one first."""
    titles: tuple[str, ...] = ()
    """What would be added with each of the choices."""
    note: str = ""
    """Why there is nothing to match."""
    control: bool = False
    """Whether the unmatched budget is added too."""
    fault: str = ""


class RunPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a run would do, worked out just before it is asked for."""

    view: QueueView
    holder: str = ""
    """Who runs the queue already."""
    sandboxed: bool = True
    """Whether code of the model can be judged isolated here."""


class QueueSource(Protocol):
    """A host's queue and its runner. Methods raise ControlProblem; nothing was changed then.

    What changes the queue returns the ids of the experiments that it changed.
    """

    @property
    def view(self) -> QueueView:
        """What is known now. Cheap."""
        ...

    async def look(self) -> None:
        """Read what has changed. To be called about every second; never raises."""
        ...

    async def close(self) -> None:
        """Stop a runner that runs here, cleanly, and close the store."""
        ...

    # ---- looking closer ---------------------------------------------------------------------

    async def log(self, experiment_id: str) -> Sequence[QueueEvent]:
        """What was done to an experiment."""
        ...

    async def plan(self, experiment_id: str) -> Plan:
        """What its configuration changes of the unit as it is now, checked on the host."""
        ...

    def grid(self, text: str) -> GridView:
        """What a grid expands to. Asks nobody."""
        ...

    async def work_out(
        self, text: str, *, reuse: bool, on_done: Callable[[int, int], None]
    ) -> Worked:
        """A grid worked out on the host; `on_done` is told how many of how many are."""
        ...

    def like(self, experiment_id: str, text: str) -> LikeView:
        """What "the same with ..." would be. Asks nobody."""
        ...

    # ---- changing the queue -----------------------------------------------------------------

    async def add(self, text: str) -> Sequence[str]:
        """Add one: `[PRESET] NAME=VALUE ... [plan=NAME]`."""
        ...

    async def add_grid(self, worked: Worked) -> Sequence[str]:
        """Add a sweep that was worked out."""
        ...

    async def add_like(self, experiment_id: str, text: str, policy: str) -> Sequence[str]:
        """Add one like another; `policy` matches its budget, where it is not empty."""
        ...

    async def edit(self, experiment_id: str, text: str) -> Sequence[str]:
        """Change one that waits: as `add` without a preset; `-NAME` asks for it no more."""
        ...

    async def annotate(
        self, experiment_id: str, *, hypothesis: str | None = None, note: str | None = None
    ) -> Sequence[str]:
        """Set its hypothesis or note."""
        ...

    async def move(self, experiment_id: str, place: Place) -> Sequence[str]:
        """Put one that waits to another place."""
        ...

    async def hold(self, experiment_id: str) -> Sequence[str]:
        """Have one passed over."""
        ...

    async def release(self, experiment_id: str) -> Sequence[str]:
        """Have one taken up again in its turn."""
        ...

    async def cancel(self, experiment_id: str) -> Sequence[str]:
        """End one; the runner ends one that runs."""
        ...

    async def retry(self, experiment_id: str) -> Sequence[str]:
        """Do a failed or cancelled one once more."""
        ...

    async def clear(self) -> Sequence[str]:
        """Take all that ended off the list."""
        ...

    async def pause(self, *, paused: bool) -> None:
        """Have nothing more taken up, or go on."""
        ...

    async def leave(self, which: Leave) -> None:
        """Say in which configuration the unit is left."""
        ...

    # ---- running ----------------------------------------------------------------------------

    async def prepare_run(self) -> RunPlan:
        """What a run would do. Raises ControlProblem where there is nothing to run."""
        ...

    def start_run(self) -> None:
        """Begin to run the queue here."""
        ...

    async def stop_run(self) -> str:
        """Have whoever runs it stop; returns in words what was done."""
        ...

    def take_trouble(self) -> ControlProblem | None:
        """Why the run from here came to nothing, once."""
        ...
