"""What a queue's times are guessed from before anything was measured."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from ddtui.app import queue_known
from ddtui.app.queue_known import Known
from ddtui.core.experiment import Experiment, ExperimentState, QueueSettings
from ddtui.core.host_state import HostState
from ddtui.core.launch import Launch, Request
from ddtui.core.load_history import LoadHistory
from ddtui.core.samples import LinkState
from ddtui.engines.sglang import SGLANG
from ddtui.experiments.baseline import Baseline
from ddtui.experiments.kept import Kept
from ddtui.experiments.order import Item


def test_a_guess_does_not_jump_with_every_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that rests for a moment takes no guess away, and a slow moment moves it little."""
    served = iter([None, 100.0, None, 104.0, 12.0])
    monkeypatch.setattr(queue_known, "rate_of", lambda _, snapshot: next(served))
    nothing: Any = None
    source: Any = SimpleNamespace(snapshot_now=lambda: None)
    known = Known(source, nothing)
    guesses = []
    for _ in range(5):
        known.look()
        guesses.append(known.served)
    assert guesses == [None, 100.0, 100.0, 102.0, 100.0]


@pytest.mark.parametrize(
    ("added", "now", "state", "otherwise", "moved"),
    [
        ("a", "b", ExperimentState.PENDING, set(), True),
        ("a", "b", ExperimentState.HELD, set(), True),
        ("a", "a", ExperimentState.PENDING, set(), False),
        ("a", "a", ExperimentState.PENDING, {"x"}, False),  # whatever it is made on
        ("", "b", ExperimentState.PENDING, set(), False),  # what it was then is not known
        ("", "b", ExperimentState.PENDING, {"x"}, True),  # and what it is made on is
        ("a", "", ExperimentState.PENDING, set(), False),  # what it is now is not known
        ("a", "b", ExperimentState.RUNNING, {"x"}, False),
    ],
)
def test_what_comes_out_differently_than_when_it_was_added(
    added: str, now: str, state: ExperimentState, otherwise: set[str], moved: bool
) -> None:
    each = Experiment(
        id="x", host="demo", title="t", request=Request(), state=state, configuration=added
    )
    found = queue_known.come_out_otherwise([each], [Item(id="x", key=now)], otherwise)
    assert found == (frozenset({"x"}) if moved else frozenset())


@pytest.mark.parametrize(("asked", "moved"), [("8", False), ("", True)])
async def test_what_is_the_same_on_both_bases_is_not_marked(asked: str, moved: bool) -> None:
    """What was never planned is planned on what it was to be made on too, as its runner does."""

    def launch(block: str) -> Launch:
        return Launch(("python", "--block", block))

    class Control:
        async def command(self) -> Any:
            return SimpleNamespace(launch=launch("12"))

        async def plan(self, request: Request, base: Launch) -> Any:
            block = request.flags.get("block")
            return SimpleNamespace(after=launch(str(block)) if block else base)

    request = Request(flags={"block": asked} if asked else {})
    each = Experiment(id="x", host="box", title="t", request=request)
    base = Baseline(launch=launch("8"), at=1.0, left=launch("16"), rest=("x",))
    settings = QueueSettings(host="box", baseline=msgspec.to_builtins(base))
    kept = Kept(
        version=1, experiments=[each], settings=settings, measurements=[], loads=LoadHistory(),
        changes=[],
    )  # fmt: skip
    snapshot = HostState("box", SGLANG).snapshot(1.0)
    source: Any = SimpleNamespace(
        host=SimpleNamespace(link=SimpleNamespace(state=LinkState.LIVE)),
        engine=SGLANG,
        snapshot_now=lambda: snapshot,
    )
    control: Any = Control()
    known = Known(source, control)
    await known.eta(kept, lambda _: None)
    assert known.moved == (frozenset({"x"}) if moved else frozenset())
