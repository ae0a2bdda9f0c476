"""One running program of the simulated host, as its handler sees it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import asyncssh

from ddtui.demo.machine import Machine


class Call:
    """One running program: its arguments and its output."""

    def __init__(
        self,
        machine: Machine,
        process: asyncssh.SSHServerProcess[bytes],
        arguments: Sequence[str],
    ) -> None:
        self.machine = machine
        self.arguments = arguments
        self.process = process

    def argument(self, index: int, default: str = "") -> str:
        """An argument, or the default when it was left out."""
        return self.arguments[index] if index < len(self.arguments) else default

    async def write(self, text: str | bytes) -> None:
        """Standard output."""
        self.process.stdout.write(text.encode() if isinstance(text, str) else text)
        await self.process.stdout.drain()

    def complain(self, text: str) -> None:
        """A line of standard error."""
        self.process.stderr.write(text.encode() + b"\n")

    @property
    def ours(self) -> bool:
        """Whether arguments 0 and 1 (scope, unit) name the simulated unit."""
        return self.argument(0) != "user" and self.argument(1) == self.machine.unit.name


Handler = Callable[[Call], Awaitable[int]]
"""Runs a program to its end and returns its exit status."""
