"""Which words of a command stay as written, and where new ones go."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

import msgspec


class Piece(msgspec.Struct, frozen=True):
    """A part of the new command: an old token (`words` None: as it was), or only new words."""

    token: int | None
    words: tuple[str, ...] | None = None


def pieces(groups: Sequence[Sequence[str]], wanted: Sequence[str]) -> list[Piece]:
    """The new command from the old one.

    `groups` holds the words that each old token stands for: one, or none or several for a variable.
    A token whose words change keeps its place, with the words that it now stands for.
    """
    old = [word for group in groups for word in group]
    owner = [index for index, group in enumerate(groups) for _ in group]
    new_words: list[list[str]] = [[] for _ in groups]
    before: list[list[str]] = [[] for _ in range(len(groups) + 1)]
    matcher = SequenceMatcher(None, old, list(wanted), autojunk=False)
    for kind, begin, end, first, last in matcher.get_opcodes():
        words = wanted[first:last]
        if kind == "equal":
            for position, word in zip(range(begin, end), words, strict=True):
                new_words[owner[position]].append(word)
        elif kind == "replace":
            _spread(new_words, [owner[position] for position in range(begin, end)], words)
        elif kind == "insert":
            inside = 0 < begin < len(old) and owner[begin - 1] == owner[begin]
            if inside:
                new_words[owner[begin]].extend(words)
            else:
                place = owner[begin - 1] + 1 if begin else 0
                before[place].extend(words)
    return _in_order(groups, new_words, before)


def _spread(new_words: list[list[str]], owners: Sequence[int], words: Sequence[str]) -> None:
    """Replaced words take the places of the old ones; what is left over stays with the last."""
    for index, word in enumerate(words):
        new_words[owners[min(index, len(owners) - 1)]].append(word)


def _in_order(
    groups: Sequence[Sequence[str]],
    new_words: Sequence[Sequence[str]],
    before: Sequence[Sequence[str]],
) -> list[Piece]:
    result: list[Piece] = []
    for index, group in enumerate(groups):
        if before[index]:
            result.append(Piece(None, tuple(before[index])))
        words = tuple(new_words[index])
        if words == tuple(group):
            result.append(Piece(index))
        else:
            result.append(Piece(index, words))
    if before[len(groups)]:
        result.append(Piece(None, tuple(before[len(groups)])))
    return result
