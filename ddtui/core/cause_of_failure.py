"""Chooses why an engine failed, from the exceptions and the signatures seen in its log.

The first traceback that matters decides: what other processes say after it follows from it. A
signature names it where one matches it or the lines that led to it (a compiler's error before the
exception of the build); otherwise its own last line is the answer, never a wrapper around it.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from ddtui.core.redact import safe_text
from ddtui.core.signatures import CAUSES, UNKNOWN_RANK, Kind, Place, Signature

EVIDENCE_LINES = 6
_EVIDENCE_LENGTH = 600
_LED_LINES, _LED_SECONDS = 400, 60.0
"""How far before an exception a line may stand that led to it."""
_CHAIN_LINES, _CHAIN_SECONDS = 150, 2.0
"""How far after an exception the end of its chain may stand."""
_MESSAGE_LINES = 10
"""Lines after an exception's first that may still be its message."""
_GENERAL_RANK = 70
"""Below it, a signature of the first exception gives way to one of the end of its chain."""
_HANG_SECONDS = 900.0
"""How far before a death without an exception its reason may stand: watchdogs wait for minutes."""
_GPU_SECONDS = 60.0
"""How far from the end the kernel may speak of a GPU, for that to belong to it."""

_WORDS_LENGTH = 160
_UNFINISHED = re.compile(r":$|^[\w.]+$|validation errors? for [\w.]+$")
"""An exception's line that says what it is about only in the next one."""

UNRECOGNIZED = "unrecognized"
"""Id of a failure that no signature knows."""
NOT_IN_LOG = "cause-not-in-log"
"""Id where nothing in the log says what failed."""


class Cause(msgspec.Struct, frozen=True):
    """Why an engine failed."""

    id: str
    """A signature's id, UNRECOGNIZED or NOT_IN_LOG."""
    title: str
    evidence: tuple[str, ...]
    """The lines that prove it, secrets removed."""
    remedy: str
    link: str = ""
    explanation: str = ""


class Seen(NamedTuple):
    """A line that was seen."""

    number: int
    """Its place in the log."""
    stamp: float
    text: str
    rank: str
    place: Place


class Fault(NamedTuple):
    """An exception's last line, or another line that tells of a failure."""

    number: int
    stamp: float
    message: str
    rank: str
    wrapper: bool
    is_report: bool = False
    """A signature says that such a line only reports another failure."""
    more: tuple[str, ...] = ()
    """Further lines of its message."""
    last: int = 0
    """The line with which its message ends, if not the first."""

    @property
    def ends_in(self) -> int:
        """The line with which its message ends."""
        return max(self.number, self.last)


@dataclass
class Sightings:
    """Where a signature was seen: the first few times and the last few."""

    signature: Signature
    first: list[Seen] = field(default_factory=list)
    last: deque[Seen] = field(default_factory=lambda: deque(maxlen=4))

    def add(self, seen: Seen) -> None:
        """Note one more."""
        if len(self.first) < 4:
            self.first.append(seen)
        else:
            self.last.append(seen)

    def all(self) -> Iterator[Seen]:
        """Those kept, oldest first."""
        yield from self.first
        yield from self.last

    def copy(self) -> Sightings:
        """One that may be added to."""
        return Sightings(self.signature, list(self.first), self.last.copy())


@dataclass(frozen=True)
class Case:
    """All that is known of a failure."""

    faults: tuple[Fault, ...]
    """Those that matter, oldest first."""
    sightings: tuple[Sightings, ...]
    decided: Seen | None
    """The line that shows that the engine was done for."""
    end: Seen
    was_ready: bool
    manager: tuple[str, ...]
    """How systemd says that it ended."""
    recent: tuple[str, ...]
    """The last lines before the end."""
    links: tuple[int, ...] = ()
    """Places of the lines that join the exceptions of a chain."""
    alone: tuple[Fault, ...] = ()
    """Exceptions without a traceback: believed only where there is no other."""


class _Found(NamedTuple):
    signature: Signature
    seen: tuple[Seen, ...]


def cause_of(case: Case) -> Cause:
    """The cause of a failure, as far as anything tells."""
    fault = _first_root(case)
    found = list(_candidates(case, fault))
    best = max(found, key=lambda each: (each.signature.rank, -each.seen[0].number), default=None)
    if best is not None and (
        fault is None
        or best.signature.rank >= UNKNOWN_RANK
        or any(seen.number == fault.number for seen in best.seen)
    ):
        return _known(best, fault, case)
    if fault is not None:
        return _unrecognized(fault, case)
    return _not_in_log(case)


def _first_root(case: Case) -> Fault | None:
    """The first failure that is none of the reports of other failures."""
    roots = [fault for fault in case.faults if not fault.wrapper and not fault.is_report]
    if not roots and case.alone:
        before = [fault for fault in case.alone if fault.number <= case.end.number]
        return before[-1] if before else case.alone[0]
    if not roots:
        # What it follows from may stand before the log's beginning: better than nothing.
        told = {seen.number for each in case.sightings for seen in each.all()}
        roots = [fault for fault in case.faults if not fault.is_report and fault.number not in told]
    if case.was_ready and case.decided is not None:
        # A process says that it failed, and then prints the traceback of it.
        later = [fault for fault in roots if fault.number >= case.decided.number]
        return next(iter(later), None) or (roots[-1] if roots else None)
    return roots[0] if roots else None


