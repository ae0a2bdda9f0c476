"""A machine whose systemd, engine and GPUs follow a script, in virtual time.

It answers ddtui's programs by their labels, so that everything above `Host` is the real thing.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ddtui.control.unit_command import drop_in_path, read_unit
from ddtui.control.unit_text import UnitFile
from ddtui.core.launch import Launch
from ddtui.core.samples import (
    AnySample,
    Collector,
    HealthSample,
    JournalLine,
    JournalSample,
    ListenerOwner,
    ListenerSample,
    ReportRefusedSample,
    SourceSample,
    SourceStatus,
    UnitSample,
    UnitStatus,
)
from ddtui.engines.sglang import SGLANG
from ddtui.hosts.base import Completed, Program

UNIT = "llm.service"
FRAGMENT = f"/etc/systemd/system/{UNIT}"
DROP_IN = drop_in_path("system", UNIT)
FOREIGN = f"{FRAGMENT}.d/60-own.conf"
"""A drop-in of somebody else, with a command of its own."""
PORT = 30000
EPOCH = 1_800_000_000.0
GPU_MIB = 90_000
IDLE_MIB = 3
LOG = (
    (0.02, "Memory baseline taken. mem usage=0.00 GB"),
    (0.03, "Load weight begin. avail mem=94.00 GB"),
    (0.70, "Load weight end. elapsed=400.00 s, type=KimiK2ForCausalLM, avail mem=20.00 GB,"
           " mem usage=74.00 GB."),
    (0.71, "Load weight begin. avail mem=20.00 GB"),
    (0.80, "Load weight end. elapsed=54.00 s, type=DFlashDraftModel, avail mem=18.00 GB,"
           " mem usage=2.00 GB."),
    (0.85, "KV Cache is allocated. dtype: torch.bfloat16, #tokens: 20000, K size: 8.00 GB,"
           " V size: 8.00 GB"),
    (0.87, "Capture cuda graph begin. This can take up to several minutes. avail mem=10.00 GB"),
    (0.94, "Capture cuda graph end. Time elapsed: 42.00 s. mem usage=1.00 GB. avail mem=9.00 GB."),
    (0.95, "INFO:     Uvicorn running on http://127.0.0.1:30000 (Press CTRL+C to quit)"),
    (1.00, "The server is fired up and ready to roll!"),
)  # fmt: skip
"""The engine's log: shares of the time that a load takes, and its lines."""
OPEN, READY = 0.95, 1.0
"""Shares of a load at which the port opens (and answers 503), and from which it answers 200."""


@dataclass
class Script:
    """How long things take (seconds), and what goes wrong."""

    stop: float = 4.0
    memory_late: float = 2.0
    """After the stop, until the GPUs have their memory back."""
    load: float = 10.0
    orphan: bool = False
    """A process of the old invocation escapes and keeps GPU 0."""
    order_late: float = 0.0
    """Seconds after which systemd takes an order whose sender has gone."""
    travel: float = 0.05
    """One way of the link."""
    fails: Callable[[tuple[str, ...]], bool] = lambda _: False
    """Whether an engine of this command line dies in the middle of its load."""
    restarts_after: float | None = None
    """Seconds after which systemd starts an engine that died again; None: it does not."""
    says: dict[int, str] = field(default_factory=dict)
    """What an engine that fails says as it begins, by the number of its start."""
    report_refused: bool = False
    """The server wants a key for its report."""
    adds: tuple[str, ...] = ()
    """Words that the unit's wrapper adds to the command line."""
    stopped_at_once: bool = False
    """Somebody stops the second invocation as soon as it starts."""
    environ_is_read: bool = True
    """The operator may read the environment of the unit's process."""
    sight: str = ""
    """The unit's file that is closed to others, where the drop-in cannot be."""
    rights: str = ""
    """Lines of what is said of the rights to change the unit."""
    refuses: set[str] = field(default_factory=set)
    """Verbs of systemctl, `write`, and labels of programs that are not allowed (any more)."""


@dataclass
class Engine:
    """One invocation."""

    number: int
    began: float
    argv: tuple[str, ...]
    drop_in: str
    environment: dict[str, str]
    """As the process was started with it."""
    pid: int = field(init=False)
    said: int = 0

    def __post_init__(self) -> None:
        """Its main process."""
        self.pid = 1000 * self.number

    @property
    def invocation(self) -> str:
        """Systemd's name of it."""
        return f"{self.number:032x}"


