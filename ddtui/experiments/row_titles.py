"""Titles of rows: they tell what the rows differ in, and so tell the rows apart. Pure.

A title is what was asked for. A bench by hand was asked for nothing, so its title names the main
knobs whether they differ or not. And of two queues that began with something else in force, the
same request is another configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from ddtui.experiments.knob_values import says, value_of
from ddtui.experiments.rows import Row

_Facts = Callable[[Row], Sequence[tuple[object, str]]]
"""What may be told of a row, by what it is of."""


def told_apart(rows: Sequence[Row], varying: Sequence[str]) -> list[Row]:
    """The rows in their order, titled so that each differs from the others where it can."""
    found = [_titled(row, _of_what_varies(row, varying)) for row in rows]
    found = _completed(found, varying)
    found = _with_more(found, lambda row: [(each, _knob(row, each)) for each in varying])
    return _with_more(found, lambda row: list(enumerate(_work(row))))


def _of_what_varies(row: Row, varying: Sequence[str]) -> str:
    """The title of a bench by hand, with those of its knobs that vary; others as they are."""
    words = row.title.split()
    pairs = list(zip(words[::2], words[1::2], strict=False))
    made = len(words) % 2 == 0 and all(row.knobs.get(name) == value for name, value in pairs)
    asked = row.experiments or any(each.experiment for each in row.measurements)
    if asked or not made:
        return row.title
    return " ".join(f"{name} {value}" for name, value in pairs if name in varying) or row.title


def _completed(rows: Sequence[Row], varying: Sequence[str]) -> list[Row]:
    """None silent about a knob that other titles tell, where it is not as the baseline's."""
    baseline = next((row for row in rows if row.is_baseline), None)
    found = list(rows)
    for knob in varying if baseline is not None else ():
        telling = {row.title for row in rows if says(row.title, knob, value_of(row.knobs, knob))}
        for at, row in enumerate(found):
            value = value_of(row.knobs, knob)
            silent = telling and rows[at].title not in telling and knob in row.knobs
            if silent and baseline is not None and value != value_of(baseline.knobs, knob):
                found[at] = _titled(row, f"{row.title} {knob} {value}")
    return found


def _with_more(rows: Sequence[Row], facts: _Facts) -> list[Row]:
    """Rows of one title get those facts behind it that they differ in."""
    alike: dict[str, list[Row]] = {}
    for row in rows:
        if row.measurements:  # what only failed has its cause to tell it by
            alike.setdefault(row.title, []).append(row)
    found = list(rows)
    for at, row in enumerate(rows):
        others = [dict(facts(each)) for each in alike.get(row.title, ())]
        if row.measurements and len(others) > 1:
            more = [text for key, text in facts(row) if any(x.get(key) != text for x in others)]
            found[at] = _titled(row, " ".join([row.title, *_bracketed(more)]))
    return found


def _bracketed(texts: Iterable[str]) -> Iterator[str]:
    words = ", ".join(filter(None, texts))
    if words:
        yield f"({words})"


def _knob(row: Row, knob: str) -> str:
    return f"{knob} {value_of(row.knobs, knob)}"


def _work(row: Row) -> list[str]:
    """What it was asked to do, in pieces; of prompts that are called alike, which."""
    if row.work.startswith("external bench"):
        return [row.work]
    newest = row.newest or row.measurements[-1]
    prompts = newest.provenance.prompts_hash[:8]
    return [*row.work.split(", "), f"prompts {prompts}" if prompts else ""]


def _titled(row: Row, title: str) -> Row:
    return row if title == row.title else msgspec.structs.replace(row, title=title)
