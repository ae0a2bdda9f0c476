"""What the rows of the results say together: where returns diminish, and why. Pure.

Rules of thumb are told with the figure that they rest on. Where they come from:

- Returns diminish at the smallest value of a knob whose rate cannot be told from the best one's,
  everything else being equal.
- A block is saturated where many passes accept all of it: then a longer one may bring more. Where
  hardly any does, a longer one cannot (the DFlash paper has 36 % for block size 8).
- Node use is the share of a verified tree that is accepted; what is not was verified in vain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from ddtui.experiments.comparison import Standing, compared, rate_of, standing_of
from ddtui.experiments.grouping import that_count
from ddtui.experiments.intervals import ratio
from ddtui.experiments.knob_values import (
    TIED,
    in_words,
    numeric,
    others,
    value_of,
    value_order,
    varying_knobs,
)
from ddtui.experiments.rows import Row
from ddtui.experiments.wording import difference, gpus_in_words, number, percent, rate

SATURATED = 0.25
"""Share of passes that accept the whole block, from which a longer block may pay."""
OUT_OF_REACH = 0.05
"""The same, below which a longer block cannot."""
LOW_NODE_USE = 0.25
DISAGREEING = 0.05
"""How far the engine's own acceptance may be from the requests' before it is told: a share."""

NoteKind = Literal["returns", "block", "nodes", "coding", "versions", "drift", "sources", "match"]


class Note(msgspec.Struct, frozen=True):
    """One thing that the rows say."""

    kind: NoteKind
    text: str


class Run(msgspec.Struct, frozen=True):
    """Rows that differ in one knob only, by its value."""

    knob: str
    beside: tuple[tuple[str, str], ...]
    """The other knobs that vary, equal here."""
    work: str
    rows: tuple[Row, ...]

    @property
    def label(self) -> str:
        """What is equal, in words."""
        return in_words(self.beside)


def runs_of(rows: Sequence[Row], varying: Sequence[str], knob: str) -> list[Run]:
    """All runs over a knob: at least two of its values, everything else equal."""
    found: dict[tuple[object, ...], dict[str, Row]] = {}
    for row in rows:
        if row.rate is not None:
            key = (row.work, row.kind, others(row.knobs, knob, varying))
            # The newest of several with equal knobs, as where only a version differs.
            found.setdefault(key, {})[value_of(row.knobs, knob)] = row
    return [
        Run(
            knob,
            others(next(iter(by_value.values())).knobs, knob, varying),
            next(iter(by_value.values())).work,
            tuple(by_value[value] for value in sorted(by_value, key=value_order)),
        )
        for by_value in found.values()
        if len(by_value) > 1
    ]


def notes_on(
    rows: Sequence[Row],
    varying: Sequence[str],
    margin: float,
    concurrency: int,
    beside: Sequence[Row] = (),
) -> tuple[Note, ...]:
    """Everything worth telling, the most useful first.

    `beside` are all rows of the host, among which is what those of a sweep were matched to.
    """
    measured = [row for row in rows if row.rate is not None]
    notes = [
        note for knob in varying for note in _returns(runs_of(measured, varying, knob), margin)
    ]
    notes += _matches(measured, beside or measured, margin)
    notes += _blocks(measured)
    notes += _nodes(measured)
    notes += _coding(rows)
    notes += _versions(measured)
    notes += _sources(measured)
    notes += _drift(measured, margin, concurrency)
    return tuple(notes)


def _returns(runs: Sequence[Run], margin: float) -> Iterator[Note]:
    """Where more of a knob brings no more; settings of which the same holds are told together."""
    found: dict[str, list[tuple[Run, str]]] = {}
    values = {value_of(row.knobs, run.knob) for run in runs for row in run.rows}
    for run in runs:
        if (told := _returns_of(run, values, margin)) is not None:
            found.setdefault(told[0], []).append((run, told[1]))
    judged = sum(map(len, found.values()))
    for text, same in found.items():
        run, detail = same[0]
        if len(same) == 1:
            where = f" ({run.label})" if run.beside else ""
            yield Note("returns", f"{run.knob}{where}: {text}{detail}")
        else:
            where = f"in {len(same)} of {judged} settings of the other knobs"
            yield Note("returns", f"{run.knob}: {text} ({where})")


def _returns_of(run: Run, values: Iterable[str], margin: float) -> tuple[str, str] | None:
    """What holds for one run, and its figures; `values` of the knob were measured somewhere."""
    rows = [row for row in run.rows if numeric(value_of(row.knobs, run.knob)) is not None]
    if len(rows) < 2:
        return None
    best = max(rows, key=lambda row: row.rate.median if row.rate is not None else 0.0)
    alike = [
        row
        for row in rows
        if row is best or standing_of(ratio(row.rate, best.rate), margin) is Standing.TIE
    ]
    enough, value = alike[0], value_of(alike[0].knobs, run.knob)
    own = [value_of(row.knobs, run.knob) for row in rows]
    top, low, high = value_of(best.knobs, run.knob), own[0], own[-1]
    speed = rate(best.rate.median if best.rate is not None else None)
    detail = f" ({speed} tok/s at the best{_beyond(enough, rows, high)})"
    hole = _hole(own, values)
    among = f" among {', '.join(own)}; {hole} not measured there" if hole else ""
    if len(alike) == len(rows):
        return f"makes no difference that can be told,{among or f' from {low} to {high}'}", detail
    if enough is not best:
        return f"{value} is enough{among}; the best, {top}, cannot be told from it", detail
    if among:
        return f"best at {top}{among}", detail
    if best is rows[-1]:
        return f"still rising at {top}, the largest value measured{_there(own, values)}", detail
    if best is rows[0]:
        there = _there(own, values)
        return f"best at {top}, the smallest value measured{there}; larger ones do not pay", detail
    return f"best at {top}; returns diminish beyond", detail


def _hole(own: Sequence[str], values: Iterable[str]) -> str:
    """Values between those of a run that it lacks and others have: `8 was`; empty for none."""
    low, high = value_order(own[0]), value_order(own[-1])
    missing = sorted(
        (each for each in {*values} - {*own} if low < value_order(each) < high), key=value_order
    )
    return f"{', '.join(missing)} {'was' if len(missing) == 1 else 'were'}" if missing else ""


def _there(own: Sequence[str], values: Iterable[str]) -> str:
    """A word that bounds a claim where other settings were measured with more values."""
    return " there" if {*values} - {*own} else ""


def _beyond(enough: Row, rows: Sequence[Row], value: str) -> str:
    """What the largest value brings a pass, and costs, against the one that is enough."""
    last = rows[-1]
    length = ratio(last.acceptance_length, enough.acceptance_length)
    step = ratio(last.step_time, enough.step_time)
    if last is enough or length is None or step is None:
        return ""
    return (
        f"; up to {value}: acceptance length {(length.value - 1) * 100:+.0f} %, "
        f"step time {(step.value - 1) * 100:+.0f} %"
    )


def _blocks(rows: Sequence[Row]) -> Iterator[Note]:
    saturated: dict[float, list[tuple[str, float]]] = {}
    sizes = [size for row in rows if (size := numeric(row.knobs.get("block_size", ""))) is not None]
    for row in rows:
        block = numeric(row.knobs.get("block_size", ""))
        positions = row.cell.positions if row.cell is not None else ()
        if block is None or block < 2 or len(positions) < block - 1:
            continue
        share = positions[int(block) - 2]
        if share >= SATURATED:
            saturated.setdefault(block, []).append((row.title, share))
        elif share < OUT_OF_REACH and row.is_baseline:
            why = f"only {share:.1%} of its passes accept the whole block of {block:g}"
            yield Note("block", f"{row.title}: {why}; a longer one brings nothing")
    for size, found in saturated.items():
        shares = [share for _, share in found]
        bounds = " to ".join(dict.fromkeys(map(percent, (min(shares), max(shares)))))
        where = found[0][0] if len(found) == 1 else f"{len(found)} configurations"
        whose = "its" if len(found) == 1 else "their"
        why = f"{bounds} of {whose} passes accept the whole block of {size:g}"
        longer = sorted({each for each in sizes if each > size})
        measured = " and ".join(f"{each:g}" for each in longer)
        rest = f"what {measured} brings was measured" if longer else "a longer one may pay"
        yield Note("block", f"{where}: block saturated: {why}; {rest}")


def _matches(rows: Sequence[Row], everything: Sequence[Row], margin: float) -> Iterator[Note]:
    """What another block size brings, beside what its budget was matched to."""
    varying = varying_knobs([row.knobs for row in everything])
    same = [each for each in varying if each not in {"block_size", "budget", *TIED["block_size"]}]

    def key(row: Row, block: str, budget: str) -> tuple[object, ...]:
        return (row.kind, block, budget, *(value_of(row.knobs, name) for name in same))

    known = {
        key(row, value_of(row.knobs, "block_size"), value_of(row.knobs, "budget")): row
        for row in everything
    }
    for row in rows:
        for match in row.matched:
            other = known.get(key(row, str(match.block_size), str(match.budget)))
            found = None if other is None else compared(row.cell, other.cell, margin)
            if (
                other is None
                or other.configuration == row.configuration
                or found is None
                or not found.by
            ):
                continue
            by = found.user_rate if found.by == "user" else found.total_rate
            what = f"{rate(_median(row))} tok/s against {rate(_median(other))} of {other.title}"
            why = f"; {found.why}" if found.why else ""
            text = f"{row.title} ({match.policy}): {what}: {difference(by)}, {found.standing}{why}"
            yield Note("match", text)


def _median(row: Row) -> float | None:
    return None if row.rate is None else row.rate.median


def _nodes(rows: Sequence[Row]) -> Iterator[Note]:
    low = [row for row in rows if row.node_use is not None and row.node_use < LOW_NODE_USE]
    if low:
        shown = ", ".join(f"{row.title} {percent(row.node_use)}" for row in low[:6])
        more = f" and {len(low) - 6} more" if len(low) > 6 else ""
        yield Note("nodes", f"most of the tree is verified in vain (node use): {shown}{more}")


def _coding(rows: Sequence[Row]) -> Iterator[Note]:
    for row in rows:
        coding = row.coding
        if coding is None or not coding.compared or not (coding.lost or coding.gained):
            continue
        flips = [f"lost {', '.join(coding.lost)}"] if coding.lost else []
        flips += [f"gained {', '.join(coding.gained)}"] if coding.gained else []
        text = f"{row.title}: {coding.passed}/{coding.total} coding tasks; {'; '.join(flips)}"
        if len(coding.lost) + len(coding.gained) < 6:
            text += ". So few flips are no proof of a difference"
        yield Note("coding", text)


def _versions(rows: Sequence[Row]) -> Iterator[Note]:
    for what, field in (("engine versions", "engine_version"), ("drivers", "driver")):
        told = {getattr(row.newest.provenance, field) for row in rows if row.newest is not None} - {
            ""
        }
        if len(told) > 1:
            shown = ", ".join(sorted(told))
            yield Note("versions", f"the rows were measured with several {what}: {shown}")
    gpus = {gpus_in_words(row.newest.provenance.gpus) for row in rows if row.newest is not None}
    if len(gpus - {""}) > 1:
        shown = "; ".join(sorted(gpus - {""}))
        yield Note("versions", f"the rows were measured on several sets of GPUs: {shown}")


def _sources(rows: Sequence[Row]) -> Iterator[Note]:
    for row in rows:
        own, cell = row.acceptance_length, row.cell
        if own is None or cell is None or not cell.server_acceptance:
            continue
        apart = cell.server_acceptance / own.median - 1
        if abs(apart) > DISAGREEING:
            yield Note(
                "sources",
                f"{row.title}: acceptance length {number(own.median)} by its requests, "
                f"{number(cell.server_acceptance)} by the engine's counters",
            )


def _drift(rows: Sequence[Row], margin: float, concurrency: int) -> Iterator[Note]:
    """What the margin rests on: the baseline's measurements, else those that lie furthest apart."""
    found = [(row, rates) for row in rows if len(rates := _rates(row, concurrency)) > 1]
    own = [pair for pair in found if pair[0].is_baseline]
    if not found:
        return
    row, rates = max(own or found, key=lambda pair: max(pair[1]) / min(pair[1]))
    figures = ", then ".join(map(rate, rates))
    apart = (max(rates) / min(rates) - 1) * 100
    what = "the baseline" if row.is_baseline else row.title
    yield Note(
        "drift",
        f"{what} was measured {len(rates)} times: {figures} tok/s, a drift of {apart:.1f} %; a"
        f" difference within {margin * 100:.1f} % is a tie",
    )


def _rates(row: Row, concurrency: int) -> list[float]:
    """The rate of each measurement that counts, the oldest first."""
    rates = (rate_of(cell)[1] for _, cell in that_count(row.measurements, concurrency))
    return [each.median for each in rates if each is not None and each.median > 0]
