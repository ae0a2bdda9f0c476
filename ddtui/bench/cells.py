"""One concurrency of a bench: warm-up until two batches agree, then the repeats that count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from statistics import fmean, median

import msgspec

from ddtui.bench.batch import Batch, Meter, Send, run_batch
from ddtui.bench.engine_side import EngineSide, Reading, Readings, ServerFigures, between
from ddtui.bench.errors import (
    BUSY,
    BenchError,
    ConnectionLost,
    EngineBusy,
    NothingSucceeded,
    ServerRefused,
)
from ddtui.bench.exchange import Exchange, Outcome
from ddtui.bench.figures import Figures, figures, positions
from ddtui.bench.progress import Step
from ddtui.bench.spread import spread
from ddtui.bench.together import Together
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.generation import Prompt
from ddtui.core.measurement import Cell, Spread

_WARM_UP_REQUESTS = 4
_FOREIGN = 0.02
"""Share by which the engine may have generated more than was asked for here: cut streams."""
_SHORT_WINDOW = 0.5
_LOST = 0.02
"""Share of a batch's time that may be left out, for the engine's own rate to count."""
_BEYOND = 16
"""Tokens more than asked for that are not worth a word."""
_MOST_ERRORS = 20

Show = Callable[[Step, int, int, Meter, int], None]
"""Step, number of the batch, batches, its meter, its requests."""


class Repeat(msgspec.Struct, frozen=True):
    """One batch that counts."""

    batch: Batch
    figures: Figures
    server: ServerFigures
    round_trip: float | None


class CellRun:
    """Measures one concurrency."""

    def __init__(
        self,
        plan: BenchPlan,
        concurrency: int,
        prompts: Sequence[Prompt],
        *,
        send: Send,
        side: EngineSide,
        clock: Callable[[], float],
        show: Show,
        budget: int | None,
    ) -> None:
        """`prompts` is what one batch sends."""
        self._plan = plan
        self._concurrency = concurrency
        self._prompts = prompts
        self._send = send
        self._side = side
        self._clock = clock
        self._show = show
        self._budget = budget
        self._notes: list[str] = []

    async def measure(self) -> Cell:
        """The cell. Raises BenchError when nothing can be measured."""
        batches, steady = await self._warm_up()
        repeats = [await self._repeat(number) for number in range(1, self._plan.repeats + 1)]
        return self._cell(repeats, batches, steady)

    # ---- batches --------------------------------------------------------------------------------

    async def _warm_up(self) -> tuple[int, bool]:
        """How many batches it took, and whether the last two agree."""
        most = self._plan.warmup_batches
        few = self._prompts[: max(self._concurrency, _WARM_UP_REQUESTS)]
        before: float | None = None
        for number in range(1, most + 1):
            batch, found = await self._batch(Step.WARMING_UP, number, most, few)
            rate = found.total_rate
            if before and rate and abs(rate - before) <= self._plan.agreement * before:
                return number, True
            before = rate
            self._note_trouble(batch, "while warming up")
        if most < 2:
            self._note("no warm-up to speak of: two batches are needed to see that it is steady")
        else:
            self._note(f"{most} warm-up batches, and no two in a row agreed")
        return most, False

    async def _repeat(self, number: int) -> Repeat:
        readings: list[Reading | None] = []

        async def read() -> None:
            readings.append(await self._side.counters())

        round_trip = await self._side.round_trip()
        await self._flush()
        await read()
        batch, found = await self._batch(
            Step.MEASURING, number, self._plan.repeats, self._prompts, read
        )
        await read()
        firsts = [each.first_token for each in batch.exchanges if each.first_token is not None]
        server = between(
            Readings(*readings),
            found.window[0],
            max(each.ended for each in batch.exchanges),
            firsts,
            (round_trip or 0.0) / 2,
        )
        self._note_strangers(batch, server)
        # The engine's counters tell neither the time nor the tokens of what was lost apart.
        if found.together.lost_share > _LOST:
            server = msgspec.structs.replace(server, rate=None)
        return Repeat(batch, found, server, round_trip)

    async def _batch(
        self,
        step: Step,
        number: int,
        batches: int,
        prompts: Sequence[Prompt],
        on_drain: Callable[[], Awaitable[None]] | None = None,
    ) -> tuple[Batch, Figures]:
        if on_drain is None:
            await self._flush()
        meter = Meter(self._clock)

        def tick() -> None:
            self._show(step, number, batches, meter, len(prompts))

        tick()
        batch = await run_batch(
            self._send,
            prompts,
            self._concurrency,
            meter,
            on_tick=tick,
            on_drain=on_drain or _nothing,
        )
        tick()
        if any(each.lost for each in batch.exchanges) and not await self._side.reachable():
            raise _lost(batch)
        found = figures(batch.exchanges, self._concurrency)
        if found is None or batch.skipped:
            raise _nothing_succeeded(batch)
        return batch, found

    async def _flush(self) -> None:
        if self._plan.flush_cache and (failure := await self._side.flush()):
            self._note(f"the prefix cache could not be emptied ({failure})")

    # ---- what is noted --------------------------------------------------------------------------

    def _note(self, text: str) -> None:
        if text not in self._notes:
            self._notes.append(text)

    def _note_trouble(self, batch: Batch, when: str) -> None:
        bad = [each for each in batch.exchanges if not each.ok]
        if bad:
            self._note(f"{len(bad)} requests failed or stalled {when}: {bad[0].error}")

    def _note_strangers(self, batch: Batch, server: ServerFigures) -> None:
        """Requests of others cost this bench its speed: the engine's counter tells of them."""
        ours = sum(_decoded(each) for each in batch.exchanges)
        whole = all(each.ok for each in batch.exchanges)
        if whole and server.tokens > ours * (1 + _FOREIGN):
            more = round(server.tokens - ours)
            self._note(f"disturbed: the engine generated {more} tokens for others meanwhile")

    # ---- the cell -------------------------------------------------------------------------------

    def _cell(self, repeats: Sequence[Repeat], warmup_batches: int, steady: bool) -> Cell:
        plan, found = self._plan, [each.figures for each in repeats]
        bad = [one for each in repeats for one in each.batch.exchanges if not one.ok]
        length = spread(each.acceptance_length for each in found)
        macros = [each.acceptance_macro for each in found if each.acceptance_macro is not None]
        if plan.repeats == 1:
            self._note("one repeat: nothing is known of how much the figures vary")
        self._note_length(repeats)
        histogram = _sum_of_histograms(found)
        self._note_windows(repeats)
        for note in (note for each in found for note in each.notes):
            self._note(note)
        cell = Cell(
            concurrency=self._concurrency,
            requests=sum(each.requests for each in found),
            failed=sum(one.outcome is not Outcome.STALLED for one in bad),
            stalled=sum(one.outcome is Outcome.STALLED for one in bad),
            errors=dict(Counter(one.error for one in bad).most_common(_MOST_ERRORS)),
            output_tokens=sum(each.output_tokens for each in found),
            seconds=sum(each.window[1] - each.window[0] for each in found),
            user_rate=spread(each.user_rate for each in found),
            total_rate=spread(each.total_rate for each in found),
            ttft=spread(each.ttft for each in found),
            ttfo=spread(each.ttfo for each in found),
            tpot=spread(each.tpot for each in found),
            itl=spread(each.itl for each in found),
            itl_p99=spread(each.itl_p99 for each in found),
            acceptance_length=length,
            acceptance_macro=fmean(macros) if macros else None,
            positions=positions(histogram),
            passes=sum(histogram),
            node_use=self._node_use(length),
            step_time=spread(each.step_time for each in found),
            server_rate=_median(each.server.rate for each in repeats),
            server_acceptance=_median(each.server.acceptance for each in repeats),
            server_ttft=_median(each.server.ttft or each.figures.server_ttft for each in repeats),
            link_rtt=_median(each.round_trip for each in repeats),
            warmup_batches=warmup_batches,
            steady=steady,
        )
        return msgspec.structs.replace(cell, notes=tuple(self._notes))

    def _node_use(self, length: Spread | None) -> float | None:
        use = (length.median - 1) / self._budget if length and self._budget else None
        if use is None or use <= 1:
            return use
        self._note(
            f"not believed, and left out: a node use of {use:.2f}; a tree of {self._budget} nodes"
            " was not what gave this acceptance length"
        )
        return None

    def _note_length(self, repeats: Sequence[Repeat]) -> None:
        counted = max(one.tokens or 0 for each in repeats for one in each.batch.exchanges if one.ok)
        asked = self._plan.output_tokens
        if counted > asked + _BEYOND:
            self._note(
                f"the server counts up to {counted} tokens an answer, where at most {asked} were"
                " asked for"
            )

    def _note_windows(self, repeats: Sequence[Repeat]) -> None:
        shares = []
        for each in repeats:
            began, drained = each.figures.window
            ended = max(one.ended for one in each.batch.exchanges)
            shares.append((drained - began) / max(ended - began, 1e-9))
        if self._concurrency > 1 and min(shares) < _SHORT_WINDOW:
            self._note(
                f"all {self._concurrency} requests ran together in {min(shares):.0%} of a batch"
                " only, from which the total rate is: give it more requests"
            )
        stalled = [one for each in repeats for one in each.batch.exchanges
                   if one.outcome is Outcome.STALLED]  # fmt: skip
        if stalled:
            tokens = sum(one.tokens or 0 for one in stalled)
            self._note(f"{len(stalled)} streams stalled, after {tokens} tokens together")
        self._note_lost([each.figures.together for each in repeats])

    def _note_lost(self, found: Sequence[Together]) -> None:
        """What the total rate is not of."""
        lost = max(each.lost_share for each in found)
        without = [each for each in found if each.rate is None]
        if without:
            least = min(without, key=lambda each: each.seconds)
            alone = self._concurrency == 1  # then nobody is faster for it
            left_out = "total rate: that" if alone else "rates: those"
            self._note(
                f"not clean: without requests that failed or stalled {self._concurrency} ran for"
                f" {least.seconds:.1f} s only, and {least.enough:.1f} s are needed for the"
                f" {left_out} of {_of_all(len(without), len(found))}"
                f" {'is' if alone else 'are'} left out"
            )
        elif lost > _LOST:
            self._note(
                f"not clean: in {lost:.0%} of a batch's time a request that failed or stalled held"
                " a place, and that time is left out of the rates"
            )


