"""What the verbs that change a host share: its controller, and how they tell what goes on."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from ddtui.cli.context import Options, host_of
from ddtui.cli.exit_codes import ExitCode
from ddtui.cli.live import Watched, watched
from ddtui.cli.look import collected
from ddtui.cli.output import clean, say
from ddtui.cli.preset_source import presets_for
from ddtui.cli.reaching import Overrides
from ddtui.config.paths import cache_folder
from ddtui.control.carrying_out import Watching
from ddtui.control.controller import Controller, NotPossible
from ddtui.control.host_actions import UnitActions
from ddtui.control.journal import ChangeStore
from ddtui.control.outcome import Asked
from ddtui.control.planner import Planner
from ddtui.control.reconfiguration import Limits
from ddtui.core.samples import LinkState
from ddtui.hosts.base import LinkDown, LinkRefused
from ddtui.store import Store

if TYPE_CHECKING:
    from ddtui.config.load import Loaded
    from ddtui.control.held import Remaining
    from ddtui.core.change_record import ChangeRecord, StepRecord


def controller_for(
    source: Watched, loaded: Loaded, store: ChangeStore, limits: Limits | None = None
) -> Controller:
    """The controller of a watched host."""
    settings = source.settings
    mapping = presets_for(loaded, source.name).mapping(source.target.options.knobs)

    def actions() -> UnitActions:
        unit = source.unit_name()
        if not unit:
            raise NotPossible(
                f"no unit of {source.name} is known that runs the engine",
                "name it with --unit, or in the host's section of the configuration",
            )
        return UnitActions(source.host, settings.scope, unit, settings.nvidia_smi)

    watching = Watching(
        source.engine, source.snapshot_now, lambda: source.engine_address()[1], source.clock
    )
    cache = None if source.host.simulated else cache_folder()
    planner = Planner(source.host, settings, cache=cache, knobs=mapping)
    return Controller(actions, watching, planner, store, limits=limits)


@asynccontextmanager
async def changing(
    options: Options, name: str, overrides: Overrides, limits: Limits | None = None
) -> AsyncIterator[tuple[Watched, Controller]]:
    """A watched host of which enough is known, with its controller. Raises HostError, StoreError.

    A change is not made without the store: it could neither be resumed nor rolled back.
    """
    loaded = options.load()
    source = await watched(host_of(loaded, name), overrides)
    store = await asyncio.to_thread(Store.open)
    try:
        await source.start()
        snapshot = await collected(source)
        link = snapshot.link
        if link.state is not LinkState.LIVE:
            kind = LinkRefused if link.state is LinkState.REFUSED else LinkDown
            raise kind(link.detail or f"{name} cannot be reached", link.remedy)
        yield source, controller_for(source, loaded, store.reconfigurations, limits)
    finally:
        await source.close()
        await asyncio.to_thread(store.close)


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


def asked_on_terminal(yes: bool) -> Asked:
    """Questions on the terminal; without one nobody is asked and the answer is no.

    With --yes a failed change is rolled back without asking; processes are never ended unasked.
    """
    if yes:
        return Asked(rollback=_always)
    if not can_ask():
        return Asked()

    async def rollback(why: str) -> bool:
        say(f"it has failed: {clean(why)}")
        return await ask("roll back to what was in force before? [y/N] ")

    async def orphans(left: Remaining) -> bool:
        say(f"still there: {clean(left.text)}")
        return await ask("end these processes (TERM, then KILL)? [y/N] ")

    return Asked(rollback, orphans)


async def _always(_why: str) -> bool:
    return True


def can_ask() -> bool:
    """Whether there is somebody to ask."""
    return sys.stdin.isatty() and sys.stderr.isatty()


async def ask(question: str, word: str = "y") -> bool:
    """Ask on the terminal; anything but the word (`y`: yes) is no."""
    sys.stderr.write(question)
    sys.stderr.flush()
    answer = (await asyncio.to_thread(sys.stdin.readline)).strip().lower()
    return answer in {"y", "yes"} if word == "y" else answer == word


async def confirmed(
    source: Watched, what: str, yes: bool, show: Callable[[], None] | None = None
) -> bool:
    """Whether the operator wants it: `--yes`, or a word typed on a terminal."""
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
        return await ask(f"type {what} to go on: ", what)
    return await ask(f"{what} now? [y/N] ")


def exit_code_of(record: ChangeRecord) -> ExitCode:
    """What the exit status says of how a change ended."""
    return {
        "in force": ExitCode.OK,
        "rolled back": ExitCode.OK if record.kind == "rollback" else ExitCode.ROLLED_BACK,
    }.get(record.ending, ExitCode.FAILED)


Work = Callable[[Watched, Controller], Awaitable[ExitCode]]
