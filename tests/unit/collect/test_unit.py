from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddtui.collect.base import Context, SourceTrouble
from ddtui.collect.observed import Observed
from ddtui.collect.programs import UNIT, UNIT_PROPERTIES, UNITS
from ddtui.collect.settings import HostSettings
from ddtui.collect.systemd_text import (
    parse_count,
    parse_exec_start,
    parse_properties,
    parse_span,
    parse_time,
    split_words,
    unquote,
)
from ddtui.collect.unit import Frames, UnitCollector, parse_units, status_of, trouble_of
from ddtui.collect.unit_older import Starts
from ddtui.core.samples import SourceSample, SourceStatus, UnitSample, UnitStatus
from ddtui.engines.sglang import SGLANG
from ddtui.hosts.base import Completed
from tests.unit.collect.fakes import FakeHost, Recorder, Script, collecting

RUNNING = """@show 0 1795984880.305182
MainPID=91
StatusText=
Result=success
NRestarts=0
ExecMainStartTimestamp=Sun 2026-11-29 20:40:17 UTC
ExecMainCode=0
ExecMainStatus=0
ExecStart={ path=/usr/bin/python3 ; argv[]=/usr/bin/python3 -m sglang.launch_server --port 30001 \
; ignore_errors=no ; start_time=[Sun 2026-11-29 20:40:17 UTC] ; stop_time=[n/a] ; pid=91 ; \
code=(null) ; status=0/0 }
ControlGroup=/system.slice/llm.service
MemoryCurrent=[not set]
TasksCurrent=18446744073709551615
Environment=A=1 "B=two words" HF_TOKEN=hf_abcdefghijklmnopqrstuvwx
WorkingDirectory=/tmp
Id=llm.service
LoadState=loaded
ActiveState=active
SubState=running
FragmentPath=/etc/systemd/system/llm.service
DropInPaths=/etc/systemd/system/llm.service.d/10-a.conf /etc/systemd/system/llm.service.d/20.conf
UnitFileState=enabled
StateChangeTimestamp=Sun 2026-11-29 20:40:18 UTC
ActiveEnterTimestamp=Sun 2026-11-29 20:40:18 UTC
NeedDaemonReload=yes
InvocationID=e6a941403bd343afa98c9e53b071ed10
@cmdline
/usr/bin/python3
-m
sglang.launch_server
--api-key
verysecret
--served-model-name
two\\ words
$'\\303\\274n\\303\\257'
--port
30002
@end"""


def frame_lines(**changes: str) -> list[str]:
    """The running unit's frame with other properties, and without a command line."""
    lines = []
    for line in RUNNING.partition("@cmdline")[0].splitlines():
        name, _, _ = line.partition("=")
        lines.append(f"{name}={changes[name]}" if name in changes else line)
    return [*lines, "@end"]


def status(lines: list[str]) -> UnitStatus:
    frames = Frames()
    frame = next(frame for line in lines if (frame := frames.add(line)) is not None)
    return status_of("llm.service", frame, Starts())


