"""Turns the lines of one invocation of SGLang into events.

A line is an event only where its message begins with the engine's phrase: with --log-requests a
user's prompt stands within a line and may contain anything. The first four characters of a message
choose the few phrases that it is compared with, so that most lines cost next to nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from ddtui.core.events import (
    AnyEvent,
    BarMoved,
    Configured,
    Draining,
    FiredUp,
    Phase,
    PhaseBegan,
    PhaseEnded,
    PortOpened,
)
from ddtui.core.samples import JournalLine
from ddtui.engines.sglang import batches
from ddtui.engines.sglang.arguments import Scalar, read_arguments, read_pairs
from ddtui.engines.sglang.bars import Bar, read_bar
from ddtui.engines.sglang.failures import TRACEBACK, WRAPPERS, Failures, StampedTracebacks, failed
from ddtui.engines.sglang.log_lines import (
    FIRED_UP,
    PLAIN_START,
    Message,
    message_start,
    rank_of,
)
from ddtui.engines.sglang.phases import Phases

_Handler = Callable[[Message], Iterable[AnyEvent]]

_KEY = 4
"""Length of the key of the dispatch table; every phrase is at least as long."""


class SGLangLogReader:
    """Reads the journal of one invocation, oldest line first."""

    def __init__(self) -> None:
        self._phases = Phases()
        self._failures = Failures()
        self._stamped = StampedTracebacks(self._failures)
        self._warming_up = False
        self._draining = False
        self._is_worker_over = False
        """This node has only workers, and they have ended."""
        self._handlers = self._table()

    def read(self, line: JournalLine) -> Iterable[AnyEvent]:
        """Events of one line, in order."""
        text = line.text
        if line.from_manager or line.continued:
            return ()  # the rest of a line that journald cut may begin anywhere in a user's prompt
        start = message_start(text)
        if start < 0:
            return self._bare(line)
        for phrase, handler in self._handlers.get(text[start : start + _KEY], ()):
            if text.startswith(phrase, start):
                rank = rank_of(text) if start != PLAIN_START else ""
                return handler(Message(text[start:], line.stamp, rank, line.pid))
        if self._stamped.open or text.startswith(TRACEBACK, start):
            rank = rank_of(text) if start != PLAIN_START else ""
            return self._stamped.read(Message(text[start:], line.stamp, rank, line.pid))
        return ()

    def _table(self) -> dict[str, list[tuple[str, _Handler]]]:
        phases = self._phases
        phrases: list[tuple[str, _Handler]] = [
            (batches.DECODE, _decode),
            (batches.PREFILL, _prefill),
            ("server_args=", _server_arguments),
            ("Init parallel begin", phases.init_began),
            ("Init torch distributed begin", phases.init_began),
            ("Init parallel ends", phases.init_ended),
            ("Init torch distributed ends", phases.init_ended),
            ("Load weight begin", phases.load_began),
            ("Load weight end", phases.load_ended),
            ("Initialized D", phases.drafter_proved),
            ("DFLASH draft runner ready", phases.drafter_proved),
            ("KV Cache ", phases.pool_part),
            ("Mamba Cache is allocated", phases.pool_part),
            ("Memory pool end", phases.pool_ended),
            ("Post-capture KV sizing", phases.pool_resized),
            ("Capture ", phases.capture),
            ("Running FlashInfer autotune", phases.kernels_began),
            ("Entering DeepGEMM", phases.kernels_began),
            ("FlashInfer autotune completed", phases.kernels_ended),
            ("max_total_num_tokens=", _limits),
            ("Engine startup timings", _timings),
            ("INFO:     Uvicorn running on ", self._port_opened),
            ("INFO:     Shutting down", self._drain),
            *((phrase, self._fired_up) for phrase in FIRED_UP),
            ("SIGTERM received", self._drain),
            ("Gracefully exiting", self._drain),
            ("ERROR:    [Errno ", _uvicorn_error),
            ("ERROR:    Application startup failed", _uvicorn_wrapper),
            ("ERROR:    Traceback", self._traceback),
            ("ERROR:    Exception in ASGI application", self._request_failed),
            ("Initialization failed", self._initialization_failed),
            ("Scheduler or DataParallelController ", self._workers_ended),
            ("Dummy health check server started", self._fired_up),
            ("kill_process_tree called", self._tree_ended),
            *((phrase, _wrapper) for phrase in WRAPPERS),
        ]
        for process in _PROCESSES:
            phrases.append((f"{process} hit an exception", self._traceback))
            phrases.append((f"{process} watchdog timeout (", _wrapper))
        table: dict[str, list[tuple[str, _Handler]]] = {}
        for phrase, handler in phrases:
            table.setdefault(phrase[:_KEY], []).append((phrase, handler))
        return table

    def _bare(self, line: JournalLine) -> Iterable[AnyEvent]:
        text = line.text
        if line.bar or "%" in text[:200]:
            bar = read_bar(text)
            if bar is not None:
                return self._bar_moved(bar, line)
        if text.startswith("sglang") and (version := _VERSION.fullmatch(text)) is not None:
            return (Configured(stamp=line.stamp, values={"version": version[1]}),)
        failure = self._failures.bare(text, line.stamp, line.pid)
        return (failure,) if failure is not None else ()

    def _bar_moved(self, bar: Bar, line: JournalLine) -> Iterable[AnyEvent]:
        if not (bar.is_weights or bar.is_graphs):
            return ()
        return (
            BarMoved(
                stamp=line.stamp,
                phase=self._phases.loading(line.pid) if bar.is_weights else Phase.GRAPHS,
                done=bar.done,
                total=bar.total,
                elapsed=bar.elapsed,
                label=bar.label,
            ),
        )

    def _port_opened(self, line: Message) -> Iterable[AnyEvent]:
        self._warming_up = True
        url = line.text.removeprefix("INFO:     Uvicorn running on ").partition(" ")[0]
        return (
            PortOpened(stamp=line.stamp, rank=line.rank, url=url),
            PhaseBegan(stamp=line.stamp, rank=line.rank, phase=Phase.WARMUP),
        )

    def _fired_up(self, line: Message) -> Iterable[AnyEvent]:
        events: list[AnyEvent] = []
        if self._warming_up:
            self._warming_up = False
            events.append(PhaseEnded(stamp=line.stamp, rank=line.rank, phase=Phase.WARMUP))
        events.append(FiredUp(stamp=line.stamp, rank=line.rank))
        events.append(PhaseBegan(stamp=line.stamp, rank=line.rank, phase=Phase.READY))
        return events

    def _drain(self, line: Message) -> Iterable[AnyEvent]:
        if self._draining:
            return ()
        self._draining = True
        return (Draining(stamp=line.stamp, rank=line.rank),)

    def _traceback(self, line: Message) -> Iterable[AnyEvent]:
        if line.text.endswith(TRACEBACK):
            self._failures.began(line.pid, line.rank)
            if self._is_worker_over:
                self._failures.expect_harmless(line.pid, line.stamp)
            return ()
        return (failed(line.text, line.stamp, line.rank),)

    def _workers_ended(self, line: Message) -> Iterable[AnyEvent]:
        """A node without an HTTP server of its own tells how its schedulers ended.

        Its main process then falls into starting that server, and fails at that.
        """
        ended = _ENDED_WITH.search(line.text[:160])
        if ended is None:
            return ()
        self._is_worker_over = True
        if ended[1] == "0":
            return self._drain(line)
        return (failed(line.text, line.stamp, line.rank, wrapper=True),)

    def _request_failed(self, line: Message) -> Iterable[AnyEvent]:
        self._failures.expect_harmless(line.pid, line.stamp)
        return ()

    def _tree_ended(self, line: Message) -> Iterable[AnyEvent]:
        """The engine ends all of its processes: after an exception, because of it."""
        alone = self._failures.alone(line.stamp)
        return (failed(alone, line.stamp, line.rank),) if alone and not self._draining else ()

    def _initialization_failed(self, line: Message) -> Iterable[AnyEvent]:
        opens = line.text.endswith(TRACEBACK)
        if opens:
            self._failures.began(line.pid, line.rank)
        return (failed(line.text.removesuffix(TRACEBACK), line.stamp, line.rank, wrapper=opens),)


_VERSION = re.compile(r"sglang(?:==|: ?| {2,80})(\d{1,4}(?:\.\d{1,6}){1,3}[\w.+-]{0,60})\s*")
"""A line of `sglang.check_env` or of `pip list`: SGLang's own log does not tell its version."""

