from __future__ import annotations

import shutil
import subprocess

import pytest

from ddtui.collect.programs import ALL_PROGRAMS
from ddtui.hosts.base import Program
from ddtui.hosts.command import argv, command_line, parse_command_line, quote

SHELLS = [shell for shell in ("sh", "bash", "dash", "zsh", "fish", "ksh") if shutil.which(shell)]
NASTY = [
    "",
    "plain",
    "two words",
    "it's",
    'a "quoted" one',
    r"back\slash and \\two and \' and \n",
    "$HOME `id` $(id) !! #no ~ * ? [a] {a,b} ;&|<>",
    "line\nbreak\ttab",
    "--option",
    "ünïcode ✓",
    "\\",
    "'",
    "\\'",
]


@pytest.mark.parametrize("shell", SHELLS)
def test_words_arrive_unchanged_through_any_login_shell(shell: str) -> None:
    program = Program("ddtui:echo", "printf '%s\\0' \"$0\" \"$@\" 'it'\\''s \\\\ here'\n")
    line = command_line(program, NASTY, limit=5)
    done = subprocess.run([shell, "-c", line], capture_output=True, check=True, timeout=30)
    words = done.stdout.decode().split("\0")[:-1]
    assert words == ["ddtui:echo", *NASTY, r"it's \\ here"]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("program", ALL_PROGRAMS, ids=lambda program: program.label)
def test_every_script_arrives_unchanged(shell: str, program: Program) -> None:
    done = subprocess.run(
        [shell, "-c", f"printf %s {quote(program.script)}"],
        capture_output=True,
        check=True,
        timeout=30,
    )
    assert done.stdout.decode() == program.script


def test_a_made_up_host_can_take_the_line_apart() -> None:
    program = Program("ddtui:echo", "echo 'a' -c \\b\n")
    for limit in (None, 3.0):
        assert parse_command_line(command_line(program, NASTY, limit)) == (program, NASTY)
    with pytest.raises(ValueError, match="not a command line"):
        parse_command_line("rm -rf x")


def test_the_shell_is_replaced_and_the_label_is_the_programs_name() -> None:
    program = Program("ddtui:x", "true")
    assert command_line(program, ["a b"]) == "exec bash -c true ddtui:x 'a b'"
    assert argv(program, [], 1.2)[:4] == ["timeout", "-k", "2", "3"]


def test_a_short_program_that_hangs_ends_itself_with_its_children() -> None:
    program = Program("ddtui:hang", "sleep 60 & sleep 60")
    words = argv(program, [], -0.5)  # the limit is a second more
    done = subprocess.run(words, capture_output=True, check=False, timeout=30)
    assert done.returncode == 124
