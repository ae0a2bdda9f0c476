"""The system calls that code under test may not make, as a seccomp program.

A second wall beside bubblewrap's: no further process or thread, no signal to another process, no
socket, nothing written or removed in any file system, no new namespace, no memory that the limit of
the address space does not count. Numbers are those of Linux's `asm/unistd_64.h` (x86-64) and
`asm-generic/unistd.h` (arm64); instructions those of classic BPF, see seccomp(2).
"""

from __future__ import annotations

import errno
import platform
import struct
from typing import NamedTuple

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
"""Offsets in `struct seccomp_data`; an argument has 8 bytes, the lower half first."""
_X32 = 0x40000000
"""Bit of calls with 32-bit pointers on x86-64: a second way to each call."""
_WRITING = 0o1 | 0o2 | 0o100 | 0o1000 | 0o2000 | 0o20000000
"""O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_APPEND, and the bit of O_TMPFILE."""


class _Calls(NamedTuple):
    """One call's number on each machine; None where the machine has no such call."""

    x86_64: int | None
    aarch64: int | None


_DENIED = {
    # Processes, threads, and other processes.
    "fork": _Calls(57, None),
    "vfork": _Calls(58, None),
    "clone": _Calls(56, 220),
    "kill": _Calls(62, 129),
    "tkill": _Calls(200, 130),
    "tgkill": _Calls(234, 131),
    "rt_sigqueueinfo": _Calls(129, 138),
    "rt_tgsigqueueinfo": _Calls(297, 240),
    "pidfd_send_signal": _Calls(424, 424),
    "pidfd_open": _Calls(434, 434),
    "pidfd_getfd": _Calls(438, 438),
    "ptrace": _Calls(101, 117),
    "process_vm_readv": _Calls(310, 270),
    "process_vm_writev": _Calls(311, 271),
    "process_madvise": _Calls(440, 440),
    "kcmp": _Calls(312, 272),
    "setpriority": _Calls(141, 140),
    "sched_setparam": _Calls(142, 118),
    "sched_setscheduler": _Calls(144, 119),
    "sched_setaffinity": _Calls(203, 122),
    "sched_setattr": _Calls(314, 274),
    "ioprio_set": _Calls(251, 30),
    "migrate_pages": _Calls(256, 238),
    "move_pages": _Calls(279, 239),
    # Memory that no limit of the process counts, and other wide doors into the kernel.
    "shmget": _Calls(29, 194),
    "shmat": _Calls(30, 196),
    "shmctl": _Calls(31, 195),
    "msgget": _Calls(68, 186),
    "msgctl": _Calls(71, 187),
    "semget": _Calls(64, 190),
    "semctl": _Calls(66, 191),
    "mq_open": _Calls(240, 180),
    "mq_unlink": _Calls(241, 181),
    "memfd_create": _Calls(319, 279),
    "memfd_secret": _Calls(447, 447),
    "io_setup": _Calls(206, 0),
    "io_uring_setup": _Calls(425, 425),
    "add_key": _Calls(248, 217),
    "request_key": _Calls(249, 218),
    "keyctl": _Calls(250, 219),
    "bpf": _Calls(321, 280),
    "perf_event_open": _Calls(298, 241),
    "userfaultfd": _Calls(323, 282),
    # Namespaces: with a new one comes the right to mount, and so unlimited tmpfs.
    "unshare": _Calls(272, 97),
    "setns": _Calls(308, 268),
    "mount": _Calls(165, 40),
    "umount2": _Calls(166, 39),
    "pivot_root": _Calls(155, 41),
    "chroot": _Calls(161, 51),
    "open_tree": _Calls(428, 428),
    "move_mount": _Calls(429, 429),
    "fsopen": _Calls(430, 430),
    "fsmount": _Calls(432, 432),
    "fspick": _Calls(433, 433),
    "mount_setattr": _Calls(442, 442),
    # Network.
    "socket": _Calls(41, 198),
    "socketpair": _Calls(53, 199),
    # Changes of files; what opens them for writing is told by its flags below.
    "creat": _Calls(85, None),
    "open_by_handle_at": _Calls(304, 265),
    "mknod": _Calls(133, None),
    "mknodat": _Calls(259, 33),
    "mkdir": _Calls(83, None),
    "mkdirat": _Calls(258, 34),
    "rmdir": _Calls(84, None),
    "unlink": _Calls(87, None),
    "unlinkat": _Calls(263, 35),
    "rename": _Calls(82, None),
    "renameat": _Calls(264, 38),
    "renameat2": _Calls(316, 276),
    "link": _Calls(86, None),
    "linkat": _Calls(265, 37),
    "symlink": _Calls(88, None),
    "symlinkat": _Calls(266, 36),
    "chmod": _Calls(90, None),
    "fchmod": _Calls(91, 52),
    "fchmodat": _Calls(268, 53),
    "fchmodat2": _Calls(452, 452),
    "chown": _Calls(92, None),
    "fchown": _Calls(93, 55),
    "lchown": _Calls(94, None),
    "fchownat": _Calls(260, 54),
    "truncate": _Calls(76, 45),
    "utime": _Calls(132, None),
    "utimes": _Calls(235, None),
    "futimesat": _Calls(261, None),
    "utimensat": _Calls(280, 88),
    "setxattr": _Calls(188, 5),
    "lsetxattr": _Calls(189, 6),
    "fsetxattr": _Calls(190, 7),
    "setxattrat": _Calls(463, 463),
    "removexattr": _Calls(197, 14),
    "lremovexattr": _Calls(198, 15),
    "fremovexattr": _Calls(199, 16),
    "removexattrat": _Calls(466, 466),
    "inotify_init": _Calls(253, None),
    "inotify_init1": _Calls(294, 26),
    "fanotify_init": _Calls(300, 262),
}
_UNKNOWN = {
    # Their arguments lie in memory, which a filter cannot read; programs then use the older call.
    "clone3": _Calls(435, 435),
    "openat2": _Calls(437, 437),
}
_OPENING = {"open": (_Calls(2, None), 1), "openat": (_Calls(257, 56), 2)}
"""With the argument that has the flags."""
_LIMITING = _Calls(302, 261)
"""prlimit64: of the process itself only (0)."""
_SELF = _Calls(157, 167)
"""prctl."""
_WITH_PARENT = 1
"""PR_SET_PDEATHSIG: code could outlive the process that is to end it."""
_CONTROL = _Calls(72, 25)
"""fcntl."""
_OWNERS = (8, 10, 15)
"""F_SETOWN, F_SETSIG and F_SETOWN_EX: a way to send signals to others."""

_MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def filter_program(machine: str | None = None) -> bytes | None:
    """The program for `machine` (this one if None); None for one whose calls are not known here."""
    machine = machine or platform.machine()
    if machine not in _MACHINES:
        return None
    denied = _Instructions(0 if machine == "x86_64" else 1)
    denied.add(_LOAD, _ARCHITECTURE)
    denied.unless(_EQUAL, _MACHINES[machine], _KILL)
    denied.add(_LOAD, _NUMBER)
    if machine == "x86_64":
        denied.when(_AT_LEAST, _X32, _KILL)
    for calls in _DENIED.values():
        denied.call(calls, _ERRNO | errno.EPERM)
    for calls in _UNKNOWN.values():
        denied.call(calls, _ERRNO | errno.ENOSYS)
    for calls, argument in _OPENING.values():
        denied.by_argument(calls, argument, [(_ANY_BIT, _WRITING)], errno.EROFS)
    denied.by_argument(_CONTROL, 1, [(_EQUAL, each) for each in _OWNERS], errno.EPERM)
    denied.by_argument(_SELF, 0, [(_EQUAL, _WITH_PARENT)], errno.EPERM)
    denied.by_argument(_LIMITING, 0, [(_AT_LEAST, 1)], errno.EPERM)
    denied.add(_RETURN, _ALLOW)
    return bytes(denied.program)


class _Instructions:
    """A program that grows: each instruction is `struct sock_filter`."""

    def __init__(self, column: int) -> None:
        self.program = bytearray()
        self._column = column

    def add(self, code: int, value: int, if_true: int = 0, if_false: int = 0) -> None:
        self.program += struct.pack("=HBBI", code, if_true, if_false, value)

    def when(self, test: int, value: int, action: int) -> None:
        self.add(test, value, 0, 1)
        self.add(_RETURN, action)

    def unless(self, test: int, value: int, action: int) -> None:
        self.add(test, value, 1, 0)
        self.add(_RETURN, action)

    def call(self, calls: _Calls, action: int) -> None:
        """End a call with `action`; the accumulator has the call's number."""
        number = calls[self._column]
        if number is not None:
            self.when(_EQUAL, number, action)

    def by_argument(
        self, calls: _Calls, argument: int, tests: list[tuple[int, int]], error: int
    ) -> None:
        """Fail a call whose argument (its lower 32 bits) meets any of the tests."""
        number = calls[self._column]
        if number is None:
            return
        self.add(_EQUAL, number, 0, 2 * len(tests) + 2)
        self.add(_LOAD, _ARGUMENTS + 8 * argument)
        for test, value in tests:
            self.when(test, value, _ERRNO | error)
        self.add(_RETURN, _ALLOW)