class TestStatus:
    def test_a_running_unit(self) -> None:
        unit = status(RUNNING.splitlines())
        assert (unit.load_state, unit.active_state, unit.sub_state) == (
            "loaded",
            "active",
            "running",
        )
        assert unit.main_pid == 91
        assert unit.invocation == "e6a941403bd343afa98c9e53b071ed10"
        assert unit.started_at == unit.state_changed_at == 1795984818.0
        assert unit.memory is None
        assert unit.tasks is None
        assert unit.exit_code == ""
        assert unit.needs_daemon_reload
        assert len(unit.drop_ins) == 2
        assert unit.control_group == "/system.slice/llm.service"
        assert unit.working_directory == "/tmp"

    def test_the_running_process_tells_the_command_line_exactly(self) -> None:
        unit = status(RUNNING.splitlines())
        assert unit.command_line[-4:] == ("two words", "ünï", "--port", "30002")

    def test_secrets_are_gone(self) -> None:
        unit = status(RUNNING.splitlines())
        assert "verysecret" not in repr(unit)
        assert "hf_abc" not in repr(unit)
        assert unit.environment[:2] == ("A=1", "B=two words")

    def test_a_stopped_unit_tells_what_it_would_run(self) -> None:
        unit = status(frame_lines(MainPID="0", ActiveState="inactive", SubState="dead"))
        assert unit.command_line[1:] == ("-m", "sglang.launch_server", "--port", "30001")

    @pytest.mark.parametrize(
        ("code", "number", "words"),
        [("1", "3", "exited"), ("2", "9", "killed"), ("3", "11", "dumped")],
    )
    def test_how_it_ended(self, code: str, number: str, words: str) -> None:
        unit = status(
            frame_lines(MainPID="0", ActiveState="failed", ExecMainCode=code, ExecMainStatus=number)
        )
        assert (unit.exit_code, unit.exit_status) == (words, int(number))

    def test_while_it_starts_the_main_process_tells_since_when(self) -> None:
        unit = status(frame_lines(ActiveState="activating", ActiveEnterTimestamp=""))
        assert unit.started_at == 1795984817.0

    def test_an_absent_unit(self) -> None:
        unit = status(frame_lines(LoadState="not-found", MainPID="0", InvocationID=""))
        assert unit.load_state == "not-found"

    def test_an_argument_over_several_lines(self) -> None:
        exec_start = "{ path=/bin/sh ; argv[]=/bin/sh -c a\nb=c ; ignore_errors=no ; }"
        unit = status(frame_lines(MainPID="0", ExecStart=exec_start))
        assert unit.command_line == ("/bin/sh", "-c", "a", "b=c")


@pytest.mark.parametrize(
    ("said", "word", "state"),
    [
        ("bash: systemctl: command not found", "systemctl not found", SourceStatus.ABSENT),
        (
            "System has not been booted with systemd as init system (PID 1). Can't operate.",
            "not booted with systemd",
            SourceStatus.ABSENT,
        ),
        (
            "Failed to connect to bus: No such file or directory",
            "does not answer",
            SourceStatus.FAILED,
        ),
        ("Failed to connect to bus: Permission denied", "does not answer", SourceStatus.FAILED),
        ("Failed to get properties: Access denied", "not allowed", SourceStatus.FAILED),
    ],
)
def test_complaints_of_systemctl(said: str, word: str, state: SourceStatus) -> None:
    trouble = trouble_of(said)
    assert word in trouble.detail
    assert trouble.remedy
    assert trouble.status is state
    with pytest.raises(SourceTrouble):
        status(["@show 1 12.5", said, "@end"])


