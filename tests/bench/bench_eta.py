"""How wrong the ETA of a load is: recorded and synthetic loads, replayed.

At every second (every 0.2 s for the recorded ones, which take 8 to 21 s) after 20 % of the true
load time, until ready:

- `total_error`: |elapsed + ETA - true total| / true total
- `remaining_error`: |ETA - true remaining| / true remaining (harsh near the end)

Each present load has one earlier load of the same model as its history, of another seed and another
speed, another recording, or the same recording played slower. A recorded load from the page cache
after one from storage (and the other way round) is the hardest: until its first bytes nothing tells
that it will be another kind of load, and that is a third of its time.

Prints JSON: `python -m tests.bench.bench_eta`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from statistics import median

from tests.support.load_replay import Load, record_of, recorded, views
from tests.support.synthetic_loads import Scenario, make

AIM = 0.15
TRACES = ("serial-tp2-cold", "serial-tp2-warm", "read-tp1-cold")

_EARLIER = Scenario("earlier", seed=11, speed=1.3e9, starting=28.0, graphs=38.0)
_NOW = Scenario("steady", seed=42)
_BIG = 40_000_000_000


def cases() -> list[tuple[Scenario, Scenario]]:
    """(the earlier load, the present one)."""
    warm = replace(_NOW, speed=5.2e9, cold=0.0)
    two = replace(_EARLIER, drafter_size=_BIG)
    return [
        (_EARLIER, _NOW),
        (_EARLIER, replace(_NOW, name="steady, live bar", bar="live")),
        (_EARLIER, replace(_NOW, name="stalling", pauses=((0.3, 45.0), (0.6, 70.0)))),
        (
            _EARLIER,
            replace(
                _NOW, name="stalling often", pauses=tuple((n / 10, 15.0) for n in range(1, 10))
            ),
        ),
        (_EARLIER, replace(warm, name="page-cached now, cold before")),
        (replace(_EARLIER, speed=4.0e9, cold=0.0), replace(warm, name="page-cached twice")),
        (
            replace(_EARLIER, speed=4.5e9, cold=0.0),
            replace(_NOW, name="cold now, page-cached before"),
        ),
        (
            replace(_EARLIER, shards=1, bar="live"),
            replace(_NOW, name="one shard", shards=1, bar="live"),
        ),
        (two, replace(_NOW, name="two models", drafter_size=_BIG)),
        (
            replace(two, drafter_last=True),
            replace(_NOW, name="two models, drafter last", drafter_size=_BIG, drafter_last=True),
        ),
        (_EARLIER, replace(_NOW, name="straggling rank", slow_rank=(3, 1.35))),
        (_EARLIER, replace(_NOW, name="slowing down", trend=0.5)),
        (_EARLIER, replace(_NOW, name="memory released late", released=41.0)),
        (_EARLIER, replace(_NOW, name="no GPU memory", gpu_memory=False)),
        (_EARLIER, replace(_NOW, name="no storage reads", reads=False)),
    ]


def errors(load: Load, earlier: Load, every: float) -> dict[str, object]:
    """Errors of one replay."""
    totals, remainings, unknown = [], [], 0
    for moment, view in views(load, [record_of(earlier)], every):
        elapsed, remaining = moment - load.began, load.ready - moment
        if elapsed < 0.2 * load.seconds:
            continue
        if view.eta_seconds is None:
            unknown += 1
            continue
        totals.append(abs(view.eta_seconds - remaining) / load.seconds)
        remainings.append(abs(view.eta_seconds - remaining) / remaining)
    return {
        "seconds": round(load.seconds, 1),
        "earlier_seconds": round(earlier.seconds, 1),
        "moments": len(totals),
        "without_eta": unknown,
        "total_error_median": round(median(totals), 4),
        "total_error_p90": round(sorted(totals)[int(0.9 * len(totals))], 4),
        "remaining_error_median": round(median(remainings), 4),
        "remaining_error_p90": round(sorted(remainings)[int(0.9 * len(remainings))], 4),
    }


def run() -> dict[str, object]:
    """Errors of all cases and the median over them."""
    results: dict[str, dict[str, object]] = {}
    for before, now in cases():
        results[now.name] = errors(make(now), make(before), 1.0)
    for name, bar in product(TRACES, (False, True)):
        load, words = recorded(name, bar=bar), ", live bar" if bar else ""
        slower = recorded(name, bar=bar, stretch=1.3)
        results[f"{name} after the same 1.3 times slower{words}"] = errors(load, slower, 0.2)
        for other in TRACES:
            if name != other:
                label = f"{name} after {other}{words}"
                results[label] = errors(load, recorded(other, bar=bar), 0.2)
    worst = {
        key: max((float(str(each[key])), name) for name, each in results.items())
        for key in ("total_error_median", "remaining_error_median")
    }
    return {
        "aim": AIM,
        "cases": results,
        "median_of_total_error_medians": median(
            float(str(each["total_error_median"])) for each in results.values()
        ),
        "median_of_remaining_error_medians": median(
            float(str(each["remaining_error_median"])) for each in results.values()
        ),
        "worst": worst,
        "beyond_aim": [
            name for name, each in results.items() if float(str(each["total_error_median"])) > AIM
        ],
    }


if __name__ == "__main__":
    print(json.dumps(run(), indent=1))
