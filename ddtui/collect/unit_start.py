"""How a unit's main process was started, and whether the unit says something else since.

systemd tells what a unit is configured as now; a process keeps what it was started with. Where its
environment (proc(5), `/proc/PID/environ`) may be read, that decides. Else, when the unit's files
were changed last (their ctime, which nobody sets back) against when the process began.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

import msgspec

from ddtui.core.bounded import bounded_float
from ddtui.core.redact import is_secret_name, redact_environment
from ddtui.core.text import clean

# Only variables that the unit itself sets are given with their values; of all others the names, and
# nothing at all where a file of variables may hide what they were. INVOCATION_ID proves that it is
# the environment of this start: a process may write over it, as it may over its command line.
#
# An environment may be large: it is read once a start, and whenever the unit or the dates of its
# files are others. Nothing here may search a long text with `${x#*y}`, whose time is quadratic.
HOW_STARTED = r"""
declare -A names in_files
files=() dates=() environ=() files_of= environ_of= stale=1 dated_at=0 closed=
read_properties() {
  local line IFS=$nl
  pid=0 id= fragment= drop_ins= environment= variable_files=() steady=
  for line in $out; do
    case $line in
      MemoryCurrent=*|TasksCurrent=*) continue ;;
      MainPID=*) pid=${line#*=} ;;
      InvocationID=*) id=${line#*=} ;;
      FragmentPath=*) fragment=${line#*=} ;;
      DropInPaths=*) drop_ins=${line#*=} ;;
      Environment=*) environment=${line#*=} ;;
      EnvironmentFiles=?*) variable_files+=("${line#*=}") ;;
    esac
    steady=$steady$nl$line
  done
  case $pid in ''|*[!0-9]*) pid=0 ;; esac
}
list_files() {
  local path each
  files_of="$fragment$nl$drop_ins$nl${variable_files[*]}"
  names=()
  [ -z "$fragment" ] || names[$fragment]=1
  for path in $drop_ins; do names[$path]=1; names[${path%/*}]=1; done
  for path in "${variable_files[@]}"; do
    for each in ${path% (ignore_errors=*}; do names[$each]=1; done
  done
  files=("${!names[@]}") stale=1
}
names_of_files() {
  local path each name
  in_files=() closed=
  for path in "${variable_files[@]}"; do
    for each in ${path% (ignore_errors=*}; do
      if [ -r "$each" ]; then
        while IFS== read -r name _ || [ -n "$name" ]; do
          name=${name//[[:space:]]/}; [ -z "$name" ] || in_files[$name]=1
        done < "$each"
      else
        case $path in *'yes)') [ -e "$each" ] || continue ;; esac
        closed=1
      fi
    done
  done
}
read_environ() {
  local each name mine= variables=()
  environ=()
  names_of_files
  [ -z "$closed" ] || return
  mapfile -d '' variables 2>/dev/null < "/proc/$pid/environ"
  for each in "${variables[@]}"; do [ "$each" != "INVOCATION_ID=$id" ] || mine=1; done
  [ -n "$mine" ] || return
  names=()
  for each in $environment; do
    case $each in *=*) name=${each%%=*}; name=${name##*[\"\'\$]}; names[x$name]=1 ;; esac
  done
  environ=("@environ")
  for each in "${variables[@]}"; do
    case $each in [A-Za-z_]*=*) name=${each%%=*} ;; *) continue ;; esac # else no name: a remnant
    if [ -n "${in_files[$name]}" ]; then printf -v name %q "$name"; environ+=("+$name")
    elif [ -n "${names[x$name]}" ]; then printf -v each %q "$each"; environ+=("=$each")
    else printf -v name %q "$name"; environ+=("-$name")
    fi
  done
}
how_started() {
  start=()
  [ "$pid" != 0 ] || return
  [ "$files_of" = "$fragment$nl$drop_ins$nl${variable_files[*]}" ] || list_files
  if [ -n "$stale" ] || [ $((SECONDS - dated_at)) -ge 30 ]; then
    mapfile -t dates < <(stat -L -c '%Z %n' -- "${files[@]}" 2>/dev/null)
    dated_at=$SECONDS stale=
  fi
  local of="$pid$nl$id$nl$files_of$nl$environment$nl${dates[*]}$nl${args[*]}"
  [ "$of" = "$environ_of" ] || { environ_of=$of; read_environ; }
  start=("${environ[@]}" "@written" "${dates[@]}")
}
"""
"""Part of the program UNIT, under `set -f`. `read_properties` takes of `$out` what is needed here,
and all that does not change by itself into `steady`. `how_started` makes of that and `$args` the
lines `start`: `@environ` where that
may be read, with `=NAME=VALUE` for each variable that the unit sets, `+NAME` for one of a file of
variables and `-NAME` for any other; and `@written` with `CTIME PATH` for each of the unit's files
and the folders of its drop-ins, as they were when it was last `stale`, or 30 s ago. Words are
quoted for a shell."""

_USUAL = re.compile(
    r"_|PATH|LANG|LANGUAGE|LC_\w+|HOME|LOGNAME|USER|SHELL|SHLVL|PWD|OLDPWD|TERM|MAIL|TZ|MAINPID"
    r"|MANAGERPID\w*|INVOCATION_ID|JOURNAL_STREAM|SYSTEMD_\w+|NOTIFY_SOCKET|WATCHDOG_\w+|LISTEN_\w+"
    r"|(?:RUNTIME|STATE|CACHE|LOGS|CONFIGURATION|CREDENTIALS)_DIRECTORY|MEMORY_PRESSURE_\w+|PIDFILE"
    r"|SERVICE_RESULT|EXIT_\w+|MONITOR_\w+|TRIGGER_\w+|FDSTORE|XDG_\w+|DBUS_\w+|SSH_AUTH_SOCK"
    r"|DEBUGINFOD_URLS|LOG_NAMESPACE|REMOTE_\w+"
)
"""Variables that systemd, its manager's environment and shells set (systemd.exec(5))."""
_REWRITTEN = re.compile(r"/run/systemd/generator")
"""Files that every reload of systemd writes anew."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


class Start(msgspec.Struct, frozen=True):
    """What the program tells of the start of the main process; with secrets."""

    variables: dict[str, str] | None = None
    """Those that the unit sets, and its process has; None where that may not be read."""
    in_files: frozenset[str] = frozenset()
    """Names that files of variables set."""
    others: frozenset[str] = frozenset()
    """Names of all other variables."""
    written: tuple[tuple[float, str], ...] = ()
    """When each of the unit's files was changed last, Unix seconds on the host's clock."""


class Environment(msgspec.Struct, frozen=True):
    """The variables of a unit, and what they are told by."""

    pairs: tuple[str, ...]
    """`NAME=value`, secrets removed."""
    read: bool = False
    """Whether they are those of the process."""
    older: tuple[str, ...] = ()
    """Why the process may run with an older configuration than the unit has now, one by one."""


def parse_start(environ: Iterable[str] | None, written: Iterable[str]) -> Start:
    """Of the lines below `@environ` (None for none) and `@written`; words without their quotes."""
    words = list(environ or ())
    dates = [(bounded_float(line.partition(" ")[0]), line.partition(" ")[2]) for line in written]
    return Start(
        variables=None
        if environ is None
        else dict(word[1:].partition("=")[::2] for word in words if word[:1] == "="),
        in_files=frozenset(word[1:] for word in words if word[:1] == "+"),
        others=frozenset(word[1:] for word in words if word[:1] == "-"),
        written=tuple((at, path) for at, path in dates if at is not None),
    )


class Configured(msgspec.Struct, frozen=True):
    """What systemd says of the unit now."""

    pairs: tuple[str, ...]
    """`NAME=value` of its variables, with secrets."""
    exec_start: tuple[str, ...]
    files: frozenset[str]
    """Its fragment and drop-ins; other files that were looked at are files of variables."""
    passed: frozenset[str] = frozenset()
    """Names that it takes over from the manager."""
    needs_reload: bool = False


def environment_of(
    unit: Configured,
    start: Start,
    command_line: Sequence[str],
    began: float | None,
    now: float | None,
) -> Environment:
    """The variables with which the main process runs, as far as the unit sets them.

    `began` is when it was started, `now` the host's time; seconds on its clock.
    """
    safe = redact_environment(unit.pairs)
    later = [] if began is None else _later(start, began, now)
    folders = {str(PurePosixPath(path).parent) for path in unit.files}
    lists = [path for path in later if path not in unit.files | folders]
    older = [f"{path} was changed after the start that reads it" for path in lists]
    own = [path for path in later if path not in lists]
    direct = _same_program(unit.exec_start, command_line)
    changed = f"{clean(own[0], 200)} was changed after the start" if own else ""
    if start.variables is None:
        unread = [f"{changed}, and the variables of the process may not be read"] if own else []
        return Environment(safe, older=(*unread, *older))
    if own and not direct:
        older.append(f"{changed}, and what runs is not the program of ExecStart itself")
    if not direct and not later:
        # A script may have set them anew, and the unit is as it was when it was started.
        return Environment(safe, older=tuple(older))
    pairs = [pair for pair in unit.pairs if _told(pair, start)]
    older += _secrets(unit, start, changed)
    if own:
        names = start.others - unit.passed
        gone = sorted(each for each in names if not _USUAL.fullmatch(each))
        older += [f"{clean(each, 80)} is set in the process, and nowhere in the unit"
                  for each in gone]  # fmt: skip
    return Environment(
        redact_environment(_as_started(pair, start) for pair in pairs),
        read=True,
        older=tuple(older),
    )


def _later(start: Start, began: float, now: float | None) -> list[str]:
    """Files that were changed after the start; one second is as exact as systemd's times are."""
    return [
        path
        for at, path in start.written
        if int(began) < at <= (at if now is None else now) and not _REWRITTEN.match(path)
    ]


def _told(pair: str, start: Start) -> bool:
    """Whether the process has the variable, or a file of variables hides what it would be."""
    name = pair.partition("=")[0]
    return name in (start.variables or ()) or name in start.in_files


def _as_started(pair: str, start: Start) -> str:
    name = pair.partition("=")[0]
    value = (start.variables or {}).get(name)
    return pair if value is None else f"{name}={value}"


def _secrets(unit: Configured, start: Start, changed: str) -> list[str]:
    """Of secrets, which are shown nowhere, whether they are the same."""
    found = []
    for pair, safe in zip(unit.pairs, redact_environment(unit.pairs), strict=True):
        name, _, value = pair.partition("=")
        started = (start.variables or {}).get(name)
        if started is None or (pair == safe and not is_secret_name(name)):
            continue
        if started != value:
            found.append(f"{name} (a secret) is another one in the process than in the unit")
        elif changed and unit.needs_reload:
            found.append(f"{changed}, and may set {name} (a secret) otherwise")
    return found


def _same_program(exec_start: Sequence[str], command_line: Sequence[str]) -> bool:
    """Whether the process is what ExecStart names, and no script's child: the words before flags.

    A program that is a script itself runs behind its interpreter.
    """
    unit, process = _program(exec_start), _program(command_line)
    both = min(len(unit), len(process))
    return both > 0 and unit[-both:] == process[-both:] and both == len(unit)


def _program(words: Sequence[str]) -> list[str]:
    found = list(words)
    if found and PurePosixPath(found[0]).name == "env":
        del found[0]
        while found and _ASSIGNMENT.match(found[0]):
            del found[0]
    ends = (at for at, word in enumerate(found) if word.startswith("--") or "$" in word)
    return found[: next(ends, len(found))]
