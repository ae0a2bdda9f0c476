"""Which screen row belongs to which line of the log, with long lines wrapped or not."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

from ddtui.ui.log_filter import LogLine

RowsOf = Callable[[LogLine], int]


class RowMap:
    """Rows of a growing list of lines that is also cut at its start.

    Without wrapping a line is a row and nothing is stored. With it, `_ends` holds for each line the
    row after its last one, counted from `_base`, so that cutting the start moves nothing else.
    """

    def __init__(self) -> None:
        self._rows_of: RowsOf | None = None
        self._lines: Sequence[LogLine] = ()
        self._ends: list[int] = []
        self._base = 0

    @property
    def height(self) -> int:
        """Rows in all."""
        if self._rows_of is None:
            return len(self._lines)
        return self._ends[-1] - self._base if self._ends else 0

    def rebuild(self, lines: Sequence[LogLine], rows_of: RowsOf | None) -> None:
        """Start anew with these lines; `rows_of` is None for one row each."""
        self._lines, self._rows_of = lines, rows_of
        self._ends, self._base = [], 0
        self.grow()

    def cut(self, count: int) -> int:
        """The first `count` lines were cut from the list; returns how many rows they had."""
        if self._rows_of is None or not count:
            return count
        count = min(count, len(self._ends))
        before = self._base
        self._base = self._ends[count - 1]
        del self._ends[:count]
        return self._base - before

    def grow(self) -> None:
        """Lines were added to the list, or its last one was replaced."""
        if self._rows_of is None:
            return
        if self._ends:
            self._ends.pop()  # the last line may be another one now
        end = self._ends[-1] if self._ends else self._base
        for index in range(len(self._ends), len(self._lines)):
            end += self._rows_of(self._lines[index])
            self._ends.append(end)

    def line_at(self, row: int) -> tuple[int, int]:
        """Index of the line at a row, and which of the line's rows that is."""
        if self._rows_of is None:
            return row, 0
        index = bisect_right(self._ends, row + self._base)
        return index, row - self.top_of(index)

    def top_of(self, index: int) -> int:
        """First row of a line."""
        if self._rows_of is None:
            return index
        return self._ends[index - 1] - self._base if index > 0 and self._ends else 0

    def rows_of(self, index: int) -> int:
        """Rows of a line."""
        return 1 if self._rows_of is None else self.top_of(index + 1) - self.top_of(index)
