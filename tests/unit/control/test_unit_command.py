"""How a unit's command is found and changed, wrapped in whatever way."""

from __future__ import annotations

import shlex

import msgspec
import pytest

from ddtui.control.exec_start import commands, specifiers
from ddtui.control.unit_command import CommandRefused, EnvironmentFile, UnitCommand, read_unit
from ddtui.control.unit_text import UnitFile
from ddtui.core.launch import Launch
from ddtui.engines.sglang import SGLANG
from tests.support.exec_words import argv_of

ENGINE = "/opt/venv/bin/python -m sglang.launch_server"


def unit(service: str, *drop_ins: str, files: tuple[EnvironmentFile, ...] = ()) -> UnitCommand:
    texts = [UnitFile("/etc/systemd/system/llm.service", f"[Service]\n{service}\n")]
    texts += [
        UnitFile(f"/etc/systemd/system/llm.service.d/{i}0.conf", f"[Service]\n{text}\n")
        for i, text in enumerate(drop_ins, 1)
    ]
    return read_unit("llm.service", texts, SGLANG.is_command, files)


def swap(command: UnitCommand, old: str, new: str, **environment: str | None) -> Launch:
    argv = tuple(new if word == old else word for word in command.launch.argv)
    env = {**command.launch.environment, **environment}
    return Launch(argv, {name: value for name, value in env.items() if value is not None})


def test_untouched_words_stay_byte_for_byte() -> None:
    raw = f"-{ENGINE} --model-path '/models/a b' --x \\x41%%%i$$ --budget 8 --name \"q\""
    command = unit(f"ExecStart={raw}")
    assert command.launch.argv[4:] == (
        *("/models/a b", "--x", "A%$", "--budget", "8", "--name", "q"),
    )
    lines = command.lines(swap(command, "8", "16"))
    assert lines.exec_start == (raw.replace("8", "16"),)
    assert lines.environment == {}


def test_drop_ins_count_and_the_fragment_is_reset() -> None:
    command = unit(f"ExecStart={ENGINE} --a 1", f"ExecStart=\nExecStart={ENGINE} --a 2")
    assert command.launch.argv[-1] == "2"


def test_env_wrapper() -> None:
    command = unit(f"ExecStart=/usr/bin/env A=b C=d {ENGINE} --a 1\nEnvironment=Z=1")
    assert command.launch.environment == {"Z": "1", "A": "b", "C": "d"}
    lines = command.lines(swap(command, "1", "2", A="x y", C=None, N="%$"))
    assert lines.exec_start == (f'/usr/bin/env "A=x y" {ENGINE} --a 2',)
    assert lines.environment == {"N": "%$"}


def test_variables_set_by_the_unit_are_changed_there() -> None:
    command = unit(
        "Environment=\"ARGS=--budget 8 --name 'a b'\" W=3\n"
        f"ExecStart={ENGINE} $ARGS --window ${{W}}"
    )
    assert command.launch.argv[3:] == ("--budget", "8", "--name", "a b", "--window", "3")
    lines = command.lines(swap(command, "8", "16"))
    assert lines.exec_start == (f"{ENGINE} $ARGS --window ${{W}}",)
    assert lines.environment == {"ARGS": '--budget 16 --name "a b"'}
    lines = command.lines(swap(command, "3", "4"))
    assert lines.exec_start == (f"{ENGINE} $ARGS --window 4",)
    assert lines.environment == {}


def test_variables_of_a_file_are_refused_with_the_way_out() -> None:
    known = EnvironmentFile("/etc/default/llm", {"ARGS": "--budget 8"})
    command = unit(f"ExecStart={ENGINE} $ARGS --x 1", files=(known,))
    assert command.lines(swap(command, "1", "2")).exec_start == (f"{ENGINE} $ARGS --x 2",)
    with pytest.raises(CommandRefused, match=r"\$ARGS, which /etc/default/llm sets") as refused:
        command.lines(swap(command, "8", "16"))
    assert "/etc/default/llm by hand" in refused.value.way_out
    with pytest.raises(CommandRefused, match="may not be read"):
        unit(f"ExecStart={ENGINE} $ARGS", files=(EnvironmentFile("/etc/default/llm"),))


