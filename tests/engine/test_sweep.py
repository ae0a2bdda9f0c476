"""A sweep over two configurations of a real SGLang, beside its own serving benchmark.

The acceptance length is SGLang's simulation of one, and differs between the two; speeds are those
of a CPU that does much else. Both generators send the same prompts, in turn. What they measured is
printed side by side at the end: only what a busy neighbour does not change must agree.
"""

from __future__ import annotations

import csv
import json
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import pytest

from ddtui.bench.prompts import load_prompts
from ddtui.core.experiment import Experiment
from ddtui.core.measurement import Cell, Measurement, Spread
from ddtui.store import Store
from tests.engine.sglang_unit import ENVIRONMENT, PORT, UNIT, RealEngine
from tests.host.changing import SUDOERS, grant
from tests.host.gpuhost import wait_until
from tests.host.measured import RESULTS
from tests.host.queueing import event, killed_at, runner, starts
from tests.host.test_verbs import Ddtui

LOAD = 400.0
"""Seconds that a start may take on a machine that does much else."""
BLOCK, LENGTH = "speculative-dflash-block-size", "SGLANG_SIMULATE_ACC_LEN"
ACCEPTANCE = {8: 4.2, 16: 6.4}
"""By block size: what SGLang is told to simulate."""
REQUESTS, TOKENS = 8, 96
ROUNDS = 3
"""Times that the two generators take turns."""
PROMPTS = "/srv/bench/prompts.jsonl"
BACKENDS = {"generate": "sglang", "chat": "sglang-oai-chat"}
FIGURES = {
    "total_rate": ("tok/s", 1.0),
    "ttft": ("TTFT ms", 1e3),
    "tpot": ("TPOT ms", 1e3),
    "acceptance_length": ("accepted", 1.0),
}


@pytest.fixture(scope="module")
def unit(engine: RealEngine) -> Iterator[RealEngine]:
    host = engine.host
    host.exec("rm", "-f", "/etc/sudoers.d/ops")
    grant(host, UNIT)
    texts = [each.text for each in load_prompts("coding")[:REQUESTS]]
    pairs = [{"conversations": [{"content": text}, {"content": "-"}]} for text in texts]
    host.write(PROMPTS, "".join(f"{json.dumps(each)}\n" for each in pairs))
    engine.install(f"--{BLOCK}", "8")
    wait_until(lambda: any("ready to roll" in line for line in host.journal(UNIT)), LOAD)
    yield engine
    engine.remove()
    host.exec("rm", "-rf", SUDOERS, PROMPTS)


@pytest.fixture
def ddtui(unit: RealEngine, tmp_path: Path) -> Ddtui:
    made = Ddtui(tmp_path, unit.host)
    made.write_config(unit=UNIT)
    prompts = tmp_path / "prompts.jsonl"
    sent = load_prompts("coding")[:REQUESTS]
    prompts.write_text("".join(f"{json.dumps({'prompt': each.text})}\n" for each in sent))
    shared = f'prompts = "{prompts}"\ncoding = false\nrepeats = 2\nwarmup_batches = 2\n'
    with made.config.open("a") as file:
        for endpoint in BACKENDS:
            file.write(f'[bench.{endpoint}]\nendpoint = "{endpoint}"\n{shared}')
            file.write(f"output_tokens = {TOKENS}\nconcurrency = [1, 4]\n")
            command = json.dumps(serving_benchmark(unit, endpoint))
            file.write(f"[bench.serving-{endpoint}]\ncommand = {command}\ncoding = false\n")
    return made


def serving_benchmark(engine: RealEngine, endpoint: str) -> list[str]:
    """SGLang's own, one request at a time, as an external bench of ddtui."""
    python = str(engine.venv / "bin" / "python")
    quiet = [f"{name}={value}" for name, value in ENVIRONMENT.items() if name != LENGTH]
    return [
        *("env", *quiet, python, "-W", "ignore", "-m", "sglang.benchmark.serving"),
        *("--backend", BACKENDS[endpoint], "--host", "127.0.0.1", "--port", str(PORT)),
        *("--dataset-name", "custom", "--dataset-path", PROMPTS, "--max-concurrency", "1"),
        *("--sharegpt-output-len", str(TOKENS), "--num-prompts", str(REQUESTS)),
        *("--disable-ignore-eos", "--flush-cache", "--disable-tqdm", "--model", "tiny"),
        *("--tokenizer", str(engine.models / "tiny-qwen3"), "--output-file", "{output}"),
    ]


