"""What every verb shares: the options given before it, and how its failures are told."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import msgspec
import typer

from ddtui.cli.exit_codes import ExitCode, status_of
from ddtui.cli.output import answering, clean, emit_json, emit_json_line, say, unread
from ddtui.config.api_key import ApiKeyError
from ddtui.config.errors import ConfigError
from ddtui.config.hosts import HostTarget, find_host
from ddtui.config.load import Loaded, load
from ddtui.core.local_time import in_local_time
from ddtui.core.samples import UnitStatus


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


class VerbFailed(Exception):
    """What was asked for could not be done: why, what to do, and the exit status for it."""

    def __init__(
        self,
        what: str | Iterable[str],
        remedy: str = "",
        code: ExitCode = ExitCode.FAILED,
        *,
        heard: bool = False,
    ) -> None:
        """`what` may be several mistakes. `heard`: it was told on standard error already."""
        self.mistakes = (clean(what),) if isinstance(what, str) else tuple(map(_by_line, what))
        super().__init__(self.why)
        self.remedy = _by_line(remedy)
        self.code = code
        self.heard = heard

    @property
    def why(self) -> str:
        """All that is wrong, as one text."""
        return "\n".join(self.mistakes)


def _by_line(text: str) -> str:
    return "\n".join(map(clean, text.splitlines()))


@contextmanager
def told(
    context: typer.Context,
    *,
    acts: bool = False,
    as_json: bool | None = None,
    lines: bool = False,
    not_done: Callable[[VerbFailed], object] | None = None,
) -> Iterator[Options]:
    """Run a verb; what fails is told in one clear message and an exit status.

    One that `acts`, not only looks, goes on to its end where nobody reads what it prints. A
    traceback is shown only with --debug.

    Where JSON is asked for (`as_json`; by default where the verb's --json is given) there is a
    document on standard output then, too: `not_done` makes it. A verb whose JSON is `lines` has one
    more of them.
    """
    options = options_of(context)
    asked = bool(context.params.get("as_json")) if as_json is None else as_json
    with unread() if acts else nullcontext(), answering() as answer:
        try:
            yield options
        except typer.Abort:
            raise
        except typer.Exit as ended:
            if asked and ended.exit_code and not answer.given:
                emit_failure(VerbFailed("it has failed", "", status_of(ended.exit_code)))
            raise
        except (KeyboardInterrupt, Exception) as error:
            if options.debug and isinstance(error, Exception):
                say(traceback.format_exc().rstrip())
            failure = failure_of(error, debug=options.debug)
            if not failure.heard:
                tell_failure(failure)
            if asked and (lines or not answer.given):
                emit_failure(failure, lines=lines, not_done=not_done)
            raise typer.Exit(failure.code) from error


def no_unit(host: str, unit: UnitStatus | None = None) -> VerbFailed:
    """There is none to look at: none is known, or none of this name is there."""
    what = f"no unit of {host} is known that runs the engine"
    if unit is not None and unit.load_state == "not-found":
        what = f"there is no unit {unit.name} ({unit.load_state})"
    remedy = "name it with --unit, or in the host's section of the configuration"
    return VerbFailed(what, remedy, ExitCode.NOT_READY)


def tell_failure(failure: VerbFailed) -> None:
    """Why, on standard error, and what to do."""
    kind = "" if failure.code is ExitCode.INTERRUPTED else "error: "
    for mistake in failure.mistakes:
        say(f"{kind}{mistake}")
    for line in failure.remedy.splitlines():
        say(f"       {line}")


def emit_failure(
    failure: VerbFailed,
    *,
    lines: bool = False,
    not_done: Callable[[VerbFailed], object] | None = None,
) -> None:
    """The same as JSON on standard output."""
    report = (not_done or failure_report)(failure)
    (emit_json_line if lines else emit_json)(report)


def failure_report(failure: VerbFailed) -> dict[str, object]:
    """What a verb prints as JSON instead of its own where it fails."""
    return {
        "error": {
            "status": int(failure.code),
            "why": failure.why,
            "remedy": failure.remedy,
        }
    }


def failure_of(error: BaseException, *, debug: bool = False) -> VerbFailed:
    """What has gone wrong, in words, with its exit status."""
    from ddtui.hosts.base import HostError, LinkDown, LinkRefused

    if isinstance(error, VerbFailed):
        return error
    if isinstance(error, KeyboardInterrupt):
        return VerbFailed("interrupted", "", ExitCode.INTERRUPTED)
    if isinstance(error, ConfigError):
        return VerbFailed(map(str, error.problems), "", ExitCode.USAGE)
    if isinstance(error, ApiKeyError):
        return VerbFailed(str(error))
    if isinstance(error, HostError):
        what = in_local_time(error.what)  # who has a lock has noted it in UTC
        if isinstance(error, LinkRefused):
            code = ExitCode.REFUSED
        else:
            code = ExitCode.UNREACHABLE if isinstance(error, LinkDown) else _untouched(error)
        return VerbFailed(what, error.remedy, code)
    return _failure_of_stored(error, debug=debug)


def _failure_of_stored(error: BaseException, *, debug: bool) -> VerbFailed:
    from ddtui.experiments.queue_rules import NoSuchExperiment, QueueProblem, UnusablePlan
    from ddtui.store import StoreError

    if isinstance(error, StoreError):
        return VerbFailed(f"{error.what}: {error.why}", _as_a_line(error.remedy))
    if isinstance(error, QueueProblem):
        wrong = isinstance(error, NoSuchExperiment | UnusablePlan)
        code = ExitCode.USAGE if wrong else ExitCode.BLOCKED
        return VerbFailed(error.what, _as_a_line(error.remedy), code)
    remedy = ""
    if not debug:
        from ddtui.cli.logs import log_unexpected

        where = log_unexpected(error)
        remedy = f"this is a fault in ddtui:  {where}--debug shows where it happened."
    return VerbFailed(f"{type(error).__name__}: {error}", remedy)


def _as_a_line(sentence: str) -> str:
    """What stands after a full stop elsewhere, for a line of its own."""
    return sentence[:1].lower() + sentence[1:]


def _untouched(error: Exception) -> ExitCode:
    """The status for a change that was not begun."""
    from ddtui.collect.unit import NoServiceManager
    from ddtui.control.controller import NotPossible, NoUnit
    from ddtui.control.host_actions import RightMissing
    from ddtui.control.lock import LockHeld
    from ddtui.experiments.single import NotProved

    if isinstance(error, NotProved | NoUnit | NoServiceManager):
        return ExitCode.NOT_READY
    if isinstance(error, LockHeld):
        return ExitCode.LOCKED
    if isinstance(error, NotPossible | RightMissing):
        return ExitCode.BLOCKED
    return ExitCode.FAILED