def test_a_word_of_unknown_value_stays() -> None:
    command = unit(f"ExecStart={ENGINE} --model-path %h/m/${{HOME}} --a 1")
    lines = command.lines(swap(command, "1", "2"))
    assert lines.exec_start == (f"{ENGINE} --model-path %h/m/${{HOME}} --a 2",)
    assert command.opaque == {"%h/m/${HOME}"}


def test_shell_wrapper() -> None:
    script = (
        'cd /opt && source v/bin/activate; exec python -m sglang.launch_server --m "$$M" --b 8 '
        "--s 'a b' 2>&1 | tee /var/log/x"
    )
    line = f'/bin/bash -lc "{script.replace(chr(34), chr(92) + chr(34))}"'
    command = unit(f"ExecStart={line}")
    assert command.launch.argv == (
        *("exec", "python", "-m", "sglang.launch_server", "--m", '"$M"', "--b", "8"),
        *("--s", "a b"),
    )
    assert command.lines(command.launch).exec_start == (line,)
    (changed,) = command.lines(swap(command, "8", "1 6$")).exec_start
    (parsed,) = commands(changed)
    argv = argv_of(parsed, specifiers("llm.service"))
    assert argv[:2] == ("/bin/bash", "-lc")
    assert argv[2] == script.replace("$$", "$").replace("--b 8", "--b '1 6$'")


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("python -m sglang.launch_server $ARGS", "expanded by the shell into words"),
        ("python -m sglang.launch_server --a *.x", "expanded by the shell"),
        ('python -m sglang.launch_server "$@"', "from elsewhere"),
        ("python -m sglang.launch_server --a `x`", "expanded by the shell into words"),
        ('python -m sglang.launch_server --a "$(x)"', "command is substituted"),
        ("sglang serve --a 1 > log --b 2", "words follow a redirection"),
        ("sglang serve --a 1; sglang serve --a 2", "more than one place"),
        ("sglang serve --a 1 & wait", "into the background"),
        ("sglang serve --a 1 >/x 2>&1 & pid=$!; wait $pid", "into the background"),
        ("(sglang serve --a 1)& wait", "into the background"),
        ("exec setsid sglang serve --a 1", "into the background"),
    ],
)
def test_scripts_that_are_not_simple_are_refused(script: str, why: str) -> None:
    raw = shlex.quote(script.replace("$", "$$"))
    with pytest.raises(CommandRefused, match=why):
        unit(f"ExecStart=/bin/bash -c {raw}")


@pytest.mark.parametrize(
    "script",
    [
        "watch-it & exec sglang serve --a 1",
        "sglang serve --a 1 &> /var/log/x",
        "sglang serve --a 1 2>&1 |& tee x",
        "cd /x && sglang serve --a '1 & wait'",
    ],
)
def test_an_engine_in_the_foreground_is_taken(script: str) -> None:
    assert unit(f"ExecStart=/bin/bash -c {shlex.quote(script)}").launch.argv[-2] == "--a"


def test_an_engine_in_the_background_has_a_way_out() -> None:
    with pytest.raises(CommandRefused) as refused:
        unit("ExecStart=/bin/bash -c 'sglang serve --a 1 & wait'")
    assert "begun with exec" in refused.value.way_out


def test_a_script_of_its_own_is_refused() -> None:
    with pytest.raises(CommandRefused, match=r"starts /opt/start\.sh") as refused:
        unit("ExecStart=/opt/start.sh --a 1")
    assert "by hand" in refused.value.way_out


