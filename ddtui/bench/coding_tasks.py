"""The coding tasks that are shipped: one TOML file each in `tasks/`, with its hidden tests.

A file has `prompt`, `entry` (the function or class to define), optionally `kind = "class"`,
`tuples = true` (a tuple does for a list), `tolerance` (of floats), and `tests`: a line a call,

    [ARGUMENT, ...] => VALUE
    [ARGUMENT, ...] => raises NAME

in JSON. A class is called as `[[ARGUMENT, ...], [[METHOD, ARGUMENT, ...], ...]]`, which is compared
with the list of what the methods returned; `{"raises": NAME}` stands in it for an exception.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Sequence
from importlib import resources
from typing import Any, Literal

import msgspec
import tomli

_FORM = (
    "Answer with the complete solution in one ```python code block that defines `{entry}`. Use "
    "only the standard library of Python 3.9. Read no input, print nothing, start no process and "
    "no thread."
)


class Test(msgspec.Struct, frozen=True):
    """One call of a task and what must come of it; never shown to a model or to its code."""

    __test__ = False  # for pytest: no class of tests

    arguments: list[Any]
    expected: Any


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One coding task."""

    id: str
    prompt: str
    entry: str
    kind: Literal["function", "class"] = "function"
    tuples: bool = False
    tolerance: float = 0.0
    tests: tuple[Test, ...]

    @property
    def question(self) -> str:
        """What a model is asked."""
        return f"{self.prompt.strip()}\n\n{_FORM.format(entry=self.entry)}"


class _File(msgspec.Struct, forbid_unknown_fields=True):
    prompt: str
    entry: str
    tests: str
    kind: Literal["function", "class"] = "function"
    tuples: bool = False
    tolerance: float = 0.0


@functools.cache
def coding_tasks() -> tuple[Task, ...]:
    """All tasks, by id."""
    folder = resources.files("ddtui.bench").joinpath("tasks")
    files = [each for each in folder.iterdir() if each.name.endswith(".toml")]
    tasks = [read_task(each.name.removesuffix(".toml"), each.read_text("utf-8")) for each in files]
    return tuple(sorted(tasks, key=lambda task: task.id))


def read_task(name: str, text: str) -> Task:
    """Read one file of a task.

    Raises:
        ValueError: It is not one; the message says where.
    """
    try:
        file = msgspec.convert(tomli.loads(text), _File)
        tests = tuple(_test(line) for line in file.tests.splitlines() if line.strip())
    except ValueError as error:
        raise ValueError(f"task {name}: {error}") from error
    fields = {key: getattr(file, key) for key in ("entry", "kind", "tuples", "tolerance")}
    return Task(id=name, prompt=file.prompt, tests=tests, **fields)


def _test(line: str) -> Test:
    line = line.strip()
    try:
        arguments, end = json.JSONDecoder().raw_decode(line)
        arrow, _, value = line[end:].strip().partition(" ")
        if arrow != "=>" or not isinstance(arguments, list):
            raise ValueError("it is not `[ARGUMENT, ...] => VALUE`")
        if value.startswith("raises "):
            return Test(arguments, {"raises": value.removeprefix("raises ").strip()})
        return Test(arguments, json.loads(value))
    except ValueError as error:
        raise ValueError(f"test {line[:60]!r}: {error}") from error


def tasks_hash(tasks: Sequence[Task]) -> str:
    """Tells one set of tasks from another: prompts, entry points and tests."""
    text = msgspec.json.encode(sorted(tasks, key=lambda task: task.id))
    return hashlib.sha256(text).hexdigest()[:16]
