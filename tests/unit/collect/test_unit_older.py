"""With which variables a unit's process runs, and when it is older than its unit."""

from __future__ import annotations

import msgspec
import pytest

from ddtui.collect.unit_older import Configured, Environment, Starts, environment_of
from ddtui.collect.unit_start import Start

FRAGMENT = "/etc/systemd/system/llm.service"
DROP_IN = f"{FRAGMENT}.d/10-own.conf"
BEGAN, NOW = 1000.0, 5000.0
COMMAND = ("/opt/venv/bin/python", "-m", "sglang.launch_server", "--port", "30000")
UNIT = Configured(("A=new", "B=1"), COMMAND, frozenset({FRAGMENT, DROP_IN}))
START = Start({"A": "new", "B": "1"}, written=((900.0, FRAGMENT), (900.0, DROP_IN)))
EDITED = ((1001.0, FRAGMENT), (900.0, DROP_IN))
TOUCHED = msgspec.structs.replace(START, written=EDITED)


def unit(*pairs: str, **changes: object) -> Configured:
    return msgspec.structs.replace(UNIT, pairs=pairs or UNIT.pairs, **changes)


def start(variables: dict[str, str] | None, **changes: object) -> Start:
    return msgspec.structs.replace(START, variables=variables, **changes)


class Watch:
    """Looks at a unit, one look after the other."""

    def __init__(self, *, witnessed: bool = False) -> None:
        self.starts = Starts()
        if witnessed:
            self.look(began=None)

    def look(
        self,
        now: Configured = UNIT,
        process: Start = START,
        *,
        command: tuple[str, ...] = COMMAND,
        began: float | None = BEGAN,
        invocation: str = "one",
    ) -> Environment:
        return environment_of(now, process, command, began, NOW, (self.starts, invocation))


def values(found: Environment) -> dict[str, str]:
    return dict(pair.partition("=")[::2] for pair in found.pairs)


SAME = Environment(("A=new", "B=1"), read=True)


class TestWhatTheUnitWasAtTheStart:
    """Seen here, or nothing was changed since."""

    @pytest.mark.parametrize("witnessed", [True, False])
    @pytest.mark.parametrize("variables", [{"A": "new", "B": "1"}, None])
    def test_nothing_is_older_where_nothing_was_changed(
        self, witnessed: bool, variables: dict[str, str] | None
    ) -> None:
        assert Watch(witnessed=witnessed).look(process=start(variables)) == SAME

    @pytest.mark.parametrize("witnessed", [True, False])
    @pytest.mark.parametrize("variables", [{"A": "new", "B": "1"}, None])
    def test_an_edit_is_known_whether_the_process_may_be_read_or_not(
        self, witnessed: bool, variables: dict[str, str] | None
    ) -> None:
        watch = Watch(witnessed=witnessed)
        watch.look(process=start(variables))
        edited = unit("A=newer", "HF_TOKEN=hf_x", exec_start=("/opt/other",))
        found = watch.look(edited, start(variables, written=EDITED))
        assert (values(found), found.read) == ({"A": "new", "B": "1"}, True)
        assert found.older == (
            "B was set by the unit at the start, and is no more",
            "ExecStart is another one than at the start",
        )
        assert found.doubts == ()

    def test_a_reload_after_the_start_is_an_edit(self) -> None:
        """Edited, restarted without a reload, reloaded last: no file is newer than the start."""
        watch = Watch(witnessed=True)
        assert watch.look(unit(needs_reload=True)).older == ()
        found = watch.look(unit("A=later"))
        assert values(found)["A"] == "new"
        assert found.older == ("B was set by the unit at the start, and is no more",)

    def test_a_drop_in_that_goes_with_its_folder_is_seen(self) -> None:
        watch = Watch()
        watch.look()
        gone = unit("A=new", files=frozenset({FRAGMENT}))
        (reason,) = watch.look(gone, start(START.variables, written=START.written[:1])).older
        assert reason == "B was set by the unit at the start, and is no more"

    @pytest.mark.parametrize("variables", [{"A": "new", "B": "1"}, None])
    def test_a_touch_changes_nothing(self, variables: dict[str, str] | None) -> None:
        watch = Watch()
        watch.look(process=start(variables))
        assert watch.look(process=start(variables, written=EDITED)) == SAME

    @pytest.mark.parametrize("variables", [{"A": "newer"}, None])
    def test_right_after_a_start_nothing_is_older(self, variables: dict[str, str] | None) -> None:
        """Whatever was, and whatever the program or the start itself makes of it: no loop."""
        watch = Watch()
        watch.look()
        watch.look(unit("A=newer"), TOUCHED)
        found = watch.look(unit("A=newer"), start(variables, written=EDITED), invocation="two")
        assert (found.older, values(found)) == ((), {"A": "newer"})
        program = start({"A": "other"}, others=frozenset({"CUDA_FOO"}), written=EDITED)
        found = watch.look(unit("A=newer"), program, invocation="three")
        assert (found.older, values(found)) == ((), {"A": "newer"})
        assert (found.doubts, found.overridden) == ((), ("A=other",))

    def test_what_a_program_sets_itself_is_told_as_that(self) -> None:
        again = start({"A": "/opt/cuda:new"})  # it has executed itself with another environment
        found = Watch(witnessed=True).look(process=again)
        assert found == msgspec.structs.replace(SAME, overridden=("A=/opt/cuda:new", "B"))
        found = Watch().look(process=again)  # its start was not seen: it may be an older unit's
        assert (found.pairs, found.older) == (SAME.pairs, ())
        (doubt,) = found.doubts
        assert doubt.startswith("A is another one in the process than in the unit, and no file")

    @pytest.mark.parametrize(
        "exec_start",
        [("/usr/bin/env", "A=own", *COMMAND), ("/bin/bash", "-c", "export A=own; exec python")],
    )
    def test_env_and_shells_may_set_what_they_like(self, exec_start: tuple[str, ...]) -> None:
        own = start({"A": "own", "B": "1"})
        found = Watch().look(unit(exec_start=exec_start), own)
        assert (found.pairs, found.older, found.doubts) == (SAME.pairs, (), ())

    def test_secrets_are_compared_and_never_told(self) -> None:
        watch = Watch()
        watch.look(unit("HF_TOKEN=hf_old"), start(None))
        found = watch.look(unit("HF_TOKEN=hf_new"), start(None, written=EDITED))
        assert values(found) == {"HF_TOKEN": "<redacted>"}
        assert found.older == (
            "HF_TOKEN (a secret) is another one in the process than in the unit",
        )
        found = watch.look(unit("HF_TOKEN=hf_a"), start({"HF_TOKEN": "hf_b"}), invocation="two")
        assert found.overridden == ("HF_TOKEN=<redacted>",)

    def test_a_start_that_nobody_saw_is_not_taken_for_seen(self) -> None:
        watch = Watch()
        watch.look()
        watch.starts.interrupted()
        found = watch.look(process=start(None, written=EDITED), invocation="two")
        assert (found.older, found.read) == ((), False)
        assert found.doubts


