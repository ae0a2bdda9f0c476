"""What the checks of a launch look at, and how a check is written.

A rule is a function from a `View` to findings, registered with its stable name. Rules never guess:
what was not observed is None, and a rule that needs it says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

import msgspec

from ddtui.core.launch import Finding, Launch, Level
from ddtui.core.load_history import LoadRecord
from ddtui.core.samples import Gpu, GpuProcess, ListenerSample
from ddtui.engines.sglang import dialects
from ddtui.engines.sglang.arguments import Scalar
from ddtui.engines.sglang.command import CommandLine, Occurrence
from ddtui.engines.sglang.dialects import Dialect
from ddtui.engines.sglang.server_flags import ServerFlags, from_values

GIB = 2**30


class CheckContext(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is known before a launch is applied. Sizes are bytes."""

    before: Launch
    """What is configured now."""
    after: Launch
    server: ServerFlags | None = None
    """Flags of the installed server; None where it could not be asked."""
    dialect: Dialect | None = None
    """Told from `server` and the environment where it is left out."""
    report: Mapping[str, Scalar] = {}
    """The running server's own arguments (`/server_info`), with underscores; empty while down."""
    report_version: str = ""
    drafter_config: Mapping[str, object] | None = None
    """The drafter's config.json."""
    last_load: LoadRecord | None = None
    """The last load of this model that became ready."""
    gpus: Sequence[Gpu] = ()
    processes: Sequence[GpuProcess] | None = None
    """Every process that holds GPU memory; None where they are not known."""
    listener: ListenerSample | None = None
    """Who listens on the port that the launch asks for."""
    disk_free: Mapping[str, int] = {}
    """Free bytes by folder: the root folder, caches, the model's folder."""


class View:
    """A context with its flags read."""

    def __init__(self, context: CheckContext) -> None:
        self.context = context
        self.server = context.server
        known = context.server or from_values(CommandLine(context.after.argv).values())
        self.line = CommandLine(context.after.argv, known)
        self.values = self.line.values()
        """Flags after the change, by their own names."""
        self.before = CommandLine(context.before.argv, known).values()
        self.environment = context.after.environment
        self.dialect = context.dialect or dialects.detect(known, self.environment)

    @cached_property
    def occurrences(self) -> list[Occurrence]:
        """Every flag as it is written."""
        return self.line.occurrences()

    @property
    def algorithm(self) -> str:
        """Speculative algorithm, in capitals; empty for none."""
        return dialects.algorithm_of(self.values)

    @property
    def drafts_blocks(self) -> bool:
        """Whether DFLASH or DDTREE drafts."""
        return self.algorithm in dialects.BLOCK_ALGORITHMS

    @property
    def verifies_tree(self) -> bool:
        """Whether a tree is verified, not a chain."""
        return dialects.is_tree(self.values, self.dialect)

    def text(self, name: str, default: str = "") -> str:
        """A flag's value, or the default."""
        return self.values.get(name, default)

    def on(self, name: str) -> bool:
        """Whether a switch is on."""
        return self.values.get(name) == "true"

    def number(self, *names: str) -> int | None:
        """The first of these flags that has an integer as value."""
        return _first_integer(self.values, names)

    @property
    def trained_block(self) -> int | None:
        """Block size that the drafter was trained with, by its config.json."""
        return trained_block(self.context.drafter_config)

    @property
    def block(self) -> int | None:
        """Block size after the change; None where nothing tells, or nothing drafts blocks."""
        return self._block(self.values)

    @property
    def budget(self) -> int | None:
        """Nodes that are verified a pass, root excluded; None where nothing tells."""
        return self._budget(self.values)

    def _block(self, values: Mapping[str, str]) -> int | None:
        algorithm = dialects.algorithm_of(values)
        if algorithm not in dialects.BLOCK_ALGORITHMS:
            return None
        names = [dialects.TREE_BLOCK, dialects.BLOCK]
        if not (self.dialect.switch and dialects.is_tree(values, self.dialect)):
            names.append(dialects.DRAFT_TOKENS)
        if self.dialect.id == "ddtree" and algorithm == "DDTREE":
            names.reverse()
        given = _first_integer(values, names)
        return self.trained_block if given is None else given

    def _budget(self, values: Mapping[str, str]) -> int | None:
        algorithm, block = dialects.algorithm_of(values), self._block(values)
        if algorithm not in dialects.BLOCK_ALGORITHMS:
            tokens = _first_integer(values, [dialects.DRAFT_TOKENS]) if algorithm else 1
            return None if tokens is None else tokens - 1
        if dialects.is_tree(values, self.dialect):
            target = self.dialect.targets.get("budget")
            if target is not None and target.flag:
                given = _first_integer(values, [target.flag])
                if given is not None:
                    return given - target.add
            if self.dialect.id == "dflash-tree-width":
                return None
        return None if block is None else block - 1

    def verified_at_once(self, values: Mapping[str, str]) -> int | None:
        """Tokens that one pass over a full batch verifies: (budget + 1) x most running requests."""
        budget, running = self._budget(values), self.max_running(values)
        return None if budget is None or running is None else (budget + 1) * running

    def max_running(self, values: Mapping[str, str]) -> int | None:
        """Most requests at once, by flags; else the default of block drafting, else reported."""
        given = _first_integer(values, ["max-running-requests"])
        if given is None and dialects.algorithm_of(values) in dialects.BLOCK_ALGORITHMS:
            return DEFAULT_MAX_RUNNING
        reported = self.context.report.get("max_running_requests")
        return given if given is not None else reported if isinstance(reported, int) else None

    @property
    def static_fraction(self) -> float | None:
        """Share of GPU memory for weights and KV cache, where it is set."""
        return fraction(self.values.get("mem-fraction-static"))


