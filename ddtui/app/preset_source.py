"""The presets that a verb works with: built in, the user's, and those of the working folder."""

from __future__ import annotations

import msgspec

from ddtui.config.load import Loaded
from ddtui.config.model import DEMO
from ddtui.config.presets import Presets, load_presets


def presets_for(loaded: Loaded, host: str = "") -> Presets:
    """The presets for a host; for all hosts without one. Raises ConfigError.

    The built-in ones are for the simulated host; elsewhere only those that others extend are left.
    """
    from ddtui.demo.presets import DEMO_PRESETS, SOURCE

    found = load_presets(loaded, built_in={SOURCE: DEMO_PRESETS})
    if host in ("", DEMO):
        return found
    own = [name for name, preset in found.by_name.items() if preset.source != SOURCE]
    used = {each.name for name in own for each in found.chain(name)}
    kept = {name: preset for name, preset in found.by_name.items() if name in used}
    return msgspec.structs.replace(found, by_name=kept)


def host_of_source(source: str) -> str:
    """The only host that presets of a source are for; empty for every host."""
    from ddtui.demo.presets import SOURCE

    return DEMO if source == SOURCE else ""
