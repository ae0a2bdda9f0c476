"""The simulated engine's answers to the coding tasks, judged as a real one's are."""

from __future__ import annotations

import httpx
import pytest

from ddtui.bench.coding_answer import Answer
from ddtui.bench.coding_statistics import flips
from ddtui.bench.coding_tasks import coding_tasks
from ddtui.bench.judge import judge
from ddtui.core.measurement import CodingResult, Verdict
from ddtui.demo.coding_answers import _SLIPS, script_for
from ddtui.demo.config import EngineConfig, default_arguments
from tests.unit.bench.sandboxed import found
from tests.unit.demo.test_http import client

TASKS = coding_tasks()


def config(budget: int = 8) -> EngineConfig:
    arguments = default_arguments() | {
        "speculative_algorithm": "DDTREE",
        "speculative_ddtree_budget": budget,
        "speculative_num_draft_tokens": 8,
    }
    return EngineConfig(arguments, ())


def written(budget: int) -> dict[str, Answer]:
    answers = {}
    for task in TASKS:
        script = script_for(task.question, config(budget=budget))
        assert script is not None
        answers[task.id] = Answer("".join(script.tokens))
    return answers


async def judged(monkeypatch: pytest.MonkeyPatch, answers: dict[str, Answer]) -> CodingResult:
    isolation = await found("isolated", monkeypatch)
    return await judge(answers, TASKS, isolation=isolation)


async def test_one_answer_is_lost_at_high_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    low = await judged(monkeypatch, written(8))
    assert (low.passed, low.details) == (len(TASKS), {})
    for budget in (16, 32):
        high = await judged(monkeypatch, written(budget))
        assert high.passed == len(TASKS) - 1
        found = flips(low, high)
        assert len(found.lost) == 1
        assert high.verdicts[found.lost[0]] is Verdict.WRONG
    assert written(16) == written(16)


async def test_every_slip_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = written(8)
    for task, (right, wrong) in _SLIPS.items():
        assert right in answers[task].text
        answers[task] = Answer(answers[task].text.replace(right, wrong))
    result = await judged(monkeypatch, answers)
    assert {name for name, each in result.verdicts.items() if each is Verdict.WRONG} == set(_SLIPS)


def test_other_prompts_have_no_script() -> None:
    assert script_for("Write a poem.", config()) is None


def test_reasoning_goes_where_the_engine_is_told() -> None:
    task = TASKS[0]
    apart = script_for(task.question, config(), apart=True)
    within = script_for(task.question, config())
    bare = script_for(task.question, config(), thinking=False)
    assert apart is not None
    assert within is not None
    assert bare is not None
    thought, said = apart.between(0, len(apart.tokens))
    assert thought.startswith("They want a function named build_order")
    assert said == "".join(bare.tokens)
    assert "".join(within.tokens) == f"<think>\n{thought}</think>\n\n{said}"
    cut = apart.thoughts // 2
    assert apart.between(0, cut)[0] + apart.between(cut, 9999)[0] == thought


async def ask(http: httpx.AsyncClient, tokens: int) -> tuple[str, str]:
    asked = {
        "messages": [{"role": "user", "content": TASKS[3].question}],
        "max_tokens": tokens,
        "temperature": 0,
    }
    choice = (await http.post("/v1/chat/completions", json=asked)).json()["choices"][0]
    return choice["message"]["content"], choice["finish_reason"]


async def test_the_engine_answers_and_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    async with client() as http:
        text, finish = await ask(http, 4096)
        cut, why = await ask(http, 30)
    assert finish == "stop"
    assert (why, text.startswith(cut)) == ("length", True)
    result = await judged(monkeypatch, {TASKS[3].id: Answer(text)})
    assert result.verdicts[TASKS[3].id] is Verdict.PASS
