"""Every signature on a log that has it, and none of them on the logs of servers that worked.

The logs of tests/fixtures/failures are put together: the texts of the engine, of the libraries
under it, of systemd and of the kernel, within what a start with 8 ranks writes around them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ddtui.cli.diagnose_sources import of_stream
from ddtui.core.cause_of_failure import NOT_IN_LOG, UNRECOGNIZED
from ddtui.core.diagnosis import diagnose
from ddtui.core.examination import Diagnosis
from ddtui.core.redact import redact_text
from ddtui.core.signatures import CAUSES, Kind, Place
from ddtui.engines.sglang import SGLANG
from ddtui.engines.vllm import VLLM
from tests.unit.engines.captures import FOLDER, journal, text_of

FAILURES = sorted((FOLDER.parent / "failures").glob("*.log"))
NOW = 1_795_990_000.0
"""2026-11-29, a few hours after the logs."""

ENGINE_UNKNOWN = {"program-not-found", "working-folder-missing", "unit-user-missing", "start-limit"}
"""Logs in which only systemd speaks."""


def of_file(path: Path) -> Diagnosis:
    with path.open("rb") as stream:
        return of_stream(stream, path.name, NOW).diagnosis


@pytest.mark.parametrize("path", FAILURES, ids=lambda path: path.stem)
def test_a_failure_is_told_by_its_root(path: Path) -> None:
    found = of_file(path)
    cause = found.cause
    assert cause is not None
    assert found.failed
    assert not found.ready
    assert cause.id == path.stem.removeprefix("vllm-")
    expected = "vllm" if path.stem.startswith("vllm-") else "sglang"
    assert found.engine == ("" if path.stem in ENGINE_UNKNOWN else expected)
    text = redact_text(path.read_text(encoding="utf-8"))
    assert cause.evidence
    assert all(line[:80] in text for line in cause.evidence)
    assert "sk-notreal" not in repr(found)
    wrappers = ("Received sigquit", "SIGQUIT received", "kill_process_tree", "Rank 3 scheduler")
    if cause.id not in {NOT_IN_LOG, "killed"}:
        assert not any(wrapper in line for line in cause.evidence for wrapper in wrappers)


def test_every_signature_of_a_cause_has_a_log() -> None:
    names = {path.stem for path in FAILURES}
    table = {each.id for each in SGLANG.signatures().all if each.kind in CAUSES}
    assert table - names == set()
    assert names - table == {UNRECOGNIZED, NOT_IN_LOG, "vllm-weights-do-not-fit"}


@pytest.mark.parametrize(
    ("name", "id_"),
    [
        ("bad-choice", "invalid-flag-value"),
        ("unknown-flag", "unknown-flag"),
        ("dflash-block-conflict", "block-size-conflict"),
        ("dflash-nodraft", "draft-model-missing"),
        ("dflash-window-small", "draft-window-too-small"),
        ("missing-model", "model-not-found"),
        ("port-in-use", "http-port-taken"),
        ("spec-ddtree", "unknown-speculative-algorithm"),
    ],
)
def test_captures_of_servers_that_failed(name: str, id_: str) -> None:
    found = of_file(FOLDER / f"sglang-fail-{name}.log")
    assert found.cause is not None
    assert (found.engine, found.ready, found.failed, found.cause.id) == (
        "sglang",
        False,
        True,
        id_,
    )
    assert found.cause.remedy


@pytest.mark.parametrize(
    ("name", "decode", "acceptance"),
    [("base", 8, None), ("dflash", 8, 4.16), ("fresh-dflash", 8, 4.15), ("ngram", 6, 6.75)],
)
def test_captures_of_servers_that_worked(name: str, decode: int, acceptance: float | None) -> None:
    found = of_file(FOLDER / f"sglang-{name}.log")
    assert (found.engine, found.ready, found.failed, found.cause) == ("sglang", True, False, None)
    assert found.stopped
    assert found.earlier == 0
    assert found.decode.count == decode
    assert found.decode.median_acceptance_length == acceptance
    assert found.config["model_path"] == "models/tiny-qwen3"
    names = [phase.name for phase in found.phases]
    assert names[0] == "starting"
    assert names[-2:] == ["warming up", "ready"]
    starts = [phase.start for phase in found.phases]
    assert starts == sorted(starts, key=lambda start: start or 0.0)


@pytest.mark.parametrize("name", ["base", "dflash", "fresh-dflash", "ngram"])
def test_no_line_of_a_server_that_worked_looks_like_a_cause(name: str) -> None:
    table = SGLANG.signatures()
    found = {
        (each.id, line)
        for line in text_of(f"sglang-{name}.log").split("\n")
        if not SGLANG.is_traffic(line)
        for each in table.matches(line, Place.ENGINE)
        if each.kind is not Kind.HARMLESS
    }
    assert found == set()


def test_a_scary_log_of_a_server_that_works() -> None:
    lines = text_of("sglang-dflash.log").split("\n")
    ready = next(n for n, line in enumerate(lines) if "fired up" in line)
    stop = next(n for n, line in enumerate(lines) if "SIGTERM" in line)
    stamp = lines[ready][:21]
    scary = [
        f"{stamp} ERROR:    Exception in ASGI application",
        "Traceback (most recent call last):",
        '  File "x.py", line 1, in f',
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        f"{stamp} Receive: obj=GenerateReqInput(text='Received sigquit from a child process')",
        "Traceback (most recent call last):",
        '  File "y.py", line 2, in g',
        "ValueError: the request's image cannot be read",
        f"{stamp} Request failed: No space left on device",
    ]
    found = diagnose(journal("\n".join([*lines[:stop], *scary])), engine=SGLANG)
    assert (found.ready, found.failed, found.cause) == (True, False, None)


def test_vllm_in_brief() -> None:
    text = """\
