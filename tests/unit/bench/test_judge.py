"""From an answer to a verdict: the code in it, the comparison, and what is told of it."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from ddtui.bench import sandbox as sandbox_module
from ddtui.bench.coding_answer import Answer, Missing, extract_code
from ddtui.bench.coding_compare import in_words, same
from ddtui.bench.coding_statistics import flips, wilson_interval
from ddtui.bench.coding_tasks import Task, Test
from ddtui.bench.judge import judge, judge_answer
from ddtui.bench.sandbox import probe
from ddtui.bench.sandbox_filter import filter_program
from ddtui.core.measurement import CodingResult, Verdict
from tests.unit.bench.sandboxed import SECRET, TASK, found

CODE = "def solve(x):\n    return x\n"
BLOCK = f"```python\n{CODE}```"


# ---- the code in an answer ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        BLOCK,
        f"So:\n\n{BLOCK}\n\nThis works because ...",
        f"~~~py\n{CODE}~~~",
        f"````python\n{CODE}````",
        f"```Python3 title=x\n{CODE}```   ",
        f"```\n{CODE}```",
        BLOCK.replace("\n", "\r\n"),
        "   ```python\n   def solve(x):\n       return x\n   ```",
        f"```python\ndef solve(x):\n    return 0\n```\nBetter:\n{BLOCK}",
        f"{BLOCK}\nUse it so:\n```python\nprint(solve(1))\n```",
        f"{BLOCK}\n```text\ndef solve(x): no\n```",
        f"<think>```python\ndef solve(x): bad\n```</think>\n{BLOCK}",
        f"thinking ```python\ndef solve(x): bad\n``` </think>{BLOCK}",
        f"{BLOCK}\n<think>and another thing",
        f"{BLOCK}\n```python\ndef solve(x): # unfinished",
    ],
)
def test_code_is_found(text: str) -> None:
    assert extract_code(Answer(text), "solve") == CODE


@pytest.mark.parametrize("head", ["class solve:", "class solve(Base):", "solve = lambda x:"])
def test_other_definitions_count(head: str) -> None:
    assert extract_code(Answer(f"```python\n{head} pass\n```"), "solve") == f"{head} pass\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I cannot.",
        CODE,
        f"```python\n{CODE}",
        "```python\ndef solver(x): pass\n```",
        "```python\nclass A:\n    def solve(self): pass\n```",
        f"```javascript\n{CODE}```",
        f"<think>{BLOCK}</think>",
        f"<think>{BLOCK}",
        f"` ```python ` {CODE}",
    ],
)
def test_no_code_and_truncated_are_told_apart(text: str) -> None:
    assert extract_code(Answer(text), "solve") is Missing.NO_CODE
    assert extract_code(Answer(text, "length"), "solve") is Missing.TRUNCATED


def test_an_answer_cut_off_after_its_code_has_its_code() -> None:
    assert extract_code(Answer(f"{BLOCK}\nIt works bec", "length"), "solve") == CODE
    cut = f"{BLOCK}\nBetter:\n```python\ndef solve(x):\n    retu"
    assert extract_code(Answer(cut, "length"), "solve") is Missing.TRUNCATED


def test_long_answers_take_no_long_time() -> None:
    """Shapes that would make a careless pattern take for ever."""
    for text in ("<think>" * 100_000, "```python\n" * 100_000, "`" * 1_000_000, " " * 1_000_000):
        assert extract_code(Answer(text), "solve") is Missing.NO_CODE


# ---- comparison ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "got", "equal"),
    [
        (1, 1, True),
        (1, True, False),
        (True, 1, False),
        (0, False, False),
        (1, 1.0, False),
        (1.0, 1, False),
        (1.0, 1.0, True),
        (None, False, False),
        (None, None, True),
        ("1", 1, False),
        (float("nan"), float("nan"), True),
        (float("inf"), float("-inf"), False),
        ([1, [2]], [1, [2]], True),
        ([1], [1, 2], False),
        ([], {"tuple": []}, False),
        ([], {"set": []}, False),
        ({"a": 1}, {"dict": [["a", 1]]}, True),
        ({"a": 1}, {"dict": [["a", True]]}, False),
        ({"a": 1}, {"dict": [["a", 1], ["b", 1]]}, False),
        ({"1": 1}, {"dict": [[1, 1]]}, False),
        ({}, [], False),
        ({"raises": "LookupError"}, {"raised": ["KeyError", "LookupError", "Exception"]}, True),
        ({"raises": "KeyError"}, {"raised": ["LookupError", "Exception"]}, False),
        ({"raises": "KeyError"}, {"dict": [["raised", ["KeyError"]]]}, False),
        ({"raises": "KeyError"}, None, False),
        (1, {"other": "int"}, False),
        (1, {}, False),
        ({"a": 1}, {"dict": [["a"]]}, False),
        ({"a": 1}, {"dict": 7}, False),
    ],
)
def test_types_count(expected: Any, got: Any, equal: bool) -> None:
    assert same(expected, got) is equal


def test_what_a_task_allows() -> None:
    assert same([[1, 2]], [{"tuple": [1, 2]}], tuples=True)
    assert not same([[1, 2]], [{"set": [1, 2]}], tuples=True)
    assert same(1.0, 1, tolerance=1e-9)
    assert same(1e6, 1e6 + 1e-4, tolerance=1e-9)
    assert not same(1.0, 1.1, tolerance=1e-9)
    assert not same(1.0, True, tolerance=1e-9)


def test_values_in_words() -> None:
    got = json.loads('[{"tuple": [1, "a"]}, {"dict": [["k", null]]}, {"other": "X"}, {"set": []}]')
    assert in_words(got) == "[(1, 'a'), {'k': None}, a X, set()]"


# ---- verdicts -----------------------------------------------------------------------------------


async def test_details_are_one_clean_line(monkeypatch: pytest.MonkeyPatch) -> None:
    isolation = await found("isolated", monkeypatch)
    code = "def solve(x):\n    raise ValueError('a\\x1b[31m\\nb\\u202e[bold]' * 100)"
    answers = {TASK.id: Answer(f"```python\n{code}\n```")}
    result = await judge(answers, [TASK], isolation=isolation)
    detail = result.details[TASK.id]
    assert result.verdicts == {TASK.id: Verdict.ERROR}
    assert detail.startswith("test 1 of 1: ValueError: a b[bold]a b")
    assert detail.isprintable()
    assert len(detail) <= 200


async def test_every_end_has_its_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = (await found("isolated", monkeypatch)).sandbox
    assert sandbox is not None
    cases = {
        f"def solve(x):\n    return {SECRET}": (Verdict.PASS, ""),
        "def solve(x):\n    return [x]": (Verdict.WRONG, f"test 1 of 1: [7] instead of {SECRET}"),
        "def solve(x):\n    return 1 / 0": (
            Verdict.ERROR,
            "test 1 of 1: ZeroDivisionError: division by zero",
        ),
        "def solve(x)": (Verdict.ERROR, "when it was loaded: SyntaxError: "),
        "import numpy\ndef solve(x): pass": (
            Verdict.ERROR,
            "when it was loaded: ModuleNotFoundError: No module named 'numpy'",
        ),
        "def solve(x):\n    return bytearray(1 << 40)": (
            Verdict.MEMORY,
            "test 1 of 1: MemoryError",
        ),
        "import os\ndef solve(x):\n    os._exit(3)": (
            Verdict.ERROR,
            "0 of 1 tests answered: ended with 3",
        ),
    }
    for code, (verdict, detail) in cases.items():
        judged = await judge_answer(Answer(f"```python\n{code}\n```"), TASK, sandbox)
        assert judged.verdict is verdict, code
        assert judged.detail.startswith(detail), code


async def test_a_class_is_called_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = (await found("isolated", monkeypatch)).sandbox
    assert sandbox is not None
    code = """
