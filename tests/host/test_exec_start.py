"""Command lines as ddtui reads and writes them, against the real systemd."""

from __future__ import annotations

import json
import random

import pytest

from ddtui.control.exec_start import (
    commands,
    environment_of,
    quoted,
    quoted_assignment,
    specifiers,
)
from ddtui.control.unit_text import UnitFile, listed
from tests.host.gpuhost import GpuHost, wait_until
from tests.support.exec_words import argv_of

UNIT = r"llm-say@a\x2db.service"
TEMPLATE = "llm-say@.service"
PROGRAM = "/opt/say/say.py"
OUTPUT = "/run/say.jsonl"
SAY = f"""import json, os, sys
from pathlib import Path
words = [os.fsencode(each).decode("utf-8", "surrogateescape") for each in sys.argv[1:]]
names = {{n: v for n, v in os.environ.items() if n.startswith("T_")}}
with open("{OUTPUT}", "a") as file:
    file.write(json.dumps([words, names]) + "\\n")
"""

LINES = [
    r"a  'b c' \"d\" x\sy \x41\101 \u00e4 '\'' \q \; z;y %% %i %I %n %p %j $$T_A ${T_A}x $T_A",
    r"$T_LIST ${T_LIST} '$T_A' ${T_NONE} $T_NONE end \xc3\xa4 \xff \t \\ \a\e",
    "a\"b c\"d 'e'f --x=%% \\\n  # not here\n --y '--z' ''",
    "$T_QUOTED x$T_A ${T_A:-y} ; " + f"/usr/bin/python3 {PROGRAM} second \\;",
]
ENVIRONMENT = 'Environment=T_A=1 "T_LIST=a  b" \'T_QUOTED=--a "b c" d\' "T_P=50%% $T_A" T_EMPTY=\n'


def service(*lines: str) -> str:
    body = "".join(f"ExecStart={line}\n" for line in lines)
    return f"[Service]\nType=oneshot\n{body}"


def said(host: GpuHost, text: str) -> list[tuple[list[str], dict[str, str]]]:
    host.exec("rm", "-f", OUTPUT)
    host.write(f"/etc/systemd/system/{TEMPLATE}", text.encode("utf-8", "surrogateescape"))
    host.systemctl("daemon-reload")
    host.systemctl("start", UNIT)
    done = wait_until(lambda: host.exec("cat", OUTPUT, check=False).stdout)
    return [(words, names) for words, names in map(json.loads, done.splitlines())]


@pytest.fixture
def host(gpuhost: GpuHost) -> GpuHost:
    gpuhost.write(PROGRAM, SAY)
    return gpuhost


def ours(text: str) -> tuple[list[tuple[str, ...]], dict[str, str]]:
    files = [UnitFile("f", text)]
    expand = specifiers(UNIT)
    env = environment_of([each.value for each in listed(files, "Environment")], expand)
    known = Variables(env)
    found = [
        argv_of(command, expand, known)[2:]
        for each in listed(files, "ExecStart")
        for command in commands(each.value)
    ]
    return found, env


class Variables(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return ""


def test_command_lines_are_read_as_systemd_reads_them(host: GpuHost) -> None:
    text = ENVIRONMENT.join(["[Service]\nType=oneshot\n", ""]) + "".join(
        f"ExecStart=/usr/bin/python3 {PROGRAM} {line}\n" for line in LINES
    )
    found, env = ours(text)
    theirs = said(host, text)
    assert [tuple(words) for words, _ in theirs] == found
    assert {n: v for n, v in env.items() if n.startswith("T_")} == theirs[0][1]


def test_what_is_written_arrives_as_it_is(host: GpuHost) -> None:
    rng = random.Random(7)
    alphabet = "ab $%{}\"'\\;#=-é\t\n\r\x07\x7f\uffff€😀*?~&|<>()[]"
    argvs = [
        ["".join(rng.choices(alphabet, k=rng.randrange(9))) for _ in range(rng.randrange(1, 6))]
        for _ in range(60)
    ]
    argvs += [["$T_A", "${T_A}", "$$", "%i", "%%", ";", "#x", "", "@", "-", "x;"]]
    lines = [f"/usr/bin/python3 {PROGRAM} " + " ".join(map(quoted, argv)) for argv in argvs]
    text = "Environment=T_A=1\n".join(["[Service]\nType=oneshot\n", ""]) + "".join(
        f"ExecStart={line}\n" for line in lines
    )
    assert [words for words, _ in said(host, text)] == argvs
    printable = alphabet.translate(dict.fromkeys(map(ord, "\r\x07\x7f\uffff")))
    variables = {f"T_{n}": "".join(rng.choices(printable, k=8)) for n in range(20)}
    line = " ".join(quoted_assignment(*each) for each in variables.items())
    text = f"[Service]\nType=oneshot\nEnvironment={line}\nExecStart=/usr/bin/python3 {PROGRAM} x\n"
    assert said(host, text)[0][1] == variables
