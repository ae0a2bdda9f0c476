"""Rules about flags: unknown, removed, of the wrong type, abbreviated, secret, missing."""

from __future__ import annotations

from collections.abc import Iterator

from ddtui.core.launch import Finding, Level
from ddtui.core.redact import is_secret_name
from ddtui.engines.sglang.check_context import Say, View, rule
from ddtui.engines.sglang.command import Occurrence
from ddtui.engines.sglang.dialects import is_forks_flag, lacks
from ddtui.engines.sglang.server_flags import FlagInfo, ServerFlags, ValueType

_REMOVED: dict[str, tuple[str, str]] = {
    "speculative-dflash-draft-window-size": ("0.5.20", "speculative-draft-window-size"),
    "speculative-skip-dp-mlp-sync": ("0.5.23", ""),
    "speculative-ngram-min-match-window-size": ("0.5.10", "speculative-ngram-min-bfs-breadth"),
    "speculative-ngram-max-match-window-size": ("0.5.10", "speculative-ngram-max-trie-depth"),
    "speculative-ngram-branch-length": ("0.5.10", "speculative-ngram-max-trie-depth"),
}
"""Flags that SGLang had: the version without them, and what came in their place."""


def _exit_2(why: str) -> tuple[str, str]:
    """What the server would do, and what it may do."""
    what = f"exit with status 2 at once: {why}"
    return f"the server would {what}", f"if the server refuses it, it will {what}"


_UNRECOGNIZED = _exit_2("unrecognized arguments")


def _unknown(view: View) -> Iterator[tuple[Occurrence, ServerFlags]]:
    server = view.server
    if server is not None:
        for use in view.occurrences:
            if server.find(use.name) is None:
                yield use, server


@rule("removed-flag", *_UNRECOGNIZED)
def removed_flag(view: View, say: Say) -> Iterator[Finding]:
    """A flag that this version no longer has."""
    for use, server in _unknown(view):
        if use.name in _REMOVED:
            since, instead = _REMOVED[use.name]
            has = instead and server.knows(instead)
            yield say(
                _level(server),
                f"--{use.name} is gone since SGLang {since}{_version(server)}{_told_by(server)}",
                f"use --{instead}" if has else "leave it out",
            )


@rule("unknown-flag", *_UNRECOGNIZED)
def unknown_flag(view: View, say: Say) -> Iterator[Finding]:
    """A flag that this server does not have. One that it runs with is only doubted."""
    for use, server in _unknown(view):
        if use.name in _REMOVED:
            continue
        near = server.nearest(use.name)
        remedy = f"did you mean --{near}?" if near else ""
        if use.name not in view.before:
            known = _proved_by(server) if lacks(server, use.name) else _told_by(server)
            yield say(
                Level.ERROR if lacks(server, use.name) else _level(server),
                f"--{use.name} is no flag of this server{_version(server)}{known}",
                _ONLY_FORKS if is_forks_flag(use.name) else remedy,
            )
        elif server.complete:
            yield say.warning(
                f"--{use.name} stands in the unit already, and is not in the server's --help",
                remedy,
                "help leaves out flags that are on their way out: the next version may refuse it",
            )


_ONLY_FORKS = "leave it out: only builds of SGLang that can verify a tree have it"


def _version(server: ServerFlags) -> str:
    return f" ({server.version})" if server.version else ""


def _level(server: ServerFlags | None) -> Level:
    """Of a mistake by the server's own flags: certain only where all of them are known."""
    return Level.ERROR if server is not None and server.complete else Level.WARNING


def _told_by(server: ServerFlags) -> str:
    if server.complete:
        return ""
    return f", as far as its {server.source} tells, which does not name every flag"


def _proved_by(server: ServerFlags) -> str:
    if server.complete:
        return ""
    return f": its {server.source} names every argument of speculation, and not this one"


@rule("abbreviated-flag", "a later version may have a second flag that begins so, and refuse it")
def abbreviated_flag(view: View, say: Say) -> Iterator[Finding]:
    """A beginning of a flag's name, which argparse completes."""
    if view.server is None or not view.server.complete:
        return
    for use in view.occurrences:
        info = view.server.find(use.name)
        if info is not None and view.server.exact(use.name) is None:
            yield say.warning(f"--{use.name} is short for --{info.name}", f"write --{info.name}")


@rule("wrong-choice", *_exit_2("invalid choice"))
def wrong_choice(view: View, say: Say) -> Iterator[Finding]:
    """A value that is none of a flag's choices."""
    for use, info in _known(view):
        wrong = [value for value in use.values if info.choices and value not in info.choices]
        for value in wrong:
            yield say.error(
                f"--{use.name}: {_shown(use.name, value)} is none of its choices",
                f"choose from {', '.join(info.choices)}",
            )


