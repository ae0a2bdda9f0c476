"""What leaves the log screen for the disk: copied lines, and the log as it is filtered."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

import platformdirs

from ddtui.core.clock import Clock
from ddtui.ui.log_filter import LogLine
from ddtui.ui.log_lines import exact_time

COPIED = "copied.log"
_OWNER_ONLY = 0o600  # logs hold prompts


def state_folder() -> Path:
    """Where ddtui keeps files of its own."""
    return platformdirs.user_state_path("ddtui", appauthor=False)


def suggest_file(host: str, unit: str, clock: Clock, suffix: str = ".log") -> Path:
    """A new file's name, in the current folder, or in ddtui's own where that cannot be written."""
    name = "-".join(filter(None, (_plain(host), _plain(unit.removesuffix(".service")))))
    stamp = datetime.fromtimestamp(clock(), UTC).astimezone().strftime("%Y%m%d-%H%M%S")
    here = Path.cwd()
    folder = here if os.access(here, os.W_OK) else state_folder()
    return _unused(folder / f"{name}-{stamp}{suffix}")


def open_new(path: Path) -> TextIO:
    """A file that must not exist, for the owner to read alone, to be written and closed.

    Raises:
        OSError: it exists (FileExistsError) or cannot be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
    return os.fdopen(descriptor, "w", encoding="utf-8", errors="replace")


def write_new(path: Path, lines: Iterable[LogLine]) -> int:
    """Write lines with their times to a file that must not exist, for the owner only.

    Returns:
        How many lines were written.

    Raises:
        OSError: it exists (FileExistsError) or cannot be written.
    """
    count = 0
    with open_new(path) as stream:
        for line in lines:
            if line.separator:
                stream.write(f"# {line.separator}\n")
            else:
                stream.write(f"{exact_time(line.line.stamp)} {line.text}\n")
                count += 1
    return count


def write_copied(text: str) -> Path:
    """Keep the text that was copied last, for terminals that take none into their clipboard.

    Raises:
        OSError: it cannot be written.
    """
    path = state_folder() / COPIED
    # The last copy may be replaced; a link that somebody put there may not be followed.
    path.unlink(missing_ok=True)
    with open_new(path) as stream:
        stream.write(text)
    return path


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.")[:60]


def _unused(path: Path) -> Path:
    candidates = (path.with_stem(f"{path.stem}-{number}") for number in range(2, 100))
    return path if not path.exists() else next((c for c in candidates if not c.exists()), path)
