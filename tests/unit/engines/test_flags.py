from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddtui.engines.sglang import SGLANG
from tests.unit.engines.captures import text_of

ARGS = ["--model-path", "/m/kimi", "--port", "30010", "--tp-size", "8", "--trust-remote-code"]
FLAGS = {"model-path": "/m/kimi", "port": "30010", "tp-size": "8", "trust-remote-code": "true"}
SCRIPT = "--model-path /m/kimi --port 30010 --tp-size 8 --trust-remote-code"
CONTINUED = SCRIPT.replace(" --", " \\\n  --")


@pytest.mark.parametrize(
    "before",
    [
        ["/opt/llm/venv/bin/python", "-m", "sglang.launch_server"],
        ["python3", "-B", "-u", "-m", "sglang.launch_server"],
        ["/opt/llm/venv/bin/sglang", "serve"],
        ["python3", "/opt/llm/venv/bin/sglang", "serve"],
        ["python3", "/opt/llm/venv/lib/python3.11/site-packages/sglang/launch_server.py"],
        ["python3", "-m", "sglang.cli.main", "serve"],
        [
            "/usr/bin/env",
            "A=b",
            "SGLANG_SIMULATE_ACC_LEN=4.2",
            "python",
            "-m",
            "sglang.launch_server",
        ],
        ["numactl", "--interleave=all", "python", "-m", "sglang.launch_server"],
        ["nice", "-n", "5", "taskset", "-c", "0-15", "sglang", "serve"],
    ],
)
def test_the_engine_behind_whatever_starts_it(before: list[str]) -> None:
    assert SGLANG.is_command([*before, *ARGS])
    assert SGLANG.flags([*before, *ARGS]) == FLAGS


@pytest.mark.parametrize(
    "script",
    [
        f"exec python -m sglang.launch_server {SCRIPT}",
        f"source /v/bin/activate && cd /srv; exec sglang serve {SCRIPT}",
        f"exec python -m sglang.launch_server {SCRIPT} 2>&1 | stdbuf -oL tr '\\r' '\\n'",
        f"python -m sglang.launch_server {SCRIPT} >/var/log/x 2>&1 &",
        f"python -m sglang.launch_server \\\n  {CONTINUED}\necho done --x 1",
        f"A=b env C=d python -m sglang.launch_server {SCRIPT}",
        f"(sglang serve {SCRIPT})",
    ],
)
@pytest.mark.parametrize("shell", [["/bin/bash", "-c"], ["bash", "-o", "pipefail", "-lc"]])
def test_the_engine_within_a_shells_script(shell: list[str], script: str) -> None:
    assert SGLANG.is_command([*shell, script])
    assert SGLANG.flags([*shell, script]) == FLAGS


def test_quotes_within_a_script() -> None:
    command = ["bash", "-c", """exec sglang serve --model-path "/m/a b" --json '{"a": 1}' --tp 2"""]
    assert SGLANG.flags(command) == {"model-path": "/m/a b", "json": '{"a": 1}', "tp": "2"}


def test_an_open_quote_is_no_error() -> None:
    command = ["bash", "-c", "exec sglang serve --model-path 'open --port 30011"]
    assert SGLANG.flags(command)["port"] == "30011"


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["vllm", "serve", "x"],
        ["python", "-m", "sglang.bench_serving"],
        ["python", "-m", "http.server"],
        ["bash", "-c", "cat /var/log/sglang/launch.txt"],
        ["/opt/sglang/bin/run.sh"],
        ["sglang", "version"],
    ],
)
def test_commands_that_start_something_else(command: list[str]) -> None:
    assert not SGLANG.is_command(command)


def test_the_forms_of_flags() -> None:
    command = [
        *("sglang", "serve", "positional", "--port=1", "--cuda-graph-bs", "1", "2", "4"),
        *("--temperature", "-0.5", "--empty=", "--enable-metrics", "--port", "2", "--x=a=b"),
    ]
    assert list(SGLANG.flags(command).items()) == [
        ("cuda-graph-bs", "1 2 4"),
        ("temperature", "-0.5"),
        ("empty", ""),
        ("enable-metrics", "true"),
        ("port", "2"),
        ("x", "a=b"),
    ]


def test_the_real_command_lines() -> None:
    [line] = [line for line in text_of("sglang-process-tree.txt").split("\n") if " -m " in line]
    words = line.split()[4:]
    assert SGLANG.is_command(words)
    assert (SGLANG.port(words), SGLANG.bind_host(words)) == (31005, "127.0.0.1")
    assert SGLANG.models(words) == {"target": "models/tiny-qwen3"}
    assert SGLANG.flags(words)["log-requests-format"] == "json"


@pytest.mark.parametrize(
    ("given_port", "port"),
    [
        ([], 30000),
        (["--port", "8000"], 8000),
        (["--port=8000"], 8000),
        (["--port"], 30000),
        (["--port", "${PORT}"], 30000),
        (["--port", "0"], 30000),
        (["--port", "70000"], 30000),
        (["--port", "1", "--port", "2"], 2),
        (["--port", "9" * 5000], 30000),
        (["--port", "٣٠٠٠"], 30000),
    ],
)
def test_port(given_port: list[str], port: int) -> None:
    assert SGLANG.port(["sglang", "serve", *given_port]) == port


def test_bind_host() -> None:
    assert SGLANG.bind_host(["sglang", "serve"]) == "127.0.0.1"
    assert SGLANG.bind_host(["sglang", "serve", "--host", "0.0.0.0"]) == "0.0.0.0"
    assert SGLANG.bind_host(["sglang", "serve", "--host=::"]) == "::"


def test_models_by_every_name() -> None:
    command = ["sglang", "serve", "--model-path", "a", "--model", "b"]
    assert SGLANG.models(command) == {"target": "b"}
    command += ["--speculative-draft-model", "c", "--speculative-draft-model-path=d"]
    assert SGLANG.models(command) == {"target": "b", "drafter": "d"}
    assert SGLANG.models(["sglang", "serve", "--model"]) == {}


def test_a_launch_command_without_its_program() -> None:
    assert SGLANG.flags(["--tp", "8"]) == {"tp": "8"}


@given(st.lists(st.text(max_size=40), max_size=6))
def test_no_command_line_is_an_error(words: list[str]) -> None:
    for command in (
        words,
        ["sglang", "serve", *words],
        ["bash", "-c", "sglang serve " + " ".join(words)],
    ):
        SGLANG.flags(command)
        SGLANG.port(command)
        SGLANG.bind_host(command)
        SGLANG.models(command)
        SGLANG.is_command(command)
