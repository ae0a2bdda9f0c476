"""Works out a reconfiguration: a request applied to a launch, with every change named."""

from __future__ import annotations

from collections.abc import Mapping

from ddtui.core.knobs import KNOBS, knob_name, nearest_knob
from ddtui.core.launch import Change, ChangeKind, Finding, Launch, Level, Request, Value
from ddtui.core.redact import MASK, is_secret_name, redact_text
from ddtui.engines.sglang.command import CommandLine, NotEditable, render
from ddtui.engines.sglang.dialects import (
    ALGORITHM,
    Dialect,
    NoTarget,
    Target,
    detect,
    is_tree,
    targets_of,
)
from ddtui.engines.sglang.server_flags import ServerFlags, from_values

_Worked = tuple[Launch, tuple[Change, ...], tuple[Finding, ...]]


def plan(
    launch: Launch,
    request: Request,
    server: ServerFlags | None,
    dialect: Dialect | None = None,
    overrides: Mapping[str, str] | None = None,
    against: Launch | None = None,
) -> _Worked:
    """The launch that a request makes of `launch`, its changes, and what stands in the way.

    `against` is what the changes are told of, where that is another launch.

    `server` is None for one that could not be asked: then only flags that its command line has
    already are known. `dialect` is told from it where it is not given; `overrides` are the host's
    own mapping of knobs. What is found here concerns the request; `checks.check` judges the launch.
    """
    try:
        before = CommandLine(launch.argv, server)
    except NotEditable as error:
        return launch, (), (_not_editable(str(error)),)
    known = from_values(before.values()) if server is None else server
    before = CommandLine(launch.argv, known)
    work = _Work(launch, known, dialect or detect(known, launch.environment), overrides or {})
    work.is_asked = server is not None
    work.apply(request)
    after = Launch(work.line.argv, work.environment)
    changes = _differences(against or launch, after, known, work.origin)
    if not changes and not any(each.level is Level.ERROR for each in work.findings):
        work.find(Level.NOTE, "nothing-changes", "the unit is configured like this already")
    return after, changes, tuple(work.findings)


def _not_editable(what: str) -> Finding:
    return Finding(
        Level.ERROR,
        "command-not-editable",
        what,
        "flags can only be changed where the unit's own command has them",
        "let ExecStart start the engine itself (python -m sglang.launch_server ..., or exec of it)",
    )


