"""The engine's command as its unit starts it, and the drop-in's lines that change it.

Wrappers that can be changed safely are seen through: `env A=b ...`, `bash -c '... exec ...'`, and
variables that the unit itself sets. Others are refused, with what to change by hand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import PurePosixPath

import msgspec

from ddtui.control import exec_start
from ddtui.control.exec_start import Command, ExecError, Token, Unresolved
from ddtui.control.overruled import Overruled, overruled
from ddtui.control.rewriting import pieces
from ddtui.control.shell_command import NotSimple, ShellCommand, find_command, script_index
from ddtui.control.unit_text import UnitFile, listed, single
from ddtui.core.launch import Launch

DROP_IN_NAME = "50-ddtui.conf"
IsEngine = Callable[[Sequence[str]], bool]
_SET_BY_MANAGER = frozenset(
    {
        "PATH", "LANG", "USER", "LOGNAME", "HOME", "SHELL", "INVOCATION_ID", "XDG_RUNTIME_DIR",
        "RUNTIME_DIRECTORY", "STATE_DIRECTORY", "CACHE_DIRECTORY", "LOGS_DIRECTORY",
        "CONFIGURATION_DIRECTORY", "CREDENTIALS_DIRECTORY", "MAINPID", "MANAGERPID", "TERM",
        "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "NOTIFY_SOCKET", "WATCHDOG_PID",
        "WATCHDOG_USEC", "SYSTEMD_EXEC_PID", "JOURNAL_STREAM", "PIDFILE",
    }
)  # fmt: skip
"""Variables that the service manager sets itself: systemd.exec(5)."""
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)


class CommandRefused(Exception):
    """The unit's command cannot be changed safely: why, and what to do instead."""

    def __init__(self, what: str, way_out: str) -> None:
        super().__init__(what)
        self.what = what
        self.way_out = way_out


class EnvironmentFile(msgspec.Struct, frozen=True):
    """A file that `EnvironmentFile=` names."""

    path: str
    variables: dict[str, str] | None = None
    """None when it could not be read."""


class Lines(msgspec.Struct, frozen=True):
    """What a drop-in sets."""

    exec_start: tuple[str, ...]
    environment: dict[str, str]
    unset: tuple[str, ...] = ()


class UnitCommand(msgspec.Struct, frozen=True):
    """A unit's commands, of which one starts the engine."""

    unit: str
    commands: tuple[Command, ...]
    engine: int
    """Index of the command that starts the engine."""
    groups: tuple[tuple[str, ...], ...]
    """The words that each of its tokens stands for."""
    opaque: frozenset[str]
    """Words whose value is not known here; they stand in `launch` as they are written."""
    shell: ShellCommand | None
    """The command within a shell's script, where it is one."""
    script: int
    """Index of the script's token."""
    environment: dict[str, str]
    """What `Environment=` sets in all files."""
    base_environment: dict[str, str]
    """The same without ddtui's own drop-in."""
    files_environment: dict[str, str]
    """Name to the file that sets it, for variables of EnvironmentFile=."""
    overruled: Overruled
    """What decides over the variables that ddtui's drop-in sets."""
    launch: Launch
    """The engine's argv, within its shell where there is one, and the unit's environment."""

    @property
    def started_by_hand(self) -> Launch:
        """The launch as a shell would start it, where `@` has the second word be argv[0].

        An interpreter finds its packages by argv[0] where that is a path.
        """
        if "@" not in self.commands[self.engine].prefixes or self.shell is not None:
            return self.launch
        path, name, *arguments = self.groups
        program = name if name and name[0].startswith("/") else path
        words = exec_start.flat([program, *arguments])
        return msgspec.structs.replace(self.launch, argv=words)

    def lines(self, after: Launch) -> Lines:
        """The drop-in's lines that start the engine so. Raises CommandRefused, ExecError."""
        argv, environment = self._assigned(after)
        if self.shell is not None:
            command, changed = self._with_script(self.shell.rewritten(argv)), dict[str, str]()
        else:
            command, changed = self._with_words(argv)
        wanted = environment | changed
        rendered = [each.render() for each in self.commands]
        rendered[self.engine] = command.render()
        unset = tuple(sorted(name for name in self.base_environment if name not in wanted))
        own = {
            name: value
            for name, value in wanted.items()
            if self.base_environment.get(name) != value
        }
        return Lines(tuple(rendered), own, unset)

    def _assigned(self, after: Launch) -> tuple[list[str], dict[str, str]]:
        """The words with `env`'s assignments as asked, and what is left for `Environment=`."""
        argv, environment = list(after.argv), dict(self.environment)
        within = _assignments(self.launch.argv)
        for name in self.launch.environment.keys() | after.environment.keys():
            value = after.environment.get(name)
            if value == self.launch.environment.get(name):
                continue
            if name in self.files_environment:
                path = self.files_environment[name]
                raise CommandRefused(
                    f"{name} is set in {path}, which goes before what the unit sets",
                    f"change {name} in {path} by hand, or take it out of there",
                )
            if name in within:
                at = next(i for i, word in enumerate(argv) if word.startswith(f"{name}="))
                argv[at : at + 1] = [] if value is None else [f"{name}={value}"]
            elif value is None:
                environment.pop(name, None)
            else:
                self._check_variable(name)
                environment[name] = value
        return argv, environment

    def _check_variable(self, name: str) -> None:
        """That the drop-in can set a variable. Raises CommandRefused."""
        if path := self.overruled.by(name):
            raise CommandRefused(
                f"{path} decides over {name}, and would hide a change",
                f"change {name} in {path} by hand, or take it out of there",
            )

    def _with_script(self, script: str) -> Command:
        command = self.commands[self.engine]
        tokens = list(command.tokens)
        if self.groups[self.script] != (script,):
            quoted = exec_start.quoted(script, expands=command.expands)
            tokens[self.script] = Token(quoted, script)
        return Command(command.prefixes, tuple(tokens))

    def _with_words(self, argv: Sequence[str]) -> tuple[Command, dict[str, str]]:
        command = self.commands[self.engine]
        tokens: list[Token] = []
        changed: dict[str, str] = {}
        for piece in pieces(self.groups, argv):
            if piece.words is None and piece.token is not None:
                tokens.append(command.tokens[piece.token])
                continue
            old = command.tokens[piece.token] if piece.token is not None else None
            name = self._own_variable(old) if old is not None else ""
            if old is not None and name:
                self._check_variable(name)
                changed[name] = exec_start.join_variable(piece.words or ())
                tokens.append(old)
                continue
            for word in piece.words or ():
                raw = exec_start.quoted(word, expands=command.expands)
                tokens.append(Token(raw, word))
        return Command(command.prefixes, tuple(tokens)), changed

    def _own_variable(self, token: Token) -> str:
        """The variable that a token stands for, if it is to be changed where the unit sets it."""
        name = exec_start.variable_of(token.value)
        if not name:
            return ""
        if name in self.files_environment:
            path = self.files_environment[name]
            raise CommandRefused(
                f"the flags are in ${name}, which {path} sets",
                f"change {name} in {path} by hand and restart the unit, or move the flags into "
                f"the unit's ExecStart",
            )
        uses = sum(
            re.search(rf"\$\{{?{name}\b", each.value) is not None
            for command in self.commands
            for each in command.tokens
        )
        return name if name in self.environment and uses == 1 else ""


