"""How a unit's main process was started, as the host tells it.

Of its environment (proc(5), `/proc/PID/environ`), where that may be read; and when the unit's files
were changed last: their ctime, which nobody sets back. What follows: ddtui.collect.unit_older.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ddtui.core.bounded import bounded_float
from ddtui.core.text import named_values

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
lines `start`: `@environ` where that may be read, with `=NAME=VALUE` for each variable that the unit
sets, `+NAME` for one of a file of variables and `-NAME` for any other; and `@written` with `CTIME
PATH` for each of the unit's files and the folders of its drop-ins, as they were when it was last
`stale`, or 30 s ago. Words are quoted for a shell."""


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


def parse_start(environ: Iterable[str] | None, written: Iterable[str]) -> Start:
    """Of the lines below `@environ` (None for none) and `@written`; words without their quotes."""
    words = list(environ or ())
    dates = [(bounded_float(line.partition(" ")[0]), line.partition(" ")[2]) for line in written]
    return Start(
        variables=None
        if environ is None
        else named_values(word[1:] for word in words if word[:1] == "="),
        in_files=frozenset(word[1:] for word in words if word[:1] == "+"),
        others=frozenset(word[1:] for word in words if word[:1] == "-"),
        written=tuple((at, path) for at, path in dates if at is not None),
    )
