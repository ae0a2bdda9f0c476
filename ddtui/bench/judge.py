"""Judges a model's answers to the coding tasks, by running their code in the sandbox.

The code gets the arguments of the tests and nothing else; what it returned comes back as data and
is compared here. So there is nothing to read that would tell it what is expected, and a verdict is
nothing that it could print.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ddtui.bench.coding_answer import Answer, Missing, extract_code
from ddtui.bench.coding_compare import expected_in_words, in_words, same
from ddtui.bench.coding_tasks import Task, tasks_hash
from ddtui.bench.sandbox import SECONDS, Isolation, Sandbox, probe
from ddtui.bench.sandbox_run import Ending, SandboxFailed, SandboxStuck
from ddtui.core.measurement import CodingResult, Verdict
from ddtui.core.text import clean

_LONGEST_DETAIL = 200
_KILLED = (-9, 137, -24, 152)
"""SIGKILL and SIGXCPU, as a shell counts them too: what the limit of CPU time ends with."""


class Judged(msgspec.Struct, frozen=True):
    """The verdict on one answer, and why in one line."""

    verdict: Verdict
    detail: str = ""


async def judge(
    answers: Mapping[str, Answer],
    tasks: Sequence[Task],
    *,
    limited_allowed: bool = False,
    isolation: Isolation | None = None,
) -> CodingResult:
    """Judge answers, one after the other: nothing runs beside what is timed.

    Args:
        answers: By the id of their task.
        tasks: All that were asked. One without an answer is `not run`.
        limited_allowed: The operator has said yes to running code with limits alone where
            bubblewrap does not work. Without that, nothing is run there.
        isolation: What `probe` found; looked for anew if None.
    """
    isolation = isolation or await probe(limited_allowed=limited_allowed)
    judged: dict[str, Judged] = {}
    stuck = ""
    unable = f"{isolation.why} ({isolation.remedy})" if isolation.remedy else isolation.why
    for task in tasks:
        answer = answers.get(task.id)
        if answer is None:
            judged[task.id] = Judged(Verdict.NOT_RUN, "no answer came")
        elif isolation.sandbox is None or stuck:
            judged[task.id] = Judged(Verdict.NOT_RUN, stuck or unable)
        else:
            try:
                judged[task.id] = await judge_answer(answer, task, isolation.sandbox)
            except SandboxStuck as error:
                stuck = f"nothing more is run: {error}"
                judged[task.id] = Judged(Verdict.TIMEOUT, str(error))
    return CodingResult(
        verdicts={name: each.verdict for name, each in judged.items()},
        details={
            name: clean(each.detail, _LONGEST_DETAIL)
            for name, each in judged.items()
            if each.detail
        },
        isolation=isolation.level,
        tasks=tasks_hash(tasks),
    )


async def judge_answer(
    answer: Answer, task: Task, sandbox: Sandbox, *, seconds: float = SECONDS
) -> Judged:
    """Judge one answer.

    Raises:
        SandboxStuck: Its code was killed, and does not end.
    """
    code = extract_code(answer, task.entry)
    if code is Missing.TRUNCATED:
        return Judged(Verdict.TRUNCATED, "the answer was cut off before its code was complete")
    if isinstance(code, Missing):
        return Judged(Verdict.NO_CODE, f"no ```python block defines {task.entry}")
    calls = [test.arguments for test in task.tests]
    try:
        ending = await sandbox.run(
            code, task.entry, calls, is_class=task.kind == "class", seconds=seconds
        )
    except SandboxFailed as error:
        return Judged(Verdict.NOT_RUN, str(error))
    return _verdict(ending, task, seconds)


def _verdict(ending: Ending, task: Task, seconds: float) -> Judged:
    """What the results say; whatever is not exactly one right result for each test is no pass."""
    if ending.flooded:
        return Judged(Verdict.ERROR, "it wrote more than results can take")
    results, lines = [], ending.output.splitlines()
    if len(lines) > len(task.tests):
        return Judged(Verdict.ERROR, "it wrote more results than there are tests")
    for line in lines:
        try:
            results.append(json.loads(line))
        except (ValueError, RecursionError):
            results.append(None)
    if results and isinstance(results[0], dict) and "load" in results[0]:
        return _raised(results[0].get("load"), results[0].get("text"), "when it was loaded")
    for number, (test, said) in enumerate(zip(task.tests, results, strict=False), 1):
        where = f"test {number} of {len(task.tests)}"
        found = _result(test.expected, said, task, where)
        if found is not None:
            return found
    if ending.timed_out or (len(results) < len(task.tests) and ending.status in _KILLED):
        return Judged(Verdict.TIMEOUT, f"{_after(results, task)}: not done in {seconds:.0f} s")
    if len(results) < len(task.tests):
        return Judged(Verdict.ERROR, f"{_after(results, task)}: ended with {ending.status}")
    return Judged(Verdict.PASS)


def _after(results: list[Any], task: Task) -> str:
    return f"{min(len(results), len(task.tests))} of {len(task.tests)} tests answered"


def _result(expected: Any, said: Any, task: Task, where: str) -> Judged | None:
    """The verdict that one result decides; None while all is right."""
    if not isinstance(said, dict) or not ({"value", "raised"} & said.keys()):
        return Judged(Verdict.ERROR, f"{where}: something else than a result came")
    got = said["value"] if "value" in said else {"raised": said["raised"]}
    try:
        if same(expected, got, tuples=task.tuples, tolerance=task.tolerance):
            return None
        wanted, returned = expected_in_words(expected), in_words(got)
    except (RecursionError, OverflowError, TypeError, ValueError):
        return Judged(Verdict.ERROR, f"{where}: what it returned cannot be compared")
    if "value" not in said:
        return _raised(said["raised"], said.get("text"), where)
    return Judged(Verdict.WRONG, f"{where}: {_brief(returned)} instead of {_brief(wanted)}")


def _raised(names: Any, text: Any, where: str) -> Judged:
    names = [str(each) for each in names] if isinstance(names, list) else []
    name = names[0] if names else "an exception"
    verdict = Verdict.MEMORY if "MemoryError" in names else Verdict.ERROR
    return Judged(verdict, f"{where}: {name}: {text}" if text else f"{where}: {name}")


def _brief(text: str) -> str:
    return text if len(text) <= 70 else text[:69] + "…"
