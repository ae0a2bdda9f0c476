from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec.structs import replace as replace_struct

from ddtui.core.events import Phase
from ddtui.core.log_buffer import LogBuffer
from ddtui.core.samples import JournalLine
from ddtui.ui.log_filter import (
    BadPattern,
    Bars,
    Level,
    LogFilter,
    Starts,
    compile_search,
    is_poll,
)
from ddtui.ui.log_lag import Lag
from ddtui.ui.log_lines import LogLines
from ddtui.ui.screens.log_choices import rank_choices
from ddtui.ui.shown import Shown
from tests.ui.log_world import EARLIER, PlainEngine, line, many
from tests.ui.scenes import INVOCATION, NOW, SCENES


class World:
    """A buffer that grows, and the lines read from it."""

    def __init__(self, *lines: JournalLine, capacity: int = 20_000) -> None:
        self.buffer = LogBuffer(capacity)
        self.engine = PlainEngine()
        self.lines = LogLines(self.engine)  # type: ignore[arg-type]
        self.lines.attach(self.buffer, INVOCATION)
        self.add(*lines)

    def add(self, *lines: JournalLine) -> None:
        self.buffer.extend(lines)
        self.settle()

    def settle(self) -> None:
        while self.lines.busy:
            self.lines.step(1.0)
            self.lines.publish()
        self.lines.publish()

    def narrow(self, **changes: object) -> list[str]:
        self.lines.set_filter(replace(LogFilter(), **changes))  # type: ignore[arg-type]
        self.settle()
        return self.texts

    def find(self, text: str, *, regex: bool = False) -> list[int]:
        self.lines.set_search(compile_search(text, regex=regex))
        self.settle()
        return self.lines.matches

    @property
    def texts(self) -> list[str]:
        return [each.text for each in self.lines.shown if not each.separator]


def test_new_lines_are_labelled_once_and_only_they() -> None:
    world = World(*many(20_000))
    assert world.engine.labelled == 20_000
    world.add(*many(125, 20_000))
    assert world.engine.labelled == 20_125
    world.narrow(least=Level.WARNING)
    assert world.engine.labelled == 20_125


def test_a_full_ring_forgets_what_the_buffer_forgot() -> None:
    world = World(*many(1_000), capacity=1_000)
    world.find("line 5", regex=False)
    world.add(*many(400, 1_000))
    assert world.lines.total == world.lines.count == 1_000
    assert world.lines.shown[0].number == 400
    assert world.lines.dropped == 400
    assert sum(world.lines.ranks.values()) == 1_000
    assert world.lines.matches == list(range(500, 600))
    # Read and forgotten between two looks: nothing is asked for twice.
    world.add(*many(5_000, 1_400))
    assert [world.lines.shown[0].number, world.lines.shown[-1].number] == [5_400, 6_399]


def test_levels_ranks_phases_and_text_filter() -> None:
    world = World(
        line("Started llm.service", from_manager=True),
        line("[2026-09-21 14:13:12 TP0] begin loading target"),
        line("[2026-09-21 14:13:12 TP1] warning: slow disk"),
        line("RuntimeError: out of memory"),
        line("fired up and ready"),
        line('INFO: 127.0.0.1:5 - "GET /health HTTP/1.1" 200 OK'),
        line('INFO: 127.0.0.1:5 - "POST /generate HTTP/1.1" 200 OK'),
        line("debug: allocator"),
    )
    world.narrow(noise=True)
    every = world.texts
    assert [each.level.letter for each in world.lines.shown] == list("IIWEIIID")
    assert world.narrow(least=Level.ERROR) == ["RuntimeError: out of memory"]
    assert world.narrow(least=Level.WARNING) == every[2:4]
    assert world.narrow(rank="TP1") == every[2:3]
    assert world.narrow(rank="", noise=True) == [every[0], *every[3:]]
    assert world.narrow(phase=Phase.TARGET) == every[1:4]
    assert world.narrow(phase=Phase.READY, noise=True) == every[4:]
    assert world.narrow(noise=False) == [*every[:5], *every[6:]]
    assert world.lines.polls == 1
    pattern = compile_search("memory", regex=False)
    assert world.narrow(text=pattern) == every[3:4]
    assert world.narrow(text=pattern, without=True, noise=True) == every[:3] + every[4:]
    assert dict(world.lines.ranks) == {"": 6, "TP0": 1, "TP1": 1}
    assert dict(world.lines.phases) == {Phase.TARGET: 3, Phase.READY: 4}