@rule("missing-value", *_exit_2("expected one argument"))
def missing_value(view: View, say: Say) -> Iterator[Finding]:
    """A flag without the value that it takes."""
    if view.server is None or not view.server.complete:
        return
    for use, info in _known(view):
        if info.takes_value and not info.optional_value and not use.values:
            yield say.error(f"--{use.name} needs a value")


@rule("unexpected-value", *_exit_2("ignored explicit argument, or unrecognized arguments"))
def unexpected_value(view: View, say: Say) -> Iterator[Finding]:
    """A value, or several, for a flag that takes none, or one."""
    words, uses = view.line.argv, view.occurrences
    for at, use in enumerate(uses):
        info = None if view.server is None else view.server.find(use.name)
        if info is None:
            continue
        if not info.takes_value and use.joined:
            text = f"--{use.name} takes no value"
            yield say(_level(view.server), text, f"write --{use.name} alone")
        stray = words[use.end : uses[at + 1].begin if at + 1 < len(uses) else len(words)]
        if stray and view.server is not None and view.server.complete:
            shown = " ".join(_shown(use.name, word) for word in stray)
            yield say.error(f"{shown} after --{use.name} belongs to no flag")


@rule("wrong-type", *_exit_2("invalid value"))
def wrong_type(view: View, say: Say) -> Iterator[Finding]:
    """A text where the server has a number."""
    for use, info in _known(view):
        if info.choices or not use.values:
            continue
        kind = _TYPES.get(info.name, info.type)
        for value in use.values:
            if kind in (ValueType.INTEGER, ValueType.NUMBER) and not _is_number(value):
                # A value that is reported may be one of several kinds (`auto`, or a number).
                sure = info.name in _TYPES or (view.server and view.server.complete)
                level = Level.ERROR if sure else Level.WARNING
                yield say(level, f"--{use.name}: {_shown(use.name, value)} is not a number")
            elif kind is ValueType.INTEGER and not _is_integer(value):
                # A reported integer may be the value of a flag that takes fractions too.
                level = Level.ERROR if info.name in _TYPES else Level.WARNING
                yield say(level, f"--{use.name}: {value} is not an integer")


_INTEGERS = dict.fromkeys(
    (
        "port", "tp-size", "dp-size", "pp-size", "ep-size", "page-size", "context-length",
        "max-running-requests", "max-total-tokens", "chunked-prefill-size",
        "speculative-num-draft-tokens", "speculative-num-steps", "speculative-eagle-topk",
        "speculative-dflash-block-size", "speculative-ddtree-block-size",
        "speculative-ddtree-budget", "speculative-draft-window-size",
        "speculative-dflash-draft-window-size", "speculative-draft-sink-size",
        "speculative-dflash-tree-width", "speculative-dflash-verify-budget",
    ),
    ValueType.INTEGER,
)  # fmt: skip
_NUMBERS = dict.fromkeys(("mem-fraction-static", "schedule-conservativeness"), ValueType.NUMBER)
_TYPES = _INTEGERS | _NUMBERS
"""What flags take in every version, whatever a server reports of them."""


def _known(view: View) -> Iterator[tuple[Occurrence, FlagInfo]]:
    server = view.server
    for use in view.occurrences:
        info = None if server is None else server.find(use.name)
        if info is None and use.name in _TYPES and (server is None or not server.complete):
            info = FlagInfo(use.name, type=_TYPES[use.name])
        if info is not None:
            yield use, info


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _is_integer(text: str) -> bool:
    try:
        int(text)
    except ValueError:
        return False
    return True


def _shown(name: str, value: str) -> str:
    return "its value" if is_secret_name(name) else repr(value[:80])


@rule("secret-on-command-line", "every user of the host sees it in the list of processes")
def secret_on_command_line(view: View, say: Say) -> Iterator[Finding]:
    """An API key in the unit's command."""
    for use in view.occurrences:
        if use.values and is_secret_name(use.name):
            yield say.note(f"--{use.name} stands on the command line with its secret")


@rule("metrics-off", "throughput and acceptance are then read from the log, which is coarser")
def metrics_off(view: View, say: Say) -> Iterator[Finding]:
    """Without metrics ddtui sees less."""
    if not view.on("enable-metrics"):
        yield say.note("--enable-metrics is not set: ddtui sees less", "add --enable-metrics")