class Stack:
    def __init__(self, first):
        self.held = [first]
    def push(self, value):
        self.held.append(value)
    def pop(self):
        return self.held.pop()
"""
    steps = [["push", 2], ["pop"], ["pop"], ["pop"]]
    expected = [None, 2, 1, {"raises": "IndexError"}]
    task = Task(
        id="s", prompt="", entry="Stack", kind="class", tests=(Test([[1], steps], expected),)
    )
    assert (
        await judge_answer(Answer(f"```python{code}```"), task, sandbox)
    ).verdict is Verdict.PASS
    wrong = Answer(f"```python{code.replace('.pop()', '.pop(0)')}```")
    assert (await judge_answer(wrong, task, sandbox)).detail == (
        "test 1 of 1: [None, 1, 2, IndexError raised] instead of [None, 2, 1, IndexError raised]"
    )


# ---- permission ---------------------------------------------------------------------------------


async def test_without_bubblewrap_nothing_runs_unless_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limited = await found("limited", monkeypatch)
    assert limited.why == "bubblewrap is not installed"
    monkeypatch.setattr(shutil, "which", lambda _: None)
    answers = {TASK.id: Answer(f"```python\ndef solve(x):\n    return {SECRET}\n```")}
    refused = await judge(answers, [TASK])
    assert refused.isolation == "not run"
    assert refused.verdicts == {TASK.id: Verdict.NOT_RUN}
    assert refused.details == {
        TASK.id: "bubblewrap is not installed (install the package bubblewrap)"
    }
    assert refused.total == 0
    allowed = await judge(answers, [TASK], limited_allowed=True)
    assert allowed.isolation == "limited"
    assert allowed.passed == 1


async def test_another_system_runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_module, "filter_program", lambda: None)
    isolation = await probe(limited_allowed=True)
    assert isolation.level == "not run"
    assert isolation.sandbox is None
    assert "Linux" in isolation.why
    assert filter_program("riscv64") is None


async def test_a_wall_that_does_not_hold_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A filter that lets all through, and limits that limit nothing: the check sees each."""
    await found("isolated", monkeypatch)
    monkeypatch.setattr(sandbox_module, "LIMITS", {"CORE": 0})
    everything = bytes.fromhex("06000000 0000ff7f")
    monkeypatch.setattr(sandbox_module, "filter_program", lambda: everything)
    isolation = await probe()
    assert isolation.level == "not run"
    assert isolation.why.startswith(
        "bubblewrap does not work here: it does not hold: the process limit, the memory limit"
    )


