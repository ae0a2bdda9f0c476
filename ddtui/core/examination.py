"""Gathers what the log of one invocation says: how far it came, whether it failed, and why.

Lines are taken in any number, and only what may matter is kept. The root cause is told before the
wrappers around it (`cause_of_failure.py`).
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence

import msgspec

from ddtui.core.cause_of_failure import Case, Cause, Fault, Seen, Sightings, cause_of
from ddtui.core.decode_figures import DecodeFigures, DecodeSummary
from ddtui.core.engine import LogDialect
from ddtui.core.events import (
    AnyEvent,
    Configured,
    Decoded,
    Draining,
    ExceptionAlone,
    Failed,
    FailureContinued,
    FiredUp,
    Phase,
    PhaseBegan,
    PhaseEnded,
    PortOpened,
    Prefilled,
)
from ddtui.core.faults import FailureEvent, Faults
from ddtui.core.kernel_words import KernelLine, Life, belonging
from ddtui.core.load_phases import PhaseTimeline
from ddtui.core.samples import JournalLine, UnitStatus
from ddtui.core.signatures import CAUSES, Kind, Place, Signature
from ddtui.core.unit_ending import ending_of, unit_failed

CONFIG_KEPT = 2000
MATCHED_TEXT = 2000
"""Characters of a line that signatures are searched for in."""
ACCEPTANCE_LINES = 5
"""Decode lines that a judgement of the acceptance length needs at least."""
BEFORE_THE_END = 30.0
"""Seconds before an engine that was ready died: what failed earlier was survived."""

SERVING = 3
"""Prefill batches, in a log that shows nothing of a start, after which the engine was ready before
its first line: one may be the engine's own warm-up. A decode line tells as much alone."""

SERVED = 50
"""Decode batches after a start, without the line that says that it is over, that no warm-up runs:
that line is missing in the log."""

OUTLIVED = 5.0
"""Seconds in which the last lines of an engine may arrive after systemd's word of its end."""

Scalar = str | int | float | bool | None

_RESULT = re.compile(r"Failed with result '(?!success)")
_EXITED = re.compile(r"Main process exited, code=(?:exited, status=[1-9]|killed|dumped)")
_ENDED = re.compile(r"^Stopp(?:ed|ing) |Deactivated successfully|Scheduled restart job|Succeeded\.")
_RESTARTS = re.compile(r"restart counter is at (\d+)")
_SOURCE = re.compile(r"(?:\[rank\d+\]: ?)?(?:    |  File \")")
"""What a traceback quotes: code, whose words say nothing of what happened."""


class PhaseSpan(msgspec.Struct, frozen=True):
    """One phase of the start. Times are Unix seconds on the clock of the log."""

    name: str
    start: float | None
    end: float | None
    """None where the log does not tell of its end."""


class Note(msgspec.Struct, frozen=True):
    """Something worth knowing that is no failure."""

    id: str
    title: str
    remedy: str


class Diagnosis(msgspec.Struct, frozen=True):
    """What the log of one invocation says."""

    engine: str
    version: str
    ready: bool
    """The start ended with an engine that reports to be up, and it has not failed since. An orderly
    stop that was asked for does not change that (see `stopped`)."""
    failed: bool
    cause: Cause | None
    """Of a failure; None where there is none."""
    phases: tuple[PhaseSpan, ...]
    config: dict[str, Scalar]
    """Arguments that the log proves, secrets masked."""
    decode: DecodeSummary
    notes: tuple[Note, ...] = ()
    stopped: bool = False
    """It was told to stop."""
    restarts: int = 0
    """As systemd counts them in the log."""
    lines: int = 0
    earlier: int = 0
    """Invocations in the same log before this one."""
    ended: float | None = None
    """When the engine ended, as far as log or unit tell; Unix seconds, None while it runs."""
    ending: str = ""
    """How it ended, in systemd's words."""


