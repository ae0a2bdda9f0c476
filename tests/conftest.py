"""What holds for all tests."""

from __future__ import annotations

from hypothesis import settings

# No test fails for being slow: machines are shared, and time is for the benchmarks.
settings.register_profile("ddtui", deadline=None)
settings.load_profile("ddtui")
