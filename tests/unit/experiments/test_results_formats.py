"""CSV, JSON, Markdown and the commands: stable, whole, and safe whatever the texts say."""

from __future__ import annotations

import csv
import io
import re
import shlex
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from markdown_it import MarkdownIt

from ddtui.config.assignments import parse_assignments
from ddtui.config.bench_plan_tables import BUILT_IN
from ddtui.config.bench_plans import read_plans
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.experiment import ExperimentState
from ddtui.core.launch import Request
from ddtui.experiments.export import COLUMNS, Document, csv_text, json_text
from ddtui.experiments.markdown_report import escaped, fenced, markdown_text
from ddtui.experiments.reproducing import assignments_of, commands_of, plan_options
from ddtui.experiments.results import ResultsView, results_view
from tests.unit.experiments.results_world import (
    cell,
    experiment,
    measured,
    seed_experiments,
    seed_measurements,
)

HOSTILE = '=cmd|"/c calc"!A1 | <script>x</script> [a](http://x) `$(id)` ## *b* \n# c'


def seed_view() -> ResultsView:
    failed = experiment(
        64, state=ExperimentState.FAILED, measurement="", cause={"title": "out of memory"}
    )
    return results_view("ct200", seed_measurements(), [*seed_experiments(), failed])


def hostile_view() -> ResultsView:
    title = {"title": HOSTILE, "disturbed": (HOSTILE,), "cause": HOSTILE}
    queue = [experiment(8, title=HOSTILE, hypothesis=HOSTILE, note=HOSTILE, sweep=HOSTILE)]
    rows = [measured(8, (cell(170.0),), **title), measured(12, (cell(149.0),))]
    return results_view("ct200", rows, queue)


def lines_of(view: ResultsView) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(csv_text(view), newline="")))


def test_csv_has_a_line_a_row_and_cell_with_the_same_columns_always() -> None:
    lines = lines_of(seed_view())
    assert list(lines[0]) == list(COLUMNS)
    assert [line["title"].split(" topk")[0] for line in lines] == [
        *("budget 12", "budget 8", "budget 16", "budget 64")
    ]
    eight, failed = lines[1], lines[3]
    assert eight["verdict"] == "faster"
    assert float(eight["user_rate"]) == 170
    assert float(eight["user_rate_ratio"]) == pytest.approx(170 / 149, abs=1e-5)
    assert eight["repeats"] == "3"
    assert (eight["coding_passed"], eight["coding_total"]) == ("5", "5")
    assert eight["knob_budget"] == "8"
    assert eight["began"] == "1008"
    # Not measured is empty, never 0.
    assert failed["verdict"] == "failed"
    assert failed["cause"] == "out of memory"
    assert all(failed[name] == "" for name in ("user_rate", "requests", "failed", "steady"))
    assert csv_text(results_view("ct200", [], [])).splitlines() == [",".join(COLUMNS)]


def test_csv_compares_each_concurrency_with_its_own() -> None:
    rows = [
        measured(8, (cell(170.0), cell(60.0, concurrency=8))),
        measured(12, (cell(149.0), cell(66.0, concurrency=8))),
    ]
    lines = lines_of(results_view("ct200", rows, []))
    assert [(line["concurrency"], line["verdict"]) for line in lines] == [
        *(("1", "baseline"), ("8", "baseline"), ("1", "slower"), ("8", "faster"))
    ]


def test_csv_has_nothing_that_a_spreadsheet_runs() -> None:
    for line in lines_of(hostile_view()):
        for name, value in line.items():
            harmless = not value.startswith(("=", "+", "-", "@", "\t", "\r"))
            assert harmless or re.fullmatch(r"-?[\d.e+-]+", value), (name, value)
    assert lines_of(hostile_view())[0]["title"].startswith("'=cmd")


def test_json_holds_everything_and_can_be_read_back() -> None:
    text = json_text(seed_view())
    found = msgspec.json.decode(text, type=Document)
    assert found.schema == 1
    assert [row.title.split(" topk")[0] for row in found.rows][-1] == "budget 64"
    eight = found.rows[1]
    assert eight.measurements[0].provenance.argv[1:3] == ("-m", "sglang.launch_server")
    assert eight.cells[0].user_rate is not None
    assert len(eight.cells[0].user_rate.values) == 3
    assert eight.comparison.reason == "a pass brings less, and is much shorter"
    assert found.rows[-1].cells == ()
    assert "NaN" not in text


