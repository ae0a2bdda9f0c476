"""The results as the screen reads them: from the store, in threads, so that no key waits."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ddtui.app.problems import problem_of
from ddtui.core.clock import Clock, system_clock
from ddtui.ui.results_source import Asked, Found
from ddtui.ui.source import ControlProblem

if TYPE_CHECKING:
    from ddtui.core.bench_plan import BenchPlan
    from ddtui.core.experiment import Experiment
    from ddtui.core.measurement import Owner
    from ddtui.experiments.presence import Holder
    from ddtui.experiments.results import ResultsView
    from ddtui.experiments.results_files import Form
    from ddtui.store import Store

log = logging.getLogger(__name__)


class StoredResults:
    """A `ddtui.ui.results_source.ResultsSource` over the store, which is opened when first used."""

    def __init__(
        self,
        host: str,
        *,
        simulated: bool,
        open_store: Callable[[], Store] | None = None,
        clock: Clock = system_clock,
        plans: Mapping[str, BenchPlan] | None = None,
    ) -> None:
        """`plans` are those that a command can name; None where that is not known."""
        self._host = host
        self._simulated = simulated
        self._open_store = open_store
        self._clock = clock
        self._plans = plans
        self._store: Store | None = None
        self._opening = threading.Lock()
        self._under_way: list[Owner] = []
        """Who measured by hand when the results were read last."""
        self._interrupted = 0
        """How many of them were killed since, and runners; the store has no word of that."""
        self._runner: Holder | None = None
        """Who ran the queue when it was looked at last."""

    async def version(self) -> int:
        """See ResultsSource."""
        return await asyncio.to_thread(self._version)

    async def read(self, asked: Asked) -> Found:
        """See ResultsSource."""
        return await asyncio.to_thread(self._read, asked)

    async def there_already(self, view: ResultsView, form: Form, file: Path) -> Sequence[Path]:
        """See ResultsSource."""
        return await asyncio.to_thread(_there_already, view, form, file)

    async def export(self, view: ResultsView, form: Form, file: Path) -> Sequence[Path]:
        """See ResultsSource."""
        return await asyncio.to_thread(_export, view, form, file, self._clock())

    async def close(self) -> None:
        """Close the store. Safe to call twice."""
        store, self._store = self._store, None
        if store is not None:
            await asyncio.to_thread(store.close)

    # ---- in a thread ---------------------------------------------------------------------------

    def _opened(self) -> Store:
        from ddtui.store import Store

        with self._opening:
            if self._store is None:
                self._store = (self._open_store or Store.open)()
            return self._store

    def _version(self) -> int:
        from ddtui.experiments.interrupted import is_gone
        from ddtui.store import StoreError

        alive = [each for each in self._under_way if not is_gone(each)]
        self._interrupted += len(self._under_way) - len(alive)
        self._under_way = alive
        try:
            runner = _runner_of(self._host, simulated=self._simulated)
            self._interrupted += self._runner is not None and runner != self._runner
            self._runner = runner
            store = self._opened()
            version = store.experiments.version(self._host, simulated=self._simulated)
            return version + self._interrupted
        except StoreError as error:
            raise problem_of(error) from error

    def _read(self, asked: Asked) -> Found:
        from ddtui.experiments.choosing import ResultsError
        from ddtui.experiments.interrupted import as_they_ended
        from ddtui.experiments.results import results_view
        from ddtui.store import StoreError

        host, simulated = self._host, self._simulated
        try:
            store = self._opened()
            queue = store.experiments.queue(host, simulated=simulated, cleared=True)
            found = as_they_ended(
                store.measurements.of_host(host, simulated=simulated),
                queue,
                left=left_of(host, queue, simulated=simulated),
            )
            self._under_way = [each.owner for each in found if each.owner is not None]
            view = results_view(
                host,
                found,
                queue,
                settings=store.experiments.settings(host, simulated=simulated),
                simulated=simulated,
                baseline=asked.baseline,
                sweep=asked.sweep,
                concurrency=asked.concurrency,
                plans=self._plans,
            )
        except ResultsError as error:
            raise ControlProblem(error.what, error.remedy) from error
        except StoreError as error:
            raise problem_of(error) from error
        newest = sorted(queue, key=lambda each: each.created, reverse=True)
        return Found(view, tuple(dict.fromkeys(each.sweep for each in newest if each.sweep)))


def left_of(host: str, queue: Sequence[Experiment], *, simulated: bool) -> frozenset[str]:
    """Ids of a queue's experiments whose runner is gone; none where that is not known."""
    from ddtui.core.experiment import ExperimentState
    from ddtui.experiments.interrupted import left_behind
    from ddtui.store import StoreError

    if not any(each.state is ExperimentState.RUNNING for each in queue):
        return frozenset()
    try:
        return left_behind(queue, _runner_of(host, simulated=simulated))
    except StoreError as error:
        log.info("who runs the experiments of %s is not known: %s", host, error)
        return frozenset()


def _runner_of(host: str, *, simulated: bool) -> Holder | None:
    """Who runs a host's experiments from this machine. Raises StoreError."""
    from ddtui.experiments.presence import holder_of, presence_file

    return holder_of(presence_file(host, simulated=simulated))


@asynccontextmanager
async def screen_results(
    host: str, *, simulated: bool, plans: Mapping[str, BenchPlan] | None = None
) -> AsyncIterator[StoredResults]:
    """What the results screen reads, closed at the end."""
    source = StoredResults(host, simulated=simulated, plans=plans)
    try:
        yield source
    finally:
        await source.close()


def _there_already(view: ResultsView, form: Form, file: Path) -> list[Path]:
    from ddtui.experiments.results_files import files_of

    try:
        if file.is_dir():
            raise ControlProblem("it is a folder: name a file in it")
        return [each for each in files_of(view, form, file) if each.is_file()]
    except OSError as error:
        raise ControlProblem(f"cannot be written: {error.strerror or error}") from error


def _export(view: ResultsView, form: Form, file: Path, now: float) -> list[Path]:
    from ddtui.experiments.results_files import write

    try:
        return write(view, form, file, now)
    except (OSError, ValueError) as error:
        why = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        raise ControlProblem(f"cannot be written: {why}") from error