def _of_all(some: int, repeats: int) -> str:
    if some == repeats:
        return "the batch" if repeats == 1 else f"all {repeats} batches"
    return f"{some} of {repeats} batches"


async def _nothing() -> None:
    return


def _decoded(each: Exchange) -> int:
    """What the engine counts for it at most: the last pass decodes beyond the answer's end too."""
    tokens, counts = each.tokens or 0, each.speculation
    return tokens if counts is None else max(tokens, counts.verifications + (counts.accepted or 0))


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _sum_of_histograms(found: Sequence[Figures]) -> list[int]:
    total = [0] * max((len(each.histogram) for each in found), default=0)
    for each in found:
        for index, count in enumerate(each.histogram):
            total[index] += count
    return total


def _first_error(exchanges: Sequence[Exchange]) -> str:
    errors = Counter(each.error for each in exchanges if each.error)
    return errors.most_common(1)[0][0] if errors else "no reason given"


def _lost(batch: Batch) -> ConnectionLost:
    lost = [each for each in batch.exchanges if each.lost]
    return ConnectionLost(
        "the connection to the engine broke while it was measured",
        _first_error(lost),
        "see that the unit runs and that the link is up; the cells that were whole are kept",
    )


def _nothing_succeeded(batch: Batch) -> BenchError:
    bad = [each for each in batch.exchanges if not each.ok]
    why = _first_error(bad)
    if all(each.status in BUSY for each in bad):
        return EngineBusy(why)
    if all(400 <= each.status < 500 for each in bad):
        key = any(each.status in {401, 403} for each in bad)
        return ServerRefused(
            "the engine refuses the requests",
            why,
            "name its API key with api_key_env or api_key_command"
            if key
            else "change the plan to what this engine takes: prompts, output tokens, endpoint",
        )
    if all(each.outcome is Outcome.STALLED for each in bad):
        return NothingSucceeded(
            f"all {len(bad)} streams stalled",
            why,
            "the engine may hang: look at its log; or allow more stall_seconds",
        )
    return NothingSucceeded(
        f"{len(bad)} of {len(batch.exchanges)} requests were not answered whole",
        why,
        "look at the engine's log",
    )
