"""Loads of every kind that the tests of the tracker go through, and what to read off them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from ddtui.core.events import Phase, PhaseBegan, PhaseEnded
from ddtui.core.load_history import LoadRecord
from ddtui.core.snapshot import LoadView, PhaseView
from tests.support.load_replay import Load, record_of
from tests.support.synthetic_loads import Scenario, make

GB = 10**9
EARLIER = Scenario("earlier", seed=5, speed=1.5e9, size=120 * GB)
NOW = Scenario("now", seed=6, speed=1.1e9, size=120 * GB)

CASES = {
    "closing bar": NOW,
    "live bar": replace(NOW, bar="live"),
    "no bar": replace(NOW, bar="none"),
    "page-cached": replace(NOW, cold=0.0, speed=4e9),
    "one shard": replace(NOW, shards=1, bar="live"),
    "straggler": replace(NOW, slow_rank=(3, 1.6)),
    "drafter last": replace(NOW, drafter_last=True),
    "no drafter": replace(NOW, has_drafter=False),
    "others on the GPUs": replace(NOW, others=9 * GB),
    "late release": replace(NOW, released=41.0),
    "no GPU memory": replace(NOW, gpu_memory=False),
    "one GPU": replace(NOW, tp=1),
    "pauses": replace(NOW, pauses=((0.4, 30.0),)),
}


@cache
def earlier(*, tp: int = 8, drafter_last: bool = False) -> LoadRecord:
    return record_of(make(replace(EARLIER, tp=tp, drafter_last=drafter_last)))


@cache
def load(case: str) -> Load:
    return make(replace(CASES[case], name=case))


def phase(view: LoadView, wanted: Phase) -> PhaseView:
    return next(each for each in view.phases if each.phase is wanted)


def target_bounds(of: Load) -> tuple[float, float]:
    began = [
        each.at
        for each in of.seen
        if isinstance(each.event, PhaseBegan) and each.event.phase is Phase.TARGET
    ]
    ended = [
        each.at
        for each in of.seen
        if isinstance(each.event, PhaseEnded) and each.event.phase is Phase.TARGET
    ]
    return min(began), max(ended)
