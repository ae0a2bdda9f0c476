"""The game of life on a small torus, far into the future."""

from __future__ import annotations


def _next(board: tuple[str, ...]) -> tuple[str, ...]:
    height, width = len(board), len(board[0])
    rows = []
    for y in range(height):
        row = ""
        for x in range(width):
            around = sum(
                board[(y + dy) % height][(x + dx) % width] == "#"
                for dy in (-1, 0, 1)
                for dx in (-1, 0, 1)
                if dy or dx
            )
            row += "#" if around == 3 or (around == 2 and board[y][x] == "#") else "."
        rows.append(row)
    return tuple(rows)


def life(board: list[str], steps: int) -> list[str]:
    """Step until boards repeat, then skip whole periods."""
    now = tuple(board)
    seen: dict[tuple[str, ...], int] = {}
    history: list[tuple[str, ...]] = []
    while now not in seen:
        if len(history) == steps:
            return list(now)
        seen[now] = len(history)
        history.append(now)
        now = _next(now)
    first = seen[now]
    return list(history[first + (steps - first) % (len(history) - first)])
