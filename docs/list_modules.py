"""Prints what each module is for, in a line: the first one of its docstring.

Words beside it choose among them: `python docs/list_modules.py store lock`.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def modules() -> Iterator[tuple[str, str]]:
    """Each module's path, and the first line of its docstring."""
    for file in sorted((ROOT / "ddtui").rglob("*.py")):
        words = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
        if words:
            yield str(file.relative_to(ROOT)), words.splitlines()[0]


def listed(wanted: Sequence[str]) -> list[str]:
    """Lines of those that have every wanted word in their path or their line."""
    found = [
        (path, line)
        for path, line in modules()
        if all(word.lower() in f"{path} {line}".lower() for word in wanted)
    ]
    width = max((len(path) for path, _ in found), default=0)
    return [f"{path:<{width}}  {line}" for path, line in found]


if __name__ == "__main__":
    print("\n".join(listed(sys.argv[1:])))
