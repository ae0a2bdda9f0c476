"""`ddtui status` and `ddtui doctor`, on the simulated host and on one that is not there."""

import asyncio
import json
import os
import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ddtui.cli.exit_codes import ExitCode
from ddtui.cli.look import has_spoken
from ddtui.cli.output import Paint, folded
from ddtui.cli.report import lines
from ddtui.cli.status import exit_code
from ddtui.cli.status_json import StatusReport, status_report
from ddtui.core.events import Phase
from ddtui.core.host_state import HostState
from ddtui.core.samples import (
    Collector,
    Gpu,
    GpuSample,
    LinkSample,
    LinkState,
    SourceSample,
    SourceStatus,
    UnitSample,
    UnitStatus,
)
from ddtui.core.snapshot import LoadView
from ddtui.engines.sglang import SGLANG

NOW = 1_795_984_817.0


async def ddtui(*arguments: str) -> tuple[int, str, str]:
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ddtui", *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        out, told = await child.communicate()
    return child.returncode or 0, out.decode(), told.decode()


async def test_the_simulated_host_as_json() -> None:
    status, out, told = await ddtui("status", "demo", "--json")
    assert (status, told) == (ExitCode.OK, "")
    report: dict[str, Any] = json.loads(out)
    assert list(report) == [field.name for field in msgspec.structs.fields(StatusReport)]
    assert report["simulated"] is True
    assert report["ready"] is True
    assert {each["verdict"] for each in report["evidence"]} <= {"proved", "consistent"}
    assert len(report["gpus"]) == 8
    assert report["engine"]["throughput"]["source"]
    assert not {"environment", "environment_read", "overridden"} & report["unit"].keys()
    assert (
        report["knobs"].items() >= {"block_size": "8", "topk": "8", "mem_fraction": "0.9"}.items()
    )
    assert report["sources"].keys() >= {"unit", "gpu", "gpu_processes", "journal", "engine"}
    assert report["engine"]["throughput"]["unit"] == "tokens per second"
    assert report["gpus"][0]["memory_total_bytes"] > report["gpus"][0]["memory_used_bytes"] > 0
    assert re.search(r"Kimi", report["load"] and json.dumps(report["unit"]["command_line"]))


async def test_the_simulated_host_as_text() -> None:
    status, out, told = await ddtui("status", "demo")
    assert (status, told) == (ExitCode.OK, "")
    assert out.startswith("demo  (simulated)  ready\n")
    assert "\x1b" not in out
    for label in ("link", "unit", "readiness", "in force", "gpus", "engine", "system"):
        assert re.search(rf"(?m)^{label} +\S", out), label
    assert max(map(len, out.splitlines())) <= 120


async def test_the_text_is_as_wide_as_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for width in (60, 80):
        monkeypatch.setenv("COLUMNS", str(width))
        _, out, _ = await ddtui("status", "demo")
        assert max(map(len, out.splitlines())) <= width
        assert re.search(r"(?m)^ {11}0  RTX PRO", out)
        assert "topk 8, window 2048" in " ".join(out.split())
    monkeypatch.setenv("COLUMNS", "")
    _, out, _ = await ddtui("status", "demo")
    assert "RTX PRO 6000 Blackwell Server Edition" in out


def test_a_long_line_goes_on_beneath_its_text() -> None:
    text = "unit       \x1b[31mone two\x1b[0m three"
    assert folded(text, 22, 13) == ["unit       \x1b[31mone two\x1b[0m", " " * 13 + "three"]
    assert folded(text, 24, 13) == [text]
    assert folded(text, None, 13) == [text]
    assert folded("a" * 30, 24, 13) == ["a" * 30]


async def test_a_load_is_not_ready_and_says_how_far_it_is() -> None:
    from ddtui.app.live import watched
    from ddtui.app.reaching import Overrides
    from ddtui.cli.look import collected
    from ddtui.config.hosts import find_host
    from ddtui.config.model import Config

    source = await watched(find_host(Config(), "demo"), Overrides(scenario="loading"))
    try:
        await source.start()
        snapshot = await collected(source)
    finally:
        await source.close()
    assert exit_code(snapshot) is ExitCode.NOT_READY
    text = "\n".join(lines(snapshot, Paint()))
    assert re.search(r"(?m)^load +(starting|loading target) .*(ETA |weights loaded in )", text), (
        text
    )


