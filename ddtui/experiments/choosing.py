"""Which results are shown, and which of them is the baseline. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from ddtui.core.configuration_key import key_of
from ddtui.core.experiment import Experiment, QueueSettings
from ddtui.core.launch import Launch
from ddtui.experiments.grouping import Group, work_of

SHORTEST_ID = 4
"""Characters of an id's beginning that are enough to name it."""
_SHOWN = 12
"""Titles that an error lists."""


class ResultsError(ValueError):
    """What was asked for is not among the results; the message says what is."""

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy


def experiments_of(group: Group, experiments: Iterable[Experiment]) -> list[Experiment]:
    """The experiments that a group's measurements belong to, reused ones too."""
    ids = {each.id for each in group.members}
    owners = {each.experiment for each in group.members if each.experiment}
    return [each for each in experiments if each.id in owners or each.measurement in ids]


def chosen_baseline(
    groups: Sequence[Group],
    experiments: Sequence[Experiment],
    settings: QueueSettings | None,
    *,
    named: str = "",
    sweep: str = "",
) -> Group | None:
    """The group that the others are compared with; None where nothing was measured.

    In this order: what was named; the experiment that its sweep calls the baseline (the newest of
    several; of another sweep, where `sweep` has none); what was in force when the queue began; what
    was measured first.

    Raises:
        ResultsError: Nothing measured has that name.
    """
    if named:
        return _named(groups, experiments, named)
    inside = [each for each in experiments if not sweep or each.sweep == sweep]
    wanted, among = [each for each in inside if each.baseline], list(groups)
    if sweep and not wanted:  # what another sweep was compared with, if it was asked the same
        work = {work_of(each.first) for each in groups if experiments_of(each, inside)}
        among = [each for each in groups if work_of(each.first) in work]
        wanted = [each for each in experiments if each.baseline]
    for experiment in sorted(wanted, key=lambda each: each.created, reverse=True):
        for group in reversed(among):
            if experiment in experiments_of(group, [experiment]):
                return group
    kept = _in_force_before(settings)
    for group in reversed(groups):
        if kept and group.first.configuration == kept:
            return group
    if sweep:
        return next((each for each in groups if experiments_of(each, inside)), None)
    return groups[0] if groups else None


def in_sweep(
    sweep: str,
    experiments: Sequence[Experiment],
    groups: Sequence[Group],
    baseline: Group | None,
) -> tuple[list[Experiment], list[Group]]:
    """The experiments of a sweep, and what was measured for them; the baseline stays.

    All of them where no sweep is named.

    Raises:
        ResultsError: There is no such sweep.
    """
    if not sweep:
        return list(experiments), list(groups)
    inside = [each for each in experiments if each.sweep == sweep]
    if not inside:
        names = list(dict.fromkeys(each.sweep for each in experiments if each.sweep))
        known = f"known: {_listed(names)}" if names else "no sweep was queued on this host"
        raise ResultsError(f"there is no sweep {sweep[:80]!r}; {known}")
    kept = [each for each in groups if each is baseline or experiments_of(each, inside)]
    return inside, kept


def _in_force_before(settings: QueueSettings | None) -> str:
    """Key of the configuration that was in force when the queue began; empty where none is known.

    A record of another shape is the runner's to complain of; here it only means that none is known.
    """
    found = None if settings is None else settings.baseline.get("launch")
    try:
        launch = msgspec.convert(found, Launch)
    except msgspec.ValidationError:
        return ""
    return key_of(launch)


def _named(groups: Sequence[Group], experiments: Sequence[Experiment], named: str) -> Group:
    exact = named.strip()
    folded = " ".join(exact.casefold().split())
    by_id: dict[str, Group] = {}
    by_title: dict[str, Group] = {}
    for group in groups:
        owners = experiments_of(group, experiments)
        ids = [*(each.id for each in group.members), *(each.id for each in owners)]
        by_id.update(dict.fromkeys([*ids, group.newest.configuration], group))
        called = [*(each.title for each in group.members), *(each.title for each in owners)]
        # The newest of several that are called the same.
        by_title.update((" ".join(title.casefold().split()), group) for title in called if title)
    if exact in by_id:
        return by_id[exact]
    if folded in by_title:
        return by_title[folded]
    near = {id(group): group for key, group in by_id.items() if key.startswith(exact)}
    if len(exact) >= SHORTEST_ID and len(near) == 1:
        return next(iter(near.values()))
    titles = list(dict.fromkeys(each.newest.title for each in groups if each.newest.title))
    raise ResultsError(
        f"nothing measured is called {exact[:80]!r}",
        f"titles: {_listed(titles)}; ids are in `--format json`" if titles else "",
    )


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
