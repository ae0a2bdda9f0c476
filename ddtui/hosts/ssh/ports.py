"""Connections to the host's ports inside the SSH connection, for what must be timed."""

from __future__ import annotations

import asyncio

import asyncssh

from ddtui.hosts.base import Receiver


class ChannelPort(asyncssh.SSHTCPSession[bytes]):
    """A direct-tcpip channel that hands what comes to a Receiver, and is the Port that answers.

    asyncssh calls it from within the read of the SSH connection's socket: no task is woken and no
    buffer is kept between, which makes an event cost half of what a reading coroutine costs.
    """

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._channel: asyncssh.SSHTCPChannel[bytes] | None = None
        self._room = asyncio.Event()
        self._room.set()
        self._broken = ""
        self._ended = False

    def connection_made(self, chan: asyncssh.SSHTCPChannel[bytes]) -> None:
        """See asyncssh.SSHTCPSession."""
        self._channel = chan

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:  # noqa: ARG002
        """See asyncssh.SSHTCPSession."""
        self._receiver.data_received(data)

    def eof_received(self) -> bool:
        """The peer sends no more: so the channel is closed."""
        self._end("")
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncssh.SSHTCPSession."""
        self._broken = f"the SSH connection broke: {exc}" if exc else "closed"
        self._room.set()
        self._end(self._broken if exc else "")

    def _end(self, error: str) -> None:
        if not self._ended:
            self._ended = True
            self._receiver.data_ended(error)

    def pause_writing(self) -> None:
        """See asyncssh.SSHTCPSession."""
        self._room.clear()

    def resume_writing(self) -> None:
        """See asyncssh.SSHTCPSession."""
        self._room.set()

    def write(self, data: bytes) -> None:
        """See Port."""
        if self._channel is not None and not self._broken:
            self._channel.write(data)

    async def drain(self) -> None:
        """See Port."""
        await self._room.wait()
        if self._broken:
            raise ConnectionResetError(self._broken)

    def pause(self) -> None:
        """See Port."""
        if self._channel is not None:
            self._channel.pause_reading()

    def resume(self) -> None:
        """See Port."""
        if self._channel is not None:
            self._channel.resume_reading()

    def close(self) -> None:
        """See Port."""
        if self._channel is not None:
            self._channel.close()