def test_a_later_drop_in_would_hide_the_change() -> None:
    texts = [
        UnitFile("/e/llm.service", f"[Service]\nExecStart={ENGINE}"),
        UnitFile("/e/llm.service.d/60-x.conf", f"[Service]\nExecStart=\nExecStart={ENGINE} --b 1"),
    ]
    with pytest.raises(CommandRefused, match=r"60-x\.conf sets ExecStart after"):
        read_unit("llm.service", texts, SGLANG.is_command)


@pytest.mark.parametrize(
    "other",
    [
        ("60-x.conf", "Environment=B=2 A=1"),
        ("60-x.conf", "Environment=\nEnvironment=B=2"),
        ("40-x.conf", "UnsetEnvironment=B A"),
    ],
)
def test_a_variable_that_another_file_decides_over_is_refused(other: tuple[str, str]) -> None:
    path = f"/e/llm.service.d/{other[0]}"
    texts = [
        UnitFile("/e/llm.service", f"[Service]\nExecStart={ENGINE} --a 1"),
        UnitFile(path, f"[Service]\n{other[1]}"),
    ]
    command = read_unit("llm.service", texts, SGLANG.is_command)
    after = Launch(command.launch.argv, {**command.launch.environment, "A": "2"})
    with pytest.raises(CommandRefused, match=f"{path} decides over A") as refused:
        command.lines(after)
    assert path in refused.value.way_out
    without = {k: v for k, v in command.launch.environment.items() if k != "A"}
    command.lines(swap(command, "1", "2"))
    command.lines(Launch(command.launch.argv, without))


def test_flags_in_a_variable_of_a_later_file_are_refused() -> None:
    texts = [
        UnitFile("/e/llm.service", f"[Service]\nExecStart={ENGINE} $FLAGS"),
        UnitFile("/e/llm.service.d/60-x.conf", '[Service]\nEnvironment="FLAGS=--a 1"'),
    ]
    command = read_unit("llm.service", texts, SGLANG.is_command)
    with pytest.raises(CommandRefused, match="decides over FLAGS"):
        command.lines(swap(command, "1", "2"))


def test_several_commands_of_a_oneshot() -> None:
    command = unit(f"Type=oneshot\nExecStart=/bin/a 'x'\nExecStart={ENGINE} --a 1 ; /bin/b $$")
    lines = command.lines(swap(command, "1", "2"))
    assert lines.exec_start == ("/bin/a 'x'", f"{ENGINE} --a 2", "/bin/b $$")
    with pytest.raises(CommandRefused, match="oneshot only"):
        unit(f"ExecStart=/bin/a\nExecStart={ENGINE}")


def test_own_variables_are_kept_and_taken_back() -> None:
    command = read_unit(
        "llm.service",
        [
            UnitFile("/e/llm.service", f"[Service]\nEnvironment=A=1 B=2\nExecStart={ENGINE}"),
            UnitFile("/e/llm.service.d/50-ddtui.conf", "[Service]\nEnvironment=C=3 A=9"),
        ],
        SGLANG.is_command,
    )
    assert command.lines(command.launch).environment == {"C": "3", "A": "9"}
    after = msgspec.structs.replace(command.launch, environment={"A": "1"})
    lines = command.lines(after)
    assert (lines.environment, lines.unset) == ({}, ("B",))


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("@/opt/venv/bin/python engine", "/opt/venv/bin/python"),
        # An interpreter finds its packages by the path that it is called by.
        ("@/usr/bin/python3 /opt/venv/bin/python", "/opt/venv/bin/python"),
        ("/opt/venv/bin/python", "/opt/venv/bin/python"),
    ],
)
def test_its_help_is_asked_without_the_name_that_a_process_is_given(
    line: str, program: str
) -> None:
    command = unit(f"ExecStart={line} -m sglang.launch_server --a 1")
    assert command.started_by_hand.argv == (program, "-m", "sglang.launch_server", "--a", "1")
    assert command.lines(swap(command, "1", "2")).exec_start == (
        f"{line} -m sglang.launch_server --a 2",
    )
