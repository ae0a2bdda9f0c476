"""Takes off what others put before each line of a log: containers, pods, ranks, mail quotes.

Nothing is taken off unless a line shows that it is a wrapping: what follows it is sure to begin a
line of a program (a stamp, a traceback). Until then, and where such lines stand at the beginning
themselves, all is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from ddtui.core.journal_text import split_message
from ddtui.core.samples import JournalLine

_SURE = re.compile(
    r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: [A-Z_]{1,12}\d{1,4}){0,6}\] "
    r"|Traceback \(most recent call last\):|INFO: {5}\S"
    r"|(?:\([A-Za-z][\w.-]{0,40}(?: rank=\d{1,5})? pid=\d{1,9}\) )?"
    r"(?:INFO|WARNING|ERROR) \d\d-\d\d \d\d:\d\d:\d\d \["
    # an engine that refuses its arguments says no more than this
    r"|usage: (?:sglang|launch_server|vllm)\b"
    r"|(?:sglang serve|launch_server\.py|vllm serve): error: "
    r"|/[\w./-]{1,200}/(?:sglang|vllm)/[\w./-]{1,200}\.py:\d{1,6}: \w{0,40}Warning: "
)
"""How a line of an engine begins for certain."""

_TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
_VLLM = r"(?!APIServer|EngineCore|Worker(?:_\w+)? pid|VllmWorker)"
"""Its own processes' names, which its log grammar reads."""
_KINDS = (
    # docker compose: `sglang-1  | `; docker service: `sglang.1.id@node | `; pm2: `0|sglang  | `
    r"(?:[\w.@-]{1,120}(?:\|[\w.-]{1,80})? *)?\|",
    # ray: `(Actor pid=1, ip=10.0.0.1) `
    r"\(" + _VLLM + r"[\w.:<>-]{1,80} pid=\d{1,9}(?:, ip=[\w.:]{1,45})?\)",
    # kubectl logs --prefix: `[pod/name/container] `
    r"\[(?:pod/)?[\w.-]{1,253}(?:/[\w.-]{1,253}){1,2}\]",
    r"\[" + _TIME + r"\]",
    _TIME + r"(?=[\t ])",
    r"(?:\d\d-\d\d )?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?=[\t ])",
    # moreutils' ts
    r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})?(?=[\t ])",
    # the container runtime interface, after its time
    r"(?:stdout|stderr) [FP](?= )",
    # Python's `time - name - LEVEL - message`
    r"(?:- )?[\w.]{1,80} - [A-Z]{4,8} -",
    # loguru, and what writes like it: ` | LEVEL | name | `, ` | LEVEL    | name:function:1 - `
    r"\| [A-Z]{4,8} {0,5}\| [\w.:<>-]{1,120} [|-]",
    # exported logs: milliseconds or nanoseconds
    r"\d{10,19}(?=[\t ])",
    # mpirun, with times and --tag-output: `Thu Jan 23 11:55:50 2025[1,1]<stderr>:`
    r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}(?=\[)",
    r"\[\d{1,5},\d{1,5}\](?:<std(?:out|err|diag)>)?:",
    # grep -n in several files, in one; srun --label
    r"[\w./-]{1,200}\.(?:log|txt|out|err):\d{1,9}[:-]",
    r"\d{1,9}:",
    r"[\w.-]{1,200} >>",
    # a quote
    r">(?: ?>){0,4}",
    r"[ \t]{1,60}",
    # stern: `pod container `
    r"[\w.-]{1,100} [\w.-]{1,100}(?= \[\d)",
)
_COMPILED = tuple(re.compile(kind) for kind in _KINDS)
_INDENT, _STERN = len(_KINDS) - 2, len(_KINDS) - 1
_LITERAL = {_INDENT, _STERN}
"""Kinds of which only what was seen is taken off: more blanks are the line's own."""
_DEPTH = 8
_LONGEST = 400
_MOST_CHAINS = 6
_LOOKED_AT = 20_000
"""Lines in which a wrapping must show itself."""
_REPEATED = re.compile(r" \[repeated \d{1,9}x across cluster\][^\n]{0,200}$")


@dataclass(frozen=True)
class _Chain:
    """Wrappings in the order in which they stand: a pattern, or a text."""

    parts: tuple[re.Pattern[str] | str, ...]

    def rest(self, text: str) -> str | None:
        """What is left of a line that has them all; None where one is missing."""
        position = 0
        for part in self.parts:
            if isinstance(part, str):
                if not text.startswith(part, position):
                    return "" if not text[position:].strip() else None
                position += len(part)
                continue
            match = part.match(text, position)
            if match is None:
                return "" if position and not text[position:].strip() else None
            position = match.end()
        return text[position:]


class Wrapping:
    """Learns from the lines of one log what stands before them, and takes it off."""

    def __init__(self) -> None:
        self._chains: list[_Chain] = []
        self._lines = 0
        self._plain = False

    @property
    def settled(self) -> bool:
        """Whether it is known what stands before the lines, if anything."""
        return self._plain or bool(self._chains)

    def strip(self, text: str) -> str:
        """A line without what wraps it."""
        for chain in self._chains:
            rest = chain.rest(text)
            if rest is not None:
                return _REPEATED.sub("", rest) if rest.endswith("]") else rest
        if self._plain or self._lines > _LOOKED_AT:
            return text
        self._lines += 1
        if _SURE.match(text) is not None:
            self._plain = not self._chains
            return text
        if not self._learn(text):
            return text
        return self.strip(text)

    def lines(self, line: JournalLine) -> Iterable[JournalLine]:
        """The lines of one of the journal without what wraps them."""
        if line.from_manager or line.continued:
            return (line,)
        text = self.strip(line.text)
        if text == line.text:
            return (line,)
        return [
            msgspec.structs.replace(line, text=part, bar=bar) for part, bar in split_message(text)
        ]

    def _learn(self, text: str) -> bool:
        """Whether a line shows a wrapping that was not known."""
        if len(self._chains) >= _MOST_CHAINS or _SURE.search(text, 1, _LONGEST) is None:
            return False
        parts = _wrappings_of(text, 0, _DEPTH)
        if not parts:
            return False
        self._chains.append(_Chain(parts))
        return True


def _wrappings_of(text: str, position: int, depth: int) -> tuple[re.Pattern[str] | str, ...] | None:
    """What stands before a line of an engine, as far as it is known."""
    if _SURE.match(text, position) is not None:
        return ()
    if depth == 0 or position > _LONGEST:
        return None
    for kind, pattern in enumerate(_COMPILED):
        match = pattern.match(text, position)
        if match is None or match.end() == position:
            continue
        rest = _wrappings_of(text, match.end(), depth - 1)
        if rest is not None:
            return (match.group() if kind in _LITERAL else pattern, *rest)
    return None
