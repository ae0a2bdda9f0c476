"""What the log screen shows: labelled lines, and the filter that lets them through."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

import msgspec

from ddtui.core.events import Phase
from ddtui.core.samples import JournalLine

_POLL = re.compile(
    r'"(?:GET|HEAD|POST) /(?:health|health_generate|ready|metrics|model_info|get_model_info|'
    r'server_info|get_server_info|v1/models|v1/loads)(?:[?/][^ "]*)? HTTP/[\d.]+" 2\d\d'
)


def is_poll(text: str) -> bool:
    """Whether a line tells of a request that programs such as ddtui repeat, and of its success."""
    return "HTTP/" in text and _POLL.search(text) is not None


class Level(enum.IntEnum):
    """Severity of a line. What is compared is how bad it is."""

    DEBUG = 0
    INFO = 1
    WARNING = 2
    ERROR = 3

    @property
    def letter(self) -> str:
        """What the log shows for it, so that colour is never the only sign."""
        return self.name[0]


class Starts(enum.StrEnum):
    """Which starts (invocations) of the unit are shown."""

    ALL = "all starts"
    THIS = "this start"
    EARLIER = "earlier starts"


class Bars(enum.StrEnum):
    """Which states of progress bars are shown."""

    LATEST = "latest bars"
    ALL = "all bars"
    NONE = "no bars"


class LogLine(msgspec.Struct, gc=False, eq=False):
    """A line with its labels. A separator stands before the first line of another start.

    Unknown to the garbage collector, which would otherwise hold keys up to look at them all.
    """

    number: int
    line: JournalLine
    separator: str = ""
    text: str = ""
    cells: int = 0
    cut: int = 0
    """Characters of the engine's own stamp and rank at the start of `text`."""
    rank: str = ""
    level: Level = Level.INFO
    phase: Phase | None = None
    noise: bool = False
    """Whether it only tells of a poll: see `is_poll`."""


@dataclass(frozen=True)
class LogFilter:
    """What is shown: by default all but polls and superseded states of progress bars."""

    least: Level = Level.DEBUG
    rank: str | None = None
    """None for all; an empty string for the main process."""
    phase: Phase | None = None
    starts: Starts = Starts.ALL
    bars: Bars = Bars.LATEST
    noise: bool = False
    text: re.Pattern[str] | None = None
    without: bool = False
    """Show the lines in which `text` is not found."""

    def accepts(self, line: LogLine, invocation: str) -> bool:
        """Whether a line is shown, when `invocation` is the unit's present one."""
        if line.level < self.least or (self.rank is not None and line.rank != self.rank):
            return False
        if self.phase is not None and line.phase is not self.phase:
            return False
        if self.starts is not Starts.ALL:
            present = line.line.invocation in {"", invocation}
            if present is not (self.starts is Starts.THIS):
                return False
        if (line.noise and not self.noise) or (line.line.bar and self.bars is Bars.NONE):
            return False
        return self.text is None or (self.text.search(line.text) is None) is self.without

    def words(self) -> list[str]:
        """What is not shown, in words for the status line."""
        words = []
        if self.least > Level.DEBUG:
            words.append("errors" if self.least is Level.ERROR else f"{self.least.name.lower()}+")
        if self.rank is not None:
            words.append(f"rank {self.rank or 'none'}")
        if self.phase is not None:
            words.append(str(self.phase))
        if self.starts is not Starts.ALL:
            words.append(str(self.starts))
        if self.bars is not Bars.LATEST:
            words.append(str(self.bars))
        if self.noise:
            words.append("with polls")
        if self.text is not None:
            words.append("without text" if self.without else "text")
        return words


class BadPattern(ValueError):
    """A regular expression that cannot be read: says why and where."""


def compile_search(text: str, *, regex: bool) -> re.Pattern[str]:
    """A search for `text`; upper and lower case differ only where `text` has upper case.

    Raises:
        BadPattern: it is no regular expression.
    """
    flags = re.IGNORECASE if text == text.lower() else re.NOFLAG
    try:
        return re.compile(text if regex else re.escape(text), flags)
    except (re.error, OverflowError, RecursionError) as error:
        place = (
            f" at {error.pos + 1}" if isinstance(error, re.error) and error.pos is not None else ""
        )
        message = error.msg if isinstance(error, re.error) else str(error)
        raise BadPattern(f"regex: {message}{place}") from error
