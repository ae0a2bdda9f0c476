"""A right that is missing in the middle of a change: what the operator is told to add."""

from __future__ import annotations

from typing import cast

import pytest

from ddtui.cli.change_report import record_lines
from ddtui.cli.output import Paint
from ddtui.control.host_actions import RightMissing, UnitActions
from ddtui.core.change_record import ChangeRecord, StepRecord
from ddtui.hosts.base import Completed, Host, Program

UNIT = "engine.service"


class NoSudo:
    """A host that lets its operator look, and nothing else."""

    name = "ct200"

    def __init__(self, said: str = "sudo: a password is required") -> None:
        self.said = said

    async def run(self, program: Program, *_args: str, **_: object) -> Completed:
        """See Host."""
        if program.label == "ddtui:unit-files":
            return Completed(0, b"@user ops 1000 /home/ops\n@end\n", b"")
        return Completed(1, b"", self.said.encode())


async def test_the_lines_name_the_login_and_stay_lines() -> None:
    actions = UnitActions(cast(Host, NoSudo()), "system", UNIT)
    await actions.read()
    with pytest.raises(RightMissing) as caught:
        await actions.write("[Service]\n", "")
    lines = caught.value.lines
    assert len(lines) == 3
    assert all(line.startswith("ops ALL=(root) NOPASSWD: /usr/bin/") for line in lines)

    cause = {"title": caught.value.what, "remedy": caught.value.remedy}
    record = ChangeRecord(
        id="1",
        kind="apply",
        host="ct200",
        unit=UNIT,
        scope="system",
        who="me",
        began=0.0,
        ended=1.0,
        ending="failed",
        cause=cause,
        steps=(StepRecord(step="written", at=0.5),),
    )
    shown = [line.strip() for line in record_lines(record, Paint())]
    assert [line for line in shown if line in lines] == list(lines)


async def test_where_sudo_wants_a_terminal_rules_are_not_what_is_missing() -> None:
    host = NoSudo("sudo: sorry, you must have a tty to run sudo")
    actions = UnitActions(cast(Host, host), "system", UNIT)
    await actions.read()
    with pytest.raises(RightMissing) as caught:
        await actions.write("[Service]\n", "")
    assert caught.value.lines == ("Defaults:ops !requiretty",)
