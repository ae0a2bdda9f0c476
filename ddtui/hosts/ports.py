"""Connections to ports on asyncio's own transports: of this machine, or reached directly."""

from __future__ import annotations

import asyncio
from typing import cast

from ddtui.hosts.base import Port, PortClosed, Receiver


class PortProtocol(asyncio.Protocol):
    """Hands what comes to a Receiver, and is the Port that answers."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._transport: asyncio.Transport | None = None
        self._room = asyncio.Event()
        self._room.set()
        self._broken = ""
        self._ended = False
        # The transport calls this name for every read; nothing is to be done in between.
        self.data_received = receiver.data_received  # type: ignore[method-assign]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self._transport = cast(asyncio.Transport, transport)

    def eof_received(self) -> bool:
        """The peer sends no more: so the connection ends."""
        self._end("")
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        self._broken = str(exc or "closed")
        self._room.set()
        self._end(str(exc) if exc else "")

    def _end(self, error: str) -> None:
        if not self._ended:
            self._ended = True
            self._receiver.data_ended(error)

    def pause_writing(self) -> None:
        """See asyncio.Protocol."""
        self._room.clear()

    def resume_writing(self) -> None:
        """See asyncio.Protocol."""
        self._room.set()

    def write(self, data: bytes) -> None:
        """See Port."""
        if self._transport is not None:
            self._transport.write(data)

    async def drain(self) -> None:
        """See Port."""
        await self._room.wait()
        if self._broken:
            raise ConnectionResetError(self._broken)

    def pause(self) -> None:
        """See Port."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume(self) -> None:
        """See Port."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def close(self) -> None:
        """See Port."""
        if self._transport is not None:
            self._transport.close()


class DirectPorts:
    """Ports as this machine reaches them, without a host in between."""

    async def open_port(self, address: str, port: int, receiver: Receiver) -> Port:
        """See Host. Raises PortClosed."""
        loop = asyncio.get_running_loop()
        try:
            _, protocol = await loop.create_connection(
                lambda: PortProtocol(receiver), address, port
            )
        except OSError as exc:
            raise PortClosed(
                f"{address}:{port} cannot be reached: {exc.strerror or exc}",
                "see that the engine runs, and that it listens on this address and port",
            ) from exc
        return protocol