class TestChangedBeforeAnybodyLooked:
    def test_what_the_process_has_counts(self) -> None:
        found = Watch().look(process=start({"A": "old"}, written=EDITED))
        assert (values(found), found.read, found.older) == ({"A": "old"}, True, ())

    def test_an_edit_that_changes_no_variable_is_no_news(self) -> None:
        assert Watch().look(process=TOUCHED) == SAME

    def test_variables_that_others_set_are_no_difference(self) -> None:
        process = start(START.variables, written=EDITED, others=frozenset({"CUDA_FOO"}))
        assert Watch().look(process=process) == SAME

    def test_a_file_of_variables_hides_what_the_unit_sets_itself(self) -> None:
        process = start({"A": "new"}, in_files=frozenset({"B"}), written=EDITED)
        assert Watch().look(process=process) == SAME

    def test_what_env_sets_in_exec_start_is_the_units(self) -> None:
        exec_start = ("/usr/bin/env", "A=own", *COMMAND)
        process = start({"A": "own", "B": "1"}, written=EDITED)
        assert Watch().look(unit(exec_start=exec_start), process) == SAME

    @pytest.mark.parametrize("path", [FRAGMENT, DROP_IN, f"{FRAGMENT}.d"])
    def test_where_it_may_not_be_read_a_newer_file_is_a_doubt(self, path: str) -> None:
        found = Watch().look(process=start(None, written=((1001.0, path),)))
        assert (found.pairs, found.read, found.older) == (UNIT.pairs, False, ())
        assert found.doubts == (
            f"{path} was changed after the start, and the variables of the process may not be read",
        )

    @pytest.mark.parametrize(
        ("exec_start", "direct"),
        [
            (("/opt/run.sh",), False),
            (("/opt/new/bin/python", *COMMAND[1:]), False),
            (("/usr/bin/env", "C=1", *COMMAND), True),
            ((*COMMAND[:3], "$FLAGS"), True),
        ],
    )
    def test_another_program_than_execstarts_is_a_doubt(
        self, exec_start: tuple[str, ...], direct: bool
    ) -> None:
        found = Watch().look(unit(exec_start=exec_start), TOUCHED)
        assert (found.read, found.older) == (direct, ())
        assert any("what runs is not the program of" in each for each in found.doubts) is not direct

    def test_secrets_are_compared_and_never_told(self) -> None:
        process = start({"HF_TOKEN": "hf_old"}, written=EDITED)
        found = Watch().look(unit("HF_TOKEN=hf_new"), process)
        assert values(found) == {"HF_TOKEN": "<redacted>"}
        assert found.older == (
            "HF_TOKEN (a secret) is another one in the process than in the unit",
        )
        (doubt,) = Watch().look(unit("HF_TOKEN=hf_old", needs_reload=True), process).doubts
        assert doubt == f"{FRAGMENT} was changed after the start, and systemd has not read it yet"


@pytest.mark.parametrize("witnessed", [True, False])
def test_a_file_of_variables_that_was_changed_is_a_doubt(witnessed: bool) -> None:
    """ExecStartPost may write it at each start."""
    process = start(START.variables, written=((1001.0, "/etc/llm.env"),))
    found = Watch(witnessed=witnessed).look(process=process)
    assert (found.older, found.pairs) == ((), SAME.pairs)
    assert found.doubts == ("/etc/llm.env was changed after the start that reads it",)


@pytest.mark.parametrize(
    "written",
    [
        (1000.0, FRAGMENT),  # the same second
        (6000.0, FRAGMENT),  # a clock that was set back
        (1001.0, "/run/systemd/generator/x"),
        (1001.0, "/etc/systemd/system.control/llm.service.d/50-MemoryHigh.conf"),
        (1001.0, "/run/systemd/system.control/llm.service.d"),
    ],
)
def test_what_proves_nothing_is_no_doubt(written: tuple[float, str]) -> None:
    files = UNIT.files | {written[1]}
    found = Watch().look(unit(files=files), start(None, written=(written,)))
    assert (found.older, found.doubts) == ((), ())
