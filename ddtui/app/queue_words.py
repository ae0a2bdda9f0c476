"""What operators type into the Queue screen's lines: presets, values, plans, what to take away."""

from __future__ import annotations

import shlex

import msgspec

from ddtui.app.preset_source import presets_for
from ddtui.app.queue_asked import names_to_unset, plan_named
from ddtui.config.assignments import parse_assignments
from ddtui.config.errors import ConfigError
from ddtui.config.load import Loaded
from ddtui.config.presets import merged
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.launch import Request

CONTROL_WORD = "control"


class Typed(msgspec.Struct, frozen=True, kw_only=True):
    """A line that was read."""

    request: Request
    plan: BenchPlan | None = None
    """None where no plan is named."""
    without: tuple[str, ...] = ()
    """Names of knobs, flags and variables that are asked for no more."""
    control: bool = False

    @property
    def empty(self) -> bool:
        """Whether nothing was asked for."""
        return self.request == Request() and self.plan is None and not self.without


def read_line(
    loaded: Loaded,
    host: str,
    text: str,
    *,
    preset: bool = False,
    without: bool = False,
    control: bool = False,
) -> Typed:
    """`[PRESET] NAME=VALUE ... [plan=NAME]`; raises ConfigError.

    Args:
        loaded: The configuration.
        host: Whose presets count.
        text: The line.
        preset: Whether a preset's name may stand in it.
        without: Whether `-NAME` may stand in it.
        control: Whether the word `control` may.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:  # a quotation mark that is not closed
        raise ConfigError.of(str(error)) from error
    plans = [each.partition("=")[2] for each in words if each.startswith("plan=")]
    if len(plans) > 1:
        raise ConfigError.of("names two plans; expected one plan=NAME")
    rest = [each for each in words if not each.startswith("plan=")]
    has_control = control and CONTROL_WORD in rest
    rest = [each for each in rest if not (control and each == CONTROL_WORD)]
    gone = [each for each in rest if without and each.startswith("-") and "=" not in each]
    rest = [each for each in rest if each not in gone]
    names = [each for each in rest if preset and "=" not in each]
    if len(names) > 1:
        raise ConfigError.of(f"names two presets: {names[0][:40]} and {names[1][:40]}")
    over = parse_assignments([each for each in rest if each not in names])
    base = presets_for(loaded, host).request(names[0]) if names else None
    return Typed(
        request=over if base is None else merged(base, over),
        plan=plan_named(loaded, plans[0] if plans else None),
        without=names_to_unset(each.lstrip("-") for each in gone),
        control=has_control,
    )
