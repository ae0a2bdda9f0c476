"""What a queue's times are guessed from before anything was measured."""

from __future__ import annotations

from typing import Any, cast

import pytest

from ddtui.cli import queue_known
from ddtui.cli.queue_known import Kept, Known
from ddtui.core.experiment import QueueSettings
from ddtui.core.load_history import LoadHistory
from ddtui.core.snapshot import Snapshot


def test_a_guess_does_not_jump_with_every_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that rests for a moment takes no guess away, and a slow moment moves it little."""
    served = iter([None, 100.0, None, 104.0, 12.0])
    monkeypatch.setattr(
        queue_known, "rate_of", lambda _, snapshot: None if snapshot is None else next(served)
    )
    nothing: Any = None
    known = Known(nothing, nothing)
    kept = Kept(
        version=1,
        experiments=[],
        settings=QueueSettings(host="demo"),
        measurements=[],
        loads=LoadHistory(),
        changes=[],
    )
    now = cast("Snapshot", object())
    assert [known._rate(kept, now) for _ in range(5)] == [None, 100.0, 100.0, 102.0, 100.0]