class Machine:
    """systemd and the engine. Tasks run on the present loop."""

    def __init__(self, script: Script, fragment: str) -> None:
        self.script = script
        self.files = {FRAGMENT: fragment}
        self.loaded = dict(self.files)
        """As systemd has read them."""
        self.active, self.sub, self.result = "inactive", "dead", "success"
        self.restarts = 0
        self.engine: Engine | None = None
        self.last: Engine | None = None
        self.starts = self.stops = 0
        self.orphan: int | None = None
        self.memory_back_at = 0.0
        self.locks: dict[str, tuple[str, str]] = {}
        """Token and words of each lock's holder."""
        self.killed: list[tuple[int, str]] = []
        self.stop_jobs: list[str] = []
        """Invocations that somebody told systemd to stop."""
        self._read: tuple[dict[str, str], Launch] | None = None
        self.edited_at = -1e9
        """When the unit file was edited last."""
        self._stopping: asyncio.Task[None] | None = None
        self._restarting: asyncio.TimerHandle | None = None
        self._events: list[asyncio.TimerHandle] = []

    @property
    def now(self) -> float:
        """Virtual seconds."""
        return asyncio.get_running_loop().time()

    def start(self, age: float = 0.0) -> None:
        """`systemctl start`; `age` as if it had been that long ago."""
        if self.active == "active":
            return
        self._restart_no_more()
        self.starts += 1
        launch = self._launch()
        self.engine = self.last = Engine(
            self.starts,
            self.now - age,
            launch.argv + self.script.adds,
            self.loaded.get(DROP_IN, ""),
            launch.environment,
        )
        self.active, self.sub, self.result, self.restarts = "active", "running", "success", 0
        if self.script.fails(launch.argv) and not age:
            died = self.engine
            loop = asyncio.get_running_loop()
            loop.call_later(self.script.load / 2, lambda: self.die(died))

    def _launch(self) -> Launch:
        """What systemd starts, by the files as it has read them."""
        if self._read is None or self._read[0] != self.loaded:
            files = [UnitFile(path, text) for path, text in self.loaded.items()]
            if FOREIGN in self.loaded:  # the last command counts
                files = [file for file in files if file.path == FOREIGN]
            self._read = (dict(self.loaded), read_unit(UNIT, files, SGLANG.is_command).launch)
        return self._read[1]

    def ends_well(self) -> None:
        """The main process ends by itself, without an error."""
        self.active, self.sub = "inactive", "dead"
        self._gone()

    def die(self, engine: Engine) -> None:
        """The main process ends by itself."""
        if self.engine is not engine:
            return
        self.active, self.sub, self.result = "failed", "failed", "exit-code"
        self._gone()
        if (after := self.script.restarts_after) is not None:
            self.active, self.sub = "activating", "auto-restart"
            loop = asyncio.get_running_loop()
            self._restarting = loop.call_later(after, self._restart, self.restarts + 1)

    def _restart(self, restarts: int) -> None:
        self.start()
        self.restarts = restarts

    def _restart_no_more(self) -> None:
        if self._restarting is not None:
            self._restarting.cancel()
            self._restarting = None

    async def stop(self) -> None:
        """`systemctl stop`: returns when it is down."""
        if self._stopping is None:
            if self.engine is None:
                self._restart_no_more()
                self.active, self.sub = "inactive", "dead"
                return
            self.stops += 1
            self.stop_jobs.append(self.engine.invocation)
            self.active, self.sub = "deactivating", "stop-sigterm"
            self._stopping = asyncio.create_task(self._stop())
        await asyncio.shield(self._stopping)

    async def _stop(self) -> None:
        await asyncio.sleep(self.script.stop)
        if self.script.orphan and self.engine is not None and self.engine.number == 1:
            self.orphan = self.engine.pid + 1
        self.active, self.sub = "inactive", "dead"
        self._gone()
        self._stopping = None

    def _gone(self) -> None:
        self.memory_back_at = self.now + self.script.memory_late
        self.engine = None

    @property
    def progress(self) -> float:
        """Share of its load that the engine has behind it; 0 without an engine."""
        return 0.0 if self.engine is None else (self.now - self.engine.began) / self.script.load

    @property
    def http(self) -> int | None:
        """What /health answers; None: connection refused."""
        if self.engine is None or self.progress < OPEN:
            return None
        return 200 if self.progress >= READY else 503

    def samples(self, at: float) -> list[AnySample]:
        """What collectors would say now."""
        engine = self.engine
        last = self.last
        status = UnitStatus(
            UNIT, "loaded", self.active, self.sub, self.result,
            engine.pid if engine else 0, last.invocation if last else "",
            restarts=self.restarts, command_line=last.argv if last else (),
            control_group=f"/system.slice/{UNIT}" if engine else "",
            drop_ins=tuple(path for path in self.loaded if path != FRAGMENT),
            **self._variables(),
        )  # fmt: skip
        found: list[AnySample] = [UnitSample(at, "systemctl", status)]
        if engine is not None:
            due = [text for share, text in LOG if share <= self.progress]
            if engine.number in self.script.says:
                due.insert(0, self.script.says[engine.number])
            lines = tuple(
                JournalLine(at, f"[2026-11-29 17:00:00] {text}", engine.invocation, engine.pid)
                for text in due[engine.said :]
            )
            engine.said = len(due)
            if lines:
                found.append(JournalSample(at, "journal", lines))
        owner = ListenerOwner.UNIT if self.http else ListenerOwner.NOBODY
        pid = engine.pid if engine and self.http else None
        found += [
            ListenerSample(at, "/proc/net/tcp", PORT, owner, pid),
            HealthSample(at, "/health", "/health", self.http, "" if self.http else "port closed",
                         0.01),
        ]  # fmt: skip
        if engine is not None and self.http:
            found += self._report(engine.argv, at)
        return found

    def _variables(self) -> dict[str, Any]:
        """What is known of the variables: of the process, or where that may not be read, of systemd
        and of the times at which files were written.
        """
        engine = self.engine
        known = self._launch().environment
        if engine is not None and self.script.environ_is_read:
            known = engine.environment
        later = engine is not None and self.edited_at > engine.began
        why = f"{FRAGMENT} was changed after the start, and the variables of the process may not"
        return {
            "environment": tuple(f"{name}={value}" for name, value in known.items()),
            "environment_read": engine is not None and self.script.environ_is_read,
            "doubts": (f"{why} be read",) if later and not self.script.environ_is_read else (),
        }

    def edit(self, old: str, new: str) -> None:
        """Somebody edits the unit file, and has systemd read it; nothing is restarted."""
        assert old in self.files[FRAGMENT]
        self.files[FRAGMENT] = self.files[FRAGMENT].replace(old, new)
        self.loaded, self.edited_at = dict(self.files), self.now

    def _report(self, argv: tuple[str, ...], at: float) -> list[AnySample]:
        """The server's report, its command line joined as SGLang does; or that it is refused."""
        if self.script.report_refused:
            why = "API key needed (401)"
            said = SourceSample(at, "engine", Collector.ENGINE, SourceStatus.FAILED, why)
            return [said, ReportRefusedSample(at, "/server_info", 401)]
        arguments = {"model_path": "/models/kimi", "launch_command": " ".join(argv[3:])}
        return [SGLANG.parse_server_info(json.dumps(arguments), at)[0]]

    # ---- ddtui's programs ----------------------------------------------------------------------

    async def answer(self, program: Program, args: tuple[str, ...], stdin: bytes) -> Completed:
        """Run a program."""
        name = program.label.removeprefix("ddtui:").replace("-", "_")
        handler = getattr(self, f"_{name}", None)
        if handler is None:
            return Completed(127, b"", f"no {program.label} here".encode())
        verb = {"ddtui:write-drop-in": "write"}.get(program.label, "".join(args[2:3]))
        if {verb, program.label} & self.script.refuses:
            return Completed(1, b"", b"sudo: a password is required")
        said = await handler(args, stdin)
        return Completed(0, said.encode() if isinstance(said, str) else said, b"")

    async def _unit_files(self, _args: Any, _stdin: Any) -> bytes:
        paths = [FRAGMENT, *([DROP_IN] if DROP_IN in self.files else [])]
        paths += [FOREIGN] if FOREIGN in self.loaded else []
        shown = f"LoadState=loaded\nFragmentPath={FRAGMENT}\nDropInPaths={' '.join(paths[1:])}\n"
        cat = "\n\n".join(f"# {path}\n{self.files[path].rstrip()}" for path in paths) + "\n"
        blocks = [("show", "-", shown), ("cat", "-", cat)]
        if DROP_IN in self.files:
            blocks.append(("ours", DROP_IN, self.files[DROP_IN]))
        if FOREIGN in self.files and FOREIGN not in self.loaded:
            blocks.append(("unread", FOREIGN, self.files[FOREIGN]))
        out = b"@user ops 1501 /home/ops\n"
        for kind, path, text in blocks:
            out += f"@{kind} {len(text.encode())} {path}\n{text}\n".encode()
        return out + b"@end\n"

    async def _unit_look(self, _args: Any, _stdin: Any) -> str:
        needs = "yes" if self.files != self.loaded and DROP_IN in self.loaded else "no"
        own = self.files.get(DROP_IN, "")
        digest = hashlib.sha256(own.encode()).hexdigest() if own else ""
        invocation = self.last.invocation if self.last else ""
        return (
            f"LoadState=loaded\nActiveState={self.active}\nSubState={self.sub}\n"
            f"Result={self.result}\nInvocationID={invocation}\nNRestarts={self.restarts}\n"
            f"MainPID={self.engine.pid if self.engine else 0}\nNeedDaemonReload={needs}\n"
            f"ControlGroup={f'/system.slice/{UNIT}' if self.engine else ''}\n"
            f"DropIn={digest}\n@end\n"
        )

    async def _write_drop_in(self, args: tuple[str, ...], stdin: bytes) -> str:
        own = self.files.get(DROP_IN)
        old = hashlib.sha256(own.encode()).hexdigest() if own else "-"
        if args[2] != old and own != stdin.decode():
            return "@changed\n"
        self.files[DROP_IN + ".new"] = stdin.decode()
        await asyncio.sleep(0.02)
        self.files[DROP_IN] = self.files.pop(DROP_IN + ".new")
        return f"@written {hashlib.sha256(stdin).hexdigest()}\n"

    async def _verify_unit(self, _args: Any, _stdin: Any) -> str:
        return "@folder /tmp/verify\n@status 0\n"

    async def _systemctl(self, args: tuple[str, ...], _stdin: Any) -> str:
        if args[3] and (self.last is None or args[3] != self.last.invocation):
            return "@other\n"
        match args[2]:
            case "daemon-reload":
                self.loaded = {
                    path: text for path, text in self.files.items() if path[-4:] != ".new"
                }
            case "start":
                self.start()
                if self.script.stopped_at_once and self.starts == 2 and self.engine is not None:
                    await self.stop()
                    self.last = None  # systemd forgets a unit that is down
            case "stop":
                await self.stop()
            case "reset-failed" if self.active == "failed":
                self.active, self.sub = "inactive", "dead"
        return ""

    async def _drop_in_sight(self, _args: Any, _stdin: Any) -> str:
        return f"@open {self.script.sight}\n@end\n" if self.script.sight else "@end\n"

    async def _stop_requests(self, _args: Any, _stdin: Any) -> str:
        return "".join(f"@stop {each}\n" for each in self.stop_jobs) + "@end\n"

    async def _rights(self, _args: Any, _stdin: Any) -> str:
        said = self.script.rights or "@rule (root) NOPASSWD: ALL\n"
        return f"@user ops 1501\n{said}@end\n"

    async def _lock_holder(self, args: tuple[str, ...], _stdin: Any) -> str:
        held = self.locks.get(args[0])
        return f"@held {held[1]}\n" if held else "@free\n"

    async def _holders(self, _args: Any, _stdin: Any) -> str:
        engine, lines = self.engine, []
        group = f"/system.slice/{UNIT}"
        pids = [] if engine is None else [engine.pid, engine.pid + 1]
        lines += [f"@unit {pid}" for pid in pids]
        if self.http and engine:
            lines += ["@socket 998 5", f"@listens {engine.pid} 5"]
        for index in range(2):
            held = engine is not None or self.now < self.memory_back_at
            held = held or (self.orphan is not None and index == 0)
            used = GPU_MIB if held else IDLE_MIB
            lines.append(f"@gpu GPU-{index}, {index}, {used}")
            holder = engine.pid + 1 if engine else (self.orphan if index == 0 else None)
            if holder:
                lines.append(f"@app {holder}, GPU-{index}, {GPU_MIB - IDLE_MIB}, python")
        for pid in pids:
            lines.append(f"@process {pid} {pid}7 998 {group} sglang::schedul sglang::scheduler")
        if self.orphan:
            lines.append(
                f"@process {self.orphan} {self.orphan}7 998 /user.slice sglang::schedul"
                " sglang::scheduler"
            )
        return "\n".join([*lines, "@end", ""])

    async def _end_process(self, args: tuple[str, ...], _stdin: Any) -> str:
        pid, begun, signal = args
        self.killed.append((int(pid), signal))
        if self.orphan == int(pid) and begun == f"{pid}7":
            self.orphan = None
            return "@sent\n"
        return "@gone\n"