class Examination:
    """Gathers what the lines of one invocation say. Memory does not grow with the log."""

    def __init__(self, dialect: LogDialect) -> None:
        self._dialect = dialect
        self._signatures = dialect.signatures()
        self.lines = 0
        self.revision = 0
        """Grows whenever something is seen that may change the cause."""
        self._timeline: PhaseTimeline | None = None
        self._config: dict[str, Scalar] = {}
        self._decode = DecodeFigures()
        self._fired_up: Seen | None = None
        self._is_start_seen = False
        self._batches = 0
        self._joined = False
        """The log begins when the engine was serving already."""
        self._is_middle_missing = False
        """What it tells of the start breaks off, and goes on when the engine was serving."""
        self._draining: float | None = None
        self._faults = Faults()
        self._has_ranks = False
        self._sightings: dict[str, Sightings] = {}
        self._decided: Seen | None = None
        self._lost: Seen | None = None
        """The line that tells of a process's end, unless batches were run after it."""
        self._died = False
        self._died_at: float | None = None
        self._ended = False
        self._manager: deque[str] = deque(maxlen=4)
        self._recent: deque[str] = deque(maxlen=4)
        self._links: deque[int] = deque(maxlen=50)
        self._restarts = 0
        self._marks: dict[str, set[str]] = {}
        self._ranks: dict[int | None, str] = {}
        self._stamp = 0.0
        self._stamp_before_end = 0.0
        """Of the line before the one that shows that the engine was done for."""

    @property
    def heard(self) -> bool:
        """Whether the engine itself, not only systemd, has said anything."""
        return self._timeline is not None

    @property
    def _gone(self) -> Seen | None:
        """The line that shows that the engine was done for."""
        return self._decided or self._lost

    @property
    def ended(self) -> bool:
        """Whether anything says that it is over: the next start is another invocation."""
        return (
            self._ended
            or self._died
            or self._draining is not None
            or self._gone is not None
            or (self._fired_up is None and bool(self._faults.kept))
        )

    @property
    def went_on(self) -> bool:
        """Whether the start has come so far that the first words of a start begin another one."""
        timeline = self._timeline
        return (
            self._fired_up is not None
            or bool(self._faults.kept)
            or self._gone is not None
            or self._died
            or (timeline is not None and len(timeline.stretches) > 1)
        )

    def take(self, line: JournalLine, events: Iterable[AnyEvent]) -> None:
        """Take a line with what the engine's reader made of it."""
        self.lines += 1
        if self._gone is None:
            self._stamp_before_end = self._stamp
        self._stamp = line.stamp or self._stamp
        if line.from_manager:
            self._take_manager(line)
            return
        if self._timeline is None:
            self._timeline = PhaseTimeline(line.stamp)
        elif not self._timeline.stretches[0].began:  # the first lines had no stamp
            self._timeline.began = self._timeline.stretches[0].began = line.stamp
        for event in events:
            self._take_event(event)
        if line.bar or line.continued or self._dialect.is_traffic(line.text):
            return
        if _SOURCE.match(line.text) is not None:
            return
        rank = self._dialect.rank(line.text)
        if rank:
            self._has_ranks = True
            self._ranks[line.pid] = rank
        if self._decided is None:
            self._recent.append(line.text[:MATCHED_TEXT])
        rank = rank or self._ranks.get(line.pid, "")
        self._match(line.text, line.stamp, rank)
        fault = self._faults.of_line(self.lines)
        if fault is not None and fault.message not in line.text:
            self._match(fault.message, line.stamp, rank)  # `AssertionError` says nothing itself

    # ---- lines ----------------------------------------------------------------------------------

    def _take_manager(self, line: JournalLine) -> None:
        text = line.text[:MATCHED_TEXT]
        if _RESULT.search(text) or (_EXITED.search(text) and self._draining is None):
            if self._died_at is None:
                self._died_at = line.stamp or None
            self._died = True
            self._manager.append(text)
            self.revision += 1
        self._ended = self._ended or _ENDED.search(text) is not None
        restarts = _RESTARTS.search(text)
        if restarts is not None:
            self._restarts = int(restarts[1])
        for signature in self._signatures.matches(text, Place.SYSTEMD):
            self._see(signature, Seen(self.lines, line.stamp, text, "", Place.SYSTEMD))

    def _match(self, text: str, stamp: float, rank: str) -> None:
        text = text[:MATCHED_TEXT]
        if "the above exception" in text or "above exception was the direct" in text:
            self._links.append(self.lines)
        found = self._signatures.matches(text, Place.ENGINE)
        if found and not any(each.kind is Kind.HARMLESS for each in found):
            seen = Seen(self.lines, stamp, text, rank, Place.ENGINE)
            for signature in found:
                if self._holds(signature, rank):
                    self._see(signature, seen)
                    if signature.kind is Kind.WRAPPER:
                        self._faults.is_report(self.lines)
        for mark in self._signatures.marks_in(text):
            self._marks.setdefault(mark, set()).add(rank)

    def _holds(self, signature: Signature, rank: str) -> bool:
        """Whether what must, and must not, have been said before by this rank has."""
        passed = any(self._passed(mark, rank) for mark in signature.before)
        whose = "" if signature.of_all_ranks else rank
        return not passed and (
            not signature.after or any(self._passed(mark, whose) for mark in signature.after)
        )

    def _passed(self, mark: str, rank: str) -> bool:
        ranks = self._marks.get(mark)
        return ranks is not None and (rank in ranks or (not rank and bool(ranks)))

    def _see(self, signature: Signature, seen: Seen) -> None:
        self._sightings.setdefault(signature.id, Sightings(signature)).add(seen)
        if signature.kind in CAUSES or signature.decides:
            self.revision += 1
        if signature.decides and self._decided is None and self._draining is None:
            self._decided = seen

    # ---- events ---------------------------------------------------------------------------------

    def _take_event(self, event: AnyEvent) -> None:
        timeline = self._timeline
        assert timeline is not None  # noqa: S101  # set by take
        if isinstance(event, (PhaseBegan, PhaseEnded, PortOpened)) or (
            isinstance(event, Configured) and "version" not in event.values
        ):
            self._is_start_seen = True
        match event:
            case PhaseBegan():
                self._survived(event)
                timeline.begin(event.phase, event.stamp, event.rank)
            case PhaseEnded():
                timeline.end(event.phase, event.stamp, event.rank, event.seconds, event.memory_used)
            case PortOpened():
                # It is opened only once every rank is up: none of what failed before did matter.
                self._forget_faults()
                timeline.begin(Phase.WARMUP, event.stamp)
            case FiredUp():
                self._lives()
                self._forget_faults()
                self._fired_up = Seen(self.lines, event.stamp, "", "", Place.ENGINE)
                timeline.finish(event.stamp)
                self.revision += 1
            case Draining():
                self._draining = event.stamp
            case Configured(values=values):
                if len(self._config) < CONFIG_KEPT:
                    self._config.update(values)
                    timeline.take_tp(self._config.get("tp_size"))
            case Decoded():
                self._decode.add(event)
                self._serves(SERVING)
            case Prefilled():
                self._serves(1)
            case Failed() | FailureContinued() | ExceptionAlone():
                self._take_failure(event)
            case _:
                pass

    def _serves(self, batches: int) -> None:
        """Batches were run. Without a start before them, the engine was ready when they began."""
        self._lost = None
        self._lives()
        if self._fired_up is not None or self._decided is not None:
            return
        self._batches += batches
        if self._batches >= (SERVED * SERVING if self._is_start_seen else SERVING):
            self._joined = not self._is_start_seen
            self._is_middle_missing = self._is_start_seen
            self._forget_faults()
            self._fired_up = Seen(self.lines, self._stamp, "", "", Place.ENGINE)
            self.revision += 1

    def _lives(self) -> None:
        """What still works seconds after systemd told of an end was not of the unit that ended."""
        if self._died_at is not None and self._stamp > self._died_at + OUTLIVED:
            self._died, self._died_at, self._ended = False, None, False
            self._manager.clear()
            self._sightings = {
                name: each
                for name, each in self._sightings.items()
                if all(seen.place is not Place.SYSTEMD for seen in each.all())
            }

    def _take_failure(self, event: FailureEvent) -> None:
        if isinstance(event, Failed):
            if event.ends_process and self._lost is None and self._draining is None:
                self._lost = Seen(self.lines, event.stamp, event.message, "", Place.ENGINE)
            self.revision += 1
        keep_newest = self._fired_up is not None and self._decided is None
        self._faults.take(event, self.lines, keep_newest=keep_newest)

    def _survived(self, event: PhaseBegan) -> None:
        """A rank that goes on has survived what failed in it before."""
        goes_on = self._decided is None and event.phase is not Phase.STARTING
        if goes_on and (event.rank or not self._has_ranks):
            self._faults.survived(event.rank)

    def _forget_faults(self) -> None:
        if self._decided is None:
            self._faults.kept.clear()
            self._sightings = {
                name: each
                for name, each in self._sightings.items()
                if each.signature.kind is Kind.NOTE
            }

    # ---- the end --------------------------------------------------------------------------------

    def failed(self, unit: UnitStatus | None = None) -> bool:
        """Whether the engine has failed in this invocation."""
        if self._gone is not None or self._died or unit_failed(unit):
            return True
        if any(
            each.signature.kind in (Kind.SYSTEMD, Kind.KERNEL) for each in self._sightings.values()
        ):
            return True
        return self._fired_up is None and self._draining is None and bool(self._faults.kept)

    def _ends_in_an_exception(self) -> bool:
        """Whether a log of no more than a piece of a start breaks off with an exception."""
        is_starting = self._fired_up is None and self._draining is None
        return is_starting and self._faults.is_alone_at(self.lines)

    def cause(
        self, unit: UnitStatus | None = None, kernel: Sequence[KernelLine] = ()
    ) -> Cause | None:
        """Why the engine failed; None when it has not."""
        return cause_of(self._case(unit, kernel)) if self.failed(unit) else None

    def _case(self, unit: UnitStatus | None, kernel: Sequence[KernelLine]) -> Case:
        sightings = {name: each.copy() for name, each in self._sightings.items()}
        manager = list(self._manager)
        ending = ending_of(unit) if unit_failed(unit) else ""
        if ending and not manager:
            manager = [ending]
        end = self._gone or Seen(self.lines, self._stamp, "", "", Place.ENGINE)
        ready = self._fired_up
        was_ready = ready is not None and (self._gone is None or ready.number < end.number)
        outside = [(Place.SYSTEMD, KernelLine(0.0, ending))] if ending else []
        life = self._life(was_ready=was_ready)
        outside += [(Place.KERNEL, line) for line in belonging(kernel, life)]
        for place, line in outside:
            text = line.text[:MATCHED_TEXT]
            for signature in self._signatures.matches(text, place):
                seen = Seen(self.lines + 1, line.stamp or self._stamp, text, "", place)
                sightings.setdefault(signature.id, Sightings(signature)).add(seen)
        return Case(
            faults=tuple(
                fault for fault in self._faults.kept if self._matters(fault, end, was_ready)
            ),
            sightings=tuple(sightings.values()),
            decided=self._gone,
            end=end,
            was_ready=was_ready,
            manager=tuple(manager),
            recent=tuple(self._recent),
            links=tuple(self._links),
            alone=self._faults.alone_before(end.number),
        )

    def _life(self, *, was_ready: bool) -> Life:
        began = self._timeline.began if self._timeline is not None else 0.0
        gone = self._gone.stamp if self._gone is not None else 0.0
        return Life(began, was_ready, gone or self._died_at or 0.0, self._stamp)

    def _matters(self, fault: Fault, end: Seen, was_ready: bool) -> bool:
        """Of an engine that was ready, only what failed when it died matters.

        A line without a stamp of its own has that of the line before it: it may be younger.
        """
        return not was_ready or fault.stamp >= min(
            end.stamp - BEFORE_THE_END, self._stamp_before_end
        )

    def conclude(
        self,
        unit: UnitStatus | None = None,
        kernel: Sequence[KernelLine] = (),
        *,
        earlier: int = 0,
    ) -> Diagnosis:
        """What all the lines taken say."""
        failed = self.failed(unit) or (unit is None and self._ends_in_an_exception())
        cause = cause_of(self._case(unit, kernel)) if failed else None
        config = dict(self._config)
        version = str(config.pop("version", None) or "")
        if not config and unit is not None and unit.command_line:
            flags = self._dialect.flags(unit.command_line)
            config = {name.replace("-", "_"): value for name, value in flags.items()}
        ended = self._end_of(unit)
        return Diagnosis(
            engine=self._dialect.name,
            version=version,
            ready=self._fired_up is not None and not failed,
            failed=failed,
            cause=cause,
            phases=self._phases(ended),
            config=config,
            decode=self._decode.summary(),
            notes=tuple(self._notes(unit)),
            stopped=self._draining is not None,
            restarts=max(self._restarts, (unit.restarts or 0) if unit is not None else 0),
            lines=self.lines,
            earlier=earlier,
            ended=ended,
            ending=ending_of(unit) if unit_failed(unit) else "".join(list(self._manager)[:1]),
        )

    def _end_of(self, unit: UnitStatus | None) -> float | None:
        """When the engine ended, Unix seconds; None while it runs, or where nothing tells."""
        if self._died_at is not None:
            return self._died_at
        if unit is not None and (unit_failed(unit) or unit.active_state == "inactive"):
            return unit.state_changed_at
        return self._draining

    def _phases(self, ended: float | None) -> tuple[PhaseSpan, ...]:
        timeline = self._timeline
        if timeline is None:
            return ()
        if self._joined:
            return (PhaseSpan(Phase.READY.value, None, self._draining or ended),)
        spans = [
            PhaseSpan(stretch.phase.value, stretch.began or None, stretch.ended or None)
            for stretch in timeline.stretches
        ]
        if timeline.ready_at is not None or self._is_middle_missing:
            end = self._draining or ended
            spans.append(PhaseSpan(Phase.READY.value, timeline.ready_at or None, end))
        return tuple(spans)

    def _notes(self, unit: UnitStatus | None) -> Iterable[Note]:
        environment = " ".join(unit.environment) if unit is not None else ""
        told = {each.id for each in self._signatures.matches(environment, Place.SYSTEMD)}
        summary = self._decode.summary(1)
        for signature in self._signatures.all:
            if signature.kind is not Kind.NOTE:
                continue
            length, least = summary.median_acceptance_length, signature.acceptance_below
            is_low = (
                least is not None
                and length is not None
                and length < least
                and self._decode.acceptance_count >= ACCEPTANCE_LINES
            )
            if is_low or signature.id in told or signature.id in self._sightings:
                yield Note(signature.id, signature.title, signature.remedy)
