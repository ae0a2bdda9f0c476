"""The lines of the log screen: labelled, filtered and searched in slices whatever else arrives.

Nothing here takes longer than it is given: `LogLines.step` works for some milliseconds, so that
keys are answered while a long log is read, filtered or searched. What is shown changes only in
`LogLines.publish`, so that it holds still between two paints.
"""

from __future__ import annotations

import logging
import re
import time
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import attrgetter

from rich.cells import cell_len

from ddtui.core.engine import Engine, LogReader
from ddtui.core.events import FiredUp, Phase, PhaseBegan
from ddtui.core.log_buffer import LogBuffer
from ddtui.core.samples import JournalLine
from ddtui.core.text import clean
from ddtui.ui.log_filter import Bars, Level, LogFilter, LogLine, Starts, is_poll

_log = logging.getLogger(__name__)

LONGEST_LINE = 8_000
"""Characters of a line that are kept; collectors cap lines at this, too."""

_BETWEEN_LOOKS_AT_THE_CLOCK = 50
_OWN_STAMP = re.compile(r"\[[^\]\[]{0,40}\d\d:\d\d:\d\d[^\]\[]{0,60}\] ?")
_VARIATION_SELECTORS = re.compile("[\ufe00-\ufe0f]")


@dataclass
class _Pass:
    """What a filter lets through of all lines, so far."""

    shown: list[LogLine] = field(default_factory=list)
    separators: int = 0
    next: int = 0
    """Number of the next line to filter."""