def test_totals_are_the_same_wherever_they_are_told() -> None:
    """The newest state of a progress bar is one line, for footer, ranks and phases alike."""
    poll = line('INFO: 127.0.0.1:5 - "GET /health HTTP/1.1" 200 OK')
    world = World(
        line("begin loading target"),
        line("shards 10%", bar=True),
        line("shards 20%", bar=True),
        poll,
        line("shards 30%", bar=True),
        line("[2026-09-21 14:13:12 TP0] between"),
        line("shards 40%", bar=True),
        line("other 10%", bar=True, pid=43),
    )

    def totals() -> tuple[int, int, int]:
        ranks, phases = world.lines.ranks, world.lines.phases
        assert sum(ranks.values()) == sum(phases.values()) == world.lines.total
        return world.lines.total, world.lines.count, len(world.texts)

    assert totals() == (6, 5, 5)  # the poll is not shown
    world.narrow(noise=True)
    assert totals() == (7, 7, 7)
    world.narrow(bars=Bars.ALL, noise=True)
    assert totals() == (8, 8, 8)
    world.narrow(text=compile_search("%", regex=False))
    assert totals() == (6, 2, 2)
    world.add(*many(3_000))
    world.narrow()
    assert totals() == (3_006, 3_005, 3_005)


def test_totals_forget_what_the_buffer_forgot() -> None:
    world = World(*(line(f"shards {at}%", bar=True) for at in range(50)), capacity=20)
    assert world.lines.total == world.lines.count == 1
    world.add(*many(19))
    assert world.lines.total == sum(world.lines.ranks.values()) == world.lines.count == 20
    world.add(*many(1, 19))
    assert world.lines.total == sum(world.lines.ranks.values()) == 20


def test_starts_are_kept_apart() -> None:
    world = World(
        line("old one", invocation=EARLIER),
        line("old two", invocation=EARLIER),
        line("no start", invocation=""),
        line("new one"),
    )
    separators = [each.separator for each in world.lines.shown if each.separator]
    assert len(separators) == 0  # a line of no start stands between them
    world = World(line("old", invocation=EARLIER), line("new one"), line("new two"))
    assert [bool(each.separator) for each in world.lines.shown] == [False, True, False, False]
    assert world.lines.count == 3
    assert world.narrow(starts=Starts.THIS) == ["new one", "new two"]
    assert world.narrow(starts=Starts.EARLIER) == ["old"]
    # Another start begins: what was the present is now an earlier one.
    world.lines.attach(world.buffer, "f" * 32)
    world.add(line("newest", invocation="f" * 32))
    assert world.texts == ["old", "new one", "new two"]


def test_a_bar_shows_its_latest_state_in_place() -> None:
    bars = [line(f"Loading shards: {done}%", bar=True) for done in (10, 20, 30)]
    world = World(line("before"), *bars[:2])
    assert world.texts == ["before", "Loading shards: 20%"]
    world.add(bars[2])
    assert world.texts == ["before", "Loading shards: 30%"]
    assert world.lines.count == world.lines.total == 2
    world.add(line("after"), line("Capturing: 1/8", bar=True), line("other", bar=True, pid=43))
    assert world.texts[2:] == ["after", "Capturing: 1/8", "other"]
    assert len(world.narrow(bars=Bars.ALL)) == 7
    assert world.narrow(bars=Bars.NONE) == ["before", "after"]


def test_a_search_follows_a_bar_that_is_replaced() -> None:
    world = World(line("before"), line("bar 10%", bar=True))
    assert world.find("10%") == [1]
    world.add(line("bar 20%", bar=True))
    assert world.lines.matches == []
    world.add(line("bar 10%", bar=True))
    assert world.lines.matches == [3]


def test_search_goes_round_and_counts() -> None:
    world = World(*many(50))
    assert world.find("line 1") == [1, *range(10, 20)]
    assert world.lines.match_after(1, 1) == 10
    assert world.lines.match_after(19, 1) == 1
    assert world.lines.match_after(1, -1) == 19
    assert world.lines.match_after(15, -1) == 14
    assert world.lines.match_position(10) == 2
    assert world.lines.match_position(20) is None
    world.add(*many(60, 50)[50:])
    assert world.lines.matches[-10:] == list(range(50, 60))
    assert world.find("nothing of the kind") == []
    assert world.lines.match_after(1, 1) is None


def test_case_matters_only_where_it_is_typed() -> None:
    assert compile_search("error", regex=False).search("An Error")
    assert not compile_search("Error", regex=False).search("an error")
    assert compile_search("a.c", regex=False).search("abc") is None
    assert compile_search("a.c", regex=True).search("abc")


@pytest.mark.parametrize("text", ["(", "[a", "*", "a{9999999999999}", "(?P<x>a)(?P<x>b)", "\\"])
def test_a_bad_regular_expression_says_why(text: str) -> None:
    with pytest.raises(BadPattern, match=r"^regex: "):
        compile_search(text, regex=True)


def test_work_stops_in_time_and_is_taken_up_again() -> None:
    world = World()
    world.buffer.extend(many(5_000))
    assert world.lines.step(0.0)
    assert 0 < world.engine.labelled < 5_000
    world.lines.publish()
    first = world.lines.count
    world.lines.set_filter(LogFilter(rank="TP1"))
    while world.lines.step(0.0):
        assert world.lines.count == first  # the old lines stay until all new ones are found
    world.lines.publish()
    assert world.lines.count == 5_000 // 8


def test_lines_that_arrive_while_filtering_are_neither_lost_nor_doubled() -> None:
    world = World(*many(1_000))
    world.lines.set_filter(LogFilter(rank="TP1"))
    world.lines.step(0.0)
    world.buffer.extend(many(1_000, 1_000))
    world.lines.step(0.0)
    world.lines.publish()
    world.settle()
    numbers = [each.number for each in world.lines.shown]
    assert numbers == list(range(1, 2_000, 8))


