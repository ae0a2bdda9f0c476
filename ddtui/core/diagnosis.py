"""What happened to an engine, from a log that may hold several of its invocations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ddtui.core.engine import LogDialect
from ddtui.core.examination import Diagnosis, Examination
from ddtui.core.kernel_words import KernelLine
from ddtui.core.samples import JournalLine, UnitStatus


class LogExamination:
    """Examines a log that may hold several invocations: the last one is diagnosed."""

    def __init__(self, dialect: LogDialect) -> None:
        self._dialect = dialect
        self._reader = dialect.log_reader()
        self.current = Examination(dialect)
        self.earlier = 0
        self.before: Diagnosis | None = None
        """Of the invocation before the last one."""
        self._invocation = ""
        self._announced = False

    def take(self, line: JournalLine) -> None:
        """Take the next line of the log."""
        if line.from_manager:
            self._take_manager(line)
            return
        if self._begins_another(line):
            self.earlier += 1
            self.before = self.current.conclude()
            self._reader = self._dialect.log_reader()
            self.current = Examination(self._dialect)
        self._announced = False
        self._invocation = line.invocation or self._invocation
        self.current.take(line, self._reader.read(line))

    def _begins_another(self, line: JournalLine) -> bool:
        if not self.current.lines:
            return False
        if line.invocation and self._invocation:
            return line.invocation != self._invocation
        if self._announced:
            return True
        return self.current.went_on and self._dialect.begins_run(line.text)

    def _take_manager(self, line: JournalLine) -> None:
        if line.invocation and self._invocation and line.invocation != self._invocation:
            self._announced = True
            return
        if re.match(r"Start(?:ing|ed) ", line.text):
            # Other units start too, in a journal of the whole machine.
            self._announced = self.current.ended
            return
        self.current.take(line, ())

    def conclude(
        self, unit: UnitStatus | None = None, kernel: Sequence[KernelLine] = ()
    ) -> Diagnosis:
        """What the last invocation's lines say."""
        return self.current.conclude(unit, kernel, earlier=self.earlier)


def diagnose(
    lines: Iterable[JournalLine],
    *,
    engine: LogDialect,
    unit: UnitStatus | None = None,
    kernel: Sequence[KernelLine] = (),
) -> Diagnosis:
    """Diagnose the last invocation in a log, oldest line first.

    `unit` is what systemd says of the unit now, `kernel` lines of the kernel's log since its start.
    """
    examination = LogExamination(engine)
    for line in lines:
        examination.take(line)
    return examination.conclude(unit, kernel)
