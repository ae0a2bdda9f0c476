"""What earlier loads on a host teach about the next one.

A `LoadRecord` is what is kept of one load that became ready; a `LoadHistory` finds those that are
most like the load in progress.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ddtui.core.events import Phase

CURVE_POINTS = 50

# Flags that cannot change how long a load takes. All others may: a list of those that do would
# miss every new one. The models and the parallelism are kept beside the flags.
_WITHOUT_EFFECT = frozenset(
    {
        "host",
        "port",
        "model",
        "model-path",
        "speculative-draft-model-path",
        "served-model-name",
        "tokenizer-path",
        "tp",
        "tp-size",
        "tensor-parallel-size",
        "chat-template",
        "completion-template",
        "reasoning-parser",
        "tool-call-parser",
        "collect-tokens-histogram",
        "file-storage-path",
        "decode-log-interval",
        "show-time-cost",
        "watchdog-timeout",
    }
)
_WITHOUT_EFFECT_PREFIX = ("log-", "enable-metrics", "api-", "admin-", "uvicorn-", "crash-dump")
_SECRET = ("key", "token", "password", "secret")


def relevant_flags(flags: Mapping[str, str]) -> dict[str, str]:
    """The flags that can matter for the time a load takes, never those that carry a secret."""
    return {
        name: value
        for name, value in sorted(flags.items())
        if name not in _WITHOUT_EFFECT
        and not name.startswith(_WITHOUT_EFFECT_PREFIX)
        and not (name.endswith(_SECRET) and not value.isdigit())
    }


class PhaseSeconds(msgspec.Struct, frozen=True):
    """How long one stretch of a phase took. A phase can come twice (KV cache of the drafter)."""

    phase: Phase
    seconds: float


class LoadRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One load that became ready, without anything that names the host.

    Memory is bytes per GPU of the unit, by GPU index, above what others held; empty where it was
    not observed (ddtui came later). Times are seconds.
    """

    model: str
    drafter: str | None = None
    tp: int = 1
    flags: dict[str, str] = msgspec.field(default_factory=dict)
    """Those that can matter for the time a load takes."""
    invocation: str = ""
    began: float = 0.0
    """Unix seconds on the host's clock."""
    seconds: float
    """From the start of the process until the engine was ready."""
    phases: tuple[PhaseSeconds, ...] = ()
    """In order, without gaps: they add up to `seconds`."""
    longest_gaps: dict[str, float] = msgspec.field(default_factory=dict)
    """By phase: the longest time in which no source showed progress."""
    checkpoint_bytes: int | None = None
    drafter_bytes: int | None = None
    memory_before: tuple[int, ...] = ()
    """When the target's weights began to load (context, communication buffers)."""
    memory_target: tuple[int, ...] = ()
    """When the target's weights were loaded."""
    memory_drafter_before: tuple[int, ...] = ()
    memory_drafter: tuple[int, ...] = ()
    memory_ready: tuple[int, ...] = ()
    read_bytes: int | None = None
    """Read from storage by the unit's processes while the target's weights were loaded."""
    curve: tuple[float, ...] = ()
    """The target's progress at equal steps of its time: shares of the bytes from 0 to 1."""

    @property
    def signature(self) -> str:
        """Short digest of the flags that matter: the same for loads that should take the same."""
        text = "\n".join(f"{name}={value}" for name, value in sorted(self.flags.items()))
        return hashlib.blake2s(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()

    def stretches(self, phase: Phase) -> list[float]:
        """Seconds of each stretch of a phase, in order; empty where the load had none."""
        return [each.seconds for each in self.phases if each.phase == phase]

    def phase_seconds(self, phase: Phase) -> float | None:
        """Seconds that a phase took in all; None where the load had none."""
        stretches = self.stretches(phase)
        return sum(stretches) if stretches else None


class LoadHistory:
    """Loads of one host, oldest first."""

    def __init__(self, records: Iterable[LoadRecord] = ()) -> None:
        self._records = sorted(records, key=lambda record: record.began)
        self.revision = 0
        """Rises whenever a record is added."""

    def __len__(self) -> int:
        return len(self._records)

    @property
    def records(self) -> Sequence[LoadRecord]:
        """All records, oldest first."""
        return tuple(self._records)

    def add(self, record: LoadRecord) -> None:
        """Add the record of one more load; one of the same invocation is replaced."""
        kept = [
            each
            for each in self._records
            if not record.invocation or each.invocation != record.invocation
        ]
        self._records = sorted([*kept, record], key=lambda each: each.began)
        self.revision += 1

    def like(
        self, model: str, drafter: str | None, tp: int, flags: Mapping[str, str]
    ) -> list[LoadRecord]:
        """Loads of the same target model, the most telling first.

        Same parallelism comes first, then the same drafter, then the fewest differing flags, then
        the latest. A different model says nothing about this one and is left out.
        """
        wanted = relevant_flags(flags)
        return sorted(
            (record for record in self._records if record.model == model),
            key=lambda record: (
                record.tp != tp,
                record.drafter != drafter,
                differing_flags(record.flags, wanted),
                -record.began,
            ),
        )


def differing_flags(one: Mapping[str, str], other: Mapping[str, str]) -> int:
    """How many flags are not the same in both."""
    return sum(one.get(name) != other.get(name) for name in {*one, *other})


def resample(points: Sequence[tuple[float, float]], count: int = CURVE_POINTS) -> tuple[float, ...]:
    """Shares at `count` equal steps of time, from points (seconds, share), both rising.

    Empty when there are too few points to tell a shape.
    """
    if len(points) < 4 or points[-1][0] <= points[0][0]:
        return ()
    times = [time for time, _ in points]
    first, span = times[0], times[-1] - times[0]
    last_share = points[-1][1] or 1.0
    curve = []
    for step in range(count):
        share = interpolate(points, times, first + span * step / (count - 1))
        curve.append(round(min(1.0, max(0.0, share / last_share)), 4))
    curve[0], curve[-1] = 0.0, 1.0
    return tuple(curve)


def interpolate(
    points: Sequence[tuple[float, float]], times: Sequence[float], time: float
) -> float:
    """The value at a time, linear between points and constant outside."""
    at = bisect_left(times, time)
    if at == 0:
        return points[0][1]
    if at == len(points):
        return points[-1][1]
    (left, low), (right, high) = points[at - 1], points[at]
    return low + (high - low) * (time - left) / (right - left) if right > left else high


def time_share(curve: Sequence[float], share: float) -> float:
    """Share of the time at which a curve reaches a share of the bytes.

    Without a curve progress is taken to be steady.
    """
    if len(curve) < 2:
        return share
    last = len(curve) - 1
    at = bisect_left(curve, share)
    if at == 0:
        return 0.0
    if at > last:
        return 1.0
    low, high = curve[at - 1], curve[at]
    return (at - 1 + ((share - low) / (high - low) if high > low else 1.0)) / last
