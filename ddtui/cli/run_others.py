"""Asks after a runner, and asks it to stop: on this machine, or wherever it runs."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from ddtui.app.reaching import host_for
from ddtui.cli.context import Options, host_of
from ddtui.cli.exit_codes import ExitCode
from ddtui.cli.first_contact import reach
from ddtui.cli.output import clean, emit, emit_json, say
from ddtui.config.hosts import HostTarget, Reach
from ddtui.control.controller import operator
from ddtui.control.lock import lock_holder
from ddtui.core.experiment import ENDED, Experiment, ExperimentState, QueueSettings
from ddtui.core.local_time import in_local_time, moment
from ddtui.experiments.presence import HOST_KEY, Holder, ask_to_stop, holder_of, presence_file
from ddtui.hosts.base import HostError
from ddtui.store import Store

STOP_SECONDS = 60.0
"""How long a runner on this machine is waited for, once it was asked to stop."""


async def show_runner(options: Options, host: str, *, as_json: bool) -> ExitCode:
    """Who runs a host's experiments, where, since when, and what."""
    target = host_of(options.load(), host)
    simulated, file = _here(target)
    holder = holder_of(file)
    elsewhere, unknown = ("", "") if holder is not None else await _elsewhere(target)
    experiments, settings = await asyncio.to_thread(_queue, target.name, simulated)
    running = next((each for each in experiments if each.state is ExperimentState.RUNNING), None)
    pending = sum(each.state is ExperimentState.PENDING for each in experiments)
    if as_json:
        emit_json(
            {
                "host": target.name,
                "simulated": simulated,
                "running": holder is not None or bool(elsewhere),
                "here": None if holder is None else msgspec.to_builtins(holder),
                "elsewhere": elsewhere or None,
                "unknown": unknown or None,
                "experiment": None if running is None else _short(running),
                "pending": pending,
                "ended": _ended_ones(experiments),
                "paused": settings.paused,
                "stop": settings.stop or None,
            }
        )
        return ExitCode.OK
    if holder is not None:
        emit(f"run by {clean(in_local_time(holder.words))}")
        if holder.log:
            emit(f"log: {clean(holder.log)}")
    elif elsewhere:
        emit(f"run by {clean(in_local_time(elsewhere))}")
    else:
        emit(f"{_nobody(target)}{f' from this machine; {unknown}' if unknown else ''}")
    if running is not None:
        left = "" if holder is not None or elsewhere else " (left there by a runner that is gone)"
        began = f", taken up {moment(running.began)}" if running.began else ""
        step = running.step or "taken up"
        emit(f"experiment: {clean(running.title)}, at the step '{step}'{began}{left}")
    emit(f"pending: {pending}{' (the queue is paused)' if settings.paused else ''}")
    if ended := _ended_ones(experiments):
        counts = ", ".join(f"{count} {state}" for state, count in ended.items())
        emit(f"ended: {counts}; `ddtui queue {target.name} list` has them")
    return ExitCode.OK


async def stop_runner(options: Options, host: str, *, as_json: bool) -> ExitCode:
    """Ask the runner to stop: the process here, else by a wish in the store that it looks for."""
    target = host_of(options.load(), host)
    simulated, file = _here(target)
    holder = ask_to_stop(file)
    elsewhere, unknown = "", ""
    if holder is not None:
        say(f"asked process {holder.pid} to stop")
        ended = await _ended(file, holder)
    else:
        elsewhere, unknown = await _elsewhere(target)
        ended = not elsewhere and not unknown
        if elsewhere or unknown:
            await asyncio.to_thread(_wish, target.name, simulated)
    if as_json:
        emit_json(
            {
                "host": target.name,
                "simulated": simulated,
                "asked": None if holder is None else holder.pid,
                "wish": bool(elsewhere or unknown),
                "ended": ended,
            }
        )
    elif holder is not None:
        emit("it has stopped" if ended else f"it has not stopped within {STOP_SECONDS:.0f} s")
    elif elsewhere:
        emit(
            f"they are run by {clean(in_local_time(elsewhere))}; the wish to stop is in this store"
        )
        say("a runner with another store does not see it: ask who runs it")
    elif unknown:
        emit(f"{clean(unknown)}; the wish to stop is in this store, where its runner looks for it")
    else:
        emit(_nobody(target))
    return ExitCode.OK if ended or holder is None else ExitCode.FAILED


def _nobody(target: HostTarget) -> str:
    return f"nobody runs the experiments of {clean(target.name)}"


def _here(target: HostTarget) -> tuple[bool, Path]:
    simulated = target.reach is Reach.DEMO
    return simulated, presence_file(target.name, simulated=simulated)


async def _elsewhere(target: HostTarget) -> tuple[str, str]:
    """Who has the lock on the host; and why that is not known."""
    if target.reach is Reach.DEMO:
        return "", ""  # every process has a simulated host of its own
    host = await host_for(target)
    try:
        await host.start()
        if not await reach(host, ask=False):
            why = host.link.detail or "it does not answer"
            return "", f"{target.name} cannot be asked: {why}"
        return await lock_holder(host, HOST_KEY), ""
    except HostError as error:
        return "", f"{target.name} cannot be asked: {error.what}"
    finally:
        await host.close()


async def _ended(file: Path, holder: Holder) -> bool:
    """Whether this very runner is gone within STOP_SECONDS."""
    end = asyncio.get_running_loop().time() + STOP_SECONDS
    while holder_of(file) == holder:
        if asyncio.get_running_loop().time() > end:
            return False
        await asyncio.sleep(0.1)
    return True


def _ended_ones(experiments: Sequence[Experiment]) -> dict[str, int]:
    """How many of the queue have ended, by how."""
    return dict(Counter(each.state.value for each in experiments if each.state in ENDED))


def _queue(host: str, simulated: bool) -> tuple[list[Experiment], QueueSettings]:
    store = Store.open()
    try:
        queue = store.experiments
        return queue.queue(host, simulated=simulated), queue.settings(host, simulated=simulated)
    finally:
        store.close()


def _wish(host: str, simulated: bool) -> None:
    store = Store.open()
    try:
        store.experiments.change_settings(host, simulated=simulated, stop=operator())
    finally:
        store.close()


def _short(experiment: Experiment) -> dict[str, Any]:
    return {
        "id": experiment.id,
        "title": experiment.title,
        "step": experiment.step,
        "began": experiment.began,
        "attempts": experiment.attempts,
    }
