"""The tasks that are shipped: right code passes all of them, wrong code does not."""

from __future__ import annotations

import decimal
import importlib
import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest

import ddtui.demo.solutions
from ddtui.bench.coding_answer import Answer
from ddtui.bench.coding_tasks import Task, coding_tasks, read_task, tasks_hash
from ddtui.bench.judge import judge, judge_answer
from ddtui.core.measurement import Verdict
from tests.unit.bench.sandboxed import found

SOLUTIONS = Path(ddtui.demo.solutions.__file__).parent
TASKS = {task.id: task for task in coding_tasks()}


def solution(name: str) -> str:
    return (SOLUTIONS / f"{name}.py").read_text()


def solve(name: str, *arguments: Any) -> Any:
    """What the shipped solution returns."""
    module = importlib.import_module(f"ddtui.demo.solutions.{name}")
    return getattr(module, TASKS[name].entry)(*arguments)


def answers(codes: dict[str, str]) -> dict[str, Answer]:
    return {
        name: Answer(f"Here it is.\n\n```python\n{code}\n```\n") for name, code in codes.items()
    }


async def test_right_code_passes_all(monkeypatch: pytest.MonkeyPatch) -> None:
    isolation = await found("isolated", monkeypatch)
    codes = {name: solution(name) for name in TASKS}
    result = await judge(answers(codes), coding_tasks(), isolation=isolation)
    assert result.details == {}
    assert (result.passed, result.total) == (len(TASKS), len(TASKS))
    assert result.isolation == "isolated"
    assert result.tasks == tasks_hash(coding_tasks())


WRONG = {
    # (task, what is right, what is nearly right)
    "durations": ('"m": 60', '"m": 61'),
    "durations order": ("if units != [", "if False and units != ["),
    "durations space": ("(?: ?[0-9]", "(?: *[0-9]"),
    "free_slots overlap": ("max(free, ends)", "ends"),
    "free_slots least": ("- free >= least", "- free > least"),
    "free_slots order": ("sorted(busy)", "busy"),
    "evaluate group": ("exponent = self.signed()", "exponent = self.atom()"),
    "evaluate division": ("quotient = abs(value) // abs(divisor)", "return value // divisor"),
    "evaluate float": ("abs(value) // abs(divisor)", "int(abs(value) / abs(divisor))"),
    "evaluate rest": ("if parser.peek():", "if False:"),
    "cheapest_route way back": ("ways.setdefault(other, [])", "ways.setdefault(other, [])[:0]"),
    "cheapest_route coupons": ("left - 1))", "left))"),
    "raggedness last line": ("0 if after == len(words) else", "0 if after < 0 else"),
    "render_table centre": ("space // 2", "(space + 1) // 2"),
    "render_table end": (".rstrip()", ""),
    "round_decimal half": ("kept % 2", "True"),
    "round_decimal zero": ("negative and kept", "negative"),
    "strip_comments escape": ('2 if source[end] == "\\\\" else 1', "1"),
    "strip_comments space": ('out.append(" ")', "pass"),
    "business_days zero": ("if days == 0:", "if False:"),
    "business_days weekend": ("day.weekday() < 5 and", ""),
    "ttl_cache expiry": ("now - put >= self.ttl", "now - put > self.ttl"),
    "ttl_cache use": ("self.entries.move_to_end(key)", "pass"),
    "to_base sign": ("value < 0 < base", "value < 0"),
    "sort_versions text": ("(0, int(part), \"\") if", "(0, 0, part) if"),
    "sort_versions release": ("numbers, not pre, parts", "numbers, parts"),
    "parse_csv quote": ("if '\"' in field:", "if False:"),
    "parse_csv doubled": ("field + '\"'", "field"),
    "build_order first": ("heapq.heappop(ready)", "ready.pop(0)"),
    "build_order cycle": ("if len(order) < len(missing):", "if False:"),
    "life edges": ("board[(y + dy) % height]", "board[min(y + dy, height - 1)]"),
    "count_digit zero": ("higher -= 1", "pass"),
    "count_digit rest": ("lower + 1", "lower"),
}  # fmt: skip