@pytest.fixture
def gone(folders: Path) -> Iterator[None]:
    """A host `gone`, on a port that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        config = folders.parent / "ssh_config"
        config.write_text(f"Host gone\n  HostName 127.0.0.1\n  Port {taken.getsockname()[1]}\n")
        folders.mkdir()
        (folders / "config.toml").write_text(f'[hosts.gone]\nssh_config = "{config}"\n')
        yield


@pytest.mark.usefixtures("gone")
async def test_a_host_that_nobody_can_reach() -> None:
    status, out, _ = await ddtui("status", "gone", "--json")
    assert status == ExitCode.UNREACHABLE
    assert "refused" in json.loads(out)["link"]["detail"].lower()
    status, out, told = await ddtui("doctor", "gone")
    assert status == ExitCode.FAILED
    assert re.search(r"FAIL  link +.*refused", out, re.IGNORECASE)
    assert "1 SKIP" in told or "2 SKIP" in told


async def test_the_doctor_on_the_simulated_host() -> None:
    status, out, told = await ddtui("doctor", "demo", "--json")
    assert (status, told) == (ExitCode.OK, "")
    report = json.loads(out)
    verdicts = {check["name"]: check["verdict"] for check in report["checks"]}
    assert report["failed"] is False
    for name in ("python", "link", "bash", "systemd", "journal", "gpus", "channels", "unit"):
        assert verdicts[name] == "OK", name
    for name in ("forwarding", "engine http", "metrics", "engine"):
        assert verdicts[name] == "OK", name
    assert verdicts["terminal"] == "SKIP"


def test_the_doctor_goes_on_where_the_configuration_is_wrong(
    config_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ddtui.cli.doctor.here import configuration
    from ddtui.config.errors import ConfigError
    from ddtui.config.load import load
    from ddtui.config.paths import find_config

    assert configuration(find_config(), load(), None).verdict == "OK"
    os.chmod(config_file, 0o666)  # noqa: PTH101
    assert configuration(find_config(), load(), None).remedy == f"chmod go-w {config_file}"
    config_file.write_text("[uii]\n[hosts.demo]\n")
    with pytest.raises(ConfigError) as caught:
        load()
    check = configuration(find_config(), None, caught.value)
    assert (check.verdict, "and 1 more" in check.detail) == ("FAIL", True)


# ---- reports of what has no simulation ----


def host_state(*samples: Any) -> HostState:
    state = HostState("ct200", SGLANG)
    for sample in samples:
        state.apply(sample)
    return state


LIVE = LinkSample(NOW, "ssh", LinkState.LIVE, "ops@ct200:22")


def test_remote_text_cannot_move_the_cursor() -> None:
    snapshot = host_state(
        LIVE,
        UnitSample(NOW, "systemd", UnitStatus("a\x1b[2J.service", active_state="failed")),
        GpuSample(
            NOW, "nvidia-smi", (Gpu(0, name="\x1b]0;x\x07NVIDIA \x9b31mRTX", lost="gone\r\n"),)
        ),
        SourceSample(NOW, "x", Collector.ENGINE, SourceStatus.FAILED, "bad\x07", "do\x1b[1m this"),
    ).snapshot(NOW)
    text = "\n".join(lines(snapshot, Paint()))
    assert all(char.isprintable() or char == "\n" for char in text)
    assert "LOST: gone" in text
    assert "-> do this" in text


def test_what_nobody_says_is_a_dash_and_never_a_zero() -> None:
    snapshot = host_state(LIVE, GpuSample(NOW, "nvidia-smi", (Gpu(3),))).snapshot(NOW)
    row = next(line for line in lines(snapshot, Paint()) if line.split()[:1] == ["3"])
    assert set(row.split()) <= {"3", "–", "/"}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"eta_seconds": 10.0, "eta_source": "2 loads of this model"}, "ETA 10 s (2 loads of"),
        (
            {"eta_seconds": 10.0, "eta_of": Phase.TARGET, "eta_source": "present rate"},
            "weights loaded in 10 s (present rate), the rest is not known",
        ),
        ({"eta_source": "no progress for 23 s"}, "ETA unknown (no progress for 23 s)"),
        ({"ended": 7.0, "failed": True}, "load       failed after 7 s"),
        ({"ended": 7.0, "finished": True}, "load       ready after 7 s"),
        ({"ended": 7.0}, "load       stopped after 7 s"),
    ],
)
def test_a_load_is_told_as_what_it_is(fields: dict[str, Any], words: str) -> None:
    load = LoadView("a" * 32, 0.0, (), Phase.TARGET, **fields)
    snapshot = msgspec.structs.replace(host_state(LIVE).snapshot(NOW), load=load)
    assert words in "\n".join(lines(snapshot, Paint()))


@pytest.mark.parametrize(
    ("state", "code"),
    [
        (LinkState.REFUSED, ExitCode.REFUSED),
        (LinkState.RETRYING, ExitCode.UNREACHABLE),
        (LinkState.CONNECTING, ExitCode.UNREACHABLE),
        (LinkState.LIVE, ExitCode.NOT_READY),
    ],
)
def test_the_exit_status_tells_where_it_fails(state: LinkState, code: ExitCode) -> None:
    snapshot = host_state(LinkSample(NOW, "ssh", state, "why", "do this")).snapshot(NOW)
    assert exit_code(snapshot) is code
    assert "-> do this" in "\n".join(lines(snapshot, Paint()))
    assert status_report(snapshot).ready is False


def test_sources_have_spoken_once_all_have() -> None:
    state = host_state(LIVE)
    for collector in Collector:
        assert not has_spoken(state.snapshot(NOW)) or collector in {
            Collector.LISTENER,
            Collector.CHECKPOINT,
        }
        state.apply(SourceSample(NOW, "x", collector, SourceStatus.ABSENT))
    assert has_spoken(state.snapshot(NOW))
    state.apply(SourceSample(NOW, "x", Collector.GPU, SourceStatus.STARTING))
    assert not has_spoken(state.snapshot(NOW))


@pytest.mark.parametrize(
    ("active", "sub", "for_how_long"),
    [
        ("active", "running", "1 h 00 m"),
        ("failed", "failed", "42 s"),
        ("activating", "auto-restart", "42 s"),
        ("activating", "auto-restart-queued", "42 s"),
        ("inactive", "dead", "42 s"),
    ],
)
def test_a_unit_is_in_its_state_since_it_changed(active: str, sub: str, for_how_long: str) -> None:
    unit = UnitStatus(
        "llm.service",
        load_state="loaded",
        active_state=active,
        sub_state=sub,
        started_at=NOW - 3600,
        state_changed_at=NOW - 42,
        command_line=("python", "-m", "sglang.launch_server", "--tp-size", "8"),
    )
    snapshot = host_state(LIVE, UnitSample(NOW, "systemd", unit)).snapshot(NOW)
    text = "\n".join(lines(snapshot, Paint()))
    assert f"{active} ({sub})  for {for_how_long}\n" in text
    assert re.search(r"(?m)^asked +.*tp 8", text)
    told = msgspec.structs.replace(
        snapshot, engine=msgspec.structs.replace(snapshot.engine, knobs_source="/server_info")
    )
    now = "in force" if sub == "running" else "last"
    assert re.search(rf"(?m)^{now} +.*tp 8", "\n".join(lines(told, Paint())))


def test_a_single_look_retries_nothing() -> None:
    snapshot = host_state(LinkSample(NOW, "ssh", LinkState.RETRYING, "no such name")).snapshot(NOW)
    text = "\n".join(lines(snapshot, Paint()))
    assert "link       unreachable  no such name" in text
    assert "retrying" not in text
