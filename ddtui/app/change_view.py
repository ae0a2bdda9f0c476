"""A reconfiguration as the screens show it, from the record of it."""

from __future__ import annotations

import msgspec

from ddtui.control.reconfiguration import Step
from ddtui.control.simulated import GONE, is_anothers
from ddtui.core.change_record import ChangeRecord
from ddtui.core.launch import Change
from ddtui.engines.sglang.dialects import named
from ddtui.ui.source import ProofView, Question, ReconfigurationView, StepStatus, StepView

_ORDER = (
    *(Step.LOCKED, Step.WRITTEN, Step.RELOADED, Step.STOPPING, Step.RELEASING),
    *(Step.STARTING, Step.LOADING, Step.VERIFYING),
)


def view_of(
    record: ChangeRecord,
    said: str,
    question: Question | None,
    *,
    elsewhere: str | None = None,
    experiment: str = "",
) -> ReconfigurationView:
    """A record as the screens show it.

    `elsewhere` is given for one that is not carried on here: who has the lock, empty for nobody.
    `experiment` is the title of the one that it was made for.
    """
    cause = record.cause or {}
    gone = is_anothers(record) and not record.ending and not elsewhere
    return ReconfigurationView(
        id=record.id,
        kind=record.kind,
        preset=record.preset,
        experiment=experiment,
        unit=record.unit,
        who=record.who,
        began=record.began,
        ended=record.ended,
        steps=_steps(record, said),
        ending=record.ending,
        doubt=record.doubt,
        changes=tuple(map(named, msgspec.convert(record.changes, list[Change]))),
        proofs=tuple(
            ProofView(
                f"--{each['name']}" if each.get("kind") == "flag" else each["name"],
                each["requested"],
                each["resolved"],
                each["outcome"],
                each["outcome"] in {"in force", "not reported"},
                each.get("reason", ""),
            )
            for each in record.proofs
        ),
        cause=str(cause.get("title", "")) or (GONE if gone else ""),
        evidence=tuple(map(str, cause.get("evidence", ()))),
        remedy=str(cause.get("remedy", "")),
        question=question,
        here=elsewhere is None,
        interrupted=elsewhere == "",
    )


def _steps(record: ChangeRecord, said: str) -> tuple[StepView, ...]:
    """The steps taken, then those to come; the last one runs until the end."""
    failed = record.ending in {"failed", "degraded", "unknown"}
    taken: list[StepView] = []
    steps = [each for each in record.steps if each.step not in {"planned", record.ending}]
    ends = [*(each.at for each in steps[1:]), record.ended]
    for step, end in zip(steps, ends, strict=False):  # of no steps yet there is no end either
        last = step is steps[-1]
        status = StepStatus.DONE
        if last:
            status = StepStatus.RUNNING
            if record.ending:
                status = StepStatus.FAILED if failed else StepStatus.DONE
        seconds = None if end is None else max(0.0, end - step.at)
        detail = said if last and said else step.detail
        taken.append(StepView(step.step, status, step.at, seconds, detail))
    if record.ending:
        return tuple(taken)
    names = [each.value for each in _ORDER]
    here = taken[-1].name if taken else ""
    following = names[names.index(here) + 1 :] if here in names else names
    return (*taken, *(StepView(name, StepStatus.PENDING) for name in following))
