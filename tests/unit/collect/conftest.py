from __future__ import annotations

import pytest

from ddtui.collect.base import Context
from ddtui.collect.observed import Observed
from ddtui.engines.sglang import SGLANG
from tests.unit.collect.fakes import FakeHost, ImpatientNudge, Recorder, unit


@pytest.fixture
def host() -> FakeHost:
    return FakeHost()


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def context() -> Context:
    return Context(clock=lambda: 1000.0, nudge=ImpatientNudge())


@pytest.fixture
def observed(recorder: Recorder) -> Observed:
    observed = Observed(SGLANG)
    observed.apply(unit("1"))
    recorder.forward = observed.apply
    return observed
