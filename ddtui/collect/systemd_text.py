"""Reads what `systemctl show` prints: properties, times, lists and commands (systemctl(1))."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Sequence
from datetime import datetime

from ddtui.collect.unit_older import Configured, Environment, Starts, environment_of
from ddtui.collect.unit_start import Start
from ddtui.core.bounded import bounded_float, bounded_int, within
from ddtui.core.redact import redact_argv
from ddtui.core.samples import UnitStatus
from ddtui.core.text import clean

NOT_SET = frozenset({"", "[not set]", "n/a", "[no data]", "infinity", "18446744073709551615"})
_EXIT_CODES = {"1": "exited", "2": "killed", "3": "dumped"}
"""ExecMainCode is the si_code of the SIGCHLD: CLD_EXITED, CLD_KILLED, CLD_DUMPED."""
_TEXT_LIMIT = 300
_LAST_TIME = 253402300799.0
"""The end of the year 9999."""
_ARGUMENT_LIMIT = 4000
_ESCAPES = {
    "n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v",
    "e": "\x1b", "E": "\x1b", "\\": "\\", "'": "'", '"': '"', "?": "?", "s": " ",
    "$": "$", "`": "`",
}  # fmt: skip
_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))", re.DOTALL)
_SPAN_UNITS = {
    "us": 1e-6, "ms": 1e-3, "s": 1.0, "": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0,
    "w": 604800.0, "month": 2629800.0, "y": 31557600.0,
}  # fmt: skip
_SPAN = re.compile(rf"(\d+(?:\.\d+)?)({'|'.join(_SPAN_UNITS)})")
_EXEC_START = re.compile(r"\{ path=(?P<path>.*?) ; argv\[\]=(?P<argv>.*?) ; ", re.DOTALL)


def parse_properties(lines: list[str], known: Collection[str]) -> dict[str, str]:
    """`Name=value` lines; a line that begins with none of the `known` names continues the last."""
    result: dict[str, str] = {}
    last = ""
    for line in lines:
        name, equals, value = line.partition("=")
        if equals and name in known:
            last = name
            result[name] = value
        elif last:
            result[last] += "\n" + line
    return result


def parse_time(text: str) -> float | None:
    """Unix seconds of `Sun 2026-11-29 17:10:33 UTC`; None for no time.

    The programs ask for UTC. A micro-second count (`@1795984817` or plain) is read as well.
    """
    text = text.strip()
    if text in NOT_SET or text == "0":
        return None
    if text.startswith("@"):
        return within(bounded_float(text[1:]), 0, _LAST_TIME)
    match = re.search(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(\.\d+)?(?: (\S+))?$", text)
    if match is None or match[4] not in (None, "UTC", "GMT"):
        return None
    try:
        moment = datetime.fromisoformat(f"{match[1]} {match[2]}+00:00")
    except ValueError:  # the 99th of a month
        return None
    return moment.timestamp() + (bounded_float(match[3] or "") or 0.0)


def parse_span(text: str) -> float | None:
    """Seconds of `3min 20s`; None for `infinity`, and for what is no span (systemd.time(7))."""
    seconds = 0.0
    for word in text.split():
        part = _SPAN.fullmatch(word)
        amount = bounded_float(part[1]) if part is not None else None
        if part is None or amount is None:
            return None
        seconds += amount * _SPAN_UNITS[part[2]]
    return within(seconds, 0, _LAST_TIME) if text.strip() else None


def parse_count(text: str) -> int | None:
    """A number; None for `[not set]` and its like."""
    return None if text in NOT_SET else bounded_int(text)


def unquote(word: str) -> str:
    """What bash's `printf %q` was given. Undecodable bytes become U+FFFD."""
    if word.startswith("$'") and word.endswith("'"):
        return _unescape(word[2:-1])
    if not any(each in word for each in "\\'\""):
        return word
    try:
        return "".join(shlex.split(word)) if word else ""
    except ValueError:
        return word


def _unescape(text: str) -> str:
    def value(match: re.Match[bytes]) -> bytes:
        octal, hexadecimal, letter = match.groups()
        if octal:
            return bytes([int(octal, 8) & 0xFF])
        if hexadecimal:
            return bytes([int(hexadecimal, 16)])
        known = _ESCAPES.get(letter.decode("latin-1"))
        return b"\\" + letter if known is None else known.encode()

    # Escapes stand for bytes; beside them letters of any script are written as they are.
    raw = text.encode("utf-8", "surrogatepass")
    return _ESCAPE.sub(value, raw).decode("utf-8", "replace")


def split_words(text: str) -> list[str]:
    """A list as systemd prints it: words in quotes, in `$'...'`, or as they are."""
    words: list[str] = []
    for match in re.finditer(r"""\$'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\S+""", text, re.DOTALL):
        word = match.group()
        if word.startswith("$'"):
            words.append(_unescape(word[2:-1]))
        elif len(word) > 1 and word[0] == word[-1] == '"':
            words.append(_unescape(word[1:-1]))
        else:
            words.append(word)
    return words


