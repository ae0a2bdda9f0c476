"""Waiting for what other processes do, which no event tells of."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable
from pathlib import Path


async def eventually(condition: Callable[[], bool]) -> bool:
    """Whether `condition` becomes true within ten seconds."""
    for _ in range(1000):
        if condition():
            return True
        await asyncio.sleep(0.01)
    return False


def has_ended(pid: int) -> bool:
    """Whether a process has ended; a zombie has."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"


def keygen(*words: str | Path) -> None:
    """Run ssh-keygen."""
    subprocess.run(["ssh-keygen", "-q", *map(str, words)], check=True)