async def test_bubblewrap_that_fails_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text(
        "#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n"
    )
    broken.chmod(0o755)
    # Another user could not reach it here.
    monkeypatch.setattr(sandbox_module, "_users", lambda: [None])
    monkeypatch.setattr(shutil, "which", lambda _: str(broken))
    isolation = await probe()
    assert isolation.level == "not run"
    assert "setting up uid map: Permission denied" in isolation.why
    assert isolation.remedy


async def test_a_task_without_an_answer_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    isolation = await found("isolated", monkeypatch)
    result = await judge({}, [TASK], isolation=isolation)
    assert result.verdicts == {TASK.id: Verdict.NOT_RUN}
    assert result.details == {TASK.id: "no answer came"}


# ---- statistics ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("passed", "total", "low", "high"),
    [
        (4, 5, 0.3755, 0.9638),
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (81, 263, 0.2553, 0.3662),
        (0, 0, 0.0, 1.0),
    ],
)
def test_wilson(passed: int, total: int, low: float, high: float) -> None:
    """81 of 263 is the first example of Newcombe (1998), Statistics in Medicine 17, 857-872."""
    assert wilson_interval(passed, total) == pytest.approx((low, high), abs=5e-5)


def test_wilson_refuses_what_is_no_share() -> None:
    with pytest.raises(ValueError, match="6 of 5"):
        wilson_interval(6, 5)


def test_flips() -> None:
    before = {"a": Verdict.PASS, "b": Verdict.WRONG, "c": Verdict.PASS, "d": Verdict.NOT_RUN}
    now = {"a": Verdict.TIMEOUT, "b": Verdict.PASS, "c": Verdict.PASS, "d": Verdict.PASS}
    found = flips(
        CodingResult(verdicts=before, tasks="1"),
        CodingResult(verdicts={**now, "e": Verdict.PASS}, tasks="1"),
    )
    assert (found.lost, found.gained, found.compared) == (("a",), ("b",), 3)
    assert found.same_tasks
