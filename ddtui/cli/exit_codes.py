"""What the exit status of `ddtui` says. A test holds the operating guide to the same words."""

from __future__ import annotations

import enum


class ExitCode(enum.IntEnum):
    """Exit status of every verb."""

    description: str

    def __new__(cls, value: int, description: str) -> ExitCode:
        """A status with its meaning."""
        member = int.__new__(cls, value)
        member._value_ = value
        member.description = description
        return member

    OK = 0, "done; for `status`: the engine is ready; for `diagnose`: the log was read"
    FAILED = (
        1,
        "something failed, as the message says; for `doctor`: at least one FAIL; for `run`: an"
        " experiment failed",
    )
    USAGE = 2, "the command line or the configuration is wrong"
    UNREACHABLE = 3, "there is no connection to the host"
    REFUSED = 4, "the host refused the login, or its key is unknown or has changed"
    NOT_READY = (
        5,
        "the host answers, and the engine is not ready or not proved (`status`, `bench`, `apply`"
        " where nothing is to be changed), or no unit that runs one is known there",
    )
    NOT_A_LOG = 6, "`diagnose`: what was given is empty, no text, or no engine's log"
    BLOCKED = 7, "nothing was touched: a check or a missing right forbids it, or nobody confirmed"
    LOCKED = 8, "nothing was touched: somebody else is changing the unit, or runs its experiments"
    ROLLED_BACK = 9, "`apply`: the change failed, and what was in force before is so again"
    STARTED = 10, "`--no-wait`: the engine was told to start, and nothing is proved yet"
    INTERRUPTED = (
        130,
        "ended by Ctrl+C or SIGTERM; a change goes on where the host is: `--resume`; a queue:"
        " `ddtui run`",
    )
    READER_GONE = (
        141,
        "whoever read the output has gone before its end; a change, a run or a measurement goes on"
        " all the same, and its status tells how it ended",
    )


def status_of(number: int) -> ExitCode:
    """The status of this number, FAILED for one that is none."""
    return next((each for each in ExitCode if each == number), ExitCode.FAILED)
