"""Logs of an engine made line by line, and what is found in them."""

from __future__ import annotations

from ddtui.core.diagnosis import diagnose
from ddtui.core.examination import Diagnosis
from ddtui.core.kernel_words import KernelLine
from ddtui.core.samples import JournalLine, UnitStatus
from ddtui.engines.sglang import SGLANG

HEADER = "Traceback (most recent call last):"
SIGQUIT = "Received sigquit from a child process. It usually means the child failed."
UP = "The server is fired up and ready to roll!"


def stamped(second: float, text: str, rank: str = "") -> str:
    clock = f"17:{int(second) // 60:02}:{int(second) % 60:02}"
    return f"[2026-11-29 {clock}{' ' + rank if rank else ''}] {text}"


class Log:
    """A log that is written line by line, as the journal gives it."""

    def __init__(self) -> None:
        self.lines: list[JournalLine] = []
        self.second = 0.0

    def say(self, text: str, rank: str = "", *, pid: int | None = None, after: float = 0) -> Log:
        self.second += after
        return self.bare(stamped(self.second, text, rank), pid=pid)

    def bare(self, *texts: str, pid: int | None = None) -> Log:
        self.lines += [JournalLine(1000 + self.second, text, pid=pid) for text in texts]
        return self

    def systemd(self, *texts: str) -> Log:
        self.lines += [JournalLine(1000 + self.second, text, from_manager=True) for text in texts]
        return self

    def starting(self) -> Log:
        return self.say("server_args={'model_path': '/m/x', 'tp_size': 2}", after=5)

    def crash(self, message: str, rank: str = "TP0", pid: int | None = None) -> Log:
        self.say(f"Scheduler hit an exception: {HEADER}", rank, pid=pid, after=1)
        self.bare('  File "/x/scheduler.py", line 1, in run', "    run()", message, "", pid=pid)
        return self.say(SIGQUIT, after=1)

    def up(self) -> Log:
        self.starting().say("Load weight begin. avail mem=90.00 GB", after=1)
        self.say(
            "Load weight end. elapsed=9.00 s, type=X, avail mem=1 GB, mem usage=1 GB.", after=9
        )
        self.say("INFO:     Uvicorn running on http://127.0.0.1:1 (Press CTRL+C to quit)", after=9)
        return self.say(UP, after=2)

    def diagnosed(
        self, unit: UnitStatus | None = None, kernel: tuple[KernelLine, ...] = ()
    ) -> Diagnosis:
        return diagnose(self.lines, engine=SGLANG, unit=unit, kernel=kernel)


def cause_id(found: Diagnosis) -> str:
    return found.cause.id if found.cause is not None else ""


def unit(
    result: str, state: str = "failed", exit_code: str = "killed", exit_status: int = 9
) -> UnitStatus:
    return UnitStatus(
        "llm.service",
        active_state=state,
        result=result,
        exit_code=exit_code,
        exit_status=exit_status,
    )