def parse_exec_start(text: str) -> tuple[str, ...]:
    """The argv of the first command of ExecStart.

    systemd prints the arguments with blanks between them and nothing around them, so that one
    with a blank in it comes as several words here. The running process's own command line, where
    there is one, is exact.
    """
    match = _EXEC_START.search(text)
    return tuple(split_words(match["argv"])) if match is not None else ()


def _program(text: str, argv: Sequence[str]) -> str:
    """The path of ExecStart, where the process has another name; empty where it has its own."""
    match, words = _EXEC_START.search(text), parse_exec_start(text)
    if match is None or not words or argv[:1] != words[:1] or words[0].startswith("/"):
        return ""
    return clean(match["path"], _TEXT_LIMIT)


def unit_status(
    name: str,
    values: dict[str, str],
    command_line: list[str],
    start: Start,
    now: float | None,
    starts: Starts,
) -> UnitStatus:
    """The unit's state from its properties; secrets are removed and texts cleaned here.

    `now` is the host's time, Unix seconds; `starts` remembers the start of the main process.
    """
    active = values.get("ActiveState", "")
    entered = parse_time(values.get("ActiveEnterTimestamp", ""))
    main_started = parse_time(values.get("ExecMainStartTimestamp", ""))
    starting = active in {"activating", "reloading"} or entered is None
    running = values.get("MainPID", "0") not in {"", "0"}
    argv = tuple(command_line) or parse_exec_start(values.get("ExecStart", ""))
    began = main_started if running else None
    environment = _environment(values, start, command_line, (began, now), starts)
    return UnitStatus(
        name=clean(values.get("Id") or name, _TEXT_LIMIT),
        load_state=_word(values, "LoadState"),
        active_state=_word(values, "ActiveState"),
        sub_state=_word(values, "SubState"),
        result=_word(values, "Result"),
        main_pid=parse_count(values.get("MainPID", "")) or 0,
        invocation=_word(values, "InvocationID"),
        started_at=main_started if starting and main_started is not None else entered,
        state_changed_at=parse_time(values.get("StateChangeTimestamp", "")),
        restarts=parse_count(values.get("NRestarts", "")),
        exit_code="" if running else _EXIT_CODES.get(values.get("ExecMainCode", ""), ""),
        exit_status=_exit_status(values, running),
        memory=parse_count(values.get("MemoryCurrent", "")),
        tasks=parse_count(values.get("TasksCurrent", "")),
        unit_file_state=_word(values, "UnitFileState"),
        fragment=_word(values, "FragmentPath"),
        drop_ins=tuple(
            clean(path, _TEXT_LIMIT) for path in split_words(values.get("DropInPaths", ""))
        ),
        control_group=_word(values, "ControlGroup"),
        needs_daemon_reload=values.get("NeedDaemonReload") == "yes",
        command_line=_cleaned(redact_argv(argv)),
        command_line_printed=not command_line,
        program=_program(values.get("ExecStart", ""), argv),
        environment=_cleaned(environment.pairs),
        environment_read=environment.read,
        older=_cleaned(environment.older),
        doubts=_cleaned(environment.doubts),
        overridden=_cleaned(environment.overridden),
        working_directory=_word(values, "WorkingDirectory"),
        status_text=_word(values, "StatusText"),
    )


def _environment(
    values: dict[str, str],
    start: Start,
    command_line: list[str],
    times: tuple[float | None, float | None],
    starts: Starts,
) -> Environment:
    drop_ins = split_words(values.get("DropInPaths", ""))
    # systemd prints what is set, and what is taken away again at the start, apart.
    unset = set(split_words(values.get("UnsetEnvironment", "")))
    unit = Configured(
        pairs=tuple(
            each
            for each in split_words(values.get("Environment", ""))
            if each not in unset and each.partition("=")[0] not in unset
        ),
        exec_start=parse_exec_start(values.get("ExecStart", "")),
        files=frozenset({values.get("FragmentPath", ""), *drop_ins}),
        variable_files=values.get("EnvironmentFiles", ""),
        needs_reload=values.get("NeedDaemonReload") == "yes",
    )
    invocation = values.get("InvocationID", "")
    return environment_of(unit, start, command_line, *times, (starts, invocation))


def _word(values: dict[str, str], name: str) -> str:
    text = values.get(name, "")
    return "" if text in NOT_SET else clean(text, _TEXT_LIMIT)


def _exit_status(values: dict[str, str], running: bool) -> int | None:
    if running or values.get("ExecMainCode", "0") not in _EXIT_CODES:
        return None
    return parse_count(values.get("ExecMainStatus", ""))


def _cleaned(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(clean(word, _ARGUMENT_LIMIT) for word in words)
