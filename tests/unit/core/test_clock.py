from ddtui.core.clock import SteadyClock


class Clocks:
    def __init__(self) -> None:
        self.wall, self.steady = 5000.0, 100.0

    def pass_(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds


def test_a_clock_that_is_set_back_does_not_make_time_go_back() -> None:
    clocks = Clocks()
    now = SteadyClock(lambda: clocks.wall, lambda: clocks.steady)
    assert now() == 5000.0
    clocks.pass_(10.0)
    clocks.wall -= 3600.0
    assert now() == 5010.0
    clocks.pass_(1.0)
    assert now() == 5011.0


def test_a_clock_that_is_set_forward_is_followed() -> None:
    clocks = Clocks()
    now = SteadyClock(lambda: clocks.wall, lambda: clocks.steady)
    clocks.wall += 60.0
    assert now() == 5060.0
