"""SGLang's start-up lines as phases, 0.4.6 to 0.5.23, rank by rank.

Texts that changed between versions are matched by what they have in common; figures are read
wherever they stand in the line. "GB" in these lines is 1024 to the third power.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ddtui.core.events import AnyEvent, Configured, Phase, PhaseBegan, PhaseEnded
from ddtui.engines.sglang.arguments import read_pairs
from ddtui.engines.sglang.log_lines import Message

_GIB = 1024**3
_NUMBER = r"(\d{1,9}(?:\.\d{1,20})?)"
"""Bounded: a line may hold any number of digits, and no real figure has more."""
_SECONDS = re.compile(rf"(?:elapsed[=:] ?|capture in ){_NUMBER} s")
_USED = re.compile(rf"mem usage={_NUMBER} GB")
_AVAILABLE = re.compile(rf"avail mem={_NUMBER} GB")
_TYPE = re.compile(r"type=(\w{1,100})")
_SIZES = re.compile(rf"size: {_NUMBER} ?GB")
_TOKENS = re.compile(r"#tokens: (\d{1,15})\b")
_CAPTURE = re.compile(r"Capture (.{0,60}?)\b(?:CUDA|cuda) graph (begin|end)\b")
_VERIFY_WIDTH = re.compile(r"num_tokens_per_req=(\d{1,9})\b")
_DRAFT_TYPE = re.compile(r"Draft|Eagle|NextN|MTP$|Medusa|DSpark")

_DRAFT_NAMES = {
    "attention_backend": "speculative_draft_attention_backend",
    "model": "draft_model_class",
    "draft_window_size": "speculative_draft_window_size",
    "tree_budget": "speculative_ddtree_budget",
}
"""What the drafter's own lines call things that the server arguments name otherwise."""


@dataclass
class _Rank:
    loads: int = 0
    """Weight loads begun."""
    loading: Phase = Phase.TARGET
    pools: int = 0
    """KV caches finished."""
    pool_open: bool = False
    pool_bytes: float = 0.0
    pool_detail: str = ""


