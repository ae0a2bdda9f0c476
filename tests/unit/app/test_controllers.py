"""What is told where there is no unit to change."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ddtui.app.controllers import no_unit
from ddtui.core.samples import Collector, SourceStatus
from tests.ui import scenes


@pytest.mark.parametrize(
    ("status", "what", "remedy"),
    [
        (SourceStatus.ABSENT, "no systemd here", "it needs systemd"),
        (SourceStatus.FAILED, "no systemd here", "it needs systemd"),
        (SourceStatus.LIVE, "no unit of ct200 is known", "name it with --unit"),
        (SourceStatus.WAITING, "no unit of ct200 is known", "name it with --unit"),
    ],
)
def test_why_there_is_none_is_told_where_none_can_be_looked_for(
    status: SourceStatus, what: str, remedy: str
) -> None:
    live = scenes.live()
    looking = replace(
        live.sources[Collector.GPU],
        status=status,
        detail="no systemd here",
        remedy="it needs systemd",
    )
    snapshot = replace(live, sources={**live.sources, Collector.UNIT: looking})
    problem = no_unit("ct200", snapshot)
    assert what in problem.what
    assert remedy in problem.remedy