# ---- reading -------------------------------------------------------------------------------------


def drop_in_path(scope: str, unit: str, home: str = "") -> str:
    """Where ddtui's drop-in of a unit is; `home` is needed for a user's own manager."""
    folder = "/etc/systemd/system" if scope != "user" else f"{home}/.config/systemd/user"
    return f"{folder}/{unit}.d/{DROP_IN_NAME}"


def read_unit(
    unit: str,
    files: Sequence[UnitFile],
    is_engine: IsEngine,
    environment_files: Sequence[EnvironmentFile] = (),
) -> UnitCommand:
    """The unit's engine command. Raises CommandRefused."""
    _check_order(files)
    expand = exec_start.specifiers(unit)
    try:
        return _read(unit, files, is_engine, environment_files, expand)
    except Unresolved as error:
        raise CommandRefused(
            f"the command of {unit} holds {error.name}, whose value is not known",
            "write the flags into the unit's ExecStart, or into an Environment= of the unit",
        ) from error
    except ExecError as error:
        raise CommandRefused(
            f"the command of {unit} cannot be read: {error}", "mend its ExecStart"
        ) from error


def _read(
    unit: str,
    files: Sequence[UnitFile],
    is_engine: IsEngine,
    environment_files: Sequence[EnvironmentFile],
    expand: Callable[[str], str],
) -> UnitCommand:
    environment = _environment(files, expand)
    passed = " ".join(each.value for each in listed(files, "PassEnvironment")).split()
    variables = _Variables(environment, environment_files, passed)
    commands = tuple(
        command
        for each in listed(files, "ExecStart")
        for command in exec_start.commands(each.value)
    )
    if not commands:
        raise CommandRefused(f"{unit} has no ExecStart", "name the unit that starts the engine")
    if len(commands) > 1 and single(files, "Type", "simple") != "oneshot":
        raise CommandRefused(
            f"{unit} has {len(commands)} commands, which systemd takes for Type=oneshot only",
            "leave one ExecStart",
        )
    for index, command in enumerate(commands):
        groups, opaque = _groups(command, expand, variables)
        argv = exec_start.flat(groups)
        script = script_index(argv) if len(argv) == len(groups) else None
        shell = _shell(argv[script], is_engine) if script is not None else None
        words = shell.argv if shell is not None else argv
        if shell is None and (script is not None or not is_engine(argv)):
            continue
        hidden = [word.value for word in shell.words if word.opaque] if shell is not None else []
        if script is not None:
            _check_script(command.tokens[script], argv[script] in opaque, variables)
        return UnitCommand(
            unit=unit,
            commands=commands,
            engine=index,
            groups=groups,
            opaque=opaque.union(hidden),
            shell=shell,
            script=script or 0,
            environment=environment,
            base_environment=_environment([f for f in files if not _is_ours(f.path)], expand),
            files_environment=variables.sources,
            overruled=overruled(files, DROP_IN_NAME),
            launch=Launch(words, environment | _assignments(words)),
        )
    raise _no_engine(unit, commands)


