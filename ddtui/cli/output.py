"""What verbs print: data on standard output, narration on standard error, both safe and plain."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TextIO

from ddtui.cli import streams
from ddtui.cli.exit_codes import ExitCode
from ddtui.core import text as core_text
from ddtui.core.json_text import in_ascii, json_text

MAX_TEXT = 2_000
"""Most characters of one text from elsewhere."""

_unread: ContextVar[set[str] | None] = ContextVar("unread", default=None)
"""What was told of output that is lost, while something is done that outlives its readers."""
_answer: ContextVar[Answer | None] = ContextVar("answer", default=None)
"""What a verb has printed as JSON."""
_PAINT = re.compile(r"\x1b\[[0-9;]*m")
_WORDS = re.compile(r"(\s*)(\S+)")
_CODES = {"green": 32, "yellow": 33, "red": 31, "cyan": 36, "bold": 1, "dim": 2}


def clean(text: str) -> str:
    """Text from elsewhere without anything that a terminal would act on; capped."""
    return core_text.clean(text, MAX_TEXT)


def say(text: str, end: str = "\n") -> None:
    """Narrate on standard error. What cannot be written there is lost, and no reason to stop."""
    streams.write(sys.stderr, text + end)


def emit(text: str) -> None:
    """Print data on standard output. Where that is lost, a verb that only looks ends.

    What a verb does goes on (`unread`): its exit status tells how it ended, and the store has it.
    """
    lost = streams.write(sys.stdout, text + "\n")
    if lost is None:
        return
    told = _unread.get()
    if not lost.gone and (told is None or lost.why not in told):
        _say_unwritable(lost.why)
    if told is None:
        raise SystemExit(int(ExitCode.READER_GONE if lost.gone else ExitCode.FAILED))
    told.add(lost.why)


@contextmanager
def unread() -> Iterator[None]:
    """Do something that goes on to its end where its output cannot be written, or is not read."""
    before = _unread.set(set())
    try:
        yield
    finally:
        _unread.reset(before)


@contextmanager
def written() -> Iterator[None]:
    """For what is not printed by `emit`: say what keeps it from being written, and exit."""
    try:
        yield
    except OSError as error:
        _say_unwritable(error.strerror or str(error))
        raise SystemExit(int(ExitCode.FAILED)) from error
    finally:
        for stream in (sys.stdout, sys.stderr):
            streams.write(stream, "")  # or the interpreter would complain of what is left in it


def _say_unwritable(why: str) -> None:
    say(f"error: cannot write the output: {why}")


class Answer:
    """What was printed as JSON where that was asked for."""

    given = False
    """Whether anything was."""


@contextmanager
def answering() -> Iterator[Answer]:
    """Watch whether a verb prints JSON."""
    answer = Answer()
    before = _answer.set(answer)
    try:
        yield answer
    finally:
        _answer.reset(before)


def emit_json(value: object) -> None:
    """Print one JSON document on standard output, indented."""
    emit_json_text(json_text(value))


def emit_json_line(value: object) -> None:
    """Print JSON as one line of many."""
    emit_json_text(json_text(value, indent=-1))


def emit_json_text(text: str) -> None:
    """Print what is JSON already: in UTF-8, whatever the locale would write."""
    if (answer := _answer.get()) is not None:
        answer.given = True
    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    emit(text if is_utf8 else in_ascii(text))


class Paint:
    """Colours for a stream; none where it is no terminal, or with NO_COLOR or TERM=dumb."""

    def __init__(self, stream: TextIO | None = None) -> None:
        stream = stream or sys.stdout
        self.enabled = (
            stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        )

    def __call__(self, text: str, *styles: str) -> str:
        """`text` in the given styles: green, yellow, red, cyan, bold, dim."""
        if not self.enabled or not styles or not text:
            return text
        codes = ";".join(str(_CODES[style]) for style in styles)
        return f"\x1b[{codes}m{text}\x1b[0m"


def table(rows: Iterable[Sequence[str]], right: Iterable[int] = (), gap: str = "  ") -> list[str]:
    """Rows of plain text as aligned lines; columns in `right` are set to the right."""
    cells = [list(row) for row in rows]
    if not cells:
        return []
    widths = [max(len(row[n]) for row in cells) for n in range(len(cells[0]))]
    to_right = set(right)
    return [
        gap.join(
            cell.rjust(width) if n in to_right else cell.ljust(width)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


def terminal_width() -> int | None:
    """Columns of the terminal; no limit where the output is none, unless COLUMNS names one."""
    if not sys.stdout.isatty() and not os.environ.get("COLUMNS"):
        return None
    return shutil.get_terminal_size((80, 24)).columns


def narrowed(
    rows: Sequence[Sequence[str]],
    width: int | None,
    give: Sequence[tuple[int, int]],
    gap: str = "  ",
    without: Iterable[int] = (),
) -> list[list[str]]:
    """Rows of a table that fits into `width` columns, where that can be.

    `give` names columns that may be cut (with an ellipsis) and how wide they stay at least, in the
    order in which they give way; 0 leaves a column out, and must come last of its column. Those
    in `without` are left out at any width.
    """
    for tried in range(len(give) + 1):
        gone = {*without, *(column for column, least in give[:tried] if not least)}
        cuts = [(column, least) for column, least in give[:tried] if column not in gone]
        cells, fits = _cut(rows, width, cuts, gone, len(gap))
        if fits:
            break
    return [[cell for n, cell in enumerate(row) if n not in gone] for row in cells]


def _cut(
    rows: Sequence[Sequence[str]],
    width: int | None,
    cuts: Sequence[tuple[int, int]],
    gone: set[int],
    gap: int,
) -> tuple[list[list[str]], bool]:
    """Rows whose columns are cut as far as is needed, and whether what is not gone then fits."""
    from ddtui.core.width import cell_len, clip

    cells = [list(row) for row in rows]
    widths = [max(cell_len(row[n]) for row in cells) for n in range(len(cells[0]))]

    def over() -> int:
        kept = [each for n, each in enumerate(widths) if n not in gone]
        return 0 if width is None else sum(kept) + gap * (len(kept) - 1) - width

    for column, least in cuts:
        if (much := over()) > 0:
            widths[column] = min(widths[column], max(least, widths[column] - much))
            for row in cells:
                row[column] = clip(row[column], widths[column])
    return cells, over() <= 0


def wrapped(text: str, width: int | None, indent: str = "  ") -> list[str]:
    """A sentence in lines of at most `width` columns; those after the first one are indented."""
    if width is None:
        return [text]
    return textwrap.wrap(
        text,
        max(24, width),
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [""]


def folded(line: str, width: int | None, indent: int) -> list[str]:
    """A line, which may be painted and has columns, in lines of at most `width` columns.

    What goes on in the next line begins at the column `indent`.
    """
    from ddtui.core.width import cell_len

    def wide(text: str) -> int:
        return cell_len(_PAINT.sub("", text))

    if width is None or wide(line) <= width:
        return [line]
    found, here = [], ""
    for gap, word in _WORDS.findall(line):
        if here.strip() and wide(here + gap + word) > width:
            found.append(here)
            here = " " * indent + word
        else:
            here += gap + word
    return [*found, here]
