"""What every verb shares: the options given before it, and how its failures are told."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import msgspec
import typer

from ddtui.cli.exit_codes import ExitCode
from ddtui.cli.output import clean, say, unread
from ddtui.config.api_key import ApiKeyError
from ddtui.config.errors import ConfigError
from ddtui.config.hosts import HostTarget, find_host
from ddtui.config.load import Loaded, load
from ddtui.core.local_time import in_local_time


class Options(msgspec.Struct, frozen=True):
    """The options given before the verb."""

    config: Path | None = None
    debug: bool = False

    def load(self) -> Loaded:
        """The configuration. Raises ConfigError."""
        return load(self.config)


def options_of(context: typer.Context) -> Options:
    """The options given before the verb."""
    found = context.find_object(Options)
    return found if found is not None else Options()


def host_of(loaded: Loaded, name: str) -> HostTarget:
    """The host that was asked for; a likely misspelling is pointed out."""
    target = find_host(loaded.config, name)
    tell_hint(target)
    return target


def tell_hint(target: HostTarget) -> None:
    """Point out that a host's name is likely a misspelling, if it is."""
    if target.hint:
        name = target.name
        say(f"{name} is not in the configuration and is taken as an SSH alias; {target.hint}")


@contextmanager
def told(context: typer.Context, *, acts: bool = False) -> Iterator[Options]:
    """Run a verb; what fails is told in one clear message and an exit status.

    One that `acts`, not only looks, goes on to its end where nobody reads what it prints. A
    traceback is shown only with --debug.
    """
    options = options_of(context)
    try:
        with unread() if acts else nullcontext():
            yield options
    except (typer.Exit, typer.Abort):
        raise
    except KeyboardInterrupt:
        say("interrupted")
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    except Exception as error:
        if options.debug:
            say(traceback.format_exc().rstrip())
        code = _tell(error, debug=options.debug)
        raise typer.Exit(code) from error


def _tell(error: Exception, *, debug: bool) -> ExitCode:
    from ddtui.hosts.base import HostError, LinkDown, LinkRefused

    if isinstance(error, ConfigError):
        for problem in error.problems:
            say(f"error: {problem}")
        return ExitCode.USAGE
    if isinstance(error, ApiKeyError):
        say(f"error: {error}")
        return ExitCode.FAILED
    if isinstance(error, HostError):
        say(f"error: {clean(in_local_time(error.what))}")  # who has a lock has noted it in UTC
        for line in error.remedy.splitlines():
            say(f"       {clean(line)}")
        if isinstance(error, LinkRefused):
            return ExitCode.REFUSED
        if isinstance(error, LinkDown):
            return ExitCode.UNREACHABLE
        return _untouched(error)
    from ddtui.store import StoreError

    if isinstance(error, StoreError):
        say(f"error: {clean(str(error))}")
        return ExitCode.FAILED
    from ddtui.experiments.queue_rules import NoSuchExperiment, QueueProblem

    if isinstance(error, QueueProblem):
        say(f"error: {clean(error.what)}")
        say(f"       {clean(error.remedy)}")
        return ExitCode.USAGE if isinstance(error, NoSuchExperiment) else ExitCode.BLOCKED
    from ddtui.cli.logs import log_unexpected

    say(f"error: {type(error).__name__}: {clean(str(error))}")
    if not debug:
        where = log_unexpected(error)
        say(f"       This is a fault in ddtui. {where}--debug shows where it happened.")
    return ExitCode.FAILED


def _untouched(error: Exception) -> ExitCode:
    """The status for a change that was not begun."""
    from ddtui.control.controller import NotPossible
    from ddtui.control.host_actions import RightMissing
    from ddtui.control.lock import LockHeld
    from ddtui.experiments.single import NotProved

    if isinstance(error, NotProved):
        return ExitCode.NOT_READY
    if isinstance(error, LockHeld):
        return ExitCode.LOCKED
    if isinstance(error, NotPossible | RightMissing):
        return ExitCode.BLOCKED
    return ExitCode.FAILED
