"""Saved journals of a whole machine: what other programs say is not the engine's."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import pytest

from ddtui.cli.diagnose_sources import of_stream
from ddtui.core.examination import Diagnosis

NOW = datetime(2026, 11, 29, 20, tzinfo=UTC).timestamp()
SIGQUIT = "Received sigquit from a child process. It usually means the child failed."

Line = tuple[int, str, str]
"""Second, writer and text."""


def own(second: int, text: str, writer: str = "python3[700]") -> Line:
    return (second, writer, f"[2026-11-29 17:00:{second:02}] {text}")


def start(second: int = 0, writer: str = "python3[700]") -> list[Line]:
    return [
        own(second, "server_args=ServerArgs(model_path='/m/x', port=30000)", writer),
        own(second + 5, "Load weight begin. avail mem=90.00 GB", writer),
    ]


def traceback(second: int, writer: str, *texts: str, path: str = "/srv/app.py") -> list[Line]:
    said = ("Traceback (most recent call last):", f'  File "{path}", line 3, in f', *texts)
    return [(second, writer, text) for text in said]


def diagnosed(lines: list[Line]) -> Diagnosis:
    texts = (f"Nov 29 17:00:{at:02} ct200 {who}: {text}\n" for at, who, text in lines)
    return of_stream(io.BytesIO("".join(texts).encode()), "x.log", NOW).diagnosis


@pytest.mark.parametrize(
    "said",
    [
        traceback(7, "myapp[999]", "ValueError: of another program"),
        [
            (7, "gunicorn[9]", "[2026-11-29 17:00:07 +0000] [9] [ERROR] Exception in worker"),
            *traceback(7, "gunicorn[9]", "ModuleNotFoundError: No module named 'flask'"),
        ],
        [(7, "backup.sh", "RuntimeError: CUDA error: out of memory"), (8, "a.out", "Killed")],
    ],
    ids=["an application", "a web server", "bare lines"],
)
def test_another_programs_failure_is_none_of_the_engine(said: list[Line]) -> None:
    found = diagnosed([*start(), *said])
    assert (found.engine, found.failed, found.cause) == ("sglang", False, None)
    up = own(30, "The server is fired up and ready to roll!")
    assert diagnosed([*start(), *said, up]).ready


def test_the_engines_failure_is_told_beside_anothers() -> None:
    other = traceback(7, "myapp[999]", "ValueError: of another program")
    mine = [own(8, "Scheduler hit an exception: "), *traceback(8, "python3[701]", "OddError: two")]
    found = diagnosed([*start(), *other, *mine, own(9, SIGQUIT)])
    assert found.cause is not None
    assert found.cause.title == "OddError: two"


def test_a_new_container_has_another_name() -> None:
    """Docker's journald driver names lines by the container."""
    died = [*start(0, "0a1b2c3d[88]"), own(9, SIGQUIT, "0a1b2c3d[88]")]
    again = traceback(20, "9f8e7d6c[88]", "ImportError: libx.so", path="/x/sglang/launch_server.py")
    found = diagnosed([*died, *again])
    assert found.cause is not None
    assert found.cause.evidence[0] == "ImportError: libx.so"
    up = [
        *start(20, "9f8e7d6c[88]"),
        own(40, "The server is fired up and ready to roll!", "9f8e7d6c[88]"),
    ]
    found = diagnosed([*died, *up])
    assert (found.ready, found.earlier) == (True, 1)


def test_what_runs_before_the_engine_in_its_unit_may_be_what_failed() -> None:
    lines = [
        *start(),
        (9, "systemd[1]", "llm.service: Main process exited, code=exited, status=1/FAILURE"),
        (9, "systemd[1]", "llm.service: Failed with result 'exit-code'."),
        (20, "systemd[1]", "llm.service: Scheduled restart job, restart counter is at 1."),
        (20, "systemd[1]", "Starting llm.service - SGLang..."),
        (21, "prepare[77]", "OSError: [Errno 28] No space left on device: '/var/lib/llm/x'"),
        (21, "systemd[1]", "llm.service: Control process exited, code=exited, status=1/FAILURE"),
        (21, "systemd[1]", "llm.service: Failed with result 'exit-code'."),
    ]
    found = diagnosed(lines)
    assert found.cause is not None
    assert found.cause.id == "disk-full"


APT = [
    (12, "systemd[1]", "Starting apt-daily.service - Daily apt download activities..."),
    (13, "systemd[1]", "apt-daily.service: Main process exited, code=exited, status=1/FAILURE"),
    (13, "systemd[1]", "apt-daily.service: Failed with result 'exit-code'."),
    (13, "systemd[1]", "Failed to start apt-daily.service - Daily apt download activities."),
]
LLM = [(0, "systemd[1]", "Started llm.service - SGLang.")]
LLM_DIED = [
    (30, "systemd[1]", "llm.service: Main process exited, code=killed, status=9/KILL"),
    (30, "systemd[1]", "llm.service: Failed with result 'signal'."),
]
UP = own(20, "The server is fired up and ready to roll!")


def test_another_units_failure_is_none_of_the_engine() -> None:
    assert not diagnosed([*LLM, *start(3), *APT]).failed
    assert diagnosed([*LLM, *start(3), *APT, UP]).ready
    died = diagnosed([*LLM, *start(3), *APT, UP, *LLM_DIED])
    assert died.cause is not None
    assert died.cause.evidence[-1].startswith("llm.service: ")
    again = [(40, "systemd[1]", "Started llm.service - SGLang."), *start(45)]
    assert not diagnosed([*LLM, *start(3), *LLM_DIED, *again]).failed


def test_an_engine_of_another_unit_is_known_by_its_start() -> None:
    other = [(40, "systemd[1]", "Started new.service - SGLang."), *start(45)]
    died = (50, "systemd[1]", "new.service: Failed with result 'oom-kill'.")
    found = diagnosed([*LLM, *start(3), *LLM_DIED, *other, died])
    assert found.cause is not None
    assert found.cause.id == "host-out-of-memory"


def test_an_engine_that_goes_on_is_not_of_the_unit_that_has_failed() -> None:
    """Where the journal does not hold the unit's start."""
    assert diagnosed([*start(3), *APT]).failed
    found = diagnosed([*start(3), *APT, UP])
    assert (found.ready, found.failed, found.cause) == (True, False, None)
    oom = [(13, "systemd[1]", "apt-daily.service: Failed with result 'oom-kill'.")]
    assert diagnosed([*start(3), *oom, UP]).ready
