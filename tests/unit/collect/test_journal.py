from __future__ import annotations

import json

import pytest

from ddtui.collect.base import Context
from ddtui.collect.journal import JournalCollector
from ddtui.collect.journal_entries import (
    LONG_LINES,
    LONG_TEXT_LIMIT,
    TEXT_LIMIT,
    JournalReader,
    parse_entry,
)
from ddtui.collect.observed import Observed
from ddtui.collect.programs import JOURNAL, JOURNAL_INVOCATION
from ddtui.collect.settings import HostSettings
from ddtui.core.samples import (
    JournalLine,
    JournalSample,
    SourceSample,
    SourceStatus,
    UnitSample,
    UnitStatus,
)
from ddtui.engines.sglang import SGLANG
from ddtui.hosts.base import Completed
from tests.unit.collect.fakes import FakeHost, Recorder, Script, collecting

INVOCATION = "e6a941403bd343afa98c9e53b071ed10"


def entry(number: int, message: object, **fields: object) -> bytes:
    values: dict[str, object] = {
        "__CURSOR": f"s=1;i={number}",
        "__REALTIME_TIMESTAMP": str(1_700_000_000_000_000 + number * 1000),
        "_SYSTEMD_INVOCATION_ID": INVOCATION,
        "_PID": "91",
        "PRIORITY": "6",
        "MESSAGE": message,
    }
    return json.dumps(values | fields).encode()


def read(*raw: bytes) -> list[JournalLine]:
    return JournalReader().read(raw).lines


