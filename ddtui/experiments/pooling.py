"""One cell of several that measured the same at the same concurrency. Pure.

Repeats go together, counts are added. Of what a cell holds as one number, the mean is taken, each
cell with the weight of what its number is of: passes for acceptance, requests for TTFT, measured
seconds for rates. So the figures are those of one long measurement. A cell that does not know a
figure has no part in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest

import msgspec

from ddtui.bench.spread import spread
from ddtui.core.measurement import Cell, Spread
from ddtui.experiments.intervals import usable


def pooled(cells: Sequence[Cell]) -> Cell:
    """All of them as one, the newest last."""
    newest = cells[-1]
    if len(cells) == 1:
        return newest
    spreads = {
        field: _spread_of([getattr(each, field) for each in cells])
        for field in Cell.__struct_fields__
        if any(isinstance(getattr(each, field), Spread) for each in cells)
    }
    errors: dict[str, int] = {}
    for cell in cells:
        for what, count in cell.errors.items():
            errors[what] = errors.get(what, 0) + count
    together = msgspec.structs.replace(
        newest,
        **spreads,
        requests=sum(each.requests for each in cells),
        failed=sum(each.failed for each in cells),
        stalled=sum(each.stalled for each in cells),
        output_tokens=sum(each.output_tokens for each in cells),
        seconds=sum(each.seconds for each in cells),
        acceptance_macro=_mean(cells, "acceptance_macro", _requests),
        positions=_positions(cells),
        passes=sum(each.passes for each in cells) if all(each.passes for each in cells) else 0,
        server_rate=_mean(cells, "server_rate", _seconds),
        server_acceptance=_mean(cells, "server_acceptance", _passes_by_server),
        server_ttft=_mean(cells, "server_ttft", _requests),
        link_rtt=_mean(cells, "link_rtt", _requests),
        warmup_batches=max(each.warmup_batches for each in cells),
        steady=all(each.steady for each in cells),
        errors=errors,
        notes=tuple(dict.fromkeys(note for cell in cells for note in cell.notes)),
    )
    return msgspec.structs.replace(together, node_use=_node_use(cells, together))


def _spread_of(figures: Iterable[Spread | None]) -> Spread | None:
    known = [each for each in map(usable, figures) if each is not None]
    values = [value for each in known for value in each.values]
    if all(each.values for each in known):
        return spread(values)
    return known[-1] if known else None


def _mean(cells: Sequence[Cell], field: str, weight: Callable[[Cell], float]) -> float | None:
    """Of the cells that know the figure; plain where none of them has weight."""
    known = [(getattr(each, field), weight(each)) for each in cells]
    known = [(figure, weighs) for figure, weighs in known if figure is not None]
    total = sum(weighs for _, weighs in known)
    if total > 0:
        return float(sum(figure * weighs for figure, weighs in known) / total)
    return float(sum(figure for figure, _ in known) / len(known)) if known else None


def _requests(cell: Cell) -> float:
    return cell.requests


def _seconds(cell: Cell) -> float:
    return cell.seconds


def _passes(cell: Cell) -> float:
    """Verifications; where they are not told, by what each brought: what it accepted and one token.

    The first token of an answer came before them.
    """
    return cell.passes or _verified_tokens(cell) / (1 + sum(cell.positions))


def _passes_by_server(cell: Cell) -> float:
    return _verified_tokens(cell) / cell.server_acceptance if cell.server_acceptance else 0.0


def _verified_tokens(cell: Cell) -> int:
    return max(0, cell.output_tokens - cell.requests)


def _positions(cells: Iterable[Cell]) -> tuple[float, ...]:
    """As of the sum of the histograms that the shares were made of."""
    known = [each for each in cells if each.positions]
    passes = [_passes(each) for each in known]
    total = sum(passes)
    if not total:
        return known[-1].positions if known else ()
    return tuple(
        sum(share * number for share, number in zip(shares, passes, strict=True)) / total
        for shares in zip_longest(*(each.positions for each in known), fillvalue=0.0)
    )


def _node_use(cells: Iterable[Cell], together: Cell) -> float | None:
    """(Acceptance length - 1) / budget, which all cells of one configuration share."""
    length = together.acceptance_length
    for each in cells:
        own = each.acceptance_length
        if length is not None and own is not None and own.median > 1 and each.node_use:
            return each.node_use * (length.median - 1) / (own.median - 1)
    return together.node_use