class TestTexts:
    @pytest.mark.parametrize("nothing", ["", "n/a", "0", "[not set]", "yesterday", "@", "@x"])
    def test_no_time(self, nothing: str) -> None:
        assert parse_time(nothing) is None

    def test_times(self) -> None:
        assert parse_time("Thu 1970-01-01 00:01:00 UTC") == 60.0
        assert parse_time("@1795984817") == 1795984817.0
        assert parse_time("Thu 1970-01-01 00:01:00.250000 UTC") == 60.25
        assert parse_time("Thu 1970-01-01 00:01:00 CEST") is None
        assert parse_time("Thu 1970-99-99 99:01:00 UTC") is None
        assert parse_time("@" + "9" * 400) is None

    def test_counts(self) -> None:
        assert parse_count("18446744073709551615") is None
        assert parse_count("[not set]") is None
        assert parse_count("42") == 42

    def test_lists(self) -> None:
        text = 'A=1 "B=two words" $\'C=it\\\'s\' "D=q\\"uote"'
        assert split_words(text) == ["A=1", "B=two words", "C=it's", 'D=q"uote']

    def test_letters_of_any_script_beside_escapes(self) -> None:
        text = "$'A=\u00e9t\u00e9 \\'x\\'' $'B=\\303\\251 \u2026' C=\u00e9"
        assert split_words(text) == ["A=\u00e9t\u00e9 'x'", "B=\u00e9 \u2026", "C=\u00e9"]
        assert split_words('"D=\u00e9t\u00e9 \\"q\\""') == ['D=\u00e9t\u00e9 "q"']

    def test_escapes_in_double_quotes(self) -> None:
        assert split_words(r'"G=l1\nl2" "D=\$x \\n \`q\""') == ["G=l1\nl2", 'D=$x \\n `q"']

    def test_the_first_command_of_several(self) -> None:
        text = "{ path=/bin/a ; argv[]=/bin/a 1 ; x=y } ; { path=/bin/b ; argv[]=/bin/b ; x=y }"
        assert parse_exec_start(text) == ("/bin/a", "1")
        assert parse_exec_start("") == ()

    def test_a_line_without_a_name_continues_the_last(self) -> None:
        assert parse_properties(["Id=a", "b=c", "d"], {"Id"}) == {"Id": "a\nb=c\nd"}

    @given(st.lists(st.text(st.characters(exclude_characters="\0", codec="utf-8")), max_size=3))
    def test_unquote_undoes_what_bash_does(self, words: list[str]) -> None:
        script = 'for a in "$@"; do printf "%q\\n" "$a"; done'
        done = subprocess.run(
            ["bash", "-c", f"export LC_ALL=C; {script}", "x", *words],
            capture_output=True,
            check=True,
        )
        quoted = done.stdout.decode().split("\n")[:-1]
        assert [unquote(word) for word in quoted] == words

    def test_unquote_leaves_alone_what_it_cannot_read(self) -> None:
        assert unquote("'open") == "'open"


def test_what_systemctl_says_is_redacted() -> None:
    assert "hush" not in trouble_of("Failed to connect to bus: --api-key hush").detail
    assert "hush" not in trouble_of("x HF_TOKEN=hush").detail


def test_a_secret_with_blanks_in_exec_start_is_masked_whole() -> None:
    lines = frame_lines(
        MainPID="0",
        ExecStart="{ path=/x ; argv[]=/x -m sglang.launch_server --api-key my hush hush --tp 8 ; }",
    )
    unit = status(lines)
    assert "hush" not in " ".join(unit.command_line)
    assert unit.command_line[-2:] == ("--tp", "8")


def test_frames_with_numbers_without_end_are_read() -> None:
    frames = Frames()
    frames.add(f"@show {'9' * 5000} {'9' * 5000}")
    frame = frames.add("@end")
    assert frame is not None
    assert (frame.status, frame.host_at) == (1, None)


def test_units_that_start_the_engine() -> None:
    def block(name: str, state: str, command: str) -> str:
        return (
            f"Id={name}\nActiveState={state}\nLoadState=loaded\n"
            f"ExecStart={{ path=x ; argv[]={command} ; ignore_errors=no }}\nFragmentPath=/x"
        )

    sglang = "/opt/venv/bin/python -m sglang.launch_server --port 1"
    text = "\n\n".join(
        [
            block("a-old.service", "inactive", sglang),
            block("ssh.service", "active", "/usr/sbin/sshd -D"),
            block("z-new.service", "active", sglang),
            "Id=empty.service\nActiveState=active",
        ]
    )
    assert [found.name for found in parse_units(text, SGLANG)] == ["z-new.service", "a-old.service"]