class LogLines:
    """Reads a log buffer and keeps what the filter lets through."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._buffer = LogBuffer(1)
        self._invocation = ""
        self._clear()

    def _clear(self) -> None:
        self._all: list[LogLine] = []
        self._read_to = 0
        self._pending: deque[JournalLine] = deque()
        """Lines taken from the buffer and not yet read, the first of which is `_read_to`."""
        self._readers: dict[str, LogReader] = {}
        self._phases: dict[str, Phase] = {}
        self._filter = LogFilter()
        self._now = _Pass()
        self._fresh: list[LogLine] = []
        """Lines that the filter let through since the last `publish`."""
        self._anew: _Pass | None = None
        """What another filter lets through, until it is published."""
        self._search: re.Pattern[str] | None = None
        self._searched = 0
        """Index in `shown` of the next line to search."""
        self.matches: list[int] = []
        """Numbers of the lines shown in which the search was found."""
        self._ranks: Counter[str] = Counter()
        self._phase_counts: Counter[Phase] = Counter()
        self._told_last: dict[bool, LogLine] = {}
        """The line read last, with polls and without."""
        self._superseded: dict[bool, list[LogLine]] = {True: [], False: []}
        """States of progress bars in whose place newer ones stand, with polls between and without.
        """
        self.polls = 0
        """Lines that only tell of a poll."""
        self._told = False
        """Whether a line that could not be labelled was told of."""
        self.generation = 0
        """Changes whenever `shown` was replaced, rather than grown or cut at its start."""
        self.dropped = 0
        """Lines ever cut from the start of `shown` in this generation."""

    # ---- what there is ----------------------------------------------------------------------

    @property
    def shown(self) -> list[LogLine]:
        """Lines that the filter lets through, oldest first, with separators."""
        return self._now.shown

    @property
    def count(self) -> int:
        """Lines shown, separators not counted."""
        return len(self._now.shown) - self._now.separators

    @property
    def total(self) -> int:
        """Lines kept, whatever the filter; see `superseded`."""
        return len(self._all) - len(self.superseded)

    @property
    def superseded(self) -> Sequence[LogLine]:
        """States of progress bars that count nowhere: the newest stands in their place."""
        latest = self._filter.bars is Bars.LATEST
        return self._superseded[self._filter.noise] if latest else ()

    @property
    def ranks(self) -> Counter[str]:
        """Lines by rank: as many as `total`."""
        return self._ranks - Counter(line.rank for line in self.superseded)

    @property
    def rank_names(self) -> list[str]:
        """Every rank that wrote a line. Cheap."""
        return [rank for rank, count in self._ranks.items() if count]

    @property
    def phases(self) -> Counter[Phase]:
        """Lines by phase."""
        gone = (line.phase for line in self.superseded if line.phase is not None)
        return self._phase_counts - Counter(gone)

    @property
    def suppressed(self) -> int:
        """Lines that journald dropped."""
        return self._buffer.suppressed

    @property
    def unread(self) -> int:
        """Lines of the buffer that are still to be read."""
        return self._buffer.total - max(self._read_to, self._buffer.first)

    @property
    def filter(self) -> LogFilter:
        """The filter in force."""
        return self._filter

    @property
    def search(self) -> re.Pattern[str] | None:
        """The search in force."""
        return self._search

    @property
    def searching(self) -> bool:
        """Whether lines shown are still to be searched."""
        return self._search is not None and self._searched < len(self.shown)

    @property
    def busy(self) -> bool:
        """Whether there is work for `step`."""
        return self.unread > 0 or self.searching or (self._anew is not None and not self._ready)

    @property
    def _ready(self) -> bool:
        return self._anew is not None and self._anew.next >= self._read_to

    def index_of(self, number: int) -> int:
        """Index in `shown` of a line, or of the first after it; 0 when nothing is shown."""
        index = bisect_left(self.shown, number, key=attrgetter("number"))
        if index < len(self.shown) - 1 and self.shown[index].separator:
            index += 1
        return min(index, max(0, len(self.shown) - 1))

    def after(self, number: int) -> int:
        """How many lines shown come after a line."""
        return len(self.shown) - bisect_right(self.shown, number, key=attrgetter("number"))

    def match_after(self, number: int, step: int) -> int | None:
        """Number of the next (`step` 1) or previous (-1) match, round the end; None without."""
        if not self.matches:
            return None
        if step > 0:
            at = bisect_right(self.matches, number)
            return self.matches[at % len(self.matches)]
        return self.matches[bisect_left(self.matches, number) - 1]

    def match_position(self, number: int) -> int | None:
        """Which match a line is, from 1; None when it is none."""
        at = bisect_left(self.matches, number)
        return at + 1 if at < len(self.matches) and self.matches[at] == number else None

    # ---- what is asked for ------------------------------------------------------------------

    def attach(self, buffer: LogBuffer, invocation: str) -> None:
        """Read this buffer, in which `invocation` is the unit's present start."""
        if buffer is not self._buffer:
            kept, search = self._filter, self._search
            self._clear()
            self._buffer, self._filter, self._search = buffer, kept, search
            self.generation += 1
        if invocation != self._invocation:
            self._invocation = invocation
            if self._filter.starts is not Starts.ALL:
                self._anew = _Pass(next=self._first)

    def set_filter(self, wanted: LogFilter) -> None:
        """Show other lines; the old ones stay until the new ones are found and published."""
        if wanted != self._filter:
            self._filter = wanted
            self._anew = _Pass(next=self._first)

    def set_search(self, pattern: re.Pattern[str] | None) -> None:
        """Find other matches; `step` fills `matches`."""
        self._search = pattern
        self.matches = []
        self._searched = 0

    # ---- work -------------------------------------------------------------------------------

    def step(self, seconds: float) -> bool:
        """Read, filter and search for at most about `seconds`; whether work is left."""
        deadline = time.perf_counter() + seconds
        for work in (self._read(), self._refilter(), self._find()):
            for done, _ in enumerate(work, 1):
                if done % _BETWEEN_LOOKS_AT_THE_CLOCK == 0 and time.perf_counter() > deadline:
                    return True
        return False

    def publish(self) -> None:
        """Let `shown` hold what was found, and no more what the buffer has dropped."""
        # Not in `step`, whose time may be over right after the last line.
        self._forget(self._buffer.first)
        if self._anew is not None and self._ready:
            self._now, self._anew = self._anew, None
            self.generation += 1
            self.dropped = 0
            self.set_search(self._search)
        elif self._anew is None:
            for line in self._fresh:
                self._put(line, self._now)
        self._fresh = []
        cut = bisect_left(self.shown, self._first, key=attrgetter("number"))
        self._now.separators -= sum(1 for line in self.shown[:cut] if line.separator)
        del self.shown[:cut]
        self.dropped += cut
        self._searched = max(0, self._searched - cut)
        del self.matches[: bisect_left(self.matches, self._first)]

    @property
    def _first(self) -> int:
        return self._all[0].number if self._all else self._read_to

    def _read(self) -> Iterator[None]:
        buffer = self._buffer
        if not self._pending:
            self._read_to = max(self._read_to, buffer.first)
            self._pending = deque(buffer.since(self._read_to))
        while self._pending:
            line = self._label(self._read_to, self._pending.popleft())
            self._all.append(line)
            self._read_to += 1
            if self._anew is None and self._filter.accepts(line, self._invocation):
                self._fresh.append(line)
            yield

    def _refilter(self) -> Iterator[None]:
        anew = self._anew
        if anew is None:
            return
        start = bisect_left(self._all, anew.next, key=attrgetter("number"))
        for index in range(start, len(self._all)):
            line = self._all[index]
            anew.next = line.number + 1
            if self._filter.accepts(line, self._invocation):
                self._put(line, anew)
            yield
        anew.next = self._read_to

    def _find(self) -> Iterator[None]:
        if self._search is None:
            return
        while self._searched < len(self.shown):
            line = self.shown[self._searched]
            self._searched += 1
            if not line.separator and self._search.search(line.text):
                self.matches.append(line.number)
            yield

    def _label(self, number: int, journal_line: JournalLine) -> LogLine:
        line = LogLine(number, journal_line)
        text = _VARIATION_SELECTORS.sub("", clean(journal_line.text, LONGEST_LINE))
        line.text = text
        own = _OWN_STAMP.match(text)
        line.cut = own.end() if own and own.end() < len(text) else 0
        line.cells = len(text) if text.isascii() else cell_len(text)
        line.noise = is_poll(text)
        try:
            self._ask_engine(line)
        except Exception:  # whatever a line does to those who read it, it is shown as it is
            if not self._told:
                _log.exception("line cannot be labelled, and is shown without labels: %.200r", text)
            self._told = True
        self.polls += line.noise
        self._ranks[line.rank] += 1
        if line.phase is not None:
            self._phase_counts[line.phase] += 1
        self._note_superseded(line)
        return line

    def _note_superseded(self, line: LogLine) -> None:
        """Note the state of a progress bar that a line takes the place of."""
        for polls, superseded in self._superseded.items():
            if polls or not line.noise:
                last = self._told_last.get(polls)
                if last is not None and _supersedes(line, last):
                    superseded.append(last)
                self._told_last[polls] = line

    def _ask_engine(self, line: LogLine) -> None:
        """Let the engine say what it knows of a line."""
        journal_line = line.line
        if not journal_line.from_manager:
            line.rank = clean(self._engine.rank(line.text), 24)
        severity = self._engine.severity(line.text, journal_line.priority).upper()
        line.level = Level.__members__.get(severity, Level.INFO)
        line.phase = self._phase(journal_line)

    def _phase(self, line: JournalLine) -> Phase | None:
        """The phase in which a line was written: the one that its start entered last."""
        start = line.invocation
        if not line.from_manager:
            if start not in self._readers:
                # Few starts are kept at once: lines of an older one do not come again.
                self._readers = {start: self._engine.log_reader()}
            for event in self._readers[start].read(line):
                if isinstance(event, PhaseBegan):
                    self._phases[start] = event.phase
                elif isinstance(event, FiredUp):
                    self._phases[start] = Phase.READY
            self._phases.setdefault(start, Phase.STARTING)
        return self._phases.get(start)

    def _put(self, line: LogLine, to: _Pass) -> None:
        """Append a line that the filter let through."""
        last = to.shown[-1] if to.shown else None
        if last is not None and _other_start(last.line, line.line):
            to.shown.append(LogLine(line.number, line.line, _separator(line.line)))
            to.separators += 1
        elif last is not None and self._filter.bars is Bars.LATEST and _supersedes(line, last):
            # In place, so that nothing moves under the reader while a bar advances.
            to.shown[-1] = line
            if to is self._now and self._searched >= len(to.shown):
                self._searched = len(to.shown) - 1
                if self.matches and self.matches[-1] == last.number:
                    self.matches.pop()
            return
        to.shown.append(line)

    def _forget(self, first: int) -> None:
        """Drop the lines that the buffer no longer keeps."""
        gone = bisect_left(self._all, first, key=attrgetter("number"))
        for line in self._all[:gone]:
            self.polls -= line.noise
            self._ranks[line.rank] -= 1
            if line.phase is not None:
                self._phase_counts[line.phase] -= 1
        del self._all[:gone]
        for superseded in self._superseded.values():
            del superseded[: bisect_left(superseded, first, key=attrgetter("number"))]


def _other_start(one: JournalLine, other: JournalLine) -> bool:
    return bool(one.invocation and other.invocation and one.invocation != other.invocation)


def _supersedes(line: LogLine, last: LogLine) -> bool:
    is_same = line.line.bar and last.line.bar and line.line.pid == last.line.pid
    return is_same and not _other_start(last.line, line.line)


def _separator(line: JournalLine) -> str:
    return f"start {clean(line.invocation[:8], 8)} · {day_and_time(line.stamp)}"


def day_and_time(stamp: float) -> str:
    """A moment with its date, in the operator's time zone."""
    moment = _moment(stamp)
    return moment.astimezone().strftime("%Y-%m-%d %H:%M:%S") if moment else "no time"


def exact_time(stamp: float) -> str:
    """A moment in full, in UTC: what files carry."""
    moment = _moment(stamp)
    return moment.isoformat(timespec="milliseconds") if moment else "no time"


def _moment(stamp: float) -> datetime | None:
    try:
        return datetime.fromtimestamp(stamp, UTC)
    except (OverflowError, OSError, ValueError):  # a stamp that no calendar holds
        return None