def test_another_buffer_keeps_filter_and_search() -> None:
    world = World(*many(100))
    world.narrow(rank="TP1")
    world.find("line 1")
    other = LogBuffer()
    other.extend(many(40))
    world.lines.attach(other, INVOCATION)
    world.settle()
    assert world.lines.filter.rank == "TP1"
    assert [each.number for each in world.lines.shown] == [1, 9, 17, 25, 33]
    assert world.lines.matches == [1, 17]


def test_ranks_are_offered_by_number() -> None:
    counts = {"TP10": 1, "TP2": 3_000, "": 5, "DP1 TP0": 1}
    offered = [(each.id, each.note) for each in rank_choices(counts)]
    assert offered == [
        ("all", ""),
        ("=", "5"),
        ("=DP1 TP0", "1"),
        ("=TP2", "3,000"),
        ("=TP10", "1"),
    ]


def test_what_is_left_out_is_said() -> None:
    narrow = LogFilter(
        least=Level.WARNING,
        rank="",
        phase=Phase.GRAPHS,
        starts=Starts.EARLIER,
        bars=Bars.NONE,
        noise=True,
        text=compile_search("x", regex=False),
        without=True,
    )
    assert narrow.words() == [
        "warning+",
        "rank none",
        "capturing graphs",
        "earlier starts",
        "no bars",
        "with polls",
        "without text",
    ]
    assert LogFilter().words() == []


def test_hostile_text_is_cleaned_and_capped() -> None:
    world = World(
        line("\x1b[31mred\x1b[0m \x1b]52;c;eA==\x07end"),
        line("right\u202eleft\u200b\ufeff"),
        line("❤\ufe0f"),
        line("x" * 90_000),
    )
    red, turned, heart, long = world.texts
    assert red == "red end"
    assert turned == "rightleft"
    assert heart == "❤"
    assert len(long) == 8_000


@pytest.mark.parametrize(
    ("text", "poll"),
    [
        ('INFO:     127.0.0.1:51234 - "GET /metrics HTTP/1.1" 200 OK', True),
        ('INFO:     127.0.0.1:51234 - "GET /v1/loads?dp_rank=0 HTTP/1.1" 200 OK', True),
        ('INFO:     127.0.0.1:51234 - "GET /server_info HTTP/1.1" 200 OK', True),
        ('INFO:     127.0.0.1:51234 - "GET /health HTTP/1.1" 503 Service Unavailable', False),
        ('INFO:     127.0.0.1:51234 - "GET /metricsque HTTP/1.1" 200 OK', False),
        ('INFO:     127.0.0.1:51234 - "POST /v1/chat/completions HTTP/1.1" 200 OK', False),
        ('he said "GET /metrics" 200', False),
    ],
)
def test_only_answered_polls_are_noise(text: str, poll: bool) -> None:
    assert is_poll(text) is poll
    assert World(line(text)).texts == ([] if poll else [text])


def test_a_line_that_breaks_the_engine_is_shown_without_labels(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken(PlainEngine):
        def severity(self, text: str, priority: int | None) -> str:
            if "bad" in text:
                raise RecursionError("too deep")
            return super().severity(text, priority)

    world = World()
    world.lines = LogLines(Broken())  # type: ignore[arg-type]
    world.lines.attach(world.buffer, INVOCATION)
    world.add(line("bad one"), line("an error"), line("bad two"))
    assert world.texts == ["bad one", "an error", "bad two"]
    assert [each.level for each in world.lines.shown] == [Level.INFO, Level.ERROR, Level.INFO]
    assert len(caplog.records) == 1
    assert "bad one" in caplog.text


def test_a_log_that_is_read_later_than_it_is_written_says_by_how_much() -> None:
    lag, buffer = Lag(), LogBuffer()
    shot = replace_struct(SCENES["live"](NOW), log=buffer)

    def seconds(now: float) -> float | None:
        return lag.seconds(Shown(shot, now, shot.link))

    assert seconds(NOW) is None  # no line at all
    buffer.extend([line("fresh", at=-1.0)])
    assert seconds(NOW) is None
    buffer.extend([line("late", at=-30.0)])
    skew = shot.system.clock_skew or 0.0 if shot.system else 0.0
    assert seconds(NOW) == pytest.approx(30.0 + skew)
    assert lag.words(Shown(shot, NOW, shot.link)) == "30 s behind"
    assert seconds(NOW + 10.0) is None  # nothing arrives any more: it is not behind, it is quiet


def test_time_that_is_over_right_after_the_last_line_keeps_no_dropped_ones() -> None:
    world = World(*many(100), capacity=100)
    world.buffer.extend(many(50, 100))
    # As many as are read before the next look at the clock, and no time for more.
    assert world.lines.step(-1.0)
    assert not world.lines.busy
    world.lines.publish()
    assert world.lines.total == 100
    assert world.lines.shown[0].number == 50
