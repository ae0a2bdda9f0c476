"""`ddtui results`: from the store only, in every format, whatever the terminal's width."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

from ddtui.cli.exit_codes import ExitCode
from ddtui.cli.output import Paint
from ddtui.cli.results_table import table_lines
from ddtui.core.experiment import ExperimentState
from ddtui.core.width import cell_len
from ddtui.experiments.columns import Column, columns_of
from ddtui.experiments.fitting import fitted
from ddtui.experiments.results import ResultsView, results_view
from ddtui.store import Store
from tests.unit.cli.conftest import Run
from tests.unit.experiments.results_world import (
    cell,
    experiment,
    measured,
    seed_experiments,
    seed_measurements,
)


@pytest.fixture
def plain() -> Paint:
    paint = Paint()
    paint.enabled = False
    return paint


@pytest.fixture
def stored() -> None:
    store = Store.open()
    try:
        failed = experiment(
            64,
            state=ExperimentState.FAILED,
            measurement="",
            cause={"title": "out of memory", "remedy": "lower mem_fraction"},
        )
        store.experiments.put([*seed_experiments(), failed])
        for each in seed_measurements():
            store.measurements.put(each)
            store.measurements.put(
                msgspec.structs.replace(each, id=f"{each.id}-demo", host="demo", simulated=True)
            )
    finally:
        store.close()


def view_of(**more: Any) -> ResultsView:
    return results_view("ct200", seed_measurements(), seed_experiments(), **more)


def test_the_table(plain: Paint) -> None:
    lines = list(table_lines(view_of(), 120, plain))
    assert lines[:2] == [
        "Results of ct200",
        "concurrency 1; baseline: budget 12 topk 4; a tie: within 1.0 %",
    ]
    assert lines[3:7] == [
        "configuration     tok/s/user     ±        Δ  verdict   accept  accept×  step ms  step×"
        "  nodes used  coding  flips",
        "budget 12 topk 4       149.0  2.09        –  baseline    4.81        –     32.3      –"
        "        32 %     5/5      –",
        "budget 8 topk 4        170.0  2.38  +14.1 %  faster      4.30    ×0.89     25.3  ×0.78"
        "        41 %     5/5  +0 -0",
        "budget 16 topk 4       147.5  2.07   -1.0 %  tie         5.04    ×1.05     34.2  ×1.06"
        "        25 %     4/5  +0 -1",
    ]
    assert lines[8] == (
        "left out at this width: TTFT ms, tok/s total, 95 %, load s, why"
        " (--format csv has everything)"
    )


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 160, 200])
def test_the_table_is_no_wider_than_the_terminal(width: int, plain: Paint) -> None:
    long = [
        msgspec.structs.replace(each, title=f"{each.title} 漢字 with a very long name of its own")
        for each in seed_measurements()
    ]
    view = results_view("ct200", long, [])
    lines = list(table_lines(view, width, plain))
    assert max(cell_len(line) for line in lines[3 : 4 + len(view.rows)]) <= width
    kept, left_out = fitted(columns_of(view), width)
    assert {"configuration", "tok/s/user", "verdict"} <= {column.title for column in kept}
    assert {column.title for column in kept} | {*left_out} == {
        column.title for column in columns_of(view)
    }


def test_columns_go_by_importance() -> None:
    columns = [
        Column("a", ("xxxxx",), 0, right=False),
        Column("b", ("xxxxx",), 3),
        Column("c", ("xxxxx",), 9),
        Column("d", ("xxxxx",), 1),
    ]
    assert [column.title for column in fitted(columns, 26)[0]] == ["a", "b", "c", "d"]
    assert fitted(columns, 20)[1] == ["c"]
    assert fitted(columns, 13)[1] == ["b", "c"]
    assert fitted(columns, None)[1] == []


def test_colours_only_where_asked(plain: Paint) -> None:
    bright = Paint()
    bright.enabled = True
    assert "\x1b[32m" not in "\n".join(table_lines(view_of(), 120, plain))
    coloured = "\n".join(table_lines(view_of(), 120, bright))
    assert "\x1b[32;1mfaster" in coloured


@pytest.mark.usefixtures("stored")
def test_the_verb_reads_the_store(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)  # into a pipe, as wide as it is
    result = run("results", "ct200")
    assert result.exit_code == 0
    assert "budget 16 topk 4" in result.stdout
    assert "budget 64 topk 4: failed: out of memory (lower mem_fraction)" in result.stdout
    assert "left out" not in result.stdout
    simulated = run("results", "demo").stdout
    assert simulated.startswith("Results of demo (simulated)")


@pytest.mark.usefixtures("stored")
def test_every_format_on_standard_output(run: Run) -> None:
    lines = list(csv.DictReader(io.StringIO(run("results", "ct200", "--format", "csv").stdout)))
    assert [line["verdict"] for line in lines] == ["baseline", "faster", "tie", "failed"]
    for options in (["--format", "json"], ["--json"]):
        document = json.loads(run("results", "ct200", *options).stdout)
        assert [row["state"] for row in document["rows"]][-1] == "failed"
    report = run("results", "ct200", "--format", "md")
    assert report.stdout.startswith("# Results of ct200")
    assert "![" not in report.stdout
    assert "the charts are left out" in report.stderr
    ElementTree.fromstring(run("results", "ct200", "--format", "svg").stdout)


@pytest.mark.usefixtures("stored")
def test_a_report_with_its_charts_beside_it(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "my report.md"
    result = run("results", "ct200", "--format", "md", "--out", str(file))
    assert result.exit_code == 0
    assert result.stdout == ""
    drawings = sorted(path.name for path in tmp_path.glob("*.svg"))
    assert drawings == [
        "my report-acceptance-length-budget.svg",
        "my report-user-rate-budget.svg",
    ]
    assert "](my%20report-user-rate-budget.svg)" in file.read_text()
    for name in drawings:
        ElementTree.parse(tmp_path / name)
    assert not list(tmp_path.glob(".*.new"))


@pytest.mark.usefixtures("stored")
def test_a_file_that_cannot_be_written(run: Run, tmp_path: Path) -> None:
    result = run("results", "ct200", "--format", "csv", "--out", str(tmp_path / "no" / "x.csv"))
    assert result.exit_code == ExitCode.FAILED
    assert "error: cannot write" in result.stderr
    assert "No such file or directory" in result.stderr


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["--baseline", "nothing"], "nothing measured is called 'nothing'"),
        (["--sweep", "nothing"], "there is no sweep 'nothing'; known: budgets"),
        (["--concurrency", "7"], "nothing was measured at concurrency 7"),
    ],
)
def test_what_there_is_not(run: Run, options: list[str], what: str) -> None:
    result = run("results", "ct200", *options)
    assert result.exit_code == ExitCode.USAGE
    assert what in result.stderr
    assert result.stdout == ""
    failure = json.loads(run("results", "ct200", *options, "--format", "json").stdout)["error"]
    assert what in failure["why"]


@pytest.mark.usefixtures("config_file")
def test_nothing_measured_yet(run: Run) -> None:
    result = run("results", "ct200")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "nothing was measured on ct200 yet: ddtui bench ct200\n"
    for host, simulated in (("ct200", False), ("demo", True)):
        found = json.loads(run("results", host, "--json").stdout)
        assert (found["rows"], found["simulated"]) == ([], simulated)
    assert run("queue", "ct200", "add", "--set", "budget=8").exit_code == 0
    waiting = run("results", "ct200")
    assert waiting.stderr == (
        "nothing was measured on ct200 yet, and 1 experiment waits: ddtui run ct200\n"
    )
    assert run("results", "ct200", "--format", "csv").stdout.startswith("host,simulated,title")


@pytest.mark.usefixtures("config_file")
@pytest.mark.parametrize("form", ["table", "csv", "json", "md", "svg"])
def test_nothing_measured_is_written_nowhere(run: Run, tmp_path: Path, form: str) -> None:
    file = tmp_path / "results"
    file.write_text("of yesterday")
    result = run("results", "ct200", "--format", form, "--out", str(file))
    assert result.exit_code == 0
    if form == "json":
        assert json.loads(result.stdout) == {"written": []}
    else:
        assert result.stdout == ""
    assert "results is not written: there is nothing to write" in result.stderr
    assert file.read_text() == "of yesterday"


@pytest.mark.parametrize("words", [["results", "ct20"], ["queue", "ct20"]])
def test_an_unknown_host_is_an_error(run: Run, config_file: Path, words: list[str]) -> None:
    assert "ct200" in config_file.read_text()
    result = run(*words)
    assert (result.exit_code, result.stdout) == (ExitCode.USAGE, "")
    assert result.stderr.startswith("error: nothing ")
    assert "and no host of this name is configured; did you mean 'ct200'?" in result.stderr
    assert run(words[0], "ct200").exit_code == 0


@pytest.mark.usefixtures("config_file")
def test_an_alias_that_has_something_stored_is_known(run: Run) -> None:
    for verb in ("results", "queue"):
        assert run(verb, "alias").exit_code == ExitCode.USAGE
    store = Store.open()
    store.experiments.put([experiment(8, host="alias", measurement="")])
    store.close()
    for verb in ("results", "queue"):
        assert run(verb, "alias").exit_code == 0


@pytest.mark.usefixtures("stored")
def test_a_pipe_gets_the_report_without_charts(run: Run, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    told = run("results", "ct200", "--format", "md", "--out", str(pipe))
    assert told.exit_code == ExitCode.FAILED
    assert "nobody reads this pipe: start its reader first" in told.stderr
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(reading, "rb") as stream:
        result = run("results", "ct200", "--format", "md", "--out", str(pipe))
        text = stream.read().decode()
    assert result.exit_code == 0
    assert text.startswith("# Results of ct200")
    assert "![" not in text
    assert "the charts are left out" in result.stderr
    assert pipe.is_fifo()
    assert not list(tmp_path.glob("pipe*.svg"))


def test_what_to_know_is_told_beneath(plain: Paint) -> None:
    rows = [
        measured(8, (cell(170.0, failed=2),), disturbed=("14 requests of others",)),
        measured(12, (cell(149.0),)),
    ]
    lines = list(table_lines(results_view("ct200", rows, []), None, plain))
    assert "  budget 8 topk 4: disturbed: 14 requests of others" in lines
    assert "  budget 8 topk 4: 2 of 32 requests failed" in lines
    assert "disturbed, 2 requests lost" in lines[4]


def test_titles_are_cut_as_far_as_they_still_differ() -> None:
    titles = ("budget 8 topk 4 window 2048", "budget 8 topk 4 window none")
    columns = [Column("title", titles, 0, right=False), Column("b", ("x" * 5, ""), 3)]
    kept, left_out = fitted(columns, 33)  # with a title of 26 they differ
    assert left_out == []
    assert kept[0].texts[0] != kept[0].texts[1]
    kept, left_out = fitted(columns, 31)
    assert left_out == ["b"]
    assert kept[0].texts == titles


def test_what_went_before_a_wide_column_comes_back_where_it_leaves_room() -> None:
    columns = [
        Column("a", ("xxxxx",), 0, right=False),
        Column("wide", ("x" * 40,), 1),
        Column("b", ("xxxxx",), 2),
        Column("c", ("x" * 30,), 3),
    ]
    kept, left_out = fitted(columns, 46)
    assert ([column.title for column in kept], left_out) == (["a", "b", "c"], ["wide"])
    kept, left_out = fitted(columns, 40)
    assert ([column.title for column in kept], left_out) == (["a", "b"], ["wide", "c"])
