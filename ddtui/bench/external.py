"""An external bench that runs on the host, such as the engine's own; its JSON lines are read."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Collection, Sequence

import msgspec

from ddtui.bench.errors import BenchError, CommandFailed, ConnectionLost
from ddtui.bench.progress import Progress, Step
from ddtui.bench.spread import spread
from ddtui.collect.programs import HEARTBEAT_LIMIT, PREAMBLE, SUPERVISE
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.engine import Engine
from ddtui.core.measurement import Cell, Spread
from ddtui.core.redact import safe_text
from ddtui.hosts.base import Host, HostError, LinkDown, LinkRefused, Program

OUTPUT = "{output}"
"""Stands for a file in the command's arguments, for a bench that writes its lines into one."""

# An earlier run of the same whose link broke goes on until its heartbeat is missed: the two would
# measure one another. The file has no name by the time that the command runs, so that nothing is
# left of it.
BENCH = Program(
    label="ddtui-bench",
    script=PREAMBLE
    + SUPERVISE
    + """
begun() { local stat fields; read -r stat < "$1/stat"; fields=(${stat##*) }); began=${fields[19]}; }
earlier() {
  local p own theirs began mine
  mapfile -d '' own < /proc/$$/cmdline
  begun /proc/$$; mine=$began
  for p in /proc/[0-9]*; do
    [ "$p" != /proc/$$ ] && [ -O "$p" ] && mapfile -d '' theirs < "$p/cmdline" || continue
    [ "${theirs[*]}" = "${own[*]}" ] && begun "$p" || continue
    [ "$began" -lt "$mine" ] && return
    [ "$began" = "$mine" ] && [ "${p#/proc/}" -lt $$ ] && return
  done 2>/dev/null
  return 1
}
while earlier && [ "$SECONDS" -lt PATIENCE ]; do
  read -r -t 0.5 _
  [ $? = 1 ] && exit 1
done
file=$(mktemp) && exec 4<>"$file" && rm -f -- "$file" || exit 1
command -v -- "$1" >/dev/null || { echo "$1 not found" >&2; exit 127; }
supervise "${@//\\{output\\}//dev/fd/4}"
status=$?
echo
cat /dev/fd/4
exit "$status"
""".replace("PATIENCE", str(HEARTBEAT_LIMIT + 15)),
)
"""Runs its arguments as a command that ends with the link, then prints what is in `{output}`."""

MOST_ERRORS = 20
"""Different ones that a cell keeps."""

_SPREADS = (
    *("user_rate", "total_rate", "ttft", "ttfo", "tpot", "itl", "itl_p99"),
    *("acceptance_length", "step_time"),
)


_HAND_OVER = 0.25
"""Seconds between two times that what has come is handed over, while the bench goes on."""
_UNFINISHED = "partial: the external bench had not ended when these figures came"


async def run_command(
    host: Host | None,
    plan: BenchPlan,
    engine: Engine,
    begun: Sequence[Cell],
    clock: Callable[[], float],
    on_progress: Callable[[Progress], None] | None,
    on_cell: Callable[[Cell], None] | None,
) -> tuple[Cell, ...]:
    """Run the plan's command on the host; a cell for each concurrency that it reports.

    It is ended after `plan.command_seconds`, when the link breaks, and when this is cancelled.
    Raises CommandFailed and ConnectionLost. What it reports is handed to `on_cell` as it comes, as
    partial cells with a note: whatever ends the bench, it is not lost. Whole ones follow at the
    end. Those of `begun` that are partial make room for the new ones.
    """
    if host is None:
        raise CommandFailed("an external bench runs on a host", "there is none here")
    results = _Results(begun, clock, on_cell)
    try:
        trouble, failure = await _run(host, plan, engine, clock, on_progress, results)
    except asyncio.CancelledError:
        results.hand_over_fresh()
        raise
    if not results and failure is None:
        raise CommandFailed(
            "the external bench gave no results",
            trouble or "none of its lines was one of JSON with figures",
            f"let it print them, or write them into the file {OUTPUT}",
        )
    if failure is not None:
        results.hand_over(f"partial: {failure.what}, after these figures")
        raise failure
    results.hand_over("")
    return results.cells