def kept(ddtui: Ddtui) -> tuple[list[Experiment], dict[str, Measurement]]:
    """The queue in its order, and the measurements by their id."""
    with closing(Store.open(ddtui.folder / "data" / "ddtui" / "ddtui.sqlite3")) as store:
        experiments = store.experiments.queue("gpu", simulated=False)
        found = store.measurements.of_host("gpu", simulated=False)
    return list(experiments), {each.id: each for each in found}


def done(finished: subprocess.CompletedProcess[str]) -> Any:
    """What a verb printed as JSON, if it went well."""
    assert finished.returncode == 0, finished.stderr + finished.stdout
    return json.loads(finished.stdout)


def middle(found: Spread | None) -> float:
    assert found is not None
    return found.median


def side_by_side(title: str, own: list[Cell], other: list[Cell]) -> None:
    """Print the medians of both, how far they vary, and demand what must agree on any machine."""
    for name, (words, scale) in FIGURES.items():
        figures = [
            [scale * middle(getattr(cell, name)) for cell in cells] for cells in (own, other)
        ]
        said = [f"{median(each):.1f} ({min(each):.1f}-{max(each):.1f})" for each in figures]
        RESULTS.append(f"{title}: {words}: ddtui {said[0]}, SGLang's benchmark {said[1]}")
        mine, theirs = (median(each) for each in figures)
        # A wrong unit or a wrong count would show; a busy neighbour makes a factor of three.
        assert theirs / 6 < mine < 6 * theirs, (title, words, figures)
        if name == "acceptance_length":
            assert mine == pytest.approx(theirs, rel=0.04)
    for cell in (*own, *other):
        assert cell.failed == cell.stalled == 0
        assert cell.output_tokens == cell.requests * TOKENS


def check_cell(cell: Cell, block: int) -> None:
    """Both sides' figures of a real cell are there, and hang together."""
    simulated = ACCEPTANCE[block]
    assert middle(cell.acceptance_length) == pytest.approx(simulated, abs=0.3)
    assert cell.acceptance_macro == pytest.approx(middle(cell.acceptance_length), abs=0.1)
    assert 1 + sum(cell.positions) == pytest.approx(middle(cell.acceptance_length), abs=0.05)
    assert len(cell.positions) < block
    # The last pass of an answer decodes beyond its end, which the server's counter leaves out.
    assert cell.server_acceptance is not None
    assert 0.93 * simulated - 0.3 < cell.server_acceptance < simulated + 0.3
    assert cell.server_rate is not None
    assert cell.server_rate == pytest.approx(middle(cell.total_rate), rel=0.1)
    assert cell.server_ttft is not None
    assert 0 < cell.server_ttft < middle(cell.ttft) + 0.005  # the link's part comes on top
    assert cell.link_rtt is not None
    assert not any("emptied" in note or "disturbed" in note for note in cell.notes), cell.notes
    if cell.concurrency == 1:
        passes = middle(cell.step_time) / middle(cell.tpot)
        assert passes == pytest.approx(middle(cell.acceptance_length), rel=0.1)


def queue(ddtui: Ddtui) -> None:
    """Each configuration by ddtui's generator, then by SGLang's benchmark, with one load."""
    values = ",".join(f"{size}:{length}" for size, length in ACCEPTANCE.items())
    grid = f"flag:{BLOCK}~env:{LENGTH}={values}"
    asked = ("sweep", "gpu", grid, "--plan", "generate", "--name", "blocks", "--json")
    shown = done(ddtui.run(*asked, "--dry-run", timeout=LOAD))
    assert not kept(ddtui)[0], shown
    done(ddtui.run(*asked, "--yes", timeout=LOAD))
    swept, _ = kept(ddtui)
    assert [each.sweep for each in swept] == ["blocks", "blocks"]
    for each in swept:
        options = ("--like", each.id, "--plan", "serving-generate", "--after", each.id)
        done(ddtui.run("queue", "gpu", "add", *options, "--json"))


