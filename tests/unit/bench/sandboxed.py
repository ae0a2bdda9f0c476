"""Code under test in tests: ways to run it, and what is left of it afterwards."""

from __future__ import annotations

import os
import shutil
import textwrap

import psutil
import pytest

from ddtui.bench.coding_answer import Answer
from ddtui.bench.coding_tasks import Task, Test
from ddtui.bench.judge import Judged, judge_answer
from ddtui.bench.sandbox import Isolation, Sandbox, probe

REQUIRED = "DDTUI_REQUIRE_HOST_TESTS"
SECRET = 918273645
"""What the task below expects. Nothing leads to it: code that returns it was told, or found it."""
FORKS = 300
"""An attempt that a machine survives where nothing holds."""
ATTEMPT = f"""
import os, time
def solve(_):
    started = 0
    for _ in range({FORKS}):
        try:
            if os.fork() == 0:
                time.sleep(1)
                os._exit(0)
            started += 1
        except OSError:
            break
    return started
"""
ALLOW_ALL = bytes.fromhex("06000000 0000ff7f")
"""A filter that lets every call through."""
TASK = Task(id="secret", prompt="Tell it.", entry="solve", tests=(Test([7], SECRET),))


async def found(level: str, monkeypatch: pytest.MonkeyPatch) -> Isolation:
    """The isolation of that level; where this machine lacks it, skip, or fail if required."""
    if level == "limited":
        with monkeypatch.context() as patch:
            patch.setattr(shutil, "which", lambda _: None)
            isolation = await probe(limited_allowed=True)
    else:
        isolation = await probe()
    if isolation.level != level:
        said = f"code cannot be {level} here: {isolation.why} ({isolation.remedy})"
        if os.environ.get(REQUIRED):
            pytest.fail(f"{said}, and {REQUIRED} is set", pytrace=False)
        pytest.skip(said)
    return isolation


async def returned(code: str, sandbox: Sandbox) -> bytes:
    """What `solve(7)` of that code prints in the sandbox."""
    ending = await sandbox.run(textwrap.dedent(code), "solve", [[7]], seconds=5.0)
    return ending.output


async def judged(code: str, sandbox: Sandbox, *, seconds: float = 10.0) -> Judged:
    """The verdict on an answer to TASK, after which nothing of it may be left."""
    verdict = await judge_answer(Answer(f"```python\n{code}\n```"), TASK, sandbox, seconds=seconds)
    assert left_behind(sandbox) == []
    return verdict


def left_behind(sandbox: Sandbox) -> list[str]:
    """Processes of the sandbox that still run; one that has ended may wait for init to note it."""
    uid = sandbox.command.uid
    found = psutil.Process().children(recursive=True)
    if uid is not None:
        found += [each for each in psutil.process_iter() if _owner(each) == uid]
    return [str(each) for each in found if _runs(each)]


def _owner(process: psutil.Process) -> int | None:
    try:
        return int(process.uids().real)
    except psutil.NoSuchProcess:
        return None


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
