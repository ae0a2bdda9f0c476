"""Checks a launch before anything is stopped.

The rules are SGLang's own coupling rules (0.5.23, `arg_groups/speculative_hook.py`), those of its
DDTree forks, and what the host has. Each is a small function: flags in `check_flags`, speculation
in `check_speculation`, memory, ports and disks in `check_resources`.
"""

from __future__ import annotations

from ddtui.core.launch import Finding, Level, Limits
from ddtui.engines.sglang import check_flags, check_resources, check_speculation
from ddtui.engines.sglang.check_context import RULES, CheckContext, View
from ddtui.engines.sglang.command import NotEditable

__all__ = ["PARTS", "CheckContext", "check", "limits"]

PARTS = (check_flags, check_speculation, check_resources)
"""The modules whose rules are registered by importing them."""

_ORDER = {Level.ERROR: 0, Level.WARNING: 1, Level.NOTE: 2}


def check(context: CheckContext) -> tuple[Finding, ...]:
    """Everything that stands against a launch or is worth knowing of it, errors first."""
    try:
        view = View(context)
    except NotEditable as error:
        return (
            Finding(
                Level.ERROR,
                "command-not-editable",
                str(error),
                "what the engine is started with cannot be seen, so nothing can be checked",
            ),
        )
    found = [finding for rule in RULES.values() for finding in rule(view)]
    return tuple(sorted(found, key=lambda finding: _ORDER[finding.level]))


def limits(context: CheckContext) -> Limits:
    """What a launch and its drafter bear, as far as it is known."""
    try:
        view = View(context)
    except NotEditable:
        return Limits()
    return Limits(
        trained_block=view.trained_block,
        max_running=view.max_running(view.values),
        graph_widths=check_resources.graph_widths(view),
    )
