"""The controller of a watched host."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from ddtui.app.live import Watched
from ddtui.app.preset_source import presets_for
from ddtui.config.paths import cache_folder
from ddtui.control.controller import Controller, NoUnit
from ddtui.control.host_actions import UnitActions
from ddtui.control.journal import ChangeStore
from ddtui.control.planner import Planner
from ddtui.control.reconfiguration import Limits
from ddtui.core.samples import Collector, SourceStatus

if TYPE_CHECKING:
    from ddtui.config.load import Loaded
    from ddtui.core.load_history import LoadHistory
    from ddtui.core.snapshot import Snapshot


def controller_for(
    source: Watched,
    loaded: Loaded,
    store: ChangeStore,
    limits: Limits | None = None,
    past: LoadHistory | None = None,
) -> Controller:
    """The controller of a watched host; `past`: its earlier loads, else those that it gets."""
    settings = source.settings
    mapping = presets_for(loaded, source.name).mapping(source.target.options.knobs)

    def actions() -> UnitActions:
        unit = source.unit_name()
        if not unit:
            raise no_unit(source.name, source.snapshot_now())
        return UnitActions(source.host, settings.scope, unit, settings.nvidia_smi)

    cache = None if source.host.simulated else cache_folder()
    past = source.past_loads if past is None else past
    planner = Planner(source.host, settings, cache=cache, knobs=mapping, past=past)
    options = _options_of(source)
    return Controller(actions, source.watching(), planner, store, limits=limits, options=options)


def no_unit(host: str, snapshot: Snapshot) -> NoUnit:
    """There is no unit to change: as none can be looked for, or none is known."""
    looking = snapshot.sources.get(Collector.UNIT)
    if looking is not None and looking.status in _CANNOT_LOOK and looking.detail:
        return NoUnit(looking.detail, looking.remedy)
    remedy = "name it with --unit, or in the host's section of the configuration"
    return NoUnit(f"no unit of {host} is known that runs the engine", remedy)


_CANNOT_LOOK = frozenset({SourceStatus.ABSENT, SourceStatus.FAILED})


def _options_of(source: Watched) -> str:
    """What names the unit on a command line, where that is not the one of the configuration."""
    settings, configured = source.settings, source.target.options
    words = []
    if settings.unit and settings.unit != source.target.unit:
        words += ["--unit", settings.unit]
    if (settings.scope == "user") != bool(configured.user_unit):
        words.append("--user-unit" if settings.scope == "user" else "--system-unit")
    return shlex.join(words)
