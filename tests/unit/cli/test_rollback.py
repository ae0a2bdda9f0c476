"""`ddtui rollback` on the simulated host: what it will change is shown before anything is asked."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from ddtui.cli.exit_codes import ExitCode
from ddtui.control import simulated
from ddtui.control.drop_in import text_hash
from ddtui.core.change_record import ChangeRecord
from ddtui.store import Store
from tests.unit.cli.conftest import Run

UNIT = "llm-sglang.service"
EARLIER = """[Service]
ExecStart=
ExecStart=/opt/sglang/bin/python -m sglang.launch_server --model-path /models/earlier --port 30000
"""


@pytest.fixture(autouse=True)
def an_earlier_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was in force on this simulated host."""
    monkeypatch.setattr(simulated, "_LOADED", 0.0)
    monkeypatch.setenv("DDTUI_DATA_DIR", str(tmp_path / "store"))
    store = Store.open()
    store.reconfigurations.put(
        ChangeRecord(
            id="1",
            kind="apply",
            host="demo",
            simulated=True,
            unit=UNIT,
            scope="system",
            who="me",
            began=1000.0,
            ended=1100.0,
            ending="in force",
            drop_in=EARLIER,
            drop_in_hash=text_hash(EARLIER),
        )
    )
    store.close()


def test_it_shows_what_it_changes_before_it_asks(run: Run) -> None:
    result = run("rollback", "demo")
    assert result.exit_code == ExitCode.BLOCKED
    shown, _, asked = result.stderr.partition("nothing was changed: there is no terminal")
    assert "BEFORE" in shown
    assert "/models/earlier" in shown
    assert shown.startswith("back to change 1 (apply, ")
    assert asked


def test_what_changed_another_simulated_host_is_not_undone(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulated, "_LOADED", 2000.0)
    result = run("rollback", "demo", "--yes")
    assert result.exit_code == ExitCode.BLOCKED
    assert simulated.NOTHING_CHANGED in result.stderr
    assert "change 1" not in result.stderr
    store = Store.open()
    assert [each.id for each in store.reconfigurations.history("demo", simulated=True)] == ["1"]
    store.close()


def test_a_dry_run_changes_nothing(run: Run) -> None:
    result = run("rollback", "demo", "--dry-run", "--yes", "--json")
    assert result.exit_code == 0
    changes = {each["name"]: each["after"] for each in json.loads(result.stdout)["changes"]}
    assert changes["model-path"] == "/models/earlier"
    store = Store.open()
    assert [each.id for each in store.reconfigurations.history("demo", simulated=True)] == ["1"]
    store.close()
    told = run("apply", "demo", "--set", "budget=16", "--dry-run")
    assert told.exit_code == 0
    assert "--dry-run: nothing was changed; the checks find nothing wrong" in told.stderr


def test_the_history_of_an_unknown_host_says_so(run: Run, config_file: Path) -> None:
    assert "ct200" in config_file.read_text()
    near = run("history", "ct20")
    assert (near.exit_code, near.stdout) == (ExitCode.USAGE, "")
    assert near.stderr.startswith("error: no change of ct20 was made from here, and")
    assert "no host of this name is configured; did you mean 'ct200'?" in near.stderr
    far = run("history", "xyz", "--json")
    assert far.exit_code == json.loads(far.stdout)["error"]["status"] == ExitCode.USAGE
    assert "no host of this name is configured (configured: ct200, mine" in far.stderr
    configured = run("history", "ct200", "--unit", "llm", "--json")
    assert (configured.exit_code, json.loads(configured.stdout)) == (0, [])
    assert configured.stderr == "no change of llm on ct200 was made from here\n"


def test_an_ssh_alias_that_was_changed_has_a_history(run: Run) -> None:
    store = Store.open()
    (record,) = store.reconfigurations.history("demo", simulated=True)
    store.reconfigurations.put(
        msgspec.structs.replace(record, id="2", host="alias", simulated=False)
    )
    store.close()
    assert run("history", "alias").exit_code == 0


def test_a_replaced_unit_is_gone_back_past_by_force_only(run: Run) -> None:
    store = Store.open()
    (record,) = store.reconfigurations.history("demo", simulated=True)
    of_another = f"# Made by ddtui\n# base: {'0' * 64}\n{EARLIER}"
    store.reconfigurations.put(
        msgspec.structs.replace(
            record, drop_in=of_another, drop_in_hash=text_hash(of_another), doubt="no report"
        )
    )
    store.close()
    refused = run("rollback", "demo", "--yes")
    assert refused.exit_code == ExitCode.BLOCKED
    assert "--force" in refused.stderr
    forced = run("rollback", "demo", "--force", "--dry-run", "--json")
    assert forced.exit_code == 0
    told = json.loads(forced.stdout)
    assert (told["blocked"], told["findings"][0]["rule"]) == (False, "unit-replaced")
    assert "in force (no report)" in run("history", "demo").stdout
    result = run("history", "demo", "--json")
    assert result.exit_code == 0, result.output
    (kept,) = json.loads(result.stdout)
    assert (kept["ending"], kept["doubt"]) == ("in force", "no report")


def with_processes(*processes: str, **fields: object) -> None:
    """The store's change once more for each process that had a simulated host."""
    store = Store.open()
    (record,) = store.reconfigurations.history("demo", simulated=True)
    for n, process in enumerate(processes):
        store.reconfigurations.put(
            msgspec.structs.replace(
                record,
                id=f"{n}" * 32,
                state=msgspec.structs.replace(record.state, process=process),
                **fields,
            )
        )
    store.close()


def test_the_history_counts_simulated_hosts(run: Run) -> None:
    shown = run("history", "demo")
    assert shown.stderr == "made on a simulated host that lives as long as its command\n"
    with_processes("a", "a", "a")
    shown = run("history", "demo")
    assert len(shown.stdout.splitlines()) == 5
    assert shown.stderr.startswith("made on 2 simulated hosts, each ")


def test_the_history_tells_what_becomes_of_an_open_change(run: Run) -> None:
    with_processes("a", ending="", ended=None)
    assert run("history", "demo").stderr.endswith("; what has not ended by then never does\n")


def test_a_narrow_history_keeps_what_was_changed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    change = {
        "kind": "flag",
        "name": "speculative-dflash-block-size",
        "before": "16",
        "after": "8",
        "knob": "",
    }
    other = {"kind": "flag", "name": "page-size", "before": "1", "after": "64", "knob": ""}
    with_processes("a", changes=[change, other])
    for width in (120, 80, 60):
        monkeypatch.setenv("COLUMNS", str(width))
        shown = run("history", "demo").stdout
        assert max(map(len, shown.splitlines())) <= width
        assert "block_size 16 → 8" in shown
