"""Replays a load, synthetic or recorded, into a `LoadTracker`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ddtui.core.events import AnyEvent, BarMoved, FiredUp, Phase, PhaseBegan, PhaseEnded
from ddtui.core.load_history import LoadHistory, LoadRecord
from ddtui.core.load_progress import LoadTracker
from ddtui.core.snapshot import LoadView

TRACES = Path(__file__).parents[1] / "fixtures" / "load-traces"
MIB = 2**20
FLAGS = {"tp-size": "8", "mem-fraction-static": "0.85"}


@dataclass(frozen=True)
class Seen:
    """One observation: exactly one of the three."""

    at: float
    """Unix seconds; one clock for host and operator."""
    event: AnyEvent | None = None
    gpus: dict[int, int] | None = None
    reads: int | None = None


@dataclass
class Load:
    """A whole load with its truth."""

    name: str
    began: float
    ready: float
    seen: list[Seen]
    model: str = "moonshotai/Kimi-K2.6"
    drafter: str | None = "drafter"
    tp: int = 8
    size: int = 548_000_000_000
    drafter_size: int = 6_000_000_000
    shards: int = 64
    flags: dict[str, str] = field(default_factory=lambda: dict(FLAGS))

    @property
    def seconds(self) -> float:
        return self.ready - self.began


def tracker_for(load: Load, records: Iterable[LoadRecord] = ()) -> LoadTracker:
    tracker = LoadTracker(load.name, load.began, LoadHistory(records))
    tracker.configure(load.model, load.drafter, load.tp, load.flags)
    tracker.checkpoint("target", load.size, load.shards)
    if load.drafter is not None:
        tracker.checkpoint("drafter", load.drafter_size, 1)
    return tracker


def feed(tracker: LoadTracker, seen: Seen) -> None:
    if seen.event is not None:
        tracker.event(seen.event)
    if seen.gpus is not None:
        tracker.gpus(seen.at, seen.gpus, None)
    if seen.reads is not None:
        tracker.storage_reads(seen.at, seen.reads)


def views(
    load: Load, records: Iterable[LoadRecord] = (), every: float = 1.0
) -> Iterator[tuple[float, LoadView]]:
    """The view at equal steps of the load, until it is ready."""
    tracker = tracker_for(load, records)
    waiting = iter(load.seen)
    pending = next(waiting, None)
    moment = load.began + every
    while moment < load.ready:
        while pending is not None and pending.at <= moment:
            feed(tracker, pending)
            pending = next(waiting, None)
        yield moment, tracker.view(moment)
        moment += every


def record_of(load: Load, records: Iterable[LoadRecord] = ()) -> LoadRecord:
    """What the history keeps of a load that was seen from its begin to its end."""
    tracker = tracker_for(load, records)
    for seen in load.seen:
        feed(tracker, seen)
    record = tracker.record()
    assert record is not None
    return record


def recorded(name: str, *, bar: bool, stretch: float = 1.0) -> Load:
    """A recorded trace (20 shards of 1 GiB; see its first line) as an engine would have told it.

    The recorder has no phases after the weights: the load is ready when the last rank is done.
    `bar`: whether rank 0's shards appear in the log as they come.
    `stretch`: how many times slower it is played.
    """
    lines = [json.loads(line) for line in (TRACES / f"{name}.jsonl").read_text().splitlines()]
    head, rows = lines[0], [{**line, "t": line["t"] * stretch} for line in lines[1:]]
    tp, began = int(head["world"]), 1_000_000.0
    seen = [each for row in rows for each in _seen(row, began, tp, bar)]
    ready = began + max(row["t"] for row in rows if row["ev"] == "loaded")
    seen = [each for each in seen if each.at <= ready]
    seen.append(Seen(ready, FiredUp(stamp=ready)))
    return Load(
        f"{name} x {stretch}",
        began,
        ready,
        sorted(seen, key=lambda each: each.at),
        model="trace",
        drafter=None,
        tp=tp,
        size=int(head["bytes"]),
        shards=int(head["shards"]),
        flags={},
    )


def _seen(row: dict, began: float, tp: int, bar: bool) -> Sequence[Seen]:
    at = began + row["t"]
    rank = f"TP{row['rank']}" if tp > 1 and "rank" in row else ""
    match row["ev"]:
        case "cuda ready":
            return [Seen(at, PhaseBegan(phase=Phase.TARGET, stamp=at, rank=rank))]
        case "loaded":
            return [Seen(at, PhaseEnded(phase=Phase.TARGET, stamp=at, rank=rank))]
        case "shard" if bar and row["rank"] == 0:
            moved = BarMoved(phase=Phase.TARGET, done=row["i"], total=row["n"], stamp=at)
            return [Seen(at, moved)]
        case "sample":
            reads = sum(
                row[f"rank{each}"]["read_bytes"] for each in range(tp) if f"rank{each}" in row
            )
            gpus = {int(index): int(mib) * MIB for index, mib in row["gpu_mib"].items()}
            return [Seen(at, gpus=gpus or None, reads=reads)]
    return []
