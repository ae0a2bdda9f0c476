"""Keeps the exceptions that a log tells of, with the lines that belong to them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from ddtui.core.cause_of_failure import Fault
from ddtui.core.events import ExceptionAlone, Failed, FailureContinued

FAULTS_KEPT = 200
LEADS_TO_THE_END = 40
"""Lines before the end in which an exception without a traceback may be its reason."""
FOLLOWS_THE_END = 40
"""Lines behind it: in a log that was shortened or wrapped, the traceback is not seen as one."""

FailureEvent = Failed | FailureContinued | ExceptionAlone


@dataclass
class Faults:
    """Those of one invocation, oldest first."""

    kept: list[Fault] = field(default_factory=list)
    _alone: deque[Fault] = field(default_factory=lambda: deque(maxlen=8))

    def take(self, event: FailureEvent, line: int, *, keep_newest: bool) -> None:
        """Take what a line tells. Of too many the oldest are kept, or the newest."""
        match event:
            case ExceptionAlone():
                self._alone.append(Fault(line, event.stamp, event.message, event.rank, False))
            case FailureContinued():
                self._continue(event.message, line)
            case Failed():
                if keep_newest and len(self.kept) >= FAULTS_KEPT:
                    del self.kept[0]
                elif len(self.kept) >= 2 * FAULTS_KEPT:  # those of the end are kept in any case
                    return
                self.kept.append(Fault(line, event.stamp, event.message, event.rank, event.wrapper))

    def _continue(self, message: str, line: int) -> None:
        """A line is of the message of the failure before it, if nothing stands between them."""
        for faults in (self.kept, self._alone):
            if faults and faults[-1].ends_in + 1 == line:
                more = (*faults[-1].more, message) if message else faults[-1].more
                faults[-1] = faults[-1]._replace(more=more, last=line)

    def of_line(self, line: int) -> Fault | None:
        """The one that stands in a line, if that was the last one."""
        return self.kept[-1] if self.kept and self.kept[-1].number == line else None

    def is_report(self, line: int) -> None:
        """A line only reports another failure: what fails in it is no root."""
        if (fault := self.of_line(line)) is not None:
            self.kept[-1] = fault._replace(is_report=True)
        if self._alone and self._alone[-1].number == line:
            self._alone.pop()

    def survived(self, rank: str) -> None:
        """A rank went on."""
        self.kept = [fault for fault in self.kept if fault.rank != rank]

    def is_alone_at(self, line: int) -> bool:
        """Whether one without a traceback is the last thing that was said."""
        return bool(self._alone) and self._alone[-1].ends_in == line

    def alone_before(self, line: int) -> tuple[Fault, ...]:
        """Exceptions without a traceback shortly before a line, or right behind it."""
        return tuple(
            fault
            for fault in self._alone
            if -FOLLOWS_THE_END <= line - fault.number <= LEADS_TO_THE_END
        )
