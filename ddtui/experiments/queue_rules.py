"""What a queue accepts: texts, plans, changes of requests, and how a refusal is worded."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from ddtui.bench.errors import BadPrompts
from ddtui.bench.prompts import load_prompts
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.experiment import ExperimentState as _State
from ddtui.core.experiment import Match
from ddtui.core.launch import Request
from ddtui.core.text import clean
from ddtui.experiments.naming import LONGEST_TITLE, short_id
from ddtui.store import Stale

LONGEST_TEXT = 4000
"""Characters of a hypothesis or a note."""
_REMEDIES = {
    _State.RUNNING: "Cancel it, or wait until it has ended",
    _State.DONE: "Add one like it to measure it again",
    _State.FAILED: "Retry it first",
    _State.CANCELLED: "Retry it first",
    _State.PENDING: "It waits in the queue",
    _State.HELD: "Release it first",
}


class QueueProblem(Exception):
    """What was asked of the queue cannot be done; nothing was changed.

    Attributes:
        what: What cannot be done, and why.
        remedy: What the operator can do.
    """

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(f"{what}. {remedy}")
        self.what = what
        self.remedy = remedy


class NoSuchExperiment(QueueProblem):
    """No experiment, or more than one, is meant by a word."""


class UnusablePlan(QueueProblem):
    """A bench plan asks for something that cannot be read."""


def refused(stale: Stale, verb: str) -> QueueProblem:
    """What to say where an experiment is no longer what it must be for a verb."""
    name = short_id(stale.id)
    if stale.now is None:
        return QueueProblem(
            f"cannot {verb} {name}: {stale}", "`ddtui queue HOST` lists what is there"
        )
    state = stale.now.state
    what = f"cannot {verb} {name} ({stale.now.title}): it is {state}"
    return QueueProblem(what, _REMEDIES[state])


def checked_texts(title: str, hypothesis: str, note: str) -> dict[str, str]:
    """Texts of an experiment, each as one line that can be shown. Raises QueueProblem."""
    given = {"title": title, "hypothesis": hypothesis, "note": note}
    result = {}
    for name, text in given.items():
        most = LONGEST_TITLE if name == "title" else LONGEST_TEXT
        plain = clean(text, len(text) * 8 + 1).strip()  # a tab becomes up to 8 blanks
        if len(plain) > most:
            what = f"the {name} is too long: {len(plain)} characters, at most {most}"
            raise QueueProblem(what, "Shorten it")
        result[name] = plain
    if not result["title"]:
        raise QueueProblem("an experiment needs a title", "Say in short what is tried")
    return result


def checked_request(request: Request) -> Request:
    """A request that can be kept and shown. Raises QueueProblem for bytes that are no text."""
    try:
        msgspec.json.encode(request)
    except UnicodeEncodeError as error:
        what = "a value that was set has bytes that are no text in UTF-8"
        raise QueueProblem(what, "Write it in UTF-8") from error
    return request


def check_plans(plans: Iterable[BenchPlan]) -> None:
    """Be sure that what is to be asked can be read. Reads files; raises UnusablePlan."""
    for prompts in dict.fromkeys(each.prompts for each in plans if not each.command):
        try:
            load_prompts(prompts)
        except BadPrompts as error:
            raise UnusablePlan(str(error), error.remedy[:1].upper() + error.remedy[1:]) from error


def names_of(over: Request | None) -> Iterable[str]:
    """Names of all that a request asks for."""
    return () if over is None else (*over.knobs, *over.flags, *over.environment)


def match_after(
    match: Match | None, over: Request | None, without: Collection[str] = ()
) -> Match | None:
    """A match is none any more once its knob was set by hand."""
    gone = match is not None and match.knob in {*names_of(over), *without}
    return None if gone else match


def less(request: Request, names: Collection[str]) -> Request:
    """A request that asks for less. Raises QueueProblem for what it does not ask for."""
    asked = {*request.knobs, *request.flags, *request.environment}
    if unknown := [clean(name, 40) for name in names if name not in asked]:
        what = f"it does not ask for {', '.join(unknown)}"
        raise QueueProblem(what, f"It asks for {', '.join(sorted(asked)) or 'nothing'}")
    return msgspec.structs.replace(
        request,
        knobs={name: value for name, value in request.knobs.items() if name not in names},
        flags={name: value for name, value in request.flags.items() if name not in names},
        environment={
            name: value for name, value in request.environment.items() if name not in names
        },
    )