class TestEntries:
    def test_a_plain_line(self) -> None:
        assert read(entry(1, "hello")) == [
            JournalLine(1_700_000_000.001, "hello", INVOCATION, 91, 6)
        ]

    def test_bytes_that_are_no_text(self) -> None:
        raw = entry(1, list(b"bad \xff\xfe \x1b[31mred\x1b[0m [@click=app.quit]x[/]"))
        assert [line.text for line in read(raw)] == ["bad �� red [@click=app.quit]x[/]"]

    def test_null_and_repeated_messages(self) -> None:
        assert read(entry(1, None)) == []
        assert [line.text for line in read(entry(1, ["a", "b"]))] == ["a", "b"]
        assert [line.text for line in read(entry(1, ["a", [98, 255]]))] == ["a", "b�"]

    def test_repeated_fields_elsewhere(self) -> None:
        assert [line.text for line in read(entry(1, "x", _PID=["1", "2"]))] == ["x"]

    def test_a_bar_glued_in_front_of_a_line(self) -> None:
        bar = "Loading shards: {0:3d}% Completed | {1}/10 [00:01<00:03,  2.50it/s]"
        text = bar.format(10, 1) + "\r" + bar.format(20, 2) + "[2026-11-29 17:22:19 TP0] line"
        lines = read(entry(1, list(text.encode())))
        assert [line.bar for line in lines] == [True, True, False]
        assert lines[2].text == "[2026-11-29 17:22:19 TP0] line"

    @pytest.mark.parametrize(
        "line", [b"", b"-- No entries --", b'{"__CURSOR":"s=1', b"[]", b"7", b"\xff\xfe"]
    )
    def test_what_is_no_entry(self, line: bytes) -> None:
        assert parse_entry(line) is None

    def test_bytes_that_are_no_utf8_in_the_json_itself(self) -> None:
        raw = entry(1, "hello").replace(b"hello", b"he\xffllo")
        assert [line.text for line in read(raw)] == ["he�llo"]

    def test_secrets_are_gone_even_when_colours_split_them(self) -> None:
        raw = entry(1, list(b"--api-key \x1b[1msk-abcdefghijklmnop\x1b[0m --port 1"))
        assert "sk-abc" not in read(raw)[0].text

    def test_lines_of_the_manager(self) -> None:
        raw = entry(
            1,
            "Started llm.service.",
            UNIT="llm.service",
            INVOCATION_ID=INVOCATION,
            _SYSTEMD_INVOCATION_ID="",
            _PID="1",
        )
        line = read(raw)[0]
        assert line.from_manager
        assert line.invocation == INVOCATION

    def test_lines_of_a_users_manager(self) -> None:
        raw = entry(1, "x", USER_UNIT="a", USER_INVOCATION_ID="u", _SYSTEMD_INVOCATION_ID="other")
        assert read(raw)[0].invocation == "u"

    def test_what_journald_dropped_is_counted(self) -> None:
        raw = entry(
            1,
            "Suppressed 123 messages from llm.service",
            OBJECT_SYSTEMD_UNIT="llm.service",
            N_DROPPED="123",
        )
        assert JournalReader().read([raw]).suppressed == 123
        without_count = raw.replace(b"N_DROPPED", b"X")
        assert JournalReader().read([without_count]).suppressed == 123
        by_the_unit = entry(1, "Suppressed 123 messages from llm.service")
        assert JournalReader().read([by_the_unit]).suppressed == 0

    def test_the_rest_of_a_cut_line_is_marked(self) -> None:
        lines = read(
            entry(1, "x" * 49152, _LINE_BREAK="line-max", _STREAM_ID="a"),
            entry(2, "other", _STREAM_ID="b"),
            entry(3, "y" * 49152, _LINE_BREAK="line-max", _STREAM_ID="a"),
            entry(4, "end", _STREAM_ID="a"),
            entry(5, "new", _STREAM_ID="a"),
        )
        assert [line.continued for line in lines] == [False, False, True, True, False]

    def test_only_the_first_long_lines_are_kept_long(self) -> None:
        reader = JournalReader()
        raw = [entry(number, "x" * 40_000) for number in range(LONG_LINES + 2)]
        lines = reader.read(raw).lines
        assert [len(line.text) for line in lines] == [40_000] * LONG_LINES + [TEXT_LIMIT] * 2
        assert [line.truncated for line in lines] == [False] * LONG_LINES + [True] * 2
        again = reader.read([entry(99, "x" * 60_000, _SYSTEMD_INVOCATION_ID="b" * 32)]).lines
        assert len(again[0].text) == LONG_TEXT_LIMIT
        assert again[0].truncated

    def test_an_entry_that_comes_twice_is_read_once(self) -> None:
        reader = JournalReader()
        assert len(reader.read([entry(1, "a"), entry(2, "b")]).lines) == 2
        batch = reader.read([entry(2, "b"), entry(3, "c")])
        assert [line.text for line in batch.lines] == ["c"]
        assert batch.cursor == "s=1;i=3"

    def test_entries_older_than_a_stamp_are_left_out(self) -> None:
        reader = JournalReader()
        raw = [entry(number, str(number)) for number in range(5)]
        batch = reader.read(raw, newer_than=1_700_000_000.003)
        assert [line.text for line in batch.lines] == ["3", "4"]


