"""The doctor's word on the sandbox of the coding tests."""

from __future__ import annotations

import shutil

import pytest

from ddtui.cli.doctor import here
from ddtui.cli.doctor.check import Verdict
from tests.unit.bench.sandboxed import found


async def test_a_sandbox_that_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    await found("isolated", monkeypatch)
    (check,) = await here.bubblewrap()
    assert check.verdict is Verdict.OK


async def test_what_is_missing_has_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    (check,) = await here.bubblewrap()
    assert check.verdict is Verdict.WARN
    assert check.detail == "bubblewrap is not installed; the code of coding tasks is not run"
    assert check.remedy == "install the package bubblewrap"