def test_the_report_has_all_its_parts() -> None:
    text = markdown_text(seed_view(), {"r-pareto.svg": "tok/s", "a b).svg": "x"}, 1_700_000_000.0)
    heads = [line for line in text.splitlines() if line.startswith("## ")]
    assert heads == [
        *("## Configurations", "## What stands out", "## Charts", "## Failed", "## Coding tasks"),
        *("## Provenance", "## Each configuration"),
    ]
    assert "Written 2023-11-14 22:13 UTC" in text
    assert "![tok/s](r-pareto.svg)" in text
    assert "![x](a%20b%29.svg)" in text
    assert "| budget 64 topk 4 | out of memory |" in text
    assert "8 × RTX PRO 6000" in text
    assert "ddtui apply ct200 --set budget=16 --set topk=4 && ddtui bench ct200 --plan mine" in text


def test_a_simulated_report_says_so_first() -> None:
    plain = [msgspec.structs.replace(each, simulated=True) for each in seed_measurements()]
    text = markdown_text(results_view("demo", plain, []), {}, 0.0)
    assert text.startswith("# Results of demo (simulated)\n\n**All figures are of a simulated host")


def test_hostile_texts_are_only_text_in_markdown() -> None:
    text = markdown_text(hostile_view(), {}, 0.0)
    html = MarkdownIt("commonmark").enable("table").render(text)
    plain = markdown_text(
        results_view("ct200", [measured(8, (cell(170.0),)), measured(12, (cell(149.0),))], []),
        {},
        0.0,
    )
    innocent = MarkdownIt("commonmark").enable("table").render(plain)
    tags = set(re.findall(r"<(\w+)", html))
    assert tags == set(re.findall(r"<(\w+)", innocent))
    assert "<h1>c" not in html
    for table in re.findall(r"(?s)<table>.*?</table>", html):
        rows = re.findall(r"(?s)<tr>.*?</tr>", table)
        assert len({len(re.findall(r"<t[hd]\b", row)) for row in rows}) == 1
    assert "&lt;script&gt;x&lt;/script&gt; [a](http://x) `$(id)` ## *b*" in html


@pytest.mark.parametrize(
    ("words", "markdown"),
    [
        ("a|b", r"a\|b"),
        ("<b>&amp;", r"\<b\>\&amp;"),
        ("- x", r"\- x"),
        ("a - b", "a - b"),
        ("http://x www.y", r"http\://x www\.y"),
        ("budget 8: 14 %", "budget 8: 14 %"),
    ],
)
def test_escaping(words: str, markdown: str) -> None:
    assert escaped(words) == markdown


def test_a_command_cannot_end_its_block() -> None:
    assert fenced("echo ````") == ["`````sh", "echo ````", "`````"]


def test_commands_say_the_same_as_the_request() -> None:
    request = Request(
        knobs={"budget": 8, "window": None, "graphs_off": True, "mem_fraction": 0.85},
        flags={"enable-metrics": True, "disable-radix-cache": None, "cuda-graph-bs": "1 2 4"},
        environment={"NCCL_DEBUG": None, "X": "it's; rm -rf $HOME"},
    )
    command, left_out = commands_of("ct200", experiment(8, request=request), None)
    assert left_out == ()
    words = shlex.split(command)
    sets = [after for word, after in pairwise(words) if word == "--set"]
    asked = parse_assignments(sets)
    assert (asked.knobs, asked.environment) == (request.knobs, request.environment)
    assert asked.flags == request.flags
    # A real shell takes every word as it is.
    said = subprocess.run(
        ["bash", "-c", f"ddtui() {{ printf '%s\\n' \"$@\"; }}; {command}"],
        capture_output=True,
        text=True,
        check=True,
        env={"HOME": "/nowhere", "PATH": "/usr/bin:/bin"},
    ).stdout
    assert said.splitlines() == [
        word for word in shlex.split(command) if word not in {"ddtui", "&&"}
    ]