def test_a_sweep_is_measured_beside_the_engines_own_benchmark(
    unit: RealEngine, ddtui: Ddtui
) -> None:
    before = starts(unit.host, UNIT)
    queue(ddtui)
    # Killed with a cell kept; while the engine loads; and with a cell again.
    for moment in (event("cell"), event("change", "loading"), event("cell")):
        came, events = killed_at(ddtui, moment, LOAD)
        assert came, events
        told = [each["text"] for each in events if each["what"] == "cell"]
        if len(told) > 1:  # of the second runner: the cell that was kept is not measured again
            assert told[0].startswith("4 at once, "), told
    last = runner(ddtui)
    printed, said = last.communicate(timeout=LOAD)
    assert last.returncode == 0, said + printed
    assert starts(unit.host, UNIT) == before + 1, "a needless load of the engine"

    experiments, measurements = kept(ddtui)
    assert [each.state for each in experiments] == ["done"] * 4, [x.cause for x in experiments]
    by_block: dict[int, dict[str, Measurement]] = {}
    for each in experiments:
        found = measurements[each.measurement]
        argv = found.provenance.argv
        block = int(argv[argv.index(f"--{BLOCK}") + 1])
        assert found.provenance.environment[LENGTH] == str(ACCEPTANCE[block])
        assert found.provenance.server_args["speculative_num_draft_tokens"] == block
        by_block.setdefault(block, {})[found.plan.name] = found
    assert len(measurements) == 4, "measured twice"
    for block, found_by in by_block.items():
        own, other = found_by["generate"].cells, found_by["serving-generate"].cells
        assert [cell.concurrency for cell in own] == [1, 4]
        for cell in own:
            check_cell(cell, block)
        assert middle(other[0].acceptance_length) == pytest.approx(ACCEPTANCE[block], abs=0.3)
        side_by_side(f"block {block}, one at a time", [own[0]], [other[0]])
    check_results(ddtui)


def check_results(ddtui: Ddtui) -> None:
    """The table, and what is exported."""
    results = done(ddtui.run("results", "gpu", "--sweep", "blocks", "--json"))
    rows = {
        int(row["knobs"]["block_size"]): row for row in results["rows"] if len(row["cells"]) == 2
    }
    assert set(rows) == set(ACCEPTANCE)
    comparison = rows[16]["comparison"]
    assert comparison["standing"] in {"faster", "slower", "tie", "unclear"}
    ratio = ACCEPTANCE[16] / ACCEPTANCE[8]
    assert comparison["acceptance_length"]["value"] == pytest.approx(ratio, rel=0.06)
    table = ddtui.run("results", "gpu", "--sweep", "blocks")
    RESULTS.extend(line for line in table.stdout.splitlines() if line.strip())
    folder = ddtui.folder / "exported"
    folder.mkdir()
    for kind in ("csv", "md", "svg"):
        file = folder / f"report.{kind}"
        written = ddtui.run("results", "gpu", "--format", kind, "--out", str(file))
        assert written.returncode == 0, written.stderr
    lines = list(csv.DictReader((folder / "report.csv").read_text().splitlines()))
    assert len(lines) == 6  # two of two concurrencies, two of one
    report = (folder / "report.md").read_text()
    assert f"ddtui apply gpu --set flag:{BLOCK}=16 --set env:{LENGTH}=6.4" in report
    charts = list(folder.glob("report-*.svg"))
    assert charts
    assert all(f"({chart.name})" in report for chart in charts)


@pytest.mark.parametrize("endpoint", BACKENDS)
def test_a_bench_by_hand_takes_turns_with_the_engines_own(
    unit: RealEngine, ddtui: Ddtui, endpoint: str
) -> None:
    invocation = unit.host.show(UNIT, "InvocationID")
    block = unit.server_info()["speculative_num_draft_tokens"]
    flushed = sum("Cache flushed" in line for line in unit.host.journal(UNIT))
    own, other = list[Cell](), list[Cell]()
    for _ in range(ROUNDS):
        cells = done(ddtui.run("bench", "gpu", "--plan", endpoint, "--json", timeout=LOAD))["cells"]
        own.append(cell_of(cells[0]))
        check_cell(own[-1], block)
        asked = ("bench", "gpu", "--plan", f"serving-{endpoint}", "--json")
        other.append(cell_of(done(ddtui.run(*asked, timeout=LOAD))["cells"][0]))
    side_by_side(f"{endpoint}, block {block}, {ROUNDS} turns", own, other)
    now = sum("Cache flushed" in line for line in unit.host.journal(UNIT))
    assert now >= flushed + ROUNDS * 2 * 3  # two cells of a warm-up and two repeats at least
    assert unit.host.show(UNIT, "InvocationID") == invocation
    # The row's own command line asks for what runs already: this server takes all of it.
    rows = done(ddtui.run("results", "gpu", "--json"))["rows"]
    (row,) = (each for each in rows if len(each["cells"]) == 2)
    applying, _, measuring = row["reproduce"].partition(" && ")
    assert measuring == f"ddtui bench gpu --plan {endpoint}"
    again = done(ddtui.run(*shlex.split(applying)[1:], "--dry-run", "--json", timeout=LOAD))
    assert (again["blocked"], again["changes"]) == (False, [])


def cell_of(printed: dict[str, Any]) -> Cell:
    """A cell as `--json` prints it."""
    return msgspec.convert(printed, Cell)