def _check_script(token: Token, is_opaque: bool, variables: _Variables) -> None:
    """A script is written anew with what systemd expands in it; secrets of files stay there."""
    if is_opaque:
        raise Unresolved(token.raw[:60])
    for name, path in variables.sources.items():
        if f"${{{name}" in token.value:
            raise CommandRefused(
                f"the script holds ${{{name}}}, which {path} sets",
                f"write $${name} (the shell's own variable) in the script",
            )


def _is_ours(path: str) -> bool:
    return PurePosixPath(path).name == DROP_IN_NAME


def _check_order(files: Sequence[UnitFile]) -> None:
    """A later drop-in with a command of its own would hide ddtui's."""
    for file in overruling(files):
        raise CommandRefused(
            f"{file.path} sets ExecStart after {DROP_IN_NAME}, and would hide a change",
            f"rename it so that it sorts before {DROP_IN_NAME}, or move its command into "
            "the unit file",
        )


def overruling(files: Sequence[UnitFile]) -> list[UnitFile]:
    """Drop-ins that systemd reads after ddtui's, with a command of their own."""
    return [
        file
        for file in files[1:]
        if PurePosixPath(file.path).name > DROP_IN_NAME and listed([file], "ExecStart")
    ]


def _environment(files: Sequence[UnitFile], expand: Callable[[str], str]) -> dict[str, str]:
    lenient = _keeping(expand)
    values = [each.value for each in listed(files, "Environment")]
    found = exec_start.environment_of(values, lenient)
    for each in listed(files, "UnsetEnvironment"):
        for token in exec_start.words(each.value):
            found.pop(token.value.partition("=")[0], None)
    return found


def _keeping(expand: Callable[[str], str]) -> Callable[[str], str]:
    """Leaves a text as it is where a specifier in it is not known."""

    def lenient(text: str) -> str:
        try:
            return expand(text)
        except Unresolved:
            return text

    return lenient


class _Variables(dict[str, str]):
    """What variables of the command stand for; raises KeyError for those that are not known."""

    def __init__(
        self,
        environment: Mapping[str, str],
        environment_files: Sequence[EnvironmentFile],
        passed: Collection[str],
    ) -> None:
        super().__init__(environment)
        self.sources: dict[str, str] = {}
        self._passed = passed
        for file in environment_files:
            for name, value in (file.variables or {}).items():
                self[name] = value
                self.sources[name] = file.path
        self.unread = [file.path for file in environment_files if file.variables is None]

    def __missing__(self, name: str) -> str:
        if self.unread or name in self._passed or name in _SET_BY_MANAGER:
            raise KeyError(name)
        return ""  # as systemd has it for a variable that is not set


def _groups(
    command: Command, expand: Callable[[str], str], variables: _Variables
) -> tuple[tuple[tuple[str, ...], ...], frozenset[str]]:
    """The words of each token; words of unknown value stand as they are written, and are named."""
    groups: list[tuple[str, ...]] = []
    opaque: set[str] = set()
    for index, token in enumerate(command.tokens):
        try:
            groups.append(tuple(exec_start.token_words(command, index, expand, variables)))
        except Unresolved:
            if index > 0 and command.expands and exec_start.variable_of(token.value):
                if variables.unread:
                    raise _unread(token.value, variables.unread[0]) from None
                raise  # it may be any number of words
            opaque.add(token.value)
            groups.append((token.value,))
    return tuple(groups), frozenset(opaque)


def _unread(variable: str, path: str) -> CommandRefused:
    return CommandRefused(
        f"the command uses {variable}, which may be set in {path}, and that may not be read",
        f"make {path} readable for you, or write the flags into the unit's ExecStart",
    )


def _shell(script: str, is_engine: IsEngine) -> ShellCommand | None:
    try:
        return find_command(script, is_engine)
    except NotSimple as error:
        raise CommandRefused(
            f"the unit starts the engine from a shell script in which {error}",
            error.way_out
            or "let the unit's ExecStart start the engine itself, or spell the flags out there",
        ) from error


def _assignments(argv: Sequence[str]) -> dict[str, str]:
    """Variables that `env` or a shell sets for the command: words before the program itself."""
    found: dict[str, str] = {}
    for word in argv:
        match = _ASSIGNMENT.fullmatch(word)
        if match is not None:
            found[match[1]] = match[2]
        elif PurePosixPath(word).name not in {"env", "exec"}:
            break
    return found


def _no_engine(unit: str, commands: Sequence[Command]) -> CommandRefused:
    program = commands[-1].tokens[0].value
    return CommandRefused(
        f"{unit} starts {program}, in which ddtui does not see the engine's command",
        f"change the flags in {program} by hand, or let ExecStart start the engine itself "
        "(`python -m sglang.launch_server ...`)",
    )
