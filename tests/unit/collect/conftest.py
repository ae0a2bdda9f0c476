from __future__ import annotations

import pytest

from ddtui.collect.base import Context
from tests.unit.collect.fakes import FakeHost, ImpatientNudge, Recorder


@pytest.fixture
def host() -> FakeHost:
    return FakeHost()


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def context() -> Context:
    return Context(clock=lambda: 1000.0, nudge=ImpatientNudge())