class TestCollector:
    async def test_changes_are_passed_on_and_repeats_are_not(
        self, host: FakeHost, recorder: Recorder, context: Context
    ) -> None:
        again = ["@same 1795984881.1"] * 5
        stopped = frame_lines(MainPID="0", ActiveState="inactive")
        host.scripts[UNIT.label] = [Script([*RUNNING.splitlines(), *again, *stopped], stays=True)]
        settings = HostSettings(unit="llm.service")
        observed = Observed(SGLANG, unit_name="llm.service")
        collector = UnitCollector(settings, SGLANG, observed, context)
        async with collecting(collector, host, recorder):
            await recorder.until(lambda: len(recorder.of(UnitSample)) == 2)
        states = [sample.unit.active_state for sample in recorder.of(UnitSample)]
        assert states == ["active", "inactive"]
        assert host.arguments(UNIT.label) == [("system", "llm.service", ",".join(UNIT_PROPERTIES))]

    async def test_an_absent_unit_is_said(
        self, host: FakeHost, recorder: Recorder, context: Context
    ) -> None:
        host.scripts[UNIT.label] = [
            Script(frame_lines(LoadState="not-found", MainPID="0"), stays=True)
        ]
        settings = HostSettings(unit="llm.service")
        observed = Observed(SGLANG, unit_name="llm.service")
        async with collecting(UnitCollector(settings, SGLANG, observed, context), host, recorder):
            await recorder.until(lambda: len(recorder.of(SourceSample)) == 2)
        said = recorder.of(SourceSample)[-1]
        assert said.status is SourceStatus.ABSENT
        assert "llm.service" in said.detail
        assert recorder.of(UnitSample)[0].unit.load_state == "not-found"

    async def test_the_unit_is_found(
        self, host: FakeHost, recorder: Recorder, context: Context
    ) -> None:
        listing = (
            "Id=found.service\nActiveState=active\nExecStart={ path=p ; "
            "argv[]=python -m sglang.launch_server ; x=y }\n"
        )
        host.answers[UNITS.label] = lambda *_: Completed(0, listing.encode(), b"")
        host.scripts[UNIT.label] = [Script(RUNNING.splitlines(), stays=True)]
        observed = Observed(SGLANG)
        collector = UnitCollector(HostSettings(), SGLANG, observed, context)
        async with collecting(collector, host, recorder):
            await recorder.until(lambda: bool(recorder.of(UnitSample)))
        assert observed.unit_name == "found.service"
        assert host.arguments(UNIT.label)[0][1] == "found.service"

    @pytest.mark.parametrize(
        ("said", "told"),
        [
            ("command not found", "no systemd on this host"),
            ("not been booted with systemd", "not booted with systemd"),
            ("Failed to connect to bus: No medium found", "does not answer"),
        ],
    )
    async def test_there_is_no_service_manager(
        self, host: FakeHost, recorder: Recorder, context: Context, said: str, told: str
    ) -> None:
        host.answers[UNITS.label] = lambda *_: Completed(0, f"@none {said}\n".encode(), b"")
        collector = UnitCollector(HostSettings(), SGLANG, Observed(SGLANG), context)
        async with collecting(collector, host, recorder):
            await recorder.until(lambda: len(recorder.of(SourceSample)) == 2)
        assert told in recorder.of(SourceSample)[-1].detail
        assert "name the unit" not in recorder.of(SourceSample)[-1].remedy

    async def test_none_is_found(
        self, host: FakeHost, recorder: Recorder, context: Context
    ) -> None:
        host.answers[UNITS.label] = lambda *_: Completed(0, b"", b"")
        collector = UnitCollector(HostSettings(), SGLANG, Observed(SGLANG), context)
        async with collecting(collector, host, recorder):
            await recorder.until(lambda: len(recorder.of(SourceSample)) == 2)
        said = recorder.of(SourceSample)[-1]
        assert said.status is SourceStatus.ABSENT
        assert said.remedy == "name the unit: `ddtui init fake`"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("3min 20s", 200.0), ("1h 30min", 5400.0), ("90", 90.0), ("250ms", 0.25), ("0", 0.0)),
        *(("infinity", None), ("", None), ("soon", None), ("5 parsecs", None), ("9" * 400, None)),
    ],
)
def test_spans_of_time(text: str, seconds: float | None) -> None:
    assert parse_span(text) == seconds
