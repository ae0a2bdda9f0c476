"""What the verbs that change a host share: its controller, and how they tell what goes on."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from ddtui.app.controllers import controller_for
from ddtui.app.live import Watched
from ddtui.app.reaching import Overrides
from ddtui.cli.context import Options, host_of
from ddtui.cli.exit_codes import ExitCode
from ddtui.cli.look import live_host
from ddtui.cli.output import clean, say
from ddtui.cli.streams import typed_line
from ddtui.control.controller import Controller
from ddtui.control.journal import OnStep
from ddtui.control.lock import lock_holder
from ddtui.control.outcome import Asked
from ddtui.control.reconfiguration import Limits, Step
from ddtui.core.local_time import in_local_time
from ddtui.experiments.presence import HOST_KEY
from ddtui.store import Store

if TYPE_CHECKING:
    from ddtui.control.held import Remaining
    from ddtui.core.change_record import ChangeRecord, StepRecord


@asynccontextmanager
async def changing(
    options: Options, name: str, overrides: Overrides, limits: Limits | None = None
) -> AsyncIterator[tuple[Watched, Controller]]:
    """A watched host of which enough is known, with its controller. Raises HostError, StoreError.

    A change is not made without the store: it could neither be resumed nor rolled back.
    """
    loaded = options.load()
    target = host_of(loaded, name)
    store = await asyncio.to_thread(Store.open)
    try:
        async with live_host(target, overrides) as (source, _):
            past = await asyncio.to_thread(
                store.loads.history, source.name, simulated=source.host.simulated
            )
            yield source, controller_for(source, loaded, store.reconfigurations, limits, past)
    finally:
        await asyncio.to_thread(store.close)


_HANGUP = "hung up: the change goes on to its end; `ddtui history HOST` tells how it ended"


class Narration:
    """Tells the steps on standard error, each with its time since the begin."""

    def __init__(self) -> None:
        self._last = ""

    def __call__(self, record: ChangeRecord, step: StepRecord) -> None:
        """One step, or words within one."""
        words = f"{step.step}: {clean(step.detail)}" if step.detail else step.step
        if words != self._last:
            self._last = words
            say(f"{max(0.0, step.at - record.began):5.0f} s  {words}")


def asked_on_terminal(yes: bool, end_orphans: bool = False) -> Asked:
    """Questions on the terminal; without one nobody is asked and the answer is no.

    With --yes a failed change is rolled back without asking. Processes that are left over are ended
    only when that is asked for by its own option, or confirmed.
    """
    ended = _end_them if end_orphans else None
    if yes:
        return Asked(rollback=_always, orphans=ended)
    if not can_ask():
        return Asked(orphans=ended)

    async def rollback(why: str) -> bool:
        say(f"it has failed: {clean(why)}")
        return await ask("roll back to what was in force before? [y/N] ")

    async def orphans(left: Remaining) -> bool:
        say(f"still there: {clean(left.text)}")
        return await ask("end these processes (TERM, then KILL)? [y/N] ")

    return Asked(rollback, ended or orphans)


async def _always(_why: str) -> bool:
    return True


async def _end_them(left: Remaining) -> bool:
    say(f"still there, and ended now: {clean(left.text)}")
    return True


class StartedOnly(Exception):
    """The engine was told to start, and nobody waits for more; holds the record as it is."""

    def __init__(self, record: ChangeRecord) -> None:
        super().__init__(record.id)
        self.record = record


async def carried(
    change: Callable[[OnStep], Coroutine[Any, Any, ChangeRecord]], *, wait: bool
) -> ChangeRecord:
    """Carry a change to its end and tell its steps, or (not `wait`) until the engine starts.

    A terminal that is closed does not end it. Raises StartedOnly for the latter.
    """
    with hangups_unheard():
        return await _carried(change, wait=wait)


@contextmanager
def hangups_unheard() -> Iterator[None]:
    """Have SIGHUP end nothing: half a change is worse than one that nobody watches.

    It is no SIG_IGN, which programs that are started would have too.
    """
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        yield
        return
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, say, _HANGUP)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Have SIGTERM end the present task as Ctrl+C does. Raises KeyboardInterrupt."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    terminated: list[bool] = []

    def end() -> None:
        if task is not None and not terminated:
            terminated.append(task.cancel())

    loop.add_signal_handler(signal.SIGTERM, end)
    try:
        yield
    except asyncio.CancelledError:
        if terminated:
            raise KeyboardInterrupt from None
        raise
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


async def _carried(
    change: Callable[[OnStep], Coroutine[Any, Any, ChangeRecord]], *, wait: bool
) -> ChangeRecord:
    narration, started = Narration(), asyncio.Event()
    latest: list[ChangeRecord] = []

    def heard(record: ChangeRecord, step: StepRecord) -> None:
        narration(record, step)
        latest[:] = [record]
        if step.step == Step.LOADING:
            started.set()

    work = asyncio.create_task(change(heard), name="change")
    if wait:
        return await work
    seen = asyncio.create_task(started.wait())
    try:
        await asyncio.wait({work, seen}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            return work.result()
        raise StartedOnly(latest[0])
    finally:
        work.cancel()
        seen.cancel()
        await asyncio.gather(work, seen, return_exceptions=True)


def can_ask() -> bool:
    """Whether there is somebody to ask."""
    return sys.stdin.isatty() and sys.stderr.isatty()


async def ask(question: str, word: str = "y") -> bool:
    """Ask on the terminal; anything but the word (`y`: yes) is no."""
    say(question, end="")
    answer = (await typed_line()).strip().lower()
    return answer in {"y", "yes"} if word == "y" else answer == word


async def confirmed(
    source: Watched, what: str, yes: bool, show: Callable[[], None] | None = None, to: str = ""
) -> bool:
    """Whether the operator wants it: `--yes`, or a word typed on a terminal.

    `what` is the word, `to` what it leads to.
    """
    await _tell_who_runs_experiments(source)
    if yes:
        return True
    if show is not None:
        show()
    if not can_ask():
        say("nothing was changed: there is no terminal to confirm on; add --yes")
        return False
    running = source.snapshot_now().engine.running
    if running is not None and running.value > 0 and not running.stale(source.clock()):
        say(f"{running.value:.0f} requests are running and will be cut off or drained")
        return await ask(f"type {what} to go on{f' to {clean(to)}' if to else ''}: ", what)
    return await ask(f"{what}{f' to {clean(to)}' if to else ''} now? [y/N] ")


async def _tell_who_runs_experiments(source: Watched) -> None:
    """A runner keeps nobody out while it measures: it measures anew what was changed meanwhile."""
    if source.host.simulated:  # another process has a simulated host of its own
        return
    if not (holder := await lock_holder(source.host, HOST_KEY)):
        return
    name = clean(source.name)
    say(f"warning: experiments are being run on {name} by {clean(in_local_time(holder))}")
    say("       what is measured now will be measured anew, and the engine changed again for it;")
    say(f"       first, where they are run: ddtui run {name} --stop")


def exit_code_of(record: ChangeRecord) -> ExitCode:
    """What the exit status says of how a change ended."""
    return {
        "in force": ExitCode.OK,
        "rolled back": ExitCode.OK if record.kind == "rollback" else ExitCode.ROLLED_BACK,
    }.get(record.ending, ExitCode.FAILED)
