"""The simulated service manager: one unit, its states, processes and files, `systemctl show`.

Texts and property formats are systemd 252's, as measured on a real one.
"""

from __future__ import annotations

import asyncio
import random
import re
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ddtui.control.unit_command import drop_in_path
from ddtui.core.clock import Clock
from ddtui.demo.config import ArgumentsRefused, EngineConfig, parse
from ddtui.demo.engine import EngineState, SimulatedEngine
from ddtui.demo.failures import Exit
from ddtui.demo.journal import Journal, OutputStream

EngineFactory = Callable[[EngineConfig, Callable[[float, str, str], None], int], SimulatedEngine]
"""Makes the engine of one invocation: configuration, output, main pid."""

_UID = 998
_RESTART_DELAY = 3.0
_KILL_DELAY = 90.0
_SIGTERM = 15
_SIGNALS = {6: "ABRT", 9: "KILL", 11: "SEGV", 15: "TERM"}


@dataclass
class Invocation:
    """One run of the service."""

    identifier: str
    main_pid: int
    command: tuple[str, ...]
    started_at: float
    stream: OutputStream
    pids: dict[str, int] = field(default_factory=dict)
    """Process by role: main, TP0, ..., detokenizer."""
    engine: SimulatedEngine | None = None
    refused: ArgumentsRefused | None = None


