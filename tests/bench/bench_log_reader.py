"""How fast SGLang's log and metrics are read: prints figures as JSON.

Lines per second on one core, for the way that every journal line takes: split, cleaned, redacted,
read for events, given a severity.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ddtui.core.journal_text import split_message
from ddtui.core.redact import redact_text
from ddtui.core.samples import JournalLine
from ddtui.core.text import clean
from ddtui.engines.sglang import SGLANG

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "sglang"
SECONDS = 0.4
"""Least time that each figure is taken over."""

DECODE = (
    "[2026-10-01 10:00:02 TP0 EP0] Decode batch, #running-req: 4, #token: 33012, "
    "token usage: 0.12, accept len: 4.44, accept rate: 0.49, cuda graph: True, "
    "gen throughput (token/s): 610.72, #queue-req: 5, fwd occupancy: 88.10%, "
    "fwd+idle occupancy: 91.00%"
)

HOSTILE = {
    "clean": ("\x9d", "\x90", "\x9b", "\x1b]", "\x9d\x9b\x90a"),
    "redact": ("token=", "token={", "token:'", "-eyJ", "api_key=[]", "a_MAX_", "--hf-token "),
}
"""Pieces of which a text of 96,000 characters is made that a careless pattern reads again at each
of them: it takes seconds then. All of these should take less than 0.5 s."""


def _worst_ms(work: Callable[[str], object], pieces: Sequence[str]) -> float:
    """The longest time that a text made of one of the pieces takes."""
    worst = 0.0
    for piece in pieces:
        text = (piece * 96_000)[:96_000]
        began = time.perf_counter()
        work(text)
        worst = max(worst, 1000 * (time.perf_counter() - began))
    return round(worst, 1)


def _per_second(work: Callable[[], object], amount: int) -> float:
    """Best of three rounds, in units of `amount` a second."""
    best = 0.0
    for _ in range(3):
        rounds, began = 0, time.perf_counter()
        while (spent := time.perf_counter() - began) < SECONDS / 3:
            work()
            rounds += 1
        best = max(best, rounds * amount / spent)
    return best


def _read(lines: Sequence[JournalLine]) -> int:
    reader = SGLANG.log_reader()
    return sum(1 for line in lines for _ in reader.read(line))


def _journal_path(messages: Sequence[str]) -> int:
    """All that happens to a journal entry's message before it is stored."""
    reader = SGLANG.log_reader()
    count = 0
    for message in messages:
        for text, bar in split_message(message):
            line = JournalLine(stamp=0.0, text=redact_text(clean(text, 100_000)), bar=bar)
            for _ in reader.read(line):
                count += 1
    return count


def run() -> dict[str, object]:
    """Take all figures."""
    log = (FIXTURES / "sglang-fresh-dflash.log").read_text(encoding="utf-8").split("\n")
    requests = (FIXTURES / "sglang-base.log").read_text(encoding="utf-8").split("\n")
    metrics = (FIXTURES / "sglang-base.after.metrics.txt").read_text(encoding="utf-8")
    info = (FIXTURES / "sglang-fresh-dflash.after.server_info.txt").read_bytes()
    arguments = [line for line in log if "server_args=" in line]
    prompt = "[2026-11-29 17:18:59] Receive: obj=GenerateReqInput(text='" + "word " * 18_000 + "')"

    def lines(texts: Sequence[str]) -> list[JournalLine]:
        return [JournalLine(stamp=0.0, text=text) for text in texts if text]

    whole, decodes, long = lines(log), lines([DECODE] * 500), lines([prompt] * 50)
    usual = [text for text in log if text not in arguments]
    return {
        "reader_lines_per_second": {
            "log of one start and stop": round(_per_second(lambda: _read(whole), len(whole))),
            "decode lines": round(_per_second(lambda: _read(decodes), len(decodes))),
            "requests of 90,000 characters": round(_per_second(lambda: _read(long), len(long))),
        },
        "split_clean_redact_read_lines_per_second": {
            "log of one start and stop": round(
                _per_second(lambda: _journal_path(usual), len(usual))
            ),
            "decode lines": round(_per_second(lambda: _journal_path([DECODE] * 500), 500)),
            "logged requests of 2.5 kB": round(
                _per_second(lambda: _journal_path(requests), len(requests))
            ),
            "requests of 90,000 characters": round(
                _per_second(lambda: _journal_path([prompt] * 5), 5)
            ),
        },
        "worst_ms_of_hostile_text": {
            "clean": _worst_ms(lambda text: clean(text, 96_000), HOSTILE["clean"]),
            "redact": _worst_ms(redact_text, HOSTILE["redact"]),
            "metrics": _worst_ms(
                SGLANG.parse_metrics, ["sglang:token_usage{" + "a" * 95_000, "sglang:x{\n"]
            ),
        },
        "severity_lines_per_second": round(
            _per_second(lambda: [SGLANG.severity(text, 6) for text in log], len(log))
        ),
        "metrics_ms": 1000 / _per_second(lambda: SGLANG.parse_metrics(metrics), 1),
        "metrics_bytes": len(metrics),
        "server_info_ms": 1000 / _per_second(lambda: SGLANG.parse_server_info(info, 0.0), 1),
        "server_arguments_line_ms": 1000 / _per_second(lambda: _read(lines(arguments)), 1),
    }


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
