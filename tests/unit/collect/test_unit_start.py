"""What the host tells of the start of a unit's main process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ddtui.collect.programs import UNIT, UNIT_PROPERTIES
from ddtui.collect.unit import Frames, status_of
from ddtui.collect.unit_older import Starts
from ddtui.core.samples import UnitStatus

SYSTEMCTL = """#!/bin/sh
cat "$(dirname "$0")/properties"
"""


class Running:
    """A process that is a unit's main one for a systemctl that prints what a file says."""

    def __init__(
        self, folder: Path, command: Sequence[str] = ("/bin/cat",), **variables: str
    ) -> None:
        self.folder = folder
        self.fragment = folder / "llm.service"
        self.fragment.write_text("[Service]\n", encoding="utf-8")
        (folder / "systemctl").write_text(SYSTEMCTL, encoding="utf-8")
        (folder / "systemctl").chmod(0o755)
        variables |= {"INVOCATION_ID": "e6a9", "A": "two words", "OTHER": "not to be told"}
        self.process = subprocess.Popen(
            command, env=variables | {"F": "1"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(b"it runs\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == b"it runs\n"

    def frame(self, **properties: str) -> tuple[str, UnitStatus]:
        """What the program prints, and what is made of it."""
        values = {
            "Id": "llm.service", "LoadState": "loaded", "ActiveState": "active",
            "MainPID": str(self.process.pid), "InvocationID": "e6a9",
            "ExecMainStartTimestamp": "Sun 2026-11-29 20:40:17 UTC",
            "FragmentPath": str(self.fragment),
            "ExecStart": "{ path=/bin/cat ; argv[]=/bin/cat ; x=y }",
            "Environment": '"A=new words" F=2',
        } | properties  # fmt: skip
        text = "".join(f"{name}={value}\n" for name, value in values.items())
        (self.folder / "properties").write_text(text, encoding="utf-8")
        arguments = ["system", "llm.service", ",".join(UNIT_PROPERTIES)]
        done = subprocess.run(
            ["bash", "-c", UNIT.script, UNIT.label, *arguments],
            env=os.environ | {"PATH": f"{self.folder}:{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=30,
        )  # fmt: skip
        frames = Frames()
        frame = next(found for line in done.stdout.splitlines() if (found := frames.add(line)))
        return done.stdout, status_of("llm.service", frame, Starts())


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    made = Running(tmp_path)
    with made.process:
        yield made
        made.process.kill()


class TestProgram:
    def test_the_process_tells_its_own_variables(self, running: Running) -> None:
        said, unit = running.frame()
        assert unit.environment == ("A=two words", "F=1")
        assert unit.environment_read
        assert "not to be told" not in said

    def test_another_start_tells_nothing(self, running: Running) -> None:
        _, unit = running.frame(InvocationID="other")
        assert (unit.environment, unit.environment_read) == (("A=new words", "F=2"), False)

    def test_files_of_variables_are_looked_at_for_their_names(self, running: Running) -> None:
        file = running.folder / "llm.env"
        file.write_text("# x\n F=7", encoding="utf-8")
        said, unit = running.frame(EnvironmentFiles=f"{file} (ignore_errors=no)")
        assert unit.environment == ("A=two words", "F=2")
        assert "F=7" not in said
        gone = f"{running.folder}/none.env"
        _, unit = running.frame(EnvironmentFiles=f"{gone} (ignore_errors=yes)")
        assert unit.environment_read
        _, unit = running.frame(EnvironmentFiles=f"{gone} (ignore_errors=no)")
        assert not unit.environment_read

    def test_a_file_is_as_old_as_its_last_change(self, running: Running) -> None:
        os.utime(running.fragment, (1, 1))  # as after `cp -p`
        _, unit = running.frame(InvocationID="other")
        (reason,) = unit.doubts
        assert reason.startswith(f"{running.fragment} was changed after the start")
        later = "Sun 2099-11-29 20:40:17 UTC"
        _, unit = running.frame(InvocationID="other", ExecMainStartTimestamp=later)
        assert unit.doubts == ()

    def test_a_word_without_a_name_is_no_variable(self, tmp_path: Path) -> None:
        """A program that writes over its environment leaves such words: remnants of values."""
        writes_over = (
            "import os, sys\n"
            "words = open('/proc/self/stat').read().rsplit(') ', 1)[1].split()\n"
            "with open('/proc/self/mem', 'r+b') as memory:\n"
            "    memory.seek(int(words[47]))\n"  # env_start, see proc(5)
            "    memory.write(b'SECRET:')\n"
            "print(sys.stdin.readline(), end='', flush=True); sys.stdin.read()\n"
        )
        made = Running(tmp_path, (sys.executable, "-c", writes_over), SECRET="hf_not_to_be_told")
        environ = Path(f"/proc/{made.process.pid}/environ").read_bytes()
        assert environ.startswith(b"SECRET:hf_not_to_be_told\0")
        with made.process:
            said, _ = made.frame()
            made.process.kill()
        assert "\n@environ\n" in said
        assert "\n=A=two\\ words\n" in said
        assert "hf_not" not in said

    def test_a_large_environment_comes_whole(self, tmp_path: Path) -> None:
        large = {f"BIG{number}": "v" * 1000 for number in range(100)}
        made = Running(tmp_path, **large)
        pairs = [f"{name}={value}" for name, value in large.items()]
        with made.process:
            _, unit = made.frame(Environment=" ".join(["A=1", *pairs]))
            made.process.kill()
        assert unit.environment == ("A=two words", *pairs)
