"""The Host protocol: what every way of reaching a machine offers, and how it fails.

How it fails::

    HostError
    ├── LinkDown          there is no connection now; it is being re-established, try again later
    ├── LinkRefused       authentication or host key: nothing is retried before the operator acts
    │   ├── HostKeyUnknown
    │   └── HostKeyChanged
    ├── ProgramTimeout    a short command did not end in time
    └── PortClosed        nobody answers on the host's port, or its sshd forbids to reach it
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import httpx
import msgspec

from ddtui.core.reach import Reach
from ddtui.core.samples import LinkSample


class Program(msgspec.Struct, frozen=True):
    """A bash script that runs on the host, with a label that `ps` shows there.

    It is started as `bash -c SCRIPT LABEL ARG...`, each part quoted. Nothing is installed on the
    host. A streaming program must end by itself when its standard input ends, and when no heartbeat
    line has come for `ddtui.collect.programs.HEARTBEAT_LIMIT` seconds, so that nothing is left
    running after a disconnect.
    """

    label: str
    script: str


class Completed(msgspec.Struct, frozen=True):
    """What a short program left: its exit status and its output, as bytes."""

    status: int
    stdout: bytes
    stderr: bytes


class ProgramStream(Protocol):
    """A running program's output, line by line."""

    def lines(self) -> AsyncIterator[bytes]:
        """Whole lines without their newline, as soon as they come; ends when the program ends.

        A last line without newline is dropped (it may be cut). Lines are never longer than 1 MiB: a
        longer one is cut there and the rest of it is dropped. Raises LinkDown when the link breaks.
        """
        ...

    @property
    def status(self) -> int | None:
        """Exit status once the program has ended, else None."""
        ...

    @property
    def stderr_tail(self) -> str:
        """The last 4 KiB of its standard error, decoded with replacement."""
        ...


class Receiver(Protocol):
    """Takes what comes over a connection at the moment it comes."""

    def data_received(self, data: bytes) -> None:
        """Some bytes; called by the event loop, so it must be quick."""
        ...

    def data_ended(self, error: str) -> None:
        """Nothing more comes: an orderly end (empty), or what broke. Called once."""
        ...


class Port(Protocol):
    """An open connection to a port; what comes goes to its Receiver."""

    def write(self, data: bytes) -> None:
        """Queue bytes to send."""
        ...

    async def drain(self) -> None:
        """Return once what was written has gone out. Raises OSError when the connection broke."""
        ...

    def pause(self) -> None:
        """Receive no more for now."""
        ...

    def resume(self) -> None:
        """Go on receiving."""
        ...

    def close(self) -> None:
        """End it. Safe to call twice."""
        ...


class Host(Protocol):
    """A machine."""

    name: str
    kind: Reach

    @property
    def simulated(self) -> bool:
        """True for the built-in host: everything it says is made up and must be labelled so."""
        ...

    @property
    def link(self) -> LinkSample:
        """The link's present state."""
        ...

    def on_link(self, listener: Callable[[LinkSample], None]) -> None:
        """Call `listener` at every change of the link's state."""
        ...

    async def start(self) -> None:
        """Begin connecting in the background, and keep reconnecting until `close`."""
        ...

    async def close(self) -> None:
        """End every program and the connection. Safe to call twice."""
        ...

    async def wait_live(self) -> None:
        """Return once the link is live.

        Raises LinkRefused when it will not become live without the operator.
        """
        ...

    def retry_now(self) -> None:
        """Try to connect at once instead of waiting for the backoff."""
        ...

    async def run(
        self, program: Program, *args: str, timeout: float = 15.0, stdin: bytes = b""
    ) -> Completed:
        """Run a short program to its end. At most three run at once; others wait.

        Output is capped at 8 MiB. Raises LinkDown, ProgramTimeout.
        """
        ...

    def stream(self, program: Program, *args: str) -> AbstractAsyncContextManager[ProgramStream]:
        """Run a long program; heartbeats are sent to it.

        Leaving the context ends it on the host.
        """
        ...

    def transport(self) -> httpx.AsyncBaseTransport:
        """HTTP to ports of the host as seen from the host itself (127.0.0.1 is the host's own)."""
        ...

    async def open_port(self, address: str, port: int, receiver: Receiver) -> Port:
        """A connection to a port as seen from the host itself; for what must be timed.

        Raises LinkDown without a link, and PortClosed when nobody answers there.
        """
        ...


class HostError(Exception):
    """Base: `what` happened, and a `remedy` in words when there is one."""

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy


class LinkDown(HostError):
    """There is no connection now."""


class LinkRefused(HostError):
    """The host, or its key, was refused; nothing is retried before the operator acts."""


class HostKeyUnknown(LinkRefused):
    """First contact: the operator must accept the key."""

    def __init__(
        self,
        what: str,
        remedy: str,
        *,
        address: str,
        key_type: str,
        fingerprint: str,
        known_hosts_file: str = "",
        known_hosts_line: str = "",
    ) -> None:
        super().__init__(what, remedy)
        self.address = address
        self.key_type = key_type
        self.fingerprint = fingerprint
        self.known_hosts_file = known_hosts_file
        """Where accepting it would record it; empty when there is no such file."""
        self.known_hosts_line = known_hosts_line


class HostKeyChanged(LinkRefused):
    """The host shows another key than the one on record: a hard stop."""


class ProgramTimeout(HostError):
    """A short program did not end in time."""


class PortClosed(HostError):
    """A port of the host cannot be reached."""