(APIServer pid=1) INFO 11-29 17:20:47 [api_server.py:1839] vLLM API server version 0.33.0
(EngineCore pid=2) INFO 11-29 17:20:59 [core.py:140] Initializing a V1 LLM engine (v0.33.0) with \
config: model='/m/x', tensor_parallel_size=2, api_key='sk-secret12345'
(Worker_TP0 pid=3) INFO 11-29 17:21:20 [gpu_model_runner.py:4979] Starting to load model /m/x...
(Worker_TP0 pid=3) INFO 11-29 17:22:20 [gpu_model_runner.py:5089] Model loading took 9.5 GiB \
memory and 60.1 seconds
(EngineCore pid=2) INFO 11-29 17:22:25 [gpu_worker.py:773] Available KV cache memory: 9.1 GiB
(EngineCore pid=2) INFO 11-29 17:22:26 [kv.py:9] GPU KV cache size: 100 tokens, Maximum
(Worker_TP0 pid=3) INFO 11-29 17:22:36 [x.py:9] Graph capturing finished in 9 secs, took 0.2 GiB
(APIServer pid=1) INFO 11-29 17:22:40 [entry.py:139] Starting vLLM server on http://0.0.0.0:8000
(APIServer pid=1) INFO:     Application startup complete.
(APIServer pid=1) INFO 11-29 17:23:00 [loggers.py:127] Engine 000: Avg prompt throughput: 1.0 \
tokens/s, Avg generation throughput: 90.5 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV \
cache usage: 1.5%
(APIServer pid=1) INFO 11-29 17:23:00 [metrics.py:105] SpecDecoding metrics: Mean acceptance \
length: 3.25, Accepted throughput: 60.00 tokens/s
(APIServer pid=1) INFO 11-29 17:23:10 [loggers.py:127] Engine 000: Avg prompt throughput: 0.0 \
tokens/s, Avg generation throughput: 0.0 tokens/s, Running: 0 reqs, Waiting: 0 reqs"""
    found = diagnose(journal(text), engine=VLLM)
    assert (found.engine, found.version, found.ready, found.failed) == (
        "vllm",
        "0.33.0",
        True,
        False,
    )
    assert found.config["tensor_parallel_size"] == "2"
    assert "sk-secret" not in repr(found)
    assert [phase.name for phase in found.phases][1:] == [
        "loading target",
        "allocating KV cache",
        "capturing graphs",
        "warming up",
        "ready",
    ]
    assert (found.decode.count, found.decode.median_tokens_per_second) == (1, 90.5)
    assert found.decode.median_acceptance_length == 3.25


def test_vllms_processes_with_their_ranks() -> None:
    text = """\
(VllmWorker rank=0 pid=281) ERROR 07-15 08:54:44 [executor.py:5] WorkerProc hit an exception.
(VllmWorker rank=0 pid=281) ERROR 07-15 08:54:44 [executor.py:5] Traceback (most recent call last):
(VllmWorker rank=0 pid=281) ERROR 07-15 08:54:44 [executor.py:5]   File "/x/moe.py", line 143, in f
(VllmWorker rank=0 pid=281) ERROR 07-15 08:54:44 [executor.py:5]     return states.view(shape)
(VllmWorker rank=0 pid=281) ERROR 07-15 08:54:44 [executor.py:5] RuntimeError: shape is invalid
ERROR 07-15 08:54:44 [core.py:586] EngineCore failed to start."""
    found = diagnose(journal(text), engine=VLLM)
    assert found.cause is not None
    assert (found.failed, found.cause.title) == (True, "RuntimeError: shape is invalid")
