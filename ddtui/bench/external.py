"""An external bench that runs on the host, such as the engine's own; its JSON lines are read."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import cast

import msgspec

from ddtui.bench.errors import CommandFailed, ConnectionLost
from ddtui.bench.progress import Progress, Step
from ddtui.bench.spread import spread
from ddtui.bench.transport import Connector
from ddtui.collect.programs import PREAMBLE, SUPERVISE
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.engine import Engine
from ddtui.core.measurement import Cell, Spread
from ddtui.core.redact import safe_text
from ddtui.hosts.base import Host, HostError, LinkDown, LinkRefused, Program

OUTPUT = "{output}"
"""Stands for a file in the command's arguments, for a bench that writes its lines into one."""

# The file has no name by the time that the command runs, so that nothing is left of it.
BENCH = Program(
    label="ddtui-bench",
    script=PREAMBLE
    + SUPERVISE
    + """
file=$(mktemp) && exec 4<>"$file" && rm -f -- "$file" || exit 1
command -v -- "$1" >/dev/null || { echo "$1 not found" >&2; exit 127; }
supervise "${@//\\{output\\}//dev/fd/4}"
status=$?
echo
cat /dev/fd/4
exit "$status"
""",
)
"""Runs its arguments as a command that ends with the link, then prints what is in `{output}`."""

MOST_ERRORS = 20
"""Different ones that a cell keeps."""

_SPREADS = (
    *("user_rate", "total_rate", "ttft", "ttfo", "tpot", "itl", "itl_p99"),
    *("acceptance_length", "step_time"),
)


async def run_command(
    host: Host | Connector,
    plan: BenchPlan,
    engine: Engine,
    begun: Sequence[Cell],
    clock: Callable[[], float],
    on_progress: Callable[[Progress], None] | None,
    on_cell: Callable[[Cell], None] | None,
) -> tuple[Cell, ...]:
    """Run the plan's command on the host; a cell for each concurrency that it reports.

    It is ended after `plan.command_seconds`, when the link breaks, and when this is cancelled.
    Raises CommandFailed and ConnectionLost. What it reported before it failed, or its time was
    over, is handed to `on_cell` before, with a note.
    """
    if not hasattr(host, "stream"):
        raise CommandFailed("an external bench runs on a host", "there is none here")
    results, trouble, failure = await _results(cast(Host, host), plan, engine, clock, on_progress)
    if not results and failure is None:
        raise CommandFailed(
            "the external bench gave no results",
            trouble or "none of its lines was one of JSON with figures",
            f"let it print them, or write them into the file {OUTPUT}",
        )
    known = {cell.concurrency: cell for cell in begun}
    for cell in merged(results):
        if cell.concurrency not in known:
            if failure is not None:
                late = f"{failure.what}, after these figures"
                cell = msgspec.structs.replace(cell, notes=(*cell.notes, late))  # noqa: PLW2901
            known[cell.concurrency] = cell
            if on_cell is not None:
                on_cell(cell)
    if failure is not None:
        raise failure
    return tuple(known[each] for each in sorted(known))


async def _results(
    host: Host,
    plan: BenchPlan,
    engine: Engine,
    clock: Callable[[], float],
    on_progress: Callable[[Progress], None] | None,
) -> tuple[list[Cell], str, CommandFailed | None]:
    """A cell for each line of results, why a line was not understood, and how it failed."""
    began, results, trouble = clock(), list[Cell](), ""
    failure: CommandFailed | None = None
    words = ", ".join(plan.command[:1])
    try:
        async with (
            asyncio.timeout(plan.command_seconds),
            host.stream(BENCH, *plan.command) as running,
        ):
            async for line in running.lines():
                if line.lstrip().startswith(b"{"):
                    try:
                        results.append(engine.parse_benchmark(line))
                    except ValueError as exc:
                        trouble = trouble or safe_text(str(exc), 200)
                elif on_progress is not None and line.strip():
                    said = safe_text(line.decode("utf-8", "replace"), 200)
                    on_progress(Progress(step=Step.COMMAND, elapsed=clock() - began, note=said))
            if running.status:
                tail = safe_text(running.stderr_tail.strip().rpartition("\n")[2], 300)
                failure = CommandFailed(
                    f"the external bench {words} failed with status {running.status}",
                    tail,
                    "run it on the host by hand to see more",
                )
    except TimeoutError:
        failure = CommandFailed(
            f"the external bench did not end within {plan.command_seconds:g} s",
            "it was ended",
            "give the plan more command_seconds, or the bench less to do",
        )
    except (LinkDown, LinkRefused) as exc:
        raise ConnectionLost("the link broke during the external bench", exc.what) from exc
    except HostError as exc:
        raise CommandFailed("the external bench could not be run", exc.what, exc.remedy) from exc
    return results, trouble, failure


def merged(results: Sequence[Cell]) -> list[Cell]:
    """One cell a concurrency: several results of one are its repeats."""
    found: dict[int, list[Cell]] = {}
    for cell in results:
        found.setdefault(cell.concurrency, []).append(cell)
    return [_merge(cells) for _, cells in sorted(found.items())]


def _merge(cells: Sequence[Cell]) -> Cell:
    def over(name: str) -> Spread | None:
        spreads: list[Spread | None] = [getattr(cell, name) for cell in cells]
        return spread(each.median if each else None for each in spreads)

    errors: Counter[str] = Counter()
    for cell in cells:
        errors.update(cell.errors)
    whole = Cell(
        concurrency=cells[0].concurrency,
        requests=sum(cell.requests for cell in cells),
        failed=sum(cell.failed for cell in cells),
        errors=dict(errors.most_common(MOST_ERRORS)),
        output_tokens=sum(cell.output_tokens for cell in cells),
        seconds=sum(cell.seconds for cell in cells),
        notes=tuple(dict.fromkeys(note for cell in cells for note in cell.notes)),
    )
    return msgspec.structs.replace(whole, **{name: over(name) for name in _SPREADS})
