"""`ddtui apply --dry-run`: its last line and its exit status agree."""

from __future__ import annotations

from ddtui.cli.exit_codes import ExitCode
from tests.unit.cli.conftest import Run


def test_warnings_do_not_sound_like_a_refusal_or_like_none(run: Run) -> None:
    warned = run("apply", "demo", "--set", "block_size=16", "--dry-run")
    assert warned.exit_code == ExitCode.OK
    assert "warning: " in warned.stderr
    last = warned.stderr.splitlines()[-1]
    assert last.startswith("--dry-run: nothing was changed; it would be carried out, and ")
    assert last.endswith("what may go wrong")


def test_what_is_refused_is_not_said_to_be_carried_out(run: Run) -> None:
    refused = run("apply", "demo", "--set", "flag:mem-fraction-static=many", "--dry-run")
    assert refused.exit_code == ExitCode.BLOCKED
    assert "the server would exit with status 2 at once" in refused.stderr
    assert "--dry-run:" not in refused.stderr
