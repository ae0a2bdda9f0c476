"""Writing a file whole or not at all: beside it first, then in its place.

A rename puts a regular file where something else was. So a link is followed to its target, what can
be written to but not replaced (a pipe, a terminal, `/dev/null`) is written to, and a disk is not.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from pathlib import Path


def is_replaced(file: Path) -> bool:
    """Whether writing makes a regular file of it; a pipe or a device stays what it is.

    Raises OSError where that cannot be told: a loop of links, a folder that may not be searched.
    """
    mode = _mode_of(file)
    return mode is None or stat.S_ISREG(mode)


def write_whole(file: Path, content: bytes, *, private: bool = False) -> None:
    """Write a file; one that is there stays whole until the new one is, and lends it its rights.

    Args:
        file: Where; a link to it stays a link.
        content: All of it.
        private: Whether a new file is for its owner only.

    Raises:
        OSError: It cannot be written; what was there is as it was, if it is a file.
    """
    mode = _mode_of(file)
    if mode is not None and not stat.S_ISREG(mode):
        _write_into(file, mode, content)
        return
    target = Path(os.path.realpath(file))
    if mode is not None and not target.exists():
        raise OSError(errno.ENOENT, "its file was deleted", str(file))  # as /proc/self/fd has it
    rights = (0o600 if private else 0o666) if mode is None else stat.S_IMODE(mode)
    beside = target.with_name(f".ddtui-{secrets.token_hex(8)}.new")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, rights)
    try:
        with os.fdopen(handle, "wb") as stream:
            if mode is not None:
                os.fchmod(handle, rights)  # whatever the umask leaves of new ones
            stream.write(content)
            stream.flush()
            os.fsync(handle)
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _mode_of(file: Path) -> int | None:
    """Of what it is, links followed; None where nothing is there yet."""
    try:
        return file.stat().st_mode
    except FileNotFoundError:
        return None


def _write_into(file: Path, mode: int, content: bytes) -> None:
    """Write to what is no regular file."""
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder: name a file in it", str(file))
    if stat.S_ISBLK(mode):
        what = "it is a disk, all of which would be overwritten"
        raise OSError(errno.EPERM, what, str(file))
    if not stat.S_ISFIFO(mode) and not stat.S_ISCHR(mode):
        raise OSError(errno.ENXIO, "it is neither a file nor a pipe nor a device", str(file))
    try:
        # A pipe that nobody reads would be waited for without an end.
        handle = os.open(file, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ENXIO and stat.S_ISFIFO(mode):
            what = "nobody reads this pipe: start its reader first"
            raise OSError(errno.ENXIO, what, str(file)) from error
        raise
    os.set_blocking(handle, True)
    with os.fdopen(handle, "wb") as stream:
        stream.write(content)
