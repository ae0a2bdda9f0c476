"""A command line that cannot be used, told as every other mistake: in words, and as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import typer
from typer.core import TyperGroup

from ddtui.cli.context import VerbFailed, emit_failure, tell_failure
from ddtui.cli.exit_codes import ExitCode
from ddtui.core.redact import redact_text

_UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""The library's own; it has moved between its versions."""
_ITS_NAME = re.compile(r"^Invalid value for '?(?P<name>[^':]+)'?: (?P<why>.*)", re.DOTALL)


class Verbs(TyperGroup):
    """All verbs of the command line."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """Read the options before the verb."""
        self._as_json = _asks_for_json(args)
        with _told(self._as_json):
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Run the verb, once its own options are read."""
        with _told(self._as_json):
            return super().invoke(ctx)

    _as_json = False


def _asks_for_json(arguments: Sequence[str]) -> bool:
    """Whether JSON is wanted: the verb's options are not read yet, or cannot be."""
    words = list(arguments)
    formats = [*pairwise(words), *(each.split("=", 1) for each in words)]
    return "--json" in words or any(list(each) == ["--format", "json"] for each in formats)


@contextmanager
def _told(as_json: bool) -> Iterator[None]:
    try:
        yield
    except _UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # the help, and no mistake
            raise
        failure = _failure_of(error)
        tell_failure(failure)
        if as_json:
            emit_failure(failure)
        raise typer.Exit(ExitCode.USAGE) from error


def _failure_of(error: Any) -> VerbFailed:
    text = str(error.format_message())
    if found := _ITS_NAME.match(text):
        text = f"{found['name']}: {found['why']}"
    text = redact_text(text)  # it repeats words that it does not know
    text = text[:1].lower() + text[1:].rstrip(".")
    return VerbFailed(text, _usage(error.ctx), ExitCode.USAGE)


def _usage(context: Any) -> str:
    """How the verb is called, and where that is explained."""
    if context is None:
        return "`ddtui --help` lists the verbs"
    usage, command = (
        re.sub(r"[{}]|\bpython3? -m ", "", text)
        for text in (" ".join(context.get_usage().split()), context.command_path)
    )
    return f"{usage[:1].lower()}{usage[1:]}\n`{command} --help` explains it"
