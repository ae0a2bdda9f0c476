"""Progress bars as tqdm draws them, in the two formats that SGLang gives it."""

from __future__ import annotations


def _clock(seconds: float) -> str:
    whole = int(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes:02d}:{whole % 60:02d}"


def _tail(done: int, total: int, elapsed: float) -> str:
    """`[elapsed<remaining, rate]`."""
    if done == 0 or elapsed <= 0:
        return f"[{_clock(elapsed)}<?, ?it/s]"
    rate = done / elapsed
    speed = f"{rate:5.2f}it/s" if rate >= 1 else f"{1 / rate:5.2f}s/it"
    return f"[{_clock(elapsed)}<{_clock((total - done) / rate)}, {speed}]"


def shard_bar(label: str, done: int, total: int, elapsed: float) -> str:
    """One state of a weight bar (format of 0.5.10 and later, without its carriage return)."""
    percent = done / total * 100
    return f"{label}: {percent:3.0f}% Completed | {done}/{total} {_tail(done, total, elapsed)}"


def graph_bar(batch: int, available: float, done: int, total: int, elapsed: float) -> str:
    """One state of the graph-capture bar; `available` is GiB of GPU memory."""
    filled = 10 * done // total
    picture = "█" * filled + " " * (10 - filled)
    label = f"Capturing batches (bs={batch} avail_mem={available:.2f} GB)"
    percent = done / total * 100
    return f"{label}: {percent:3.0f}%|{picture}| {done}/{total} {_tail(done, total, elapsed)}"
