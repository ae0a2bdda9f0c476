"""In what the launches that were measured on a unit differ. Pure.

An experiment says what is to be changed of what was in force when its queue began. Its own values
alone do not bring its configuration back, once the unit has been left in another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ddtui.core.configuration_key import flags_of
from ddtui.core.experiment import Experiment
from ddtui.core.launch import Request, Value
from ddtui.core.measurement import Measurement
from ddtui.core.redact import is_secret_name


class LaunchDifferences(msgspec.Struct, frozen=True):
    """What differs among the launches that were measured on one unit."""

    flags: dict[str, frozenset[str]] = {}
    """Flags, each with the knobs that have its value wherever it is given."""
    variables: frozenset[str] = frozenset()
    """Variables that an experiment has asked for, and that differ."""

    def completed(self, request: Request, measured: Measurement | None) -> Request:
        """A request with what it leaves to the launch that it was made on, as it was measured.

        Only what differs elsewhere is added: the rest is as the unit has it.
        """
        if measured is None or not measured.provenance.argv:
            return request
        given, told = flags_of(measured.provenance.argv), measured.provenance.environment
        flags: dict[str, Value] = {
            name: (given[name] or True) if name in given else None
            for name, knobs in self.flags.items()
            if name not in request.flags and knobs.isdisjoint(request.knobs)
        }
        variables = {
            name: told.get(name) for name in sorted(self.variables - request.environment.keys())
        }
        return msgspec.structs.replace(
            request,
            flags={**request.flags, **flags},
            environment={**request.environment, **variables},
        )


def launch_differences(
    measurements: Sequence[Measurement], experiments: Sequence[Experiment]
) -> dict[str, LaunchDifferences]:
    """By unit, of what was measured on a host and whatever was asked for there."""
    units = dict.fromkeys(each.unit for each in measurements)
    return {
        unit: _of_unit((each for each in measurements if each.unit == unit), experiments)
        for unit in units
    }


def _of_unit(
    measurements: Iterable[Measurement], experiments: Sequence[Experiment]
) -> LaunchDifferences:
    told = [each for each in measurements if each.provenance.argv]
    known = [(flags_of(each.provenance.argv), each.knobs) for each in told]
    names = dict.fromkeys(name for flags, _ in known for name in flags)
    differing = {
        name: _knobs_of(name, known)
        for name in names
        if not is_secret_name(f"--{name}") and len({flags.get(name) for flags, _ in known}) > 1
    }
    variables = frozenset(
        name
        for name in {name for each in experiments for name in each.request.environment}
        if not is_secret_name(name)
        and len({each.provenance.environment.get(name) for each in told}) > 1
    )
    return LaunchDifferences(differing, variables)


def _knobs_of(
    flag: str, known: Sequence[tuple[Mapping[str, str], Mapping[str, str]]]
) -> frozenset[str]:
    with_it = [(flags[flag], knobs) for flags, knobs in known if flag in flags]
    return frozenset(
        name for name in with_it[0][1] if all(knobs.get(name) == value for value, knobs in with_it)
    )