class _Work:
    """A launch in the middle of being changed."""

    def __init__(
        self, launch: Launch, server: ServerFlags, dialect: Dialect, overrides: Mapping[str, str]
    ) -> None:
        self.line = CommandLine(launch.argv, server)
        self.environment = dict(launch.environment)
        self.findings: list[Finding] = []
        self.origin: dict[tuple[ChangeKind, str], tuple[str, str]] = {}
        """Of each flag and variable that a knob has set: the knob, and why."""
        self._server = server
        self._dialect = dialect
        self._overrides = overrides
        self._set: dict[tuple[ChangeKind, str], Value] = {}
        """What the request sets itself: that goes before its knobs."""
        self._idle: list[str] = []
        """Knobs that have no effect unless a tree is verified."""
        self.is_asked = True
        """Whether the server has told its flags."""

    def find(self, level: Level, rule: str, text: str, reason: str = "", remedy: str = "") -> None:
        self.findings.append(Finding(level, rule, text, reason, remedy))

    def apply(self, request: Request) -> None:
        for name, value in request.flags.items():
            flag = name.removeprefix("--")
            self.line.set(flag, value)
            self._set[ChangeKind.FLAG, self.line.canonical(flag)] = value
        for name, text in request.environment.items():
            self._set_variable(name, text)
            self._set[ChangeKind.ENVIRONMENT, name] = text
        # The algorithm decides what the other knobs are.
        knobs = sorted(request.knobs.items(), key=lambda item: knob_name(item[0]) != "algorithm")
        for written, value in knobs:
            knob = knob_name(written)
            if knob is None:
                near = nearest_knob(written)
                hint = f"; did you mean {near}?" if near else ""
                self.find(
                    Level.ERROR,
                    "unknown-knob",
                    f"there is no knob {written!r}{hint}",
                    remedy=f"knobs: {', '.join(KNOBS)}; any other flag goes under flags",
                )
                continue
            self._turn(knob, value)
        self._tell_idle()

    def _turn(self, knob: str, value: Value) -> None:
        if knob == "algorithm" and knob not in self._overrides and self._switch_tree(value):
            return
        try:
            targets = targets_of(
                knob,
                line=self.line,
                server=self._server,
                dialect=self._dialect,
                overrides=self._overrides,
            )
        except NoTarget as error:
            self._without_flag(knob, error)
            return
        for target in targets:
            self._put(knob, target, value)
        if knob in ("budget", "topk", "tree_nodes") and knob in self._dialect.targets:
            self._idle += [knob] * (value is not None and knob not in self._overrides)

    def _without_flag(self, knob: str, error: NoTarget) -> None:
        reason = "a flag that the server does not have would keep it from starting"
        what = str(error)
        if not self.is_asked:
            what = f"which flag {knob} is on this server is not known"
            reason = "neither its help nor its own report could be had: its flags are not known"
        self.find(Level.ERROR, "knob-without-flag", what, reason, error.remedy)

    def _switch_tree(self, value: Value) -> bool:
        """In forks whose tree is a switch of DFLASH, DDTREE is that switch."""
        switch = self._dialect.switch
        if not switch or value not in ("DDTREE", "DFLASH", None):
            return False
        name = None if value is None else self._dialect.algorithm
        self._put("algorithm", Target(ALGORITHM), name)
        turned = Target(switch, note="this server's way to verify a tree")
        self._put("algorithm", turned, True if value == "DDTREE" else None)
        return True

    def _put(self, knob: str, target: Target, value: Value) -> None:
        if target.add and isinstance(value, int) and not isinstance(value, bool):
            value += target.add
        kind = ChangeKind.FLAG if target.flag else ChangeKind.ENVIRONMENT
        name = self.line.canonical(target.flag) if target.flag else target.variable
        if (kind, name) in self._set:
            mine = self._set[kind, name]
            if _shown(mine) != _shown(value):
                self.find(
                    Level.WARNING,
                    "set-twice",
                    f"{knob} would set {target.text} to {_shown(value)}, and the request sets it"
                    f" itself: {_shown(mine)} is kept",
                )
            return
        if target.flag:
            self.line.set(target.flag, value)
        else:
            self._set_variable(name, None if value is None else _text(value))
        self.origin[kind, name] = (knob, target.note)

    def _set_variable(self, name: str, text: str | None) -> None:
        if text is None:
            self.environment.pop(name, None)
        else:
            self.environment[name] = text

    def _tell_idle(self) -> None:
        """Say which knobs a tree would read that is not verified, where a switch turns that on.

        Where the algorithm does, the checks of the launch tell it: of flags set otherwise too.
        """
        switch = self._dialect.switch
        if not self._idle or not switch or is_tree(self.line.values(), self._dialect):
            return
        have = "has" if len(self._idle) == 1 else "have"
        self.find(
            Level.WARNING,
            "tree-off",
            f"{' and '.join(self._idle)} {have} no effect: this configuration verifies no tree",
            f"{self._dialect.title} needs --{switch}",
            'set the knob algorithm = "DDTREE" too',
        )


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else render(value)


def _shown(value: Value) -> str:
    return "not set" if value is None else _text(value)


def _differences(
    before: Launch,
    after: Launch,
    server: ServerFlags,
    origin: Mapping[tuple[ChangeKind, str], tuple[str, str]],
) -> tuple[Change, ...]:
    changes = []
    old, new = (CommandLine(each.argv, server).values() for each in (before, after))
    pairs = (
        (ChangeKind.FLAG, old, new),
        (ChangeKind.ENVIRONMENT, before.environment, after.environment),
    )
    for kind, was, now in pairs:
        for name in [*was, *(each for each in now if each not in was)]:
            if was.get(name) != now.get(name):
                knob, note = origin.get((kind, name), ("", ""))
                early, late = _safe(name, was.get(name)), _safe(name, now.get(name))
                changes.append(Change(kind, name, early, late, knob, note))
    return tuple(changes)


def _safe(name: str, text: str | None) -> str | None:
    """A value as it may be shown and stored."""
    if text in (None, "", "true", "false"):
        return text
    return MASK if is_secret_name(name) else redact_text(str(text))
