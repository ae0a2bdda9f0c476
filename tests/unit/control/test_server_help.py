"""Learning a server's flags: the program run by a real bash, what is kept, and what goes wrong."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from ddtui.control.programs import SERVER_HELP
from ddtui.control.server_help import HelpUnavailable, learn_server_flags
from ddtui.demo.host import DemoHost
from ddtui.engines.sglang.server_flags import ServerFlags
from ddtui.hosts.base import Completed, Program
from ddtui.hosts.local import LocalHost

SERVER = """
import argparse, os, sys
parser = argparse.ArgumentParser(prog="sglang serve")
parser.add_argument("--model-path", "--model", required=True)
parser.add_argument("--seen", choices=["gpus:%s" % os.environ["CUDA_VISIBLE_DEVICES"],
                                       "own:%s" % os.environ.get("SGLANG_OWN"),
                                       "secret:%s" % os.environ.get("HF_TOKEN")])
parser.parse_args()
"""


class Counting(LocalHost):
    """This machine, with a note of what ran."""

    def __init__(self) -> None:
        super().__init__("local")
        self.asked: list[str] = []

    async def run(
        self, program: Program, *args: str, timeout: float = 15.0, stdin: bytes = b""
    ) -> Completed:
        self.asked.append(args[0])
        return await super().run(program, *args, timeout=timeout, stdin=stdin)


@pytest.fixture
async def host() -> AsyncIterator[Counting]:
    made = Counting()
    await made.start()
    yield made
    await made.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in which a little server can be started as SGLang is."""
    package = tmp_path / "app" / "sglang"
    (package / "srt").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "srt" / "server_args.py").touch()
    (package / "launch_server.py").write_text(SERVER)
    script = tmp_path / "app" / "sglang-script"
    script.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(package.parent)!r})\n"
        "sys.argv.pop(1)\nimport sglang.launch_server\n"
    )
    (tmp_path / "app" / "sglang-bin").mkdir()
    script.rename(tmp_path / "app" / "sglang-bin" / "sglang")
    (tmp_path / "app" / "sglang-bin" / "sglang").chmod(0o755)
    return tmp_path / "app"


def commands(folder: Path) -> dict[str, list[str]]:
    python = sys.executable
    return {
        "module": [python, "-m", "sglang.launch_server"],
        "options": ["env", "A=1", python, "-u", "-m", "sglang.launch_server"],
        "file": [python, str(folder / "sglang" / "launch_server.py")],
        "script": [str(folder / "sglang-bin" / "sglang"), "serve"],
    }


async def learn(
    host: Counting,
    folder: Path,
    command: Sequence[str],
    cache: Path | None = None,
    **variables: str,
) -> ServerFlags:
    return await learn_server_flags(
        host,
        [*command, "--model-path", "x"],
        working_directory=str(folder),
        environment={"SGLANG_OWN": "1", "HF_TOKEN": "hf_x"} | variables,
        cache=cache,
    )


@pytest.mark.parametrize("kind", ["module", "options", "file", "script"])
async def test_the_help_is_asked_of_the_units_own_server(
    host: Counting, folder: Path, kind: str
) -> None:
    server = await learn(host, folder, commands(folder)[kind])
    assert set(server.flags) == {"model-path", "seen"}
    assert server.flags["model-path"].aliases == ("model",)
    assert server.flags["seen"].choices == ("gpus:", "own:1", "secret:None")


async def test_flags_are_kept_until_the_server_changes(
    host: Counting, folder: Path, tmp_path: Path
) -> None:
    cache, command = tmp_path / "cache", commands(folder)["module"]
    first = await learn(host, folder, command, cache)
    assert await learn(host, folder, command, cache) == first
    assert host.asked == ["identity", "help", "identity"]
    text = SERVER.replace(
        "parser.parse_args()", 'parser.add_argument("--new"); parser.parse_args()'
    )
    (folder / "sglang" / "launch_server.py").write_text(text)
    newer = folder / "sglang" / "srt" / "server_args.py"
    os.utime(newer, (newer.stat().st_mtime + 5,) * 2)
    assert "new" in (await learn(host, folder, command, cache)).flags
    (kept, *_) = sorted(cache.glob("*.json"))
    for file in cache.glob("*.json"):
        file.write_text("{")
    assert "new" in (await learn(host, folder, command, cache)).flags
    assert kept.exists()


async def test_a_number_of_the_environment_changes_no_flag(
    host: Counting, folder: Path, tmp_path: Path
) -> None:
    """A sweep over such a variable must not start the server's program for each value."""
    cache, command = tmp_path / "cache", commands(folder)["module"]
    for number in ("4.2", "6.4", "-12"):
        await learn(host, folder, command, cache, SGLANG_NUMBER=number)
    assert host.asked.count("help") == 1
    for switch in ("0", "1", "some.plugin"):
        await learn(host, folder, command, cache, SGLANG_NUMBER=switch)
    assert host.asked.count("help") == 4


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (["/nowhere/python", "-m", "sglang.launch_server"], "No such file"),
        (["nosuch-sglang/sglang", "serve"], "no such program: nosuch-sglang/sglang"),
        ([sys.executable, "-m", "sglang.launch_server"], "No module named"),
    ],
)
async def test_a_server_that_cannot_be_asked(
    host: Counting, tmp_path: Path, command: list[str], told: str
) -> None:
    with pytest.raises(HelpUnavailable) as error:
        await learn(host, tmp_path, command)
    assert told in error.value.what


async def test_a_wrapper_is_not_run(host: Counting, tmp_path: Path) -> None:
    with pytest.raises(HelpUnavailable) as error:
        await learn(host, tmp_path, ["bash", "-c", "python -m sglang.launch_server"])
    assert "wrapper" in error.value.what
    assert host.asked == []


async def test_the_simulated_server_answers_as_a_real_one() -> None:
    host = await DemoHost.create(scenario="idle")
    try:
        await host.wait_live()
        unit = host.machine.unit
        server = await learn_server_flags(host, unit.command, environment=unit.environment)
        assert server.version == "0.5.23+simulated"
        assert server.knows("speculative-ddtree-budget")
        assert server.knows("tensor-parallel-size")
        assert server.flags["enable-metrics"].type == "switch"
        assert len(server.flags) > 500
        answer = await host.run(SERVER_HELP, "help", "", "/usr/bin/python3", "-m", "sglang")
        assert answer.status == 127
    finally:
        await host.close()