class TestCollector:
    def collector(
        self, context: Context, recorder: Recorder, invocation: str = INVOCATION, most: int = 100
    ) -> JournalCollector:
        observed = Observed(SGLANG, unit_name="llm.service")
        recorder.forward = observed.apply
        unit = UnitStatus("llm.service", invocation=invocation, active_state="active")
        observed.apply(UnitSample(0.0, "systemd", unit))
        settings = HostSettings(unit="llm.service", journal_lines=most)
        return JournalCollector(settings, observed, context)

    def texts(self, recorder: Recorder) -> list[str]:
        return [line.text for sample in recorder.of(JournalSample) for line in sample.lines]

    async def test_the_invocation_first_then_what_comes(
        self, host: FakeHost, recorder: Recorder, context: Context
    ) -> None:
        old = b"\n".join(entry(number, str(number)) for number in range(3)) + b"\n"
        host.answers[JOURNAL_INVOCATION.label] = lambda *_: Completed(0, old, b"")
        host.scripts[JOURNAL.label] = [Script([entry(2, "2"), entry(3, "3")], stays=True)]
        async with collecting(self.collector(context, recorder), host, recorder):
            await recorder.until(lambda: "3" in self.texts(recorder))
        assert self.texts(recorder) == ["0", "1", "2", "3"]
        assert host.arguments(JOURNAL_INVOCATION.label) == [
            ("system", "llm.service", INVOCATION, "100", "last")
        ]
        assert host.arguments(JOURNAL.label) == [("system", "llm.service", "s=1;i=2", "100")]

    async def test_a_long_invocation_is_read_from_both_ends(
        self, host: FakeHost, recorder: Recorder, context: Context
    ) -> None:
        def answer(*args: str) -> Completed:
            numbers = range(4) if args[4] == "first" else range(50, 54)
            return Completed(0, b"\n".join(entry(n, str(n)) for n in numbers), b"")

        host.answers[JOURNAL_INVOCATION.label] = answer
        host.scripts[JOURNAL.label] = [Script([entry(54, "54")], stays=True)]
        async with collecting(self.collector(context, recorder, most=4), host, recorder):
            await recorder.until(lambda: "54" in self.texts(recorder))
        texts = self.texts(recorder)
        assert texts[:4] == ["0", "1", "2", "3"]
        assert "were not read" in texts[4]
        assert texts[5:] == ["50", "51", "52", "53", "54"]

    async def test_a_broken_link_neither_loses_nor_repeats_a_line(
        self, host: FakeHost, recorder: Recorder, context: Context
    ) -> None:
        host.scripts[JOURNAL.label] = [
            Script([entry(1, "1"), entry(2, "2")], breaks=True),
            Script([entry(2, "2"), entry(3, "3")], status=1, stderr="killed"),
            Script([entry(3, "3"), entry(4, "4")], stays=True),
        ]
        collector = self.collector(context, recorder, invocation="")
        async with collecting(collector, host, recorder):
            await recorder.until(lambda: "4" in self.texts(recorder))
        assert self.texts(recorder) == ["1", "2", "3", "4"]
        assert [args[2] for args in host.arguments(JOURNAL.label)] == ["", "s=1;i=2", "s=1;i=3"]

    async def test_a_cursor_that_journald_does_not_take(
        self, host: FakeHost, recorder: Recorder, context: Context
    ) -> None:
        everything = b"\n".join(entry(number, str(number)) for number in range(1, 5))
        host.answers[JOURNAL_INVOCATION.label] = lambda *_: Completed(
            0, everything if host.arguments(JOURNAL.label) else entry(1, "1"), b""
        )
        host.scripts[JOURNAL.label] = [
            Script([entry(2, "2")], breaks=True),
            Script([], status=1, stderr="Failed to seek to cursor: Invalid argument"),
            Script([entry(4, "4"), entry(5, "5")], stays=True),
        ]
        async with collecting(self.collector(context, recorder), host, recorder):
            await recorder.until(lambda: "5" in self.texts(recorder))
        assert self.texts(recorder) == ["1", "2", "3", "4", "5"]

    async def test_missing_rights_are_said(
        self, host: FakeHost, recorder: Recorder, context: Context
    ) -> None:
        hint = (
            "Hint: You are currently not seeing messages from other users and the system.\n"
            "      Users in groups 'adm', 'systemd-journal' can see all messages.\n"
        )
        host.scripts[JOURNAL.label] = [Script(["-- No entries --"], stderr=hint, stays=True)]
        collector = self.collector(context, recorder, invocation="")
        async with collecting(collector, host, recorder):
            await recorder.until(lambda: len(recorder.of(SourceSample)) == 2)
        said = recorder.of(SourceSample)[-1]
        assert said.status is SourceStatus.FAILED
        assert "systemd-journal" in said.remedy
        assert recorder.of(JournalSample) == []

    async def test_a_flood_comes_in_few_samples_and_whole(
        self, host: FakeHost, recorder: Recorder, context: Context
    ) -> None:
        host.scripts[JOURNAL.label] = [
            Script([entry(number, str(number)) for number in range(5000)], stays=True)
        ]
        collector = self.collector(context, recorder, invocation="")
        async with collecting(collector, host, recorder):
            await recorder.until(lambda: len(self.texts(recorder)) == 5000)
        assert self.texts(recorder) == [str(number) for number in range(5000)]
        assert len(recorder.of(JournalSample)) < 100
