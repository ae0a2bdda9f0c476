"""How many columns of a terminal a text takes, and texts that fit into some."""

from __future__ import annotations

from rich.cells import cell_len, set_cell_size

__all__ = ["cell_len", "clip", "padded"]


def clip(text: str, width: int) -> str:
    """Text in at most `width` columns, with an ellipsis where something was left out."""
    if cell_len(text) <= width:
        return text
    if width <= 0:
        return ""
    return set_cell_size(text, width - 1).rstrip() + "…" if width > 1 else "…"


def padded(text: str, width: int, *, right: bool) -> str:
    """A text filled with blanks."""
    blank = " " * (width - cell_len(text))
    return blank + text if right else text + blank
