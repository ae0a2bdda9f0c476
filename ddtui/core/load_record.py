"""What is kept of a load that became ready."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ddtui.core.events import Phase
from ddtui.core.load_history import LoadRecord, PhaseSeconds, resample
from ddtui.core.load_memory import GpuMemory
from ddtui.core.load_phases import PhaseTimeline, Stretch, rank_index
from ddtui.core.load_weights import WeightsProgress, per_gpu


def make_record(
    *,
    invocation: str,
    models: tuple[str, str | None],
    flags: Mapping[str, str],
    timeline: PhaseTimeline,
    memory: GpuMemory,
    weights: Mapping[Phase, WeightsProgress],
    gaps: Mapping[str, float],
) -> LoadRecord:
    """The record of a load that is ready."""
    phases = _phases(timeline)
    target, drafter = timeline.first_of(Phase.TARGET), timeline.first_of(Phase.DRAFTER)
    gpus = memory.gpus(timeline.tp)
    before, after = _memory(memory, target, gpus)
    drafter_before, drafter_after = _memory(memory, drafter, gpus)
    return LoadRecord(
        model=models[0],
        drafter=models[1],
        tp=timeline.tp,
        flags=dict(flags),
        invocation=invocation,
        began=timeline.began,
        seconds=round(sum(each.seconds for each in phases), 3),
        phases=phases,
        longest_gaps={phase: round(gap, 1) for phase, gap in gaps.items()},
        checkpoint_bytes=weights[Phase.TARGET].checkpoint,
        drafter_bytes=weights[Phase.DRAFTER].checkpoint,
        memory_before=before,
        memory_target=after,
        memory_drafter_before=drafter_before,
        memory_drafter=drafter_after,
        memory_ready=per_gpu(memory.latest, gpus) if gpus else (),
        read_bytes=weights[Phase.TARGET].read_bytes,
        curve=_curve(weights[Phase.TARGET], target),
    )


def _phases(timeline: PhaseTimeline) -> tuple[PhaseSeconds, ...]:
    """Stretches without gaps or overlaps, so that they add up to the whole."""
    ready = timeline.ready_at if timeline.ready_at is not None else timeline.began
    edges = [timeline.began]
    for stretch in timeline.stretches:
        ended = stretch.ended if stretch.ended is not None else ready
        edges.append(min(ready, max(edges[-1], ended)))
    edges[-1] = ready
    return tuple(
        PhaseSeconds(stretch.phase, round(late - early, 3))
        for stretch, early, late in zip(timeline.stretches, edges, edges[1:], strict=False)
    )


def _memory(
    memory: GpuMemory, stretch: Stretch | None, gpus: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Growth per GPU when a model's weights began to load and when they were loaded.

    The engine's own figures decide where it gives them: they are taken at the very moment, while a
    sample can come when the KV cache is already allocated.
    """
    if stretch is None or stretch.ended is None:
        return (), ()
    figures = {rank_index(rank): used for rank, used in stretch.memory_used.items() if used > 0}
    first = memory.first_at
    if first is None or first > stretch.began + 2.0:
        complete = figures and len(figures) == max(figures) + 1
        after = tuple(figures[index] for index in sorted(figures)) if complete else ()
        return (0,) * len(after), after
    before = per_gpu(memory.at(stretch.began), gpus)
    # Each rank at its own end: a rank that waits may give memory back.
    ends = {rank_index(rank): at for rank, at in stretch.ended_ranks.items()}
    after = tuple(
        memory.at(ends.get(index, stretch.ended)).get(gpu, 0) for index, gpu in enumerate(gpus)
    )
    if len(figures) == len(gpus) == max(figures, default=-1) + 1:
        after = tuple(start + figures[index] for index, start in enumerate(before))
    return before, after


def _curve(weights: WeightsProgress, stretch: Stretch | None) -> tuple[float, ...]:
    """The shape of the target's progress; empty where its beginning was not seen."""
    if stretch is None or stretch.ended is None or len(weights.points) < 8:
        return ()
    span = stretch.ended - stretch.began
    if weights.points[0][1] > 0.25 or weights.points[0][0] > stretch.began + 0.25 * span:
        return ()
    inside = [point for point in weights.points if stretch.began < point[0] < stretch.ended]
    return resample([(stretch.began, 0.0), *inside, (stretch.ended, 1.0)])
