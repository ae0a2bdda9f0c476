"""How an engine is launched, and what a reconfiguration changes in it. Pure data."""

from __future__ import annotations

import enum

import msgspec

Value = str | int | float | bool | None
"""A knob's or flag's value: True sets a bare flag, None removes the flag."""


class Launch(msgspec.Struct, frozen=True):
    """What starts an engine: its argument vector and what the unit sets in its environment."""

    argv: tuple[str, ...]
    environment: dict[str, str] = msgspec.field(default_factory=dict)


class Request(msgspec.Struct, frozen=True):
    """What an operator asks for: a preset's content and what was set beside it, already merged."""

    preset: str = ""
    """Name of the preset it came from; empty for none."""
    knobs: dict[str, Value] = msgspec.field(default_factory=dict)
    flags: dict[str, Value] = msgspec.field(default_factory=dict)
    """Server flags by name without dashes."""
    environment: dict[str, str | None] = msgspec.field(default_factory=dict)
    """Variables to set in the unit; None removes one."""


class ChangeKind(enum.StrEnum):
    """What a change is made to."""

    FLAG = "flag"
    ENVIRONMENT = "environment"


class Change(msgspec.Struct, frozen=True):
    """One difference between two launches; None means "not set"."""

    kind: ChangeKind
    name: str
    before: str | None
    after: str | None
    knob: str = ""
    """The knob it comes from, if it comes from one."""
    note: str = ""
    """Why this flag changes with the knob, where that does not go without saying."""


class Level(enum.StrEnum):
    """Whether a finding stops an apply."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Finding(msgspec.Struct, frozen=True):
    """What a check found before anything was stopped."""

    level: Level
    rule: str
    """Stable name of the rule, in kebab-case."""
    text: str
    """What is wrong, with the values."""
    reason: str = ""
    """Why the rule exists: what the server would do."""
    remedy: str = ""


OVERRIDING_RULES = frozenset({"steps-overridden", "eagle-chain-tokens"})
"""Rules whose findings name a flag, `--NAME VALUE`, that the server sets otherwise by itself."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a launch and its drafter bear. None and empty: not known."""

    trained_block: int | None = None
    """Block size that the drafter was trained with."""
    max_running: int | None = None
    """Most requests that run at once."""
    graph_widths: tuple[int, ...] = ()
    """Nodes with the root that CUDA graphs of a verification are captured for."""


class Plan(msgspec.Struct, frozen=True):
    """A reconfiguration worked out and checked, before anything is done."""

    request: Request
    before: Launch
    after: Launch
    changes: tuple[Change, ...]
    findings: tuple[Finding, ...]
    limits: Limits = Limits()
    """Of the launch after the change."""
    restart_due: str = ""
    """Why what is written already needs a restart: the process is older, may be, or is down."""
    back_to: str = ""
    """What a rollback goes back to: which change, when and what; empty for no rollback."""
    undoes: str = ""
    """The change that a rollback undoes, where that is known."""

    @property
    def blocked(self) -> bool:
        """Whether a finding forbids to apply it."""
        return any(finding.level is Level.ERROR for finding in self.findings)

    @property
    def restart_only(self) -> bool:
        """Whether nothing is to be written, and the unit is to be restarted."""
        return not self.changes and bool(self.restart_due)
