"""With which variables a unit's process runs, and when it may be older than its unit."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from ddtui.collect.programs import UNIT, UNIT_PROPERTIES
from ddtui.collect.unit import Frames, status_of
from ddtui.collect.unit_start import Configured, Start, environment_of
from ddtui.core.samples import UnitStatus

FRAGMENT = "/etc/systemd/system/llm.service"
DROP_IN = f"{FRAGMENT}.d/10-own.conf"
BEGAN, NOW = 1000.0, 5000.0
COMMAND = ("/opt/venv/bin/python", "-m", "sglang.launch_server", "--port", "30000")
UNIT_NOW = Configured(("A=new", "B=1"), COMMAND, frozenset({FRAGMENT, DROP_IN}))
AS_IT_WAS = Start({"A": "new", "B": "1"}, written=((900.0, FRAGMENT), (900.0, DROP_IN)))
EDITED = ((1001.0, FRAGMENT), (900.0, DROP_IN))


def told(
    unit: Configured = UNIT_NOW,
    start: Start = AS_IT_WAS,
    command: tuple[str, ...] = COMMAND,
    **changes: object,
) -> tuple[dict[str, str], bool, tuple[str, ...]]:
    found = environment_of(unit, msgspec.structs.replace(start, **changes), command, BEGAN, NOW)
    return dict(pair.partition("=")[::2] for pair in found.pairs), found.read, found.older


class TestReadable:
    def test_what_the_process_has_counts(self) -> None:
        assert told() == ({"A": "new", "B": "1"}, True, ())
        assert told(variables={"A": "old", "B": "1"}) == ({"A": "old", "B": "1"}, True, ())

    def test_what_the_process_lacks_is_not_set(self) -> None:
        assert told(variables={"A": "new"}) == ({"A": "new"}, True, ())

    def test_a_file_of_variables_hides_what_the_unit_sets_itself(self) -> None:
        found = told(variables={"A": "new"}, in_files=frozenset({"B"}))
        assert found == ({"A": "new", "B": "1"}, True, ())

    def test_an_edit_that_changes_no_variable_is_no_news(self) -> None:
        assert told(written=EDITED) == ({"A": "new", "B": "1"}, True, ())

    def test_what_was_taken_out_of_the_unit_is_named(self) -> None:
        others = frozenset({"PATH", "HOME", "INVOCATION_ID", "LC_ALL", "PASSED", "GONE"})
        unit = msgspec.structs.replace(UNIT_NOW, passed=frozenset({"PASSED"}))
        assert told(unit, others=others)[2] == ()  # nothing was edited: a shell has set it
        (reason,) = told(unit, others=others, written=EDITED)[2]
        assert reason == "GONE is set in the process, and nowhere in the unit"

    def test_a_secret_is_compared_and_never_told(self) -> None:
        unit = msgspec.structs.replace(UNIT_NOW, pairs=("HF_TOKEN=hf_new",))
        values, _, older = told(unit, variables={"HF_TOKEN": "hf_old"})
        assert values == {"HF_TOKEN": "<redacted>"}
        assert older == ("HF_TOKEN (a secret) is another one in the process than in the unit",)
        assert told(unit, variables={"HF_TOKEN": "hf_new"})[2] == ()
        # What systemd has not read yet may hold another one.
        unread = msgspec.structs.replace(unit, needs_reload=True)
        (reason,) = told(unread, variables={"HF_TOKEN": "hf_new"}, written=EDITED)[2]
        assert "may set HF_TOKEN (a secret) otherwise" in reason

    def test_a_file_of_variables_that_was_changed_is_said(self) -> None:
        (reason,) = told(written=((1001.0, "/etc/llm.env"),))[2]
        assert reason == "/etc/llm.env was changed after the start that reads it"

    @pytest.mark.parametrize(
        ("exec_start", "command"),
        [
            (("/opt/bin/sglang", "serve", "--port"), ("/py", "/opt/bin/sglang", "serve", "--port")),
            (("/usr/bin/env", "C=1", *COMMAND), COMMAND),
            ((*COMMAND[:3], "$FLAGS"), COMMAND),
        ],
    )
    def test_interpreters_env_and_variables_are_no_other_program(
        self, exec_start: tuple[str, ...], command: tuple[str, ...]
    ) -> None:
        unit = msgspec.structs.replace(UNIT_NOW, exec_start=exec_start)
        assert told(unit, command=command, variables={"A": "old"}) == ({"A": "old"}, True, ())

    def test_a_script_may_set_what_it_likes_while_nothing_was_edited(self) -> None:
        unit = msgspec.structs.replace(UNIT_NOW, exec_start=("/opt/run.sh",))
        as_unit = {"A": "new", "B": "1"}
        assert told(unit, variables={"A": "own"}) == (as_unit, False, ())
        values, read, older = told(unit, variables={"A": "own"}, written=EDITED)
        assert (values, read) == ({"A": "own"}, True)
        assert "what runs is not the program of ExecStart" in older[0]

    def test_another_interpreter_is_another_program(self) -> None:
        unit = msgspec.structs.replace(UNIT_NOW, exec_start=("/opt/new/bin/python", *COMMAND[1:]))
        (reason,) = told(unit, written=EDITED)[2]
        assert "what runs is not the program of ExecStart" in reason


class TestUnreadable:
    def test_the_units_own_stand_for_them(self) -> None:
        assert told(variables=None) == ({"A": "new", "B": "1"}, False, ())

    @pytest.mark.parametrize("path", [FRAGMENT, DROP_IN, f"{FRAGMENT}.d"])
    def test_a_file_that_is_newer_than_the_process_is_a_reason_to_doubt(self, path: str) -> None:
        (reason,) = told(variables=None, written=((1001.0, path),))[2]
        assert reason == (
            f"{path} was changed after the start, and the variables of the process may not be read"
        )

    @pytest.mark.parametrize(
        "written", [(1000.0, FRAGMENT), (6000.0, FRAGMENT), (1001.0, "/run/systemd/generator/x")]
    )
    def test_what_proves_nothing_is_no_reason(self, written: tuple[float, str]) -> None:
        """The same second, a clock that was set back, what each reload writes anew."""
        unit = msgspec.structs.replace(UNIT_NOW, files=UNIT_NOW.files | {written[1]})
        assert told(unit, variables=None, written=(written,))[2] == ()


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
        return done.stdout, status_of("llm.service", frame)


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
        (reason,) = unit.older
        assert reason.startswith(f"{running.fragment} was changed after the start")
        later = "Sun 2099-11-29 20:40:17 UTC"
        _, unit = running.frame(InvocationID="other", ExecMainStartTimestamp=later)
        assert unit.older == ()

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
            said, unit = made.frame()
            made.process.kill()
        assert unit.environment_read
        assert "hf_not" not in said

    def test_a_large_environment_comes_whole(self, tmp_path: Path) -> None:
        large = {f"BIG{number}": "v" * 1000 for number in range(100)}
        made = Running(tmp_path, **large)
        pairs = [f"{name}={value}" for name, value in large.items()]
        with made.process:
            _, unit = made.frame(Environment=" ".join(["A=1", *pairs]))
            made.process.kill()
        assert unit.environment == ("A=two words", *pairs)
