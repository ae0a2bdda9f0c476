"""What the simulated engine answers to the coding tasks: mostly right, as a good model is.

Drafts that are verified in a large tree change nothing in theory, and near-ties in practice: so at
a budget of 16 and more one answer, always the same for one configuration, has a slip in it. That
is made up, as all of the simulated engine is.
"""

from __future__ import annotations

import functools
import re
import zlib
from dataclasses import dataclass
from importlib import resources

from ddtui.bench.coding_tasks import Task, coding_tasks
from ddtui.demo.config import EngineConfig

_SLIPPERY = 16
"""The budget from which on one answer is wrong."""
_SLIPS = {
    "free_slots": ("- free >= least", "- free > least"),
    "business_days": ("day.weekday() < 5 and", "day.weekday() < 6 and"),
    "round_decimal": ("rest == half and kept % 2", "rest == half"),
    "ttl_cache": ("now - put >= self.ttl", "now - put > self.ttl"),
    "strip_comments": ('out.append(" ")\n            at = end + 2', "at = end + 2"),
    "count_digit": ("total += lower + 1", "total += lower"),
}
"""By task: what is right, and what is written instead."""


@dataclass(frozen=True)
class Script:
    """An answer that is known beforehand, in tokens: first the reasoning, then what is visible."""

    tokens: tuple[str, ...]
    thoughts: int
    """How many of the tokens are reasoning."""

    def between(self, start: int, end: int) -> tuple[str, str]:
        """Reasoning and visible text of some tokens."""
        visible = max(start, self.thoughts)
        thought = self.tokens[start : min(end, self.thoughts)]
        return "".join(thought), "".join(self.tokens[visible:end])


def script_for(
    prompt: str, config: EngineConfig, *, thinking: bool = True, apart: bool = False
) -> Script | None:
    """The answer to a prompt that has a coding task in it; None for any other prompt.

    `thinking`: begin with some reasoning. `apart`: it goes into a channel of its own.
    """
    task = next((each for each in coding_tasks() if each.prompt.strip() in prompt), None)
    if task is None:
        return None
    code = _solution(task.id)
    if task.id == _slip(config):
        code = code.replace(*_SLIPS[task.id])
    thoughts = _thoughts(task) if thinking else ""
    if thoughts and not apart:
        thoughts = f"<think>\n{thoughts}</think>\n\n"
    visible = _pieces(f"This solves it (a simulated answer):\n\n```python\n{code}```\n")
    thought = _pieces(thoughts)
    return Script((*thought, *visible), len(thought) if apart else 0)


def _slip(config: EngineConfig) -> str:
    """The task that this configuration gets wrong, if any."""
    if not config.algorithm or config.budget < _SLIPPERY:
        return ""
    seed = f"{config.budget} {config.block_size} {config.topk} {config.window}"
    return sorted(_SLIPS)[zlib.crc32(seed.encode()) % len(_SLIPS)]


@functools.cache
def _solution(task: str) -> str:
    source = resources.files("ddtui.demo").joinpath("solutions", f"{task}.py").read_text("utf-8")
    # What a model would not write: the module's own words for its readers here.
    return source.partition("\n")[2].strip() + "\n"


def _thoughts(task: Task) -> str:
    kind = "a class" if task.kind == "class" else "a function"
    first = " ".join(task.prompt.split(". ")[0].split())
    return (
        f"They want {kind} named {task.entry}. {first}. "
        "Let me go through the rules one by one, and then look at the edge cases: nothing given, "
        "a single item, and values at the very limit. The errors must be raised as described, and "
        "the types of the result must be exactly those that are asked for. "
        f"I write {task.entry} so that each rule has its line, and check the examples by hand.\n"
    )


def _pieces(text: str) -> tuple[str, ...]:
    """The text in pieces of about the length of tokens."""
    return tuple(re.findall(r"\s*\S{1,5}|\s+$", text))
