"""A table in plain text."""

from __future__ import annotations


def render_table(rows: list[list[str]], align: str) -> str:
    """Line up columns."""
    cells = [row[: len(align)] + [""] * (len(align) - len(row)) for row in rows]
    widths = [max((len(row[at]) for row in cells), default=0) for at in range(len(align))]
    lines = []
    for row in cells:
        shown = []
        for at, text in enumerate(row):
            space = widths[at] - len(text)
            left = {"l": 0, "r": space, "c": space // 2}[align[at]]
            shown.append(" " * left + text + " " * (space - left))
        lines.append(" | ".join(shown).rstrip())
    if len(lines) > 1:
        lines.insert(1, "-+-".join("-" * width for width in widths))
    return "\n".join(lines)