DEFAULT_MAX_RUNNING = 48
"""Requests at once that SGLang sets for DFLASH when nothing is said."""


def fraction(value: object) -> float | None:
    """A share from a flag or a report; None for what is none."""
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if 0.0 < number < 1.0 else None


def trained_block(config: Mapping[str, object] | None) -> int | None:
    """Block size in a drafter's config.json: `dflash_config.block_size`, else the top level."""
    if config is None:
        return None
    inner = config.get("dflash_config")
    for each in (inner, config):
        value = each.get("block_size") if isinstance(each, Mapping) else None
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def _first_integer(values: Mapping[str, str], names: Sequence[str]) -> int | None:
    for name in names:
        text = values.get(name, "")
        digits = text.removeprefix("-")
        if digits.isascii() and digits.isdecimal() and len(digits) < 12:
            return int(text)
    return None


Rule = Callable[[View], Iterator[Finding]]
RULES: dict[str, Rule] = {}
"""Every rule by its name, in the order of registration."""


class Say:
    """Makes the findings of one rule."""

    def __init__(self, rule: str, reason: str, doubted: str) -> None:
        self._rule = rule
        self._reason = reason
        self._doubted = doubted

    def __call__(self, level: Level, text: str, remedy: str = "", reason: str = "") -> Finding:
        """A finding; `reason` where it differs from the rule's own."""
        own = self._reason if level is Level.ERROR else self._doubted
        return Finding(level, self._rule, text, reason or own, remedy)

    def error(self, text: str, remedy: str = "", reason: str = "") -> Finding:
        """A finding that forbids to apply."""
        return self(Level.ERROR, text, remedy, reason)

    def warning(self, text: str, remedy: str = "", reason: str = "") -> Finding:
        """A finding that is shown."""
        return self(Level.WARNING, text, remedy, reason)

    def note(self, text: str, remedy: str = "", reason: str = "") -> Finding:
        """A remark."""
        return self(Level.NOTE, text, remedy, reason)


def rule(
    name: str, reason: str, doubted: str = ""
) -> Callable[[Callable[[View, Say], Iterator[Finding]]], Callable[[View, Say], Iterator[Finding]]]:
    """Register a rule: its stable name, and why it exists (what the server would do).

    `doubted`: the same where it is not certain, and so no error.
    """

    def register(
        function: Callable[[View, Say], Iterator[Finding]],
    ) -> Callable[[View, Say], Iterator[Finding]]:
        say = Say(name, reason, doubted or reason)
        RULES[name] = lambda view: function(view, say)
        return function

    return register
