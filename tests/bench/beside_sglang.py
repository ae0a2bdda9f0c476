"""What ddtui's bench and SGLang's own serving benchmark say of the stub engine, and what it did.

The stub tells when each answer was asked for and when its first and its last event went out. Both
benchmarks send as many requests at the same concurrency, one after the other, each in a process of
its own. SGLang's environment is the one of tests/engine; without it there is nothing to compare.

As a program (`python -m tests.bench.beside_sglang`): one bench of ddtui by the settings on standard
input.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any
from urllib.request import urlopen

import msgspec
import platformdirs

from ddtui.bench.bench import Bench
from ddtui.core.bench_plan import BenchPlan
from ddtui.engines.sglang import SGLANG
from ddtui.hosts.ports import DirectPorts

CONCURRENCY = (1, 7, 64, 256)
BACKENDS = {"chat": "sglang-oai-chat", "generate": "sglang"}
ROOT = Path(__file__).parents[2]
PROMPT = "Write a function. " * 20
Told = dict[str, float]
_ENOUGH = 10_000
"""Events from which the CPU of one can be told."""


def compared(port: int, events: int, tokens: int) -> dict[str, Any]:
    """Both by endpoint and concurrency: what they say, and the truth of the same requests."""
    venv = Path(os.environ.get("DDTUI_ENGINE_VENV") or platformdirs.user_cache_path("ddtui/engine"))
    if not (venv / "bin" / "python").exists():
        return {"skipped": f"no SGLang at {venv}: tests/engine/install.sh builds it"}
    with tempfile.TemporaryDirectory() as name:
        stub = Stub(port, events, tokens, Path(name), venv)
        return {
            endpoint: {
                f"{streams}_streams": {
                    "ddtui": stub.measured(stub.own, endpoint, streams),
                    "sglang": stub.measured(stub.sglang, endpoint, streams),
                }
                for streams in CONCURRENCY
            }
            for endpoint in BACKENDS
        }


class Stub:
    """The engine, and the benchmarks that measure it."""

    def __init__(self, port: int, events: int, tokens: int, folder: Path, venv: Path) -> None:
        """It sends so many events an answer, of so many tokens each."""
        self._port, self._events, self._tokens = port, events, tokens
        self._folder, self._venv = folder, venv
        self._start_cpu = 0.0

    def measured(
        self, bench: Callable[[str, int, int], Told], endpoint: str, streams: int
    ) -> dict[str, Any]:
        """What it said, and by how many percent that is above the truth."""
        requests = max(4, 2 * streams)
        self._truth()
        said = bench(endpoint, streams, requests)
        answers = sorted(self._truth())
        answered = answers[-requests:]  # those before warmed up
        # ddtui's window ends when the first stream does that no further request follows.
        true = self._true(answered, streams if bench == self.own else 1)
        if (cpu := said.pop("cpu", None)) is not None:
            said["cpu_us_an_event"] = 1e6 * cpu / (len(answers) * self._events)
        above = {f"{key}_%": 100 * (said[key] / value - 1) for key, value in true.items()}
        return {key: round(value, 2) for key, value in {**said, **above}.items()}

    def own(self, endpoint: str, streams: int, requests: int) -> Told:
        """Ddtui's bench; CPU without the start of its process."""
        prompts = self._folder / "prompts.jsonl"
        prompts.write_text("".join(f"{json.dumps({'prompt': PROMPT})}\n" for _ in range(requests)))
        asked = {
            "port": self._port,
            "plan": {
                "prompts": str(prompts),
                "endpoint": endpoint,
                "concurrency": [streams],
                "requests": requests,
                "repeats": 1,
                "warmup_batches": 1,
                "coding": False,
                "output_tokens": self._events * self._tokens,
                "flush_cache": False,
            },
        }
        argv = [sys.executable, "-m", "tests.bench.beside_sglang"]
        return dict(json.loads(_finished(argv, json.dumps(asked), None)))

    def sglang(self, endpoint: str, streams: int, requests: int) -> Told:
        """SGLang's; CPU without that of a run of a single request.

        Its start takes some seconds of CPU, never quite as many: no figure out of few events.
        """
        if not self._start_cpu:
            self._start_cpu = self._sglang(endpoint, 1, 1)["cpu"]
            self._truth()
        told = self._sglang(endpoint, streams, requests)
        cpu = told.pop("cpu") - self._start_cpu
        return told | {"cpu": cpu} if requests * self._events >= _ENOUGH else told

    def _sglang(self, endpoint: str, streams: int, requests: int) -> Told:
        prompts, output = self._folder / "sglang.jsonl", self._folder / "output.jsonl"
        pair = {"conversations": [{"content": PROMPT}, {"content": "-"}]}
        prompts.write_text(f"{json.dumps(pair)}\n" * requests)
        output.unlink(missing_ok=True)
        argv = [
            *(str(self._venv / "bin" / "python"), "-W", "ignore", "-m", "sglang.benchmark.serving"),
            *("--backend", BACKENDS[endpoint], "--host", "127.0.0.1", "--port", str(self._port)),
            *("--dataset-name", "custom", "--dataset-path", str(prompts), "--model", "stub"),
            *("--max-concurrency", str(streams), "--num-prompts", str(requests)),
            *("--sharegpt-output-len", str(self._events * self._tokens), "--disable-tqdm"),
            *("--tokenizer", str(self._venv / "models" / "tiny-qwen3"), "--warmup-requests", "0"),
            *("--output-file", str(output)),
        ]
        quiet = {"HF_HUB_OFFLINE": "1", "SGLANG_USE_CPU_ENGINE": "1", "OMP_NUM_THREADS": "1"}
        environment = {**os.environ, **quiet}
        environment.pop("PYTHONPATH", None)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        _finished(argv, "", environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        told = json.loads(output.read_text().splitlines()[-1])
        if told["completed"] != requests:
            raise RuntimeError(f"SGLang's benchmark completed {told['completed']} of {requests}")
        return {
            "total_rate": told["output_throughput"],
            "ttft_ms": told["median_ttft_ms"],
            "tpot_ms": told["mean_tpot_ms"],
            "itl_ms": told["median_itl_ms"],
            "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        }

    def _truth(self) -> list[tuple[int, int, int, int]]:
        with urlopen(f"http://127.0.0.1:{self._port}/truth", timeout=20) as answer:
            return [tuple(each) for each in json.load(answer)]

    def _true(self, answers: list[tuple[int, int, int, int]], drained: int) -> Told:
        """Their figures; the rate from the first request to the end of the last but `drained`."""
        began = min(each[0] for each in answers)
        ended = sorted(each[2] for each in answers)[-drained]
        came = sum(self._tokens_until(each, ended) for each in answers)
        later = sum(each[3] - self._tokens for each in answers)
        tpot = sum(each[2] - each[1] for each in answers) / later / 1e6
        return {
            "total_rate": 1e9 * came / (ended - began),
            "ttft_ms": median(each[1] - each[0] for each in answers) / 1e6,
            "tpot_ms": tpot,
            "itl_ms": tpot,
        }

    def _tokens_until(self, answer: tuple[int, int, int, int], moment: int) -> float:
        """Between two events in proportion to the time, as `figures.tokens_until` has it."""
        _, first, last, tokens = answer
        if moment < first:
            return 0.0
        share = min(1.0, (moment - first) / (last - first))
        return self._tokens + share * (tokens - self._tokens)


def _finished(argv: list[str], given: str, environment: dict[str, str] | None) -> str:
    done = subprocess.run(
        argv,
        cwd=ROOT,
        env=environment,
        input=given,
        timeout=300,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{argv} failed: {done.stderr[-2000:]}")
    return str(done.stdout)


async def _bench(asked: dict[str, Any]) -> Told:
    """One bench of ddtui."""
    plan = msgspec.convert(asked["plan"], BenchPlan)
    bench = Bench(DirectPorts(), "127.0.0.1", asked["port"], SGLANG)
    before = time.process_time()
    (cell,) = await bench.run(plan)
    cpu = time.process_time() - before
    if cell.failed or cell.stalled or not (cell.total_rate and cell.ttft and cell.tpot):
        raise RuntimeError(f"{cell}")
    return {
        "total_rate": cell.total_rate.median,
        "ttft_ms": 1e3 * cell.ttft.median,
        "tpot_ms": 1e3 * cell.tpot.median,
        "itl_ms": 1e3 * cell.itl.median if cell.itl else 0.0,
        "cpu": cpu,
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_bench(json.load(sys.stdin)))))
