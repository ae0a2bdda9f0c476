"""Who runs the experiments of a host: a lock on the host, and one on this machine.

The lock on the host keeps runners of different operators apart. The one here keeps two runners off
one queue whatever the host says, and tells which process is the runner, so that it can be asked to
stop. Both are freed by the system when their holder dies, however it dies.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import re
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import msgspec
import psutil

from ddtui.control.drop_in import stamp
from ddtui.control.lock import LockHeld, locked
from ddtui.hosts.base import Host, HostError, LinkDown, ProgramTimeout
from ddtui.store.errors import StoreError
from ddtui.store.store import data_folder

HOST_KEY = "runner"
"""Name of the lock on the host."""
AGAIN = 0.5
_LONGEST = 4096
_LOOKS, _LOOK = 5, 0.02
"""Tries to have the file after one that failed, and seconds between them."""


class RunnerHeld(LockHeld):
    """Another runner has the host's experiments."""

    def __init__(self, holder: str, host: str) -> None:
        super().__init__(holder)
        self.what = f"the experiments are being run by {holder}"
        self.remedy = f"wait until that is done, or stop it: ddtui run {host} --stop"
        self.args = (self.what,)


class Holder(msgspec.Struct, frozen=True):
    """Who runs a host's experiments from this machine."""

    pid: int
    started: float
    """When the process began, by the system: tells it from another one with the same number."""
    who: str
    since: float
    """Unix seconds."""
    detached: bool = False
    log: str = ""
    """Its log file, where it runs without a terminal."""

    @property
    def words(self) -> str:
        """Who, and since when."""
        return f"{self.who} since {stamp(self.since)} (process {self.pid} on this machine)"


def presence_file(host: str, *, simulated: bool, folder: Path | None = None) -> Path:
    """The file that a runner holds locked on this machine."""
    name = re.sub(r"[^A-Za-z0-9_.@-]", "_", host)[:120]
    kind = "simulated" if simulated else "host"
    return (folder or data_folder()) / "runners" / f"{name}.{kind}.json"


@contextmanager
def present(
    file: Path, who: str, since: float, *, host: str = "HOST", log: str = ""
) -> Iterator[Holder]:
    """Be the runner of the host so named, within the context. Raises RunnerHeld, StoreError."""
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise _unusable(file, error) from error
    try:
        _lock(handle, host)
        mine = Holder(os.getpid(), psutil.Process().create_time(), who, since, bool(log), log)
        try:
            os.ftruncate(handle, 0)
            os.pwrite(handle, msgspec.json.encode(mine), 0)
        except OSError as error:
            raise _unusable(file, error) from error
        yield mine
    finally:
        os.close(handle)


def _lock(handle: int, host: str) -> None:
    """Have the file to oneself. Raises RunnerHeld."""
    for left in range(_LOOKS, -1, -1):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if left:  # whoever only looks who runs has it for a moment
                time.sleep(_LOOK)
                continue
            other = _read(handle)
            holder = "another process" if other is None else other.words
            raise RunnerHeld(holder, host) from None
        return


def _unusable(file: Path, error: OSError, verb: str = "note in") -> StoreError:
    return StoreError(
        f"cannot {verb} {file} who runs the experiments",
        error.strerror or str(error),
        "Free or repair it, or name another folder in DDTUI_DATA_DIR",
    )


def holder_of(file: Path) -> Holder | None:
    """Who has the file locked; None for nobody, or for one who does not say. Raises StoreError."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable(file, error, "read in") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read(handle)
    except OSError as error:
        raise _unusable(file, error, "read in") from error
    else:
        return None
    finally:
        os.close(handle)


def _read(handle: int) -> Holder | None:
    try:
        return msgspec.json.decode(os.pread(handle, _LONGEST, 0), type=Holder)
    except msgspec.DecodeError:
        return None  # it has only just taken it


def ask_to_stop(file: Path) -> Holder | None:
    """Send SIGTERM to the runner on this machine; None where there is none.

    The signal goes to the very process that holds the lock: its number may be another one's by the
    time that it is sent, so the process is pinned first and compared then. Raises StoreError, and
    OSError where the process may not be signalled.
    """
    holder = holder_of(file)
    if holder is None:
        return None
    try:
        pinned = os.pidfd_open(holder.pid)
    except ProcessLookupError:
        return None
    try:
        with contextlib.suppress(psutil.NoSuchProcess):
            same = abs(psutil.Process(holder.pid).create_time() - holder.started) < 0.05
            if same and holder_of(file) == holder:
                signal.pidfd_send_signal(pinned, signal.SIGTERM)
                return holder
        return None
    finally:
        os.close(pinned)


@asynccontextmanager
async def sole_runner(host: Host, token: str, text: str) -> AsyncIterator[asyncio.Task[None]]:
    """Be the only runner of a host, within the context and over as many connections as that takes.

    Gives a task that ends, with RunnerHeld, when somebody else has taken the lock while the link
    was down. Raises RunnerHeld, LinkRefused, ActionFailed where it cannot be had at first.
    """
    first: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def keep() -> None:
        while True:
            try:
                await host.wait_live()
                async with locked(host, HOST_KEY, token, text) as lock:
                    if not first.done():
                        first.set_result(None)
                    await lock.lost()
            except (LinkDown, ProgramTimeout):
                await asyncio.sleep(AGAIN)
            except LockHeld as error:
                raise RunnerHeld(error.holder, host.name) from None

    token = "-".join(token.split())  # the host's file has a blank behind it
    keeping = asyncio.create_task(keep(), name="runner lock")
    try:
        await asyncio.wait({keeping, first}, return_when=asyncio.FIRST_COMPLETED)
        if keeping.done():
            keeping.result()
        yield keeping
    finally:
        first.cancel()
        keeping.cancel()
        with contextlib.suppress(asyncio.CancelledError, HostError):
            await keeping