class _Results:
    """The results of one run of a command, by concurrency."""

    def __init__(
        self,
        begun: Sequence[Cell],
        clock: Callable[[], float],
        on_cell: Callable[[Cell], None] | None,
    ) -> None:
        self._known = {cell.concurrency: cell for cell in begun}
        self._whole = {cell.concurrency for cell in begun if not cell.partial}
        self._clock = clock
        self._on_cell = on_cell
        self._came: list[Cell] = []
        self._fresh: set[int] = set()
        """Concurrencies of which something has come since they were handed over."""
        self._due = -math.inf

    def __bool__(self) -> bool:
        return bool(self._came)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All cells, those of before included."""
        return tuple(self._known[each] for each in sorted(self._known))

    def add(self, result: Cell) -> None:
        """One more has come."""
        self._came.append(result)
        self._fresh.add(result.concurrency)
        if self._clock() >= self._due:
            self.hand_over_fresh()
            self._due = self._clock() + _HAND_OVER

    def hand_over_fresh(self) -> None:
        """Give what has come since the last time, while the bench has not ended."""
        self.hand_over(_UNFINISHED, self._fresh)

    def hand_over(self, why_partial: str, only: Collection[int] | None = None) -> None:
        """Give what has come, all of it unless it is of `only` some concurrencies."""
        for cell in merged(
            [each for each in self._came if only is None or each.concurrency in only]
        ):
            before = self._known.get(cell.concurrency)
            if cell.concurrency in self._whole:
                continue
            if why_partial:
                if before is not None and before.requests > cell.requests:
                    continue  # of an earlier run, which came further
                notes = (*cell.notes, why_partial)
                cell = msgspec.structs.replace(cell, partial=True, notes=notes)  # noqa: PLW2901
            self._known[cell.concurrency] = cell
            if self._on_cell is not None:
                self._on_cell(cell)
        self._fresh = set()


async def _run(
    host: Host,
    plan: BenchPlan,
    engine: Engine,
    clock: Callable[[], float],
    on_progress: Callable[[Progress], None] | None,
    results: _Results,
) -> tuple[str, BenchError | None]:
    """Fill in the results; why a line was not understood, and what ended it before its end."""
    began, trouble = clock(), ""
    words = ", ".join(plan.command[:1])
    try:
        async with (
            asyncio.timeout(plan.command_seconds),
            host.stream(BENCH, *plan.command) as running,
        ):
            async for line in running.lines():
                if line.lstrip().startswith(b"{"):
                    try:
                        results.add(engine.parse_benchmark(line))
                    except ValueError as exc:
                        trouble = trouble or safe_text(str(exc), 200)
                elif on_progress is not None and line.strip():
                    said = safe_text(line.decode("utf-8", "replace"), 200)
                    on_progress(Progress(step=Step.COMMAND, elapsed=clock() - began, note=said))
            if running.status:
                tail = safe_text(running.stderr_tail.strip().rpartition("\n")[2], 300)
                return trouble, CommandFailed(
                    f"the external bench {words} failed with status {running.status}",
                    tail,
                    "run it on the host by hand to see more",
                )
    except TimeoutError:
        return trouble, CommandFailed(
            f"the external bench did not end within {plan.command_seconds:g} s",
            "it was ended",
            "give the plan more command_seconds, or the bench less to do",
        )
    except (LinkDown, LinkRefused) as exc:
        return trouble, ConnectionLost("the link broke during the external bench", exc.what)
    except HostError as exc:
        return trouble, CommandFailed("the external bench could not be run", exc.what, exc.remedy)
    return trouble, None


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
