"""A delay line between two TUN devices, for kernels without sch_netem: `gpuhost.sh link NAME wire`.

    delay_line.py SUPERVISOR_PID OUTER_DEVICE STATE_FOLDER

Packets that enter one device leave the other later, or not at all, as STATE_FOLDER/wire.conf says
(`key=value` lines; read again on SIGHUP). It ends with the supervisor, whose network namespace the
inner device is in. Only the standard library: the machine's own Python runs it.
"""

from __future__ import annotations

import ctypes
import fcntl
import heapq
import os
import random
import select
import signal
import struct
import sys
import time
from pathlib import Path
from types import FrameType

_CLONE_NEWNET = 0x40000000
_TUNSETIFF = 0x400454CA
_IFF_TUN_NO_PI = 0x1001
_DEFAULTS = {"delay": 0.0, "jitter": 0.0, "loss": 0.0, "rate": 0.0, "queue": 1000.0}
"""Milliseconds, milliseconds, percent, kbit/s (0: no limit), packets."""
_libc = ctypes.CDLL(None, use_errno=True)


def enter_network(descriptor: int) -> None:
    """Move this process into the network namespace of an open /proc/PID/ns/net."""
    if _libc.setns(descriptor, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


def tun(name: str) -> int:
    """A new TUN device in the present network namespace."""
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH14x", name.encode(), _IFF_TUN_NO_PI))
    return device


class Wire:
    """One direction of the line: packets wait in it until they are due."""

    def __init__(self, out: int) -> None:
        self.out = out
        self.waiting: list[tuple[float, int, bytes]] = []
        self._last = 0.0
        self._free = 0.0

    def put(self, packet: bytes, settings: dict[str, float]) -> None:
        """Take a packet that has just come, or lose it."""
        if random.random() * 100 < settings["loss"] or len(self.waiting) >= settings["queue"]:
            return
        now = time.monotonic()
        delay = settings["delay"] / 1e3
        due = now + delay + random.uniform(-1, 1) * settings["jitter"] / 1e3
        if settings["rate"]:
            self._free = max(self._free, now) + len(packet) * 8 / (settings["rate"] * 1e3)
            due = max(due, self._free + delay)
        due = self._last = max(due, self._last)  # it never reorders
        heapq.heappush(self.waiting, (due, time.monotonic_ns(), packet))

    def deliver(self) -> None:
        """Pass on what is due."""
        now = time.monotonic()
        while self.waiting and self.waiting[0][0] <= now:
            packet = heapq.heappop(self.waiting)[2]
            try:
                os.write(self.out, packet)
            except OSError as exc:  # the device is down: a cable would lose it too
                print(f"lost {len(packet)} bytes: {exc}", file=sys.stderr)


def read_settings(file: Path) -> dict[str, float]:
    """The settings of wire.conf over the defaults."""
    settings = dict(_DEFAULTS)
    for line in file.read_text().splitlines():
        key, _, value = line.strip().partition("=")
        if key in settings:
            settings[key] = float(value)
    return settings


def main(supervisor: str, outer: str, folder: Path) -> None:
    own = os.open("/proc/self/ns/net", os.O_RDONLY)
    outside = tun(outer)
    enter_network(os.open(f"/proc/{supervisor}/ns/net", os.O_RDONLY))
    inside = tun("wire0")
    enter_network(own)
    gone = os.pidfd_open(int(supervisor))
    settings = read_settings(folder / "wire.conf")

    def reread(_number: int, _frame: FrameType | None) -> None:
        settings.update(read_settings(folder / "wire.conf"))

    signal.signal(signal.SIGHUP, reread)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    wires = {outside: Wire(inside), inside: Wire(outside)}
    poll = select.epoll()
    for descriptor in (outside, inside, gone):
        poll.register(descriptor, select.EPOLLIN)
    (folder / "wire.ready").touch()
    while True:
        due = min((wire.waiting[0][0] for wire in wires.values() if wire.waiting), default=None)
        for descriptor, _ in poll.poll(None if due is None else max(0.0, due - time.monotonic())):
            if descriptor == gone:
                return
            for _ in range(64):
                try:
                    packet = os.read(descriptor, 65536)
                except OSError:  # nothing more to read, or the device is down for now
                    break
                wires[descriptor].put(packet, settings)
        for wire in wires.values():
            wire.deliver()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