_ENDED_WITH = re.compile(r" terminated with (-?\d{1,5})$")

_PROCESSES = (
    "Scheduler",
    "DetokenizerManager",
    "TokenizerManager",
    "DataParallelController",
    "MultiDetokenizerRouter",
    "MultiTokenizerRouter",
    "TpModelWorkerClient",
)


def _decode(line: Message) -> Iterable[AnyEvent]:
    return (batches.decoded(line.text, line.stamp, line.rank),)


def _prefill(line: Message) -> Iterable[AnyEvent]:
    return (batches.prefilled(line.text, line.stamp, line.rank),)


def _server_arguments(line: Message) -> Iterable[AnyEvent]:
    values = read_arguments(line.text)
    began = PhaseBegan(
        stamp=line.stamp, rank=line.rank, phase=Phase.STARTING, detail="arguments read"
    )
    return (Configured(stamp=line.stamp, rank=line.rank, values=values), began) if values else ()


def _limits(line: Message) -> Iterable[AnyEvent]:
    values = read_pairs(line.text)
    if "DP" in line.rank:
        values.pop("max_running_requests", None)  # its part of what the arguments say
    return (Configured(stamp=line.stamp, rank=line.rank, values=values),)


def _timings(line: Message) -> Iterable[AnyEvent]:
    """`Engine startup timings (s): load_weight=0.02, ..., cuda_graph={prefill=0.00, ...}, ...`."""
    plain = line.text.partition(": ")[2].replace("cuda_graph={", "").replace("}", "")
    values: dict[str, Scalar] = {
        f"startup_{name}_seconds": value
        for name, value in read_pairs(plain).items()
        if isinstance(value, float)
    }
    return (Configured(stamp=line.stamp, rank=line.rank, values=values),) if values else ()


def _wrapper(line: Message) -> Iterable[AnyEvent]:
    if line.text.startswith("Rank ") and "died during initialization" not in line.text[:80]:
        return ()
    if line.text.startswith("Subprocess ") and "crashed with exit code" not in line.text[:160]:
        return ()
    if "self.soft=True" in line.text[:200]:
        return ()
    return (failed(line.text, line.stamp, line.rank, wrapper=True),)


def _uvicorn_error(line: Message) -> Iterable[AnyEvent]:
    return (failed(line.text.removeprefix("ERROR:").strip(), line.stamp, line.rank),)


def _uvicorn_wrapper(line: Message) -> Iterable[AnyEvent]:
    return (failed(line.text.removeprefix("ERROR:").strip(), line.stamp, line.rank, wrapper=True),)