class Unit:
    """A service unit. Its start, stop, restart and kill behave as systemctl's."""

    def __init__(
        self,
        name: str,
        description: str,
        files: Mapping[str, str],
        journal: Journal,
        factory: EngineFactory,
        *,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        self.name = name
        self.description = description
        self.files = dict(files)
        """Path to text: the fragment first, then drop-ins. Edit it, then `daemon_reload`."""
        self.active_state, self.sub_state, self.result = "inactive", "dead", "success"
        self.invocation: Invocation | None = None
        self.restarts = 0
        self.last_exit: Exit | None = None
        self.changed_at = self.entered_at = clock()
        self.stop_jobs: list[str] = []
        """Invocations that somebody told to stop."""
        self.on_end: Callable[[SimulatedEngine], None] | None = None
        """Called just before a unit's processes are gone."""
        self._journal = journal
        self._factory = factory
        self._clock = clock
        self._rng = rng
        self._next_pid = 2400 + rng.randrange(400)
        self._task: asyncio.Task[None] | None = None
        self._stopping = False
        self._loaded: dict[str, str] = {}
        self.daemon_reload()

    # ---- configuration --------------------------------------------------------------------------

    @property
    def fragment(self) -> str:
        """Path of the unit file."""
        return next(iter(self.files))

    @property
    def drop_ins(self) -> tuple[str, ...]:
        """Paths of the drop-ins in force, in order."""
        return tuple(sorted(path for path in self._loaded if path != self.fragment))

    @property
    def needs_reload(self) -> bool:
        """Whether files differ from what was loaded."""
        return self._loaded != self.files

    def daemon_reload(self) -> None:
        """Load the files."""
        self._loaded = dict(self.files)

    def _settings(self, name: str) -> list[str]:
        """Values of a setting over the fragment and the drop-ins; an empty one resets the list."""
        values: list[str] = []
        for path in (self.fragment, *self.drop_ins):
            for line in self._loaded[path].replace("\\\n", " ").splitlines():
                key, equals, value = line.strip().partition("=")
                if equals and key == name:
                    values = [*values, value.strip()] if value.strip() else []
        return values

    @property
    def command(self) -> tuple[str, ...]:
        """The command line that a start would run."""
        return tuple(shlex.split((self._settings("ExecStart") or [""])[-1]))

    @property
    def environment(self) -> dict[str, str]:
        """Variables that the unit sets."""
        return {name: value for name, value in self._set.items() if name not in self._unset}

    @property
    def _set(self) -> dict[str, str]:
        pairs = (
            word.partition("=")
            for line in self._settings("Environment")
            for word in shlex.split(line)
        )
        return {name: value for name, _, value in pairs}

    @property
    def _unset(self) -> list[str]:
        return [name for line in self._settings("UnsetEnvironment") for name in line.split()]

    @property
    def control_group(self) -> str:
        """Path below /sys/fs/cgroup; empty while nothing runs."""
        return f"/system.slice/{self.name}" if self.processes() else ""

    # ---- processes ------------------------------------------------------------------------------

    def processes(self) -> dict[str, int]:
        """Processes of the unit by role; empty when none runs."""
        running = self.active_state in ("active", "deactivating") and self.invocation
        return dict(self.invocation.pids) if running and self.invocation else {}

    @property
    def main_pid(self) -> int:
        """The main process, or 0."""
        return self.processes().get("main", 0)

    @property
    def engine(self) -> SimulatedEngine | None:
        """The engine of the present invocation while it runs."""
        return self.invocation.engine if self.invocation and self.processes() else None

    # ---- jobs -----------------------------------------------------------------------------------

    def start(self, *, age: float = 0.0) -> None:
        """`systemctl start`; with `age` as if it had been started that many seconds ago."""
        if self.active_state not in ("inactive", "failed"):
            return
        self.restarts = 0
        self._stopping = False
        self._task = asyncio.create_task(self._supervise(age))

    async def stop(self) -> None:
        """`systemctl stop`: returns once the unit is down."""
        task, self._stopping = self._task, True
        if task is None or task.done():
            return  # a failed unit stays failed, as with the real one
        if self.invocation is not None:
            self.stop_jobs.append(self.invocation.identifier)
        if self.engine is None and self.active_state == "activating":
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            self._enter("inactive", "dead")
            return
        self._enter("deactivating", "stop-sigterm")
        self._say(f"Stopping {self.name} - {self.description}...")
        if self.engine is not None:
            self.engine.terminate()
        done, _ = await asyncio.wait({task}, timeout=_KILL_DELAY)
        if not done:
            self._say(f"{self.name}: State 'stop-sigterm' timed out. Killing.")
            self.kill()
            await task

    def reset_failed(self) -> None:
        """`systemctl reset-failed`."""
        if self.active_state == "failed":
            self._enter("inactive", "dead")
        self.restarts = 0

    async def restart(self, arguments: Sequence[str] | None = None) -> None:
        """`systemctl restart`; `arguments` first replace the flags of the unit's command line."""
        if arguments is not None:
            head = [word for word in self.command[:3] if not word.startswith("--")]
            text = f"[Service]\nExecStart=\nExecStart={shlex.join([*head, *arguments])}\n"
            self.files[drop_in_path("system", self.name)] = text
            self.daemon_reload()
        await self.stop()
        self.start()

    def kill(self, signal: int = 9) -> None:
        """`systemctl kill`: a signal to every process of the unit."""
        engine = self.engine
        if engine is None:
            return
        if signal == _SIGTERM:
            engine.terminate()
        else:
            engine.kill(signal)

    async def close(self) -> None:
        """End everything without a word."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    # ---- one run after the other ----------------------------------------------------------------

    async def _supervise(self, age: float) -> None:
        while True:
            invocation = self._begin(age)
            age = 0.0
            if invocation.engine is not None:
                ended = await invocation.engine.run()
            else:
                ended = await self._refuse(invocation)
            self._ended(invocation, ended)
            again = ended != Exit("exited", 0) and "on-failure" in self._settings("Restart")
            if self._stopping or not again:
                return
            self._enter("activating", "auto-restart")
            await asyncio.sleep(_RESTART_DELAY)
            self.restarts += 1
            self._say(f"{self.name}: Scheduled restart job, restart counter is at {self.restarts}.")

    def _begin(self, age: float) -> Invocation:
        now = self._clock() - age
        identifier = f"{self._rng.getrandbits(128):032x}"
        main_pid = self._pid()
        fields = {
            "_SYSTEMD_UNIT": self.name,
            "_SYSTEMD_INVOCATION_ID": identifier,
            "_SYSTEMD_CGROUP": f"/system.slice/{self.name}",
            "_SYSTEMD_SLICE": "system.slice",
            "_TRANSPORT": "stdout",
            "_STREAM_ID": f"{self._rng.getrandbits(128):032x}",
            "_UID": str(_UID),
            "_GID": str(_UID),
            "_HOSTNAME": "ct200",
            "_EXE": "/usr/bin/python3.11",
            "_CMDLINE": shlex.join(self.command),
            "PRIORITY": "6",
            "SYSLOG_FACILITY": "3",
            "SYSLOG_IDENTIFIER": "python",
        }
        stream = OutputStream(self._journal, fields)
        invocation = Invocation(identifier, main_pid, self.command, now, stream)
        self.invocation = invocation
        invocation.pids["main"] = main_pid
        self._say(f"Started {self.name} - {self.description}.", at=now)
        self._enter("active", "running", at=now)
        self.result = "success"
        try:
            config = parse(self.command, self.environment)
        except ArgumentsRefused as refused:
            invocation.refused = refused
            return invocation

        def output(at: float, role: str, text: str) -> None:
            if role not in invocation.pids and role != "main":
                invocation.pids[role] = self._pid()
            command = "python" if role == "main" else f"sglang::schedul{role}"[:15]
            stream.write(at, invocation.pids[role], command, text)

        engine = self._factory(config, output, main_pid)
        invocation.engine = engine
        for rank in range(config.tp):
            invocation.pids[f"TP{rank}"] = self._pid()
        invocation.pids["detokenizer"] = self._pid()
        if age:
            engine.begin_in_the_past(age)
        return invocation

    async def _refuse(self, invocation: Invocation) -> Exit:
        refused = invocation.refused
        await asyncio.sleep(1.0)
        text = refused.text if refused else ""
        invocation.stream.write(self._clock(), invocation.main_pid, "python", text)
        return Exit("exited", refused.status if refused else 1)

    def _ended(self, invocation: Invocation, ended: Exit) -> None:
        if invocation.engine is not None:
            invocation.engine.state = EngineState.ENDED
            if self.on_end is not None:
                self.on_end(invocation.engine)
        invocation.stream.close(self._clock(), invocation.main_pid)
        self.last_exit = ended
        clean = ended == Exit("exited", 0) or (self._stopping and ended == Exit("killed", 15))
        self.result = "success" if clean else {"exited": "exit-code"}.get(ended.code, "signal")
        if clean:
            self._say(f"{self.name}: Deactivated successfully.")
        else:
            name = "FAILURE" if ended.code == "exited" else _SIGNALS.get(ended.status, "UNKNOWN")
            self._say(
                f"{self.name}: Main process exited, code={ended.code}, "
                f"status={ended.status}/{name}",
                priority=5,
            )
            self._say(f"{self.name}: Failed with result '{self.result}'.", priority=4)
        if self._stopping:
            self._say(f"Stopped {self.name} - {self.description}.")
        self._enter("inactive" if clean else "failed", "dead" if clean else "failed")

    def _pid(self) -> int:
        self._next_pid += self._rng.randrange(1, 6)
        return self._next_pid

    def _enter(self, active: str, sub: str, *, at: float | None = None) -> None:
        self.active_state, self.sub_state = active, sub
        self.changed_at = self._clock() if at is None else at
        if active == "active":
            self.entered_at = self.changed_at

    def _say(self, text: str, *, at: float | None = None, priority: int = 6) -> None:
        """A line of the service manager about the unit."""
        fields = {
            "MESSAGE": text,
            "PRIORITY": str(priority),
            "SYSLOG_FACILITY": "3",
            "SYSLOG_IDENTIFIER": "systemd",
            "UNIT": self.name,
            "INVOCATION_ID": self.invocation.identifier if self.invocation else "",
            "_TRANSPORT": "journal",
            "_PID": "1",
            "_UID": "0",
            "_COMM": "systemd",
            "_EXE": "/usr/lib/systemd/systemd",
            "_SYSTEMD_UNIT": "init.scope",
            "_HOSTNAME": "ct200",
        }
        self._journal.append(self._clock() if at is None else at, fields)

    # ---- systemctl show -------------------------------------------------------------------------

    def show(self, properties: Sequence[str]) -> str:
        """The asked properties that exist, one a line."""
        known = self._properties()
        return "\n".join(f"{name}={known[name]}" for name in properties if name in known)

    def _properties(self) -> dict[str, str]:
        main_pid = self.main_pid
        ended = None if main_pid else self.last_exit
        codes = {"exited": "1", "killed": "2", "dumped": "3"}
        started = self.invocation.started_at if self.invocation else None
        environment = " ".join(printed(f"{name}={value}") for name, value in self._set.items())
        return {
            "Id": self.name,
            "Description": self.description,
            "LoadState": "loaded",
            "ActiveState": self.active_state,
            "SubState": self.sub_state,
            "Result": self.result,
            "MainPID": str(main_pid),
            "InvocationID": self.invocation.identifier if self.invocation else "",
            "ActiveEnterTimestamp": timestamp(self.entered_at if self.invocation else None),
            "ExecMainStartTimestamp": timestamp(started),
            "StateChangeTimestamp": timestamp(self.changed_at),
            "NRestarts": str(self.restarts),
            "ExecMainCode": codes[ended.code] if ended else "0",
            "ExecMainStatus": str(ended.status) if ended else "0",
            "MemoryCurrent": str(92 << 30) if main_pid else "[not set]",
            "TasksCurrent": str(38 * len(self.processes())) if main_pid else "[not set]",
            "UnitFileState": "enabled",
            "FragmentPath": self.fragment,
            "DropInPaths": " ".join(self.drop_ins),
            "ControlGroup": self.control_group,
            "NeedDaemonReload": "yes" if self.needs_reload else "no",
            "ExecStart": self._exec_start(started, main_pid),
            "Environment": environment,
            "UnsetEnvironment": " ".join(self._unset),
        }

    def _exec_start(self, started: float | None, main_pid: int) -> str:
        command = self.command
        begun = timestamp(started) or "n/a"
        return (
            f"{{ path={command[0] if command else ''} ; argv[]={' '.join(command)} ; "
            f"ignore_errors=no ; start_time=[{begun}] ; stop_time=[n/a] ; pid={main_pid} ; "
            "code=(null) ; status=0/0 }"
        )


def timestamp(at: float | None) -> str:
    """A moment as `systemctl show` prints it with TZ=UTC; empty for none."""
    return time.strftime("%a %Y-%m-%d %H:%M:%S UTC", time.gmtime(at)) if at else ""


def printed(assignment: str) -> str:
    """As systemctl prints a word of a list: as it is, or in quotes."""
    if re.fullmatch(r"[\w=:/.,@%+-]+", assignment):
        return assignment
    return '"' + re.sub(r'([\\"$`])', r"\\\1", assignment).replace("\n", r"\n") + '"'
