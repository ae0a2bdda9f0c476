"""One prerequisite: what was looked at, what was found, and what to do about it."""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import Awaitable, Callable, Iterable

import msgspec

from ddtui.hosts.base import HostError

LIMIT = 15.0
"""Seconds that one check may take."""

AGAIN = "look again in a moment; where it stays so, ddtui's own log tells more (with --debug)"
"""What to do where nothing better is known."""

log = logging.getLogger(__name__)


class Verdict(enum.StrEnum):
    """What a check found."""

    OK = "OK"
    WARN = "WARN"  # something works less well, or will be needed later
    FAIL = "FAIL"  # something that ddtui is for does not work
    SKIP = "SKIP"  # could not be, or need not be, looked at


class Check(msgspec.Struct, frozen=True):
    """One line of the doctor."""

    name: str
    verdict: Verdict
    detail: str
    remedy: str = ""
    """What to do; may have several lines. A WARN and a FAIL always have one."""


def ok(name: str, detail: str) -> Check:
    """All is well."""
    return Check(name, Verdict.OK, detail)


def warn(name: str, detail: str, remedy: str) -> Check:
    """Something works less well, or will be needed later."""
    return Check(name, Verdict.WARN, detail, remedy)


def fail(name: str, detail: str, remedy: str) -> Check:
    """Something does not work."""
    return Check(name, Verdict.FAIL, detail, remedy)


def skip(name: str, detail: str) -> Check:
    """Not looked at."""
    return Check(name, Verdict.SKIP, detail)


async def bounded(
    name: str, check: Callable[[], Awaitable[Iterable[Check]]], limit: float = LIMIT
) -> list[Check]:
    """Run one check for at most `limit` seconds; what goes wrong in it is its result."""
    try:
        async with asyncio.timeout(limit):
            return list(await check())
    except TimeoutError:
        return [fail(name, f"no answer within {limit:g} s", AGAIN)]
    except HostError as error:
        return [fail(name, error.what, error.remedy or AGAIN)]
    except Exception as error:
        log.exception("check %s", name)
        what = f"could not be checked: {type(error).__name__}: {error}"
        return [fail(name, what, "this is a fault in ddtui: its log has the traceback")]
