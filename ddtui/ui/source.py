"""What the app needs of whoever watches a host and changes it, and what the operator may set."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from ddtui.core.engine import Engine
from ddtui.core.launch import Change, Finding, Launch, Plan, Request
from ddtui.core.snapshot import Snapshot


class LiveSource(Protocol):
    """A watched host: it collects on its own, and gives the newest snapshot whenever asked."""

    name: str
    engine: Engine
    """Labels the lines of the log."""

    def snapshot(self, now: float) -> Snapshot:
        """What is known at `now` (Unix seconds, operator's clock). Cheap; never waits."""
        ...

    async def start(self) -> None:
        """Begin collecting in the background; returns without waiting for the host."""
        ...

    async def close(self) -> None:
        """End collecting and the connection."""
        ...

    def retry_now(self) -> None:
        """Try to connect at once instead of waiting for the backoff."""
        ...


# ---- changing a host ------------------------------------------------------------------------


class ControlProblem(Exception):
    """Something cannot be done, and nothing was touched: `what`, and a `remedy` in words."""

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy


class PresetView(msgspec.Struct, frozen=True):
    """A preset as the screen lists it."""

    name: str
    description: str
    source: str
    """File and line, or `built in`."""
    request: Request
    """What it asks for, with all that it extends."""
    extends: tuple[str, ...] = ()
    note: str = ""


class StepStatus(enum.StrEnum):
    """Where one step stands."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class StepView(msgspec.Struct, frozen=True):
    """One step of a reconfiguration."""

    name: str
    status: StepStatus
    began: float | None = None
    """Unix seconds on the operator's clock."""
    seconds: float | None = None
    """How long it took; None while it goes on."""
    detail: str = ""
    """What goes on in it: what is still held, what the load does."""


class Question(msgspec.Struct, frozen=True):
    """Something that a reconfiguration waits for the operator to decide."""

    id: str
    kind: Literal["rollback", "orphans"]
    text: str
    """Why it is asked: the failure, or what is still there."""


class ProofView(msgspec.Struct, frozen=True):
    """What became of one change."""

    name: str
    requested: str | None
    resolved: str | None
    outcome: str
    taken: bool
    reason: str = ""


class ReconfigurationView(msgspec.Struct, frozen=True, kw_only=True):
    """A reconfiguration that goes on, or has ended."""

    id: str
    kind: str
    """`apply`, `rollback` or `restart`."""
    preset: str = ""
    experiment: str = ""
    """The title of the experiment that it was made for; empty for none."""
    unit: str = ""
    who: str = ""
    began: float
    """Unix seconds on the operator's clock."""
    ended: float | None = None
    steps: tuple[StepView, ...] = ()
    ending: str = ""
    """`in force`, `rolled back`, `failed`, `degraded`, `unknown`; empty while it goes on."""
    doubt: str = ""
    """What a proved ending is not proved by; empty where the server's own report proves it."""
    changes: tuple[Change, ...] = ()
    proofs: tuple[ProofView, ...] = ()
    cause: str = ""
    evidence: tuple[str, ...] = ()
    """The lines that prove the cause."""
    remedy: str = ""
    question: Question | None = None
    here: bool = True
    """Whether it is carried on by this ddtui."""
    interrupted: bool = False
    """Begun from this machine, not ended, and nobody carries it on."""

    @property
    def running(self) -> bool:
        """Whether somebody carries it on."""
        return not self.ending and not self.interrupted

    @property
    def succeeded(self) -> bool:
        """Whether it has ended as it was asked for."""
        return self.ending == ("rolled back" if self.kind == "rollback" else "in force")

    @property
    def title(self) -> str:
        """What it is, in a few words."""
        if self.experiment and self.kind == "apply":
            return f"experiment {self.experiment}"
        return f"{self.kind} {self.preset or self.experiment}".strip()

    @property
    def heading(self) -> str:
        """The same for the beginning of a line."""
        return self.title[:1].upper() + self.title[1:]


class SavePlace(msgspec.Struct, frozen=True):
    """A file that presets can be saved to."""

    id: str
    words: str


class ControlSource(Protocol):
    """Changes a watched host's unit. Methods raise ControlProblem while nothing is touched."""

    @property
    def reconfiguration(self) -> ReconfigurationView | None:
        """The one that goes on, or the last one that ended since ddtui began. Cheap."""
        ...

    @property
    def holder(self) -> str:
        """Who else changes the unit, and since when; empty for nobody, as of the last `look`."""
        ...

    @property
    def history(self) -> Sequence[ReconfigurationView]:
        """Changes of the unit made from this machine, the newest first, as of the last `look`."""
        ...

    def presets(self) -> Sequence[PresetView]:
        """All presets, read anew."""
        ...

    def save_places(self) -> Sequence[SavePlace]:
        """Where a preset can be saved."""
        ...

    def save_preset(self, name: str, description: str, request: Request, place: str) -> str:
        """Save a preset; returns where, in words."""
        ...

    def expected_load(self, after: Launch) -> tuple[float | None, str]:
        """Seconds that loading it should take, and what that is known from."""
        ...

    async def look(self) -> None:
        """Ask who has the lock, and read the history of changes."""
        ...

    async def plan(self, request: Request) -> Plan:
        """What a request would change, checked."""
        ...

    async def rollback_plan(self) -> Plan:
        """What rolling back would change."""
        ...

    async def against_restart(self) -> Sequence[Finding]:
        """What speaks against restarting the unit as it is configured."""
        ...

    def apply(self, plan: Plan) -> None:
        """Begin to bring a plan into force."""
        ...

    def rollback(self) -> None:
        """Begin to bring back what was in force before the last change."""
        ...

    def restart(self) -> None:
        """Begin to restart the unit as it is configured."""
        ...

    def resume(self) -> None:
        """Carry on an interrupted reconfiguration."""
        ...

    def answer(self, question: Question, *, yes: bool) -> None:
        """Answer what a reconfiguration asks. One that is no longer asked changes nothing."""
        ...

    def take_trouble(self) -> ControlProblem | None:
        """Why what was begun last came to nothing, once; None when it did not."""
        ...


class UiSettings(msgspec.Struct, frozen=True):
    """The operator's choices for the screens."""

    theme: str = ""
    """Name of a theme; empty for the built-in default."""
    keys: Mapping[str, object] = msgspec.field(default_factory=dict)
    """The `[keys]` table: keys by action id, for those that differ from the defaults."""
    paint_interval: float = 1.0
    """Seconds between two paints of changing figures. Changes of state are painted at once."""
    mouse: bool = True
    ascii: bool = False
    """Draw with ASCII only, for fonts without braille and box characters."""
