"""What is told of a runner that a logout would end."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from ddtui.cli import run_session

INSIDE = "9:name=systemd:/\n0::/user.slice/user-1501.slice/session-1174.scope\n"
MANAGED = "0::/user.slice/user-1501.slice/user@1501.service/app.slice/run-r1.scope\n"


@pytest.mark.parametrize(
    ("groups", "said", "ends"),
    [
        (INSIDE, 'b true\nas 0\nas 1 "root"\n', True),
        (INSIDE, 'b false\nas 0\nas 1 "root"\n', False),
        (INSIDE, 'b true\nas 0\nas 2 "root" "ada"\n', False),
        (INSIDE, 'b true\nas 1 "bob"\nas 0\n', False),
        (INSIDE, 'b true\nas 1 "ada"\nas 0\n', True),
        (INSIDE, "", False),
        (INSIDE, None, False),
        (MANAGED, 'b true\nas 0\nas 1 "root"\n', False),
    ],
)
def test_what_a_logout_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, groups: str, said: str | None, ends: bool
) -> None:
    def asked(*_: Any, **__: Any) -> Any:
        if said is None:
            raise FileNotFoundError("busctl")
        return subprocess.CompletedProcess([], 0, stdout=said)

    monkeypatch.setattr(subprocess, "run", asked)
    monkeypatch.setattr("getpass.getuser", lambda: "ada")
    (tmp_path / "cgroup").write_text(groups)
    assert run_session.ends_with_login(tmp_path / "cgroup") is ends
    assert not run_session.ends_with_login(tmp_path / "none")


def test_how_it_goes_on_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run_session, "ends_with_login", lambda: True)
    run_session.warn_of_logout("local")
    said = capsys.readouterr().err
    stop, start = "ddtui run local --stop", "systemd-run --user --scope ddtui run local --detach"
    assert -1 < said.find(stop) < said.find(start)  # a second one is refused while this one runs
