"""A made-up `ControlSource`: presets, plans and reconfigurations; counts what was begun."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from ddtui.core.launch import Change, ChangeKind, Finding, Launch, Level, Plan, Request
from ddtui.ui.app import DdtuiApp
from ddtui.ui.queue_source import QueueSource
from ddtui.ui.results_source import ResultsSource
from ddtui.ui.source import (
    ControlProblem,
    PresetView,
    ProofView,
    Question,
    ReconfigurationView,
    SavePlace,
    StepStatus,
    StepView,
    UiSettings,
)
from tests.ui.scenes import HOSTILE, NOW, SceneSource

COMMAND = ("python", "-m", "sglang.launch_server", "--model-path", "/models/kimi-k2.6")
BEFORE = Launch((*COMMAND, "--speculative-ddtree-budget", "8"))
UNIT = "sglang-kimi.service"

PRESETS = (
    PresetView(
        "budget-16",
        "a tree of 16 nodes, for one to four requests at once",
        "/home/operator/.config/ddtui/config.toml:41",
        Request("budget-16", {"budget": 16}),
    ),
    PresetView(
        "block16",
        "twice the drafter's trained block, and a tree to match",
        "/home/operator/kimi/ddtui.toml:3",
        Request(
            "block16",
            {"block_size": 16, "budget": 33},
            {"disable-radix-cache": True},
            {"SGLANG_DDTREE_MAX_TOPK": "8"},
        ),
        extends=("budget-16",),
        note="replaces one of the same name (/home/operator/.config/ddtui/config.toml:52)",
    ),
    PresetView("chain", "budget 4", "built in", Request("chain", {"budget": 4})),
    PresetView("same", "as it is", "built in", Request("same", {"budget": 8})),
)
HOSTILE_PRESETS = tuple(
    PresetView(text[:400], text, text, Request(text[:50], {}, {text[:60]: text}, {text: text}))
    for text in HOSTILE
)
_FLAGS = {"budget": "speculative-ddtree-budget", "block_size": "speculative-dflash-block-size"}
_CONFIGURED = {"budget": "8", "block_size": "8"}


def plan_of(request: Request) -> Plan:
    """A plan as the real one looks: a change for each knob, flag and variable."""
    changes = [
        Change(ChangeKind.FLAG, _FLAGS.get(name, name), _CONFIGURED.get(name), str(value), name)
        for name, value in request.knobs.items()
        if str(value) != _CONFIGURED.get(name)
    ]
    changes += [
        Change(ChangeKind.FLAG, name, None, None if value is None else str(value).lower())
        for name, value in request.flags.items()
    ]
    changes += [
        Change(ChangeKind.ENVIRONMENT, name, None, value)
        for name, value in request.environment.items()
    ]
    findings = []
    if request.knobs.get("budget") == 4:
        findings.append(
            Finding(
                Level.ERROR,
                "budget-is-a-chain",
                "budget 4 is not above block size - 1 = 7",
                "with so few nodes the tree is only a chain: DDTree then costs without a gain",
                "set budget=8 or more, or a smaller block_size",
            )
        )
    if "block_size" in request.knobs:
        findings.append(
            Finding(
                Level.WARNING,
                "block-size-not-trained",
                "block size 16, but the drafter was trained with 8",
                "acceptance falls beyond the trained block",
                "block_size=8",
            )
        )
    after = Launch((*COMMAND, "--speculative-ddtree-budget", str(request.knobs.get("budget", 8))))
    return Plan(request, BEFORE, after, tuple(changes), tuple(findings))


ORDER = (
    "planned",
    "locked",
    "written",
    "reloaded",
    "stopping",
    "releasing",
    "starting",
    "loading",
    "verifying",
    "in force",
)
_TOOK = {"planned": 0.1, "locked": 0.2, "written": 0.1, "reloaded": 0.4, "stopping": 9.0}
_TOOK |= {"releasing": 21.0, "starting": 1.0, "loading": 540.0, "verifying": 0.6}


def at_step(name: str, detail: str = "", *, now: float = NOW, spent: float = 12.0) -> tuple:
    """The steps of an apply that is at one of them."""
    steps, at = [], ORDER.index(name)
    began = now - spent - sum(_TOOK[each] for each in ORDER[:at])
    clock = began
    for index, each in enumerate(ORDER):
        if index < at:
            steps.append(StepView(each, StepStatus.DONE, clock, _TOOK[each]))
            clock += _TOOK[each]
        elif index == at:
            steps.append(StepView(each, StepStatus.RUNNING, clock, None, detail))
        else:
            steps.append(StepView(each, StepStatus.PENDING))
    return tuple(steps), began


def running(name: str = "releasing", detail: str = "", **changes: object) -> ReconfigurationView:
    """An apply that is at a step."""
    steps, began = at_step(name, detail)
    view = ReconfigurationView(
        id="r1",
        kind="apply",
        preset="budget-16",
        unit=UNIT,
        who="mara@desk",
        began=began,
        steps=steps,
        changes=plan_of(PRESETS[0].request).changes,
    )
    return replace(view, **changes)


HELD = (
    "still held: left over from the last invocation: 4711 (sglang::schedul); port 30000 is held by "
    "4711 (sglang::schedul); GPU 3 has 86.2 GiB too much in use, held by 4711 (sglang::schedul)"
)


def failed(ending: str = "failed") -> ReconfigurationView:
    """An apply whose start failed."""
    view = running("loading")
    done = [each for each in view.steps if each.status is StepStatus.DONE]
    steps = (
        *done,
        StepView("loading", StepStatus.FAILED, NOW - 12, 6.0, "it has ended (exit-code)"),
        StepView(ending, StepStatus.FAILED, NOW - 6, 0.0),
    )
    return replace(
        view,
        steps=steps,
        ended=NOW - 6,
        ending=ending,
        cause="CUDA out of memory while the KV cache was allocated",
        evidence=(
            "[2026-09-21 14:12:40 TP3] torch.OutOfMemoryError: CUDA out of memory. "
            "Tried to allocate 2.10 GiB",
        ),
        remedy="lower mem_fraction to 0.84, or end what else holds memory on GPU 3",
    )


def in_force() -> ReconfigurationView:
    """An apply that was proved."""
    view = running("verifying")
    steps = tuple(
        replace(each, status=StepStatus.DONE, seconds=each.seconds or 0.6) for each in view.steps
    )
    proof = ProofView("--speculative-ddtree-budget", "16", "16", "in force", True)
    return replace(view, steps=steps, ended=NOW - 20, ending="in force", proofs=(proof,))


def rolled_back() -> ReconfigurationView:
    """An apply whose start failed, taken back with proof."""
    view = failed("rolled back")
    back = (
        StepView("rolling back", StepStatus.DONE, NOW - 4_000, 0.4, "the operator decided so"),
        StepView("loading", StepStatus.DONE, NOW - 3_999, 541.0, "ready (proved)"),
        StepView("verifying", StepStatus.DONE, NOW - 3_458, 0.6),
    )
    return replace(
        view,
        id="r3",
        preset="block16",
        began=NOW - 4_700,
        steps=view.steps[:-1] + back,
        ended=NOW - 3_457,
        changes=plan_of(PRESETS[1].request).changes,
    )


def history() -> tuple[ReconfigurationView, ...]:
    """Changes of a day, the newest first: one that goes on, and each way to end."""
    restart = replace(in_force(), id="r4", kind="restart", preset="", changes=(), proofs=())
    return (
        running("loading"),
        replace(in_force(), id="r2", began=NOW - 2_400, ended=NOW - 1_812),
        rolled_back(),
        replace(failed(), id="r5", who="jonas@a-rather-long-machine-name", began=NOW - 90_000),
        replace(restart, began=NOW - 180_000, ended=NOW - 179_400),
    )


ROLLBACK = Question("q1", "rollback", "CUDA out of memory while the KV cache was allocated")
ORPHANS = Question("q2", "orphans", "left over from the last invocation: 4711 (sglang::schedul)")


class FakeControl:
    """Counts what is begun in `begun`; nothing else would change a host."""

    def __init__(self, presets: Sequence[PresetView] = PRESETS) -> None:
        self.begun: list[object] = []
        """What was started or answered, in order."""
        self.saved: list[tuple[str, Request, str]] = []
        self.reconfiguration: ReconfigurationView | None = None
        self.holder = ""
        self.history: Sequence[ReconfigurationView] = ()
        self.listed = presets
        self.make_plan: Callable[[Request], Plan] = plan_of
        self.problem: ControlProblem | None = None
        self.trouble: ControlProblem | None = None
        self.against_rollback: tuple[Finding, ...] = ()
        self.no_restart: tuple[Finding, ...] = ()
        self.back_to = self.undoes = ""
        """The changes that a rollback goes back to, and undoes."""
        self.plans = 0
        self.looks = 0

    def presets(self) -> Sequence[PresetView]:
        return self.listed

    def save_places(self) -> Sequence[SavePlace]:
        return (
            SavePlace("user", "your configuration: ~/.config/ddtui/config.toml"),
            SavePlace("project", "this folder: ddtui.toml"),
        )

    def save_preset(self, name: str, description: str, request: Request, place: str) -> str:
        self.saved.append((name, request, place))
        return place

    def expected_load(self, after: Launch) -> tuple[float | None, str]:
        return 551.0, "3 loads of this model"

    async def look(self) -> None:
        self.looks += 1
        await asyncio.sleep(0)

    async def plan(self, request: Request) -> Plan:
        self.plans += 1
        await asyncio.sleep(0)
        if self.problem is not None:
            raise self.problem
        return self.make_plan(request)

    async def rollback_plan(self) -> Plan:
        await asyncio.sleep(0)
        if self.problem is not None:
            raise self.problem
        plan = plan_of(Request())
        back = Change(ChangeKind.FLAG, "speculative-ddtree-budget", "16", "8")
        named = replace(plan, back_to=self.back_to, undoes=self.undoes)
        return replace(named, changes=(back,), findings=self.against_rollback)

    async def against_restart(self) -> Sequence[Finding]:
        await asyncio.sleep(0)
        return self.no_restart

    def apply(self, plan: Plan) -> None:
        self.begun.append(("apply", plan.request))

    def rollback(self) -> None:
        self.begun.append("rollback")

    def restart(self) -> None:
        self.begun.append("restart")

    def resume(self) -> None:
        self.begun.append("resume")

    def answer(self, question: Question, *, yes: bool) -> None:
        self.begun.append((question.kind, yes))

    def take_trouble(self) -> ControlProblem | None:
        trouble, self.trouble = self.trouble, None
        return trouble


def control_app(
    scene: str = "live",
    control: FakeControl | None = None,
    *,
    read_only: bool = False,
    key_clock: Callable[[], float] | None = None,
    queue: QueueSource | None = None,
    results: ResultsSource | None = None,
    **settings: object,
) -> DdtuiApp:
    """The app on a scene, with a made-up control."""
    clock = {} if key_clock is None else {"key_clock": key_clock}
    return DdtuiApp(
        SceneSource(scene),
        settings=UiSettings(**settings),  # type: ignore[arg-type]
        clock=lambda: NOW,
        control=control or FakeControl(),
        queue=queue,
        results=results,
        read_only=read_only,
        **clock,  # type: ignore[arg-type]
    )