class Phases:
    """Remembers, for every rank, where its start stands."""

    def __init__(self) -> None:
        self._ranks: dict[str, _Rank] = {}
        self._rank_of_pid: dict[int, str] = {}
        self._last_loading = Phase.TARGET

    def _state(self, line: Message) -> _Rank:
        if line.pid is not None:
            self._rank_of_pid[line.pid] = line.rank
        return self._ranks.setdefault(line.rank, _Rank())

    def loading(self, pid: int | None) -> Phase:
        """Which model the shards of a progress bar belong to: bars carry no rank."""
        rank = self._rank_of_pid.get(pid) if pid is not None else None
        return self._ranks[rank].loading if rank is not None else self._last_loading

    def init_began(self, line: Message) -> list[AnyEvent]:
        """`Init parallel begin.`, or `Init torch distributed begin.` before 0.5.21."""
        if self._state(line).loads:
            return []  # older versions repeat it for the drafter
        return [_began(Phase.STARTING, line, "distributed init")]

    def init_ended(self, line: Message) -> list[AnyEvent]:
        """`Init parallel ends. elapsed=1.20 s`."""
        if self._state(line).loads:
            return []
        return [_ended(Phase.STARTING, line, "distributed init")]

    def load_began(self, line: Message) -> list[AnyEvent]:
        """`Load weight begin. avail mem=X GB`: the target first, then whatever drafts for it."""
        state = self._state(line)
        state.loads += 1
        state.loading = Phase.TARGET if state.loads == 1 else Phase.DRAFTER
        self._last_loading = state.loading
        return [_began(state.loading, line)]

    def load_ended(self, line: Message) -> list[AnyEvent]:
        """`Load weight end. ...`; with overlapped loading the target's comes after the graphs."""
        state = self._state(line)
        found = _TYPE.search(line.text)
        model = found[1] if found is not None else ""
        phase = state.loading
        if "Committed real weights" in line.text:
            phase = Phase.TARGET
        elif state.loads <= 1 and _DRAFT_TYPE.search(model):
            state.loads, phase = 2, Phase.DRAFTER  # the target's lines were not seen
            state.loading = self._last_loading = phase
        return [_ended(phase, line, model)]

    def pool_part(self, line: Message) -> list[AnyEvent]:
        """`KV Cache is allocated. ...`: one line a pool, closed by `Memory pool end`."""
        state = self._state(line)
        events: list[AnyEvent] = []
        tokens = _TOKENS.search(line.text)
        if not state.pool_open:
            state.pool_open, state.pool_bytes = True, 0.0
            state.pool_detail = "target" if state.pools == 0 else "drafter"
            if tokens is not None:
                state.pool_detail += f", {int(tokens[1]):,} tokens"
            events.append(_began(Phase.KV_CACHE, line, state.pool_detail))
        if "upper bound" not in line.text:
            state.pool_bytes += sum(float(size) * _GIB for size in _SIZES.findall(line.text))
        return events

    def pool_ended(self, line: Message) -> list[AnyEvent]:
        """`Memory pool end. avail mem=X GB`."""
        state = self._state(line)
        events: list[AnyEvent] = []
        if not state.pool_open:
            state.pool_detail = "target" if state.pools == 0 else "drafter"
            events.append(_began(Phase.KV_CACHE, line, state.pool_detail))
        used = round(state.pool_bytes) if state.pool_open else None
        state.pool_open, state.pool_bytes = False, 0.0
        state.pools += 1
        events.append(
            PhaseEnded(
                stamp=line.stamp,
                rank=line.rank,
                phase=Phase.KV_CACHE,
                memory_used=used,
                memory_available=_bytes(_AVAILABLE, line.text),
                detail=state.pool_detail,
            )
        )
        return events

    def pool_resized(self, line: Message) -> list[AnyEvent]:
        """`Post-capture KV sizing: KV cache allocated. ...`."""
        if "allocated" not in line.text[:80]:
            return []
        return [_ended(Phase.KV_CACHE, line, "sized after capture")]

    def capture(self, line: Message) -> list[AnyEvent]:
        """`Capture target verify CUDA graph begin. ...` and all its relatives."""
        match = _CAPTURE.match(line.text)
        if match is None:
            return []
        detail = match[1].strip()
        if match[2] == "end":
            return [_ended(Phase.GRAPHS, line, detail)]
        events: list[AnyEvent] = [_began(Phase.GRAPHS, line, detail)]
        width = _VERIFY_WIDTH.search(line.text)
        if width is not None and "draft" not in detail.lower():
            values = {"num_tokens_per_req": int(width[1])}
            events.append(Configured(stamp=line.stamp, rank=line.rank, values=dict(values)))
        return events

    def kernels_began(self, line: Message) -> list[AnyEvent]:
        """`Running FlashInfer autotune ...`, `Entering DeepGEMM JIT Pre-Compile session. ...`."""
        detail = "FlashInfer autotune" if "FlashInfer" in line.text else "DeepGEMM compilation"
        return [_began(Phase.GRAPHS, line, detail)]

    def kernels_ended(self, line: Message) -> list[AnyEvent]:
        """`FlashInfer autotune completed.` ends what `kernels_began` began."""
        return [_ended(Phase.GRAPHS, line, "FlashInfer autotune")]

    def drafter_proved(self, line: Message) -> list[AnyEvent]:
        """`Initialized DFLASH draft runner. block_size=8, ...`, and the DDTree forks' lines."""
        _, _, pairs = line.text.partition(". ")
        values = {_DRAFT_NAMES.get(name, name): value for name, value in read_pairs(pairs).items()}
        return [Configured(stamp=line.stamp, rank=line.rank, values=values)] if values else []


def _began(phase: Phase, line: Message, detail: str = "") -> PhaseBegan:
    return PhaseBegan(stamp=line.stamp, rank=line.rank, phase=phase, detail=detail)


def _ended(phase: Phase, line: Message, detail: str = "") -> PhaseEnded:
    seconds = _SECONDS.search(line.text)
    return PhaseEnded(
        stamp=line.stamp,
        rank=line.rank,
        phase=phase,
        seconds=float(seconds[1]) if seconds is not None else None,
        memory_used=_bytes(_USED, line.text),
        memory_available=_bytes(_AVAILABLE, line.text),
        detail=detail,
    )


def _bytes(pattern: re.Pattern[str], text: str) -> int | None:
    match = pattern.search(text)
    return round(float(match[1]) * _GIB) if match is not None else None
