"""The words of a whole command, as the product makes them token by token."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ddtui.control.exec_start import Command, token_words


def argv_of(
    command: Command, expand: Callable[[str], str], environment: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """All words that the command is started with. Raises Unresolved."""
    tokens = range(len(command.tokens))
    return tuple(
        word for index in tokens for word in token_words(command, index, expand, environment or {})
    )
