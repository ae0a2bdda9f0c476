"""Starts a runner that has no terminal and outlives this one."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from ddtui.app.reaching import Overrides, host_for
from ddtui.cli.context import Options, VerbFailed, host_of
from ddtui.cli.exit_codes import ExitCode, status_of
from ddtui.cli.first_contact import reach
from ddtui.cli.output import clean, emit, emit_json, say
from ddtui.cli.run_reported import LOG_VARIABLE, Report
from ddtui.cli.run_session import warn_of_logout
from ddtui.config.hosts import HostTarget, Reach
from ddtui.config.paths import log_folder
from ddtui.hosts.base import LinkDown, LinkRefused

KEPT_LOGS = 20
"""Logs of detached runners of one host that are kept."""
_TAIL = 4000


# Each is an option of the verb.
def detached(
    options: Options,
    host: str,
    overrides: Overrides,
    *,
    once: bool,
    limited: bool,
    as_json: bool,
) -> ExitCode:
    """Start it, and return once it runs or has failed.

    Raises LinkRefused where the host wants an answer that only a terminal could give, VerbFailed
    where it does not run.
    """
    target = host_of(options.load(), host)
    if target.reach is Reach.SSH:
        asyncio.run(_reachable(target))
    try:
        log = _new_log(target.name)
    except OSError as error:
        raise VerbFailed(
            f"the runner's log cannot be made: {error}",
            "make room there, or name another folder in XDG_STATE_HOME; nothing was started",
        ) from error
    command = [
        *(sys.executable, "-m", "ddtui", *_before_the_verb(options), "run", target.name),
        *(("--once",) if once else ()),
        *(("--allow-limited-code",) if limited else ()),
        *(("--unit", overrides.unit) if overrides.unit else ()),
        *_scope(overrides),
    ]
    child, report = _started(command, log)
    if not report.running:
        raise _failed(child, log)
    if as_json:
        demo = target.reach is Reach.DEMO
        told = {"host": target.name, "simulated": demo, "pid": report.pid, "log": str(log)}
        emit_json(told)
    else:
        emit(f"running the experiments of {clean(target.name)} as process {report.pid}")
        say(f"log: {log}")
        say(f"ddtui run {clean(target.name)} --status says how far it is; --stop stops it")
    warn_of_logout(target.name)
    return ExitCode.OK


def _started(command: list[str], log: Path) -> tuple[subprocess.Popen[bytes], Report]:
    """Start it in a session of its own, which no terminal can hang up, and hear what it reports."""
    reader, writer = os.pipe()
    try:
        with log.open("ab", buffering=0) as out:
            child = subprocess.Popen(
                [*command, "--report-to", str(writer)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                pass_fds=(writer,),
                env={**os.environ, LOG_VARIABLE: str(log), "PYTHONUNBUFFERED": "1"},
            )
    finally:
        os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        line = pipe.readline()
    return child, msgspec.json.decode(line, type=Report) if line else Report(False, child.pid)


def _before_the_verb(options: Options) -> tuple[str, ...]:
    file = ("--config", str(Path(options.config).absolute())) if options.config else ()
    return (*file, *(("--debug",) if options.debug else ()))


def _scope(overrides: Overrides) -> tuple[str, ...]:
    if overrides.user_unit is None:
        return ()
    return ("--user-unit",) if overrides.user_unit else ("--system-unit",)


async def _reachable(target: HostTarget) -> None:
    """Be sure that nothing will be asked where nobody can answer. Raises LinkRefused, LinkDown."""
    host = await host_for(target)
    try:
        await host.start()
        if not await reach(host, ask=False):
            raise LinkDown(host.link.detail or f"{target.name} cannot be reached", host.link.remedy)
    except LinkRefused as error:
        raise LinkRefused(
            f"a detached runner cannot reach {target.name}: {error.what}",
            "\n".join(
                filter(
                    None,
                    (
                        error.remedy,
                        "nobody can answer a question of the login there: use a key of an agent"
                        " that stays, or a key without passphrase; or run it without --detach",
                    ),
                )
            ),
        ) from error
    finally:
        await host.close()


def _new_log(host: str) -> Path:
    """A log for this runner, for its owner's eyes only; the oldest ones are taken away."""
    folder = log_folder() / "runs"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    name = re.sub(r"[^A-Za-z0-9_.@-]", "_", host)[:100]
    earlier = sorted(folder.glob(f"{name}.2*.log"))
    for old in earlier[: max(0, len(earlier) - KEPT_LOGS + 1)]:
        old.unlink(missing_ok=True)
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    file = folder / f"{name}.{stamp}.{os.getpid()}.log"
    os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    return file


def _failed(child: subprocess.Popen[bytes], log: Path) -> VerbFailed:
    """Say in its own words why it does not run."""
    status = child.wait(timeout=30.0)
    text = log.read_text(encoding="utf-8", errors="replace")[-_TAIL:]
    said = text.splitlines()[-20:]
    for line in said:
        say(clean(line))
    its_log = f"it does not run; its log: {log}"
    say(its_log)
    code = status_of(status) or ExitCode.FAILED
    return VerbFailed([line for line in said if line.strip()], its_log, code, heard=True)
