"""What is kept of a reconfiguration: who asked for what, each step with its time, and the end."""

from __future__ import annotations

from typing import Any

import msgspec

from ddtui.core.launch import Change, Finding, Launch

PROVED_ENDINGS = ("in force", "rolled back")
"""Endings at which the configuration that runs was proved."""


class StepRecord(msgspec.Struct, frozen=True):
    """One step, written before it is taken."""

    step: str
    at: float
    """Unix seconds on the operator's clock."""
    detail: str = ""


class Carried(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is kept of a change to carry it on after an interruption, and to judge it by later."""

    process: str | None = None
    """Of a simulated host: the process that has made it."""
    machine: str = ""
    """Which installation the host was."""
    run: dict[str, Any] | None = None
    """How far it is on its way through the steps: a `ddtui.control.reconfiguration.Run`."""
    before: str = ""
    """The unit's invocation before it; empty for a unit that was down."""
    invocations: tuple[str, ...] = ()
    """Of the unit before this change, as far as they are known."""
    baseline: dict[str, Any] | None = None
    """What there was before the stop: a `ddtui.control.held.Baseline`."""
    stopped: bool = False
    """Whether the order to stop was given."""
    findings: tuple[Finding, ...] = ()
    """Of the plan."""
    expected: Launch | None = None
    """The whole configuration that is to run at the end, secrets removed; None: not known."""
    opaque: tuple[str, ...] | None = None
    """Words of the command that the host itself expands."""
    deviated: tuple[Change, ...] = ()
    """What ran otherwise than configured before the change already."""
    prove: tuple[Change, ...] | None = None
    """What is to be proved at the end, where that is not what the record names."""
    back: str | None = None
    """The drop-in's text that a change which failed is rolled back to; None: it is not."""
    failed: str = ""
    """Why it is rolled back."""
    taking_back: str | None = None
    """Why its drop-in is taken back before anything was stopped; None: it is not."""
    proved: str | None = None
    """The drop-in's text that a rollback has proved; None: the record's own."""
    back_to: str = ""
    """What a rollback by hand goes back to, in words."""


class ChangeRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One reconfiguration. Secrets are removed from everything but the drop-ins' texts."""

    id: str
    kind: str
    """`apply`, `rollback` or `restart`."""
    host: str
    simulated: bool = False
    unit: str
    scope: str = "system"
    who: str
    """user@machine of the operator."""
    began: float
    """Unix seconds on the operator's clock."""
    ended: float | None = None
    preset: str = ""
    request: dict[str, Any] = {}
    before_argv: tuple[str, ...] = ()
    before_environment: dict[str, str] = {}
    after_argv: tuple[str, ...] = ()
    after_environment: dict[str, str] = {}
    changes: list[dict[str, Any]] = []
    drop_in: str = ""
    """The drop-in as written."""
    drop_in_hash: str = ""
    before_drop_in: str = ""
    """The drop-in that it replaced; empty where there was none."""
    was_ready: bool = False
    """Whether the engine was ready, as configured, before."""
    policy: str = "ask"
    """When to roll back: `ask`, `always`, `never`."""
    invocation: str = ""
    """Of the unit once it was started with it."""
    ending: str = ""
    """The last step; empty while it goes on."""
    doubt: str = ""
    """What a proved ending is not proved by; empty where the server's own report proves it."""
    evidence: list[dict[str, Any]] = []
    """What readiness was proved by at the end: name, verdict, detail."""
    cause: dict[str, Any] | None = None
    """Why it failed: `title`, `evidence`, `remedy` and more where they are known."""
    proofs: list[dict[str, Any]] = []
    """Each change: requested, resolved, outcome."""
    state: Carried = Carried()
    steps: tuple[StepRecord, ...] = ()

    @property
    def is_proved(self) -> bool:
        """Whether it ended with a configuration that was proved to run."""
        return self.ending in PROVED_ENDINGS

    @property
    def invocations(self) -> set[str]:
        """Of the unit before the change, and after it."""
        return {each for each in (self.state.before, self.invocation) if each}

    @property
    def proved_drop_in(self) -> str:
        """The drop-in's text that was proved: of a change that was rolled back, what came back."""
        return self.drop_in if self.state.proved is None else self.state.proved

    @property
    def ended_as(self) -> str:
        """The ending, a proved one with its doubt; `not ended` while it goes on."""
        doubted = self.doubt and self.is_proved
        return f"{self.ending or 'not ended'}{f' ({self.doubt})' if doubted else ''}"

    def phases(self) -> list[tuple[str, float]]:
        """Each step with the seconds until the next one, repeated ones together."""
        result: list[tuple[str, float]] = []
        ends = [each.at for each in self.steps[1:]] + [self.ended or 0.0]
        for step, end in zip(self.steps, ends, strict=False):  # of no steps there is no end either
            seconds = max(0.0, end - step.at)
            if result and result[-1][0] == step.step:
                result[-1] = (step.step, result[-1][1] + seconds)
            else:
                result.append((step.step, seconds))
        return result