async def test_code_that_is_nearly_right_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every change of one detail is found by some test, and told in a line."""
    sandbox = (await found("isolated", monkeypatch)).sandbox
    assert sandbox is not None
    for name, (right, wrong) in WRONG.items():
        task = TASKS[name.split()[0]]
        code = solution(task.id)
        assert right in code, name
        answer = answers({task.id: code.replace(right, wrong)})[task.id]
        judged = await judge_answer(answer, task, sandbox)
        assert judged.verdict in (Verdict.WRONG, Verdict.ERROR), (name, judged)
        assert judged.detail.startswith("test "), name
    assert {name.split()[0] for name in WRONG} == set(TASKS)


SLOW = {
    "life": (
        "def life(board, steps):\n    for _ in range(steps):\n        board = list(board)\n"
        "    return board"
    ),
    "count_digit": (
        "def count_digit(limit, digit):\n"
        "    return sum(str(each).count(str(digit)) for each in range(1, limit + 1))"
    ),
}


@pytest.mark.parametrize("name", SLOW)
async def test_code_that_looks_at_everything_takes_too_long(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = (await found("isolated", monkeypatch)).sandbox
    assert sandbox is not None
    task = with_large_numbers_only(TASKS[name])
    judged = await judge_answer(answers(SLOW)[name], task, sandbox, seconds=1.5)
    assert judged.verdict is Verdict.TIMEOUT
    assert judged.detail.endswith("not done in 2 s")


def with_large_numbers_only(task: Task) -> Task:
    """Only the tests with a number that nobody can count up to."""
    large = tuple(test for test in task.tests if 10**18 in test.arguments)
    return Task(id=task.id, prompt=task.prompt, entry=task.entry, tests=large)


# ---- the expected values, found in other ways ---------------------------------------------------


def test_digits_are_counted() -> None:
    counted = [0] * 10
    for limit in range(1, 1200):
        for each in str(limit):
            counted[int(each)] += 1
        assert [solve("count_digit", limit, digit) for digit in range(10)] == counted


def test_bases_add_up() -> None:
    for base in (-10, -7, -3, -2, 2, 3, 10):
        for value in (*range(-300, 300), 10**30, -(10**30)):
            text = solve("to_base", value, base)
            digits = text.lstrip("-")
            total = sum(int(each) * base**place for place, each in enumerate(reversed(digits)))
            assert (-total if text[0] == "-" else total) == value
            assert digits == "0" or digits[0] != "0"


def test_decimals_are_those_of_the_decimal_module() -> None:
    chance = random.Random(4)
    for _ in range(2000):
        text = f"{chance.choice(['', '-'])}{chance.randint(0, 99)}.{chance.choice('0123456789')}"
        text += chance.choice(["", "5", "50", "4999", "501"])
        places = chance.randint(0, 4)
        expected = decimal.Decimal(text).quantize(
            decimal.Decimal(1).scaleb(-places), "ROUND_HALF_EVEN"
        )
        assert solve("round_decimal", text, places) == str(expected if expected else abs(expected))


def test_raggedness_is_the_least_of_all_ways() -> None:
    chance = random.Random(5)
    for _ in range(200):
        words = ["x" * chance.randint(1, 6) for _ in range(chance.randint(1, 8))]
        width, costs = chance.randint(4, 14), []
        for breaks in itertools.product((False, True), repeat=len(words) - 1):
            lines = [[words[0]]]
            for word, broken in zip(words[1:], breaks, strict=True):
                lines = [*lines, [word]] if broken else [*lines[:-1], [*lines[-1], word]]
            lengths = [len(" ".join(line)) for line in lines]
            if max(lengths) <= width:
                costs.append(sum((width - each) ** 2 for each in lengths[:-1]))
        assert solve("raggedness", words, width) == min(costs, default=None)


def test_routes_are_the_cheapest_of_all_ways() -> None:
    chance = random.Random(6)

    def cheapest(town: int, left: int, roads: list[list[int]], seen: frozenset[int]) -> float:
        if town == 4:
            return 0
        best = float("inf")
        for one, other, cost in roads:
            for here, there in ((one, other), (other, one)):
                if here == town and there not in seen:
                    rest = seen | {there}
                    best = min(best, cost + cheapest(there, left, roads, rest))
                    if left:
                        best = min(best, cost // 2 + cheapest(there, left - 1, roads, rest))
        return best

    for _ in range(150):
        roads = [[chance.randrange(5), chance.randrange(5), chance.randrange(20)] for _ in range(6)]
        coupons = chance.randrange(3)
        expected = cheapest(0, coupons, roads, frozenset({0}))
        found = solve("cheapest_route", roads, 0, 4, coupons)
        assert (float("inf") if found is None else found) == expected


def test_expressions_are_those_of_python() -> None:
    chance = random.Random(7)
    for _ in range(500):
        text = str(chance.randint(0, 9))
        for _ in range(chance.randint(1, 6)):
            text = chance.choice([
                f"{text} {chance.choice('+-*')} {chance.randint(0, 9)}",
                f"-({text})", f"({text}) ** {chance.randint(0, 3)}", f"2 - -{text}", f"- {text}",
            ])  # fmt: skip
        assert solve("evaluate", text) == eval(text)


def test_an_order_is_the_first_of_all() -> None:
    chance = random.Random(8)
    for _ in range(150):
        names = "abcde"
        needs = {name: chance.choices(names, k=chance.randrange(3)) for name in names}
        fitting = (
            list(order)
            for order in itertools.permutations(names)
            if all(
                order.index(other) < order.index(name) for name in needs for other in needs[name]
            )
        )
        expected = next(fitting, None)
        try:
            assert solve("build_order", needs) == expected
        except ValueError:
            assert expected is None


# ---- the files ----------------------------------------------------------------------------------


def test_tasks_are_whole() -> None:
    assert len(TASKS) >= 12
    for task in TASKS.values():
        assert len(task.tests) >= 8, task.id
        assert f"`{task.entry}" in task.prompt
        assert task.question.startswith(task.prompt.strip())
        assert "```python" in task.question
        json.dumps([test.arguments for test in task.tests])
        # No test shall be passed by giving back what came, or always the same.
        assert len({json.dumps(test.expected) for test in task.tests}) > 3


def test_the_hash_tells_tests_and_prompts_apart() -> None:
    text = "entry = 'f'\nprompt = 'x'\ntests = '[1] => 2'"
    hashes = {
        tasks_hash([read_task("a", text)]),
        tasks_hash([read_task("a", text.replace("2", "2.0"))]),
        tasks_hash([read_task("a", text.replace("'x'", "'y'"))]),
        tasks_hash([read_task("b", text)]),
    }
    assert len(hashes) == 4
    assert tasks_hash(coding_tasks()) == tasks_hash(list(reversed(coding_tasks())))


@pytest.mark.parametrize(
    ("tests", "said"),
    [("[1] 2", "ARGUMENT"), ("{} => 2", "ARGUMENT"), ("[1] => ", "Expecting"), ("[", "Expecting")],
)
def test_a_broken_file_is_told(tests: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"task a: test .*{said}"):
        read_task("a", f"entry = 'f'\nprompt = 'x'\ntests = '{tests}'")
