"""Commands that an operator is told may be typed as they stand."""

from __future__ import annotations

import pytest

from ddtui.cli.doctor.engine import _unit
from ddtui.collect.settings import Scope
from ddtui.control.by_hand import by_hand
from ddtui.control.differences import stopped_with_it
from ddtui.control.unit_files import parse_unit_files
from ddtui.core.samples import UnitStatus

NAME = r"llm@gpu\x2d0.service"


@pytest.mark.parametrize(
    ("scope", "begins"), [("system", "sudo systemctl"), ("user", "systemctl --user")]
)
def test_it_is_for_the_units_manager_and_its_name_is_quoted(scope: Scope, begins: str) -> None:
    shown = b"LoadState=masked"
    said = b"@user ops 1501 /home/ops\n@with - %s\n@show %d -\n%s\n@end\n"
    text = parse_unit_files(said % (NAME.encode(), len(shown), shown), NAME, scope)
    assert text.trouble is not None
    assert text.trouble.remedy == rf"on the host: {begins} unmask '{NAME}'"
    (told,) = stopped_with_it(text)
    assert told.remedy == rf"afterwards: {begins} start '{NAME}'"
    assert by_hand(scope, "daemon-reload") == f"{begins} daemon-reload"
    state = UnitStatus(NAME, "loaded", "inactive", "dead", "success", 0, "")
    assert _unit(state, "gpu", scope).remedy == f"{begins} start '{NAME}'"