def test_a_simulated_host_is_loaded_and_measured_by_one_verb() -> None:
    """It ends with the verb that starts it: `bench` would measure another one than `apply`."""
    asked = msgspec.structs.replace(
        experiment(8, request=Request(knobs={"budget": 8}), plan=BUILT_IN["glance"]), simulated=True
    )
    command, _ = commands_of("demo", asked, None)
    assert command == (
        "ddtui queue demo add --first --set budget=8 --plan glance && ddtui run demo --once"
    )
    by_hand = measured(8, (cell(170.0),), simulated=True)
    assert commands_of("demo", None, by_hand)[0].endswith(" && ddtui run demo --once")


def test_a_secret_is_left_out_and_named() -> None:
    request = Request(
        knobs={"budget": 8},
        flags={"api-key": "sesame-1"},
        environment={"HF_TOKEN": "hf_abcdefghijklmnopqrstuvwx", "B": "hf_abcdefghijklmnopqrstuvwx"},
    )
    words, left_out = assignments_of(request)
    assert words == ["budget=8"]
    assert left_out == ("flag:api-key", "env:HF_TOKEN", "env:B")


def test_a_secret_of_an_external_bench_that_failed_is_in_no_format() -> None:
    plan = BenchPlan(command=("bench", "--api-key", "s3cr3t-1"))
    failed = experiment(
        64, plan=plan, state=ExperimentState.FAILED, measurement="", cause={"title": "no results"}
    )
    view = results_view("ct200", [], [failed])
    for text in (csv_text(view), json_text(view), markdown_text(view, {}, 0.0)):
        assert "external bench: bench" in text
        assert "s3cr3t-1" not in text


def test_a_plan_by_its_name() -> None:
    assert plan_options(BenchPlan()) == ([], [], ())
    assert plan_options(BUILT_IN["quick"]) == ([], ["--plan", "quick"], ())
    mine = BenchPlan(name="mine", repeats=9)
    assert plan_options(mine) == ([], ["--plan", "mine"], ())


@pytest.mark.parametrize(
    "plan",
    [
        msgspec.structs.replace(BUILT_IN["quick"], repeats=9),
        BenchPlan(name="", concurrency=(1, 8), temperature=0.6, coding=False, thinking=True),
        BenchPlan(prompts="my 'own\" \\set.jsonl", command=("python3", "-m", "it's", "$HOME")),
    ],
)
def test_another_plan_is_written_into_a_file_first(plan: BenchPlan, tmp_path: Path) -> None:
    asked = experiment(8, plan=plan)
    command, left_out = commands_of("ct200", asked, None)
    assert left_out == ()
    said = subprocess.run(
        ["bash", "-c", f'ddtui() {{ echo "$@"; }}; {command}'],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    ).stdout
    (file,) = tmp_path.glob("bench-*.toml")
    assert said.splitlines()[1] == f"bench ct200 --plan {file.name}"
    (found,) = read_plans(file).values()
    assert msgspec.structs.replace(found, name="") == msgspec.structs.replace(plan, name="")


def test_an_external_bench_with_a_secret_cannot_be_told() -> None:
    plan = BenchPlan(command=("bench", "--api-key", "sesame-1"))
    command, left_out = commands_of("ct200", experiment(8, plan=plan), None)
    assert "sesame" not in command
    assert left_out == ("bench command",)


def test_several_units_are_named() -> None:
    rows: list[Any] = [
        measured(8, (cell(170.0),), experiment=""),
        measured(12, (cell(149.0),), experiment="", unit="other one.service"),
    ]
    view = results_view("ct200", rows, [])
    assert view.rows[1].reproduce.endswith("bench ct200 --plan mine --unit 'other one.service'")


def test_what_nobody_asked_for_by_name_comes_back_by_its_flags() -> None:
    found = measured(8, (cell(170.0),))
    argv = ("python3", "-m", "server", "--tp-size", "8", "--cuda-graph-bs", "1", "2", "--metrics")
    known = msgspec.structs.replace(
        found.provenance, argv=(*argv, "--api-key", "sesame-1"), environment={"NCCL_DEBUG": "INFO"}
    )
    command, left_out = commands_of("ct200", None, msgspec.structs.replace(found, provenance=known))
    words = shlex.split(command)
    asked = parse_assignments([after for word, after in pairwise(words) if word == "--set"])
    assert asked.flags == {"tp-size": "8", "cuda-graph-bs": "1 2", "metrics": True}
    assert (asked.knobs, asked.environment) == ({}, {"NCCL_DEBUG": "INFO"})
    assert left_out == ("flag:api-key",)