def _candidates(case: Case, fault: Fault | None) -> Iterator[_Found]:
    led: list[_Found] = []
    chain: list[_Found] = []
    for each in case.sightings:
        signature = each.signature
        if signature.kind not in CAUSES and not (_says_more(signature) and fault is None):
            continue
        outside = tuple(seen for seen in each.all() if seen.place is not Place.ENGINE)
        if outside:
            yield _Found(signature, outside)
        inside = tuple(seen for seen in each.all() if seen.place is Place.ENGINE)
        if not inside:
            continue
        if signature.decides and signature.rank >= UNKNOWN_RANK:
            yield _Found(signature, inside)
        elif fault is None:
            near = tuple(
                seen
                for seen in inside
                if not case.was_ready or seen.stamp >= case.end.stamp - _HANG_SECONDS
            )
            if near:
                yield _Found(signature, near)
        else:
            before = tuple(seen for seen in inside if _leads_to(seen, fault))
            after = tuple(seen for seen in inside if _follows(seen, fault, case))
            if before:
                led.append(_Found(signature, before + after))
            elif after:
                chain.append(_Found(signature, after))
    yield from led
    if not any(each.signature.rank >= _GENERAL_RANK for each in led):
        yield from chain


def _says_more(signature: Signature) -> bool:
    """Whether a report of another failure is worth telling where that one is not known."""
    return signature.kind is Kind.WRAPPER and signature.rank > 0


def _leads_to(seen: Seen, fault: Fault) -> bool:
    return fault.number - _LED_LINES <= seen.number <= fault.number and (
        not seen.stamp or fault.stamp - seen.stamp <= _LED_SECONDS
    )


def _follows(seen: Seen, fault: Fault, case: Case) -> bool:
    """Whether a line is of the same message, or of an exception chained to this one."""
    if fault.number < seen.number <= fault.ends_in:
        return True
    if not fault.ends_in < seen.number <= fault.ends_in + _CHAIN_LINES:
        return False
    if seen.stamp - fault.stamp > _CHAIN_SECONDS:
        return False
    between = range(fault.number + 1, seen.number)
    others = any(
        each.number in between
        for sightings in case.sightings
        if sightings.signature.kind is Kind.WRAPPER
        for each in sightings.all()
    )
    is_chained = any(number in between for number in case.links)
    return not others and (is_chained or seen.number <= fault.number + _MESSAGE_LINES)


def _known(found: _Found, fault: Fault | None, case: Case) -> Cause:
    signature = found.signature
    lines = [seen.text for seen in _telling_first(found)[:3]]
    if fault is not None and not any(fault.message in line for line in lines):
        lines.append(fault.message)
    return Cause(
        signature.id,
        _title(found, fault),
        _evidence(*lines, *_of_the_gpu(case, signature), *case.manager[-1:]),
        signature.remedy,
        signature.links[0] if signature.links else "",
        signature.cause,
    )


def _telling_first(found: _Found) -> Sequence[Seen]:
    telling = found.signature.telling
    if not telling:
        return found.seen
    return sorted(found.seen, key=lambda seen: re.search(telling, seen.text) is None)


def _of_the_gpu(case: Case, chosen: Signature | None = None) -> list[str]:
    """What the kernel said of a GPU when the engine died, where that is not the cause itself."""
    near = [
        seen
        for each in case.sightings
        if each.signature.kind is Kind.HARDWARE and each.signature is not chosen
        for seen in each.all()
        if seen.place is Place.KERNEL and abs(seen.stamp - case.end.stamp) <= _GPU_SECONDS
    ]
    return [seen.text for seen in sorted(near, key=lambda seen: seen.number)[:1]]


def _title(found: _Found, fault: Fault | None) -> str:
    """A general signature's title says with the exception's own words what it was this time.

    With those of the line that led to the exception, where that alone has the signature.
    """
    signature, seen = found
    if not signature.tells_message or fault is None or fault.wrapper:
        return signature.title
    led = all(each.number < fault.number for each in seen)
    words = seen[0].text.strip() if led else fault.message
    return f"{signature.title}: {_whole_words(shown(words), _WORDS_LENGTH)}"


def _whole_words(text: str, most: int) -> str:
    """A text of at most `most` characters, cut between two words where there is a gap."""
    if len(text) <= most:
        return text
    begin, gap, _ = text[:most].rpartition(" ")
    return f"{begin if gap and len(begin) > most // 2 else text[: most - 1]}".rstrip(" ,;:") + "…"


def _unrecognized(fault: Fault, case: Case) -> Cause:
    title = fault.message
    if fault.more and _UNFINISHED.search(title) is not None:
        title = f"{title} {fault.more[0].strip()}"
    return Cause(
        UNRECOGNIZED,
        _whole_words(safe_text(title.strip(), len(title)), _EVIDENCE_LENGTH),
        _evidence(fault.message, *fault.more, *_of_the_gpu(case), *case.manager[-1:]),
        "No signature is known for this. The traceback above this line in the log says where it"
        " happened; search the engine's issues for its text.",
    )


def _not_in_log(case: Case) -> Cause:
    wrappers = [
        seen.text
        for each in case.sightings
        if each.signature.kind is Kind.WRAPPER
        for seen in each.first[:1]
    ]
    title = "The log does not say what failed"
    if wrappers:
        title += ": it only reports that one of the engine's processes did"
    elif case.manager:
        title += ": only systemd tells of the end"
    return Cause(
        NOT_IN_LOG,
        title,
        _evidence(*(wrappers or case.recent[-3:]), *case.manager[-2:]),
        "Look at the whole log of this start (journalctl -a _SYSTEMD_INVOCATION_ID=...), at"
        " journalctl -k, and at `systemctl status`.",
    )


def _evidence(*lines: str) -> tuple[str, ...]:
    unique = dict.fromkeys(shown(line) for line in lines if line.strip())
    return tuple(unique)[:EVIDENCE_LINES]


def shown(text: str) -> str:
    """A line of a log made safe to show."""
    return safe_text(text.strip(), _EVIDENCE_LENGTH)
