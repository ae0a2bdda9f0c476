"""Carries a change on until it has ended, over as many connections as that takes."""

from __future__ import annotations

import asyncio

from ddtui.control import drop_in
from ddtui.control.carrying_out import CarryingOut, Watching
from ddtui.control.earlier import ANOTHER_MACHINE, on_another_machine
from ddtui.control.host_actions import UnitActions
from ddtui.control.journal import ChangeStore, Journal
from ddtui.control.lock import LockHeld, lock_key, locked
from ddtui.control.outcome import Asked, Outcome, break_off
from ddtui.control.reconfiguration import Limits, Step
from ddtui.control.simulated import PROCESS
from ddtui.control.unit_files import UnitText
from ddtui.core.change_record import ChangeRecord
from ddtui.core.text import clean
from ddtui.hosts.base import HostError, LinkDown, LinkRefused, ProgramTimeout

LINK_AGAIN = 0.5
"""Seconds before a host that could not be reached is tried again."""


async def to_its_end(
    journal: Journal,
    actions: UnitActions,
    text: UnitText,
    store: ChangeStore,
    watching: Watching,
    limits: Limits,
    asked: Asked,
) -> None:
    """Carry the journal's record to its end; `text` is the unit as it is found now.

    Raises what keeps it from being begun, while nothing was touched; LockHeld where another process
    carries it on; and later LinkRefused, where the host lets nobody in before the operator acts:
    the change can then be carried on.
    """
    if on_another_machine(journal.record, text):
        await journal.end(Step.UNKNOWN, f"{ANOTHER_MACHINE}; nothing was done on it")
        return
    key = lock_key(actions.scope, actions.unit, text.uid)
    # Only this process knows the lock for its own again, once its connection has moved.
    token, holder = f"{journal.record.id}-{PROCESS}", _holder(journal.record)
    failure: HostError | None = None
    had_it = False
    while not journal.record.ending:
        try:
            await actions.host.wait_live()
            if failure is not None:
                await break_off(journal, actions, watching, failure)
                break
            async with locked(actions.host, key, token, holder) as lock:
                had_it = True
                if not journal.record.steps:
                    await journal.step(Step.PLANNED)
                if len(journal.record.steps) == 1:
                    await journal.step(Step.LOCKED)
                work = CarryingOut(actions, watching, journal, lock, limits, asked.orphans)
                await Outcome(work, journal, actions, store, watching, asked).reach()
        except (LinkDown, ProgramTimeout) as error:
            journal.say(f"waiting for the host: {error.what}")
            await asyncio.sleep(LINK_AGAIN)
        except LinkRefused:
            raise  # nobody tries again before the operator has acted
        except LockHeld as error:
            if not had_it or error.holder == holder:
                raise  # the record is that of who has the lock
            await journal.end(Step.UNKNOWN, error.what)  # taken over while the link was down
        except HostError as error:
            if not journal.record.steps:
                raise
            failure = error


def _holder(record: ChangeRecord) -> str:
    """Who has the lock, for others."""
    title = f"{record.kind} {record.preset}".strip()
    return clean(f"{record.who} since {drop_in.stamp(record.began)}: {title}", 300)
