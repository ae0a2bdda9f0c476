"""The scripts that change a unit, or look at what stands in the way of that.

As in `ddtui.collect.programs`: bash, nothing is installed, values from outside are arguments. What
is run as root is exactly what `ddtui.control.rights` grants, by `sudo -n`, or plainly as root.
"""

from __future__ import annotations

from ddtui.collect.programs import HEARTBEAT_LIMIT, PREAMBLE
from ddtui.control.rights import MKDIR, MV, SYSTEMCTL, TEE
from ddtui.control.unit_command import DROP_IN_NAME
from ddtui.hosts.base import Program

_SCOPE = """
scope=$1 unit=$2
if [ "$scope" = user ]; then
  export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-/run/user/$UID}"
  ctl="systemctl --user"; folder=$HOME/.config/systemd/user/$unit.d
else ctl=systemctl; folder=/etc/systemd/system/$unit.d
fi
own=DROP_IN_NAME
file=$folder/$own
plainly() { [ "$scope" = user ] || [ "$UID" = 0 ]; }
root() { if plainly; then "$@"; else sudo -n "$@"; fi; }
""".replace("DROP_IN_NAME", DROP_IN_NAME)

_CLOSED = """
may() { plainly || sudo -n -l "$@" >/dev/null 2>&1 </dev/null; }
closed() { # mode, owner: the drop-in's, if not everybody may read the fragment; bare: it, if denied
  mode= owner= bare=
  local path; path=$($ctl show --no-pager -p FragmentPath -- "$unit") || return
  path=${path#FragmentPath=}
  { read -r mode owner; } < <(stat -L -c '%a %u:%g' -- "$path" 2>/dev/null)
  [ -n "$mode" ] && (( (8#$mode & 4) == 0 )) || { mode= owner=; return; }
  printf -v mode '%o' $(( 8#$mode & 8#666 ))
  may chown "$owner" "$file.new" && may chmod "$mode" "$file.new" &&
    may chmod 644 "$file.new" || { bare=$path mode=; }
}
"""

UNIT_FILES = Program(
    "ddtui:unit-files",
    PREAMBLE
    + _SCOPE
    + """
props=LoadState,FragmentPath,DropInPaths,EnvironmentFiles,ExecStart,Environment,NeedDaemonReload
out=$($ctl show --no-pager -p "$props" -- "$unit") || exit
block() { echo "@$1 ${#3} $2"; printf '%s\n' "$3"; }
each() { # KIND PATH
  if [ -r "$2" ] && text=$(head -c 1048576 -- "$2" 2>/dev/null; echo x); then
    block "$1" "$2" "${text%x}"
  elif [ -e "$2" ] || [ -e "${2%/*}" ]; then echo "@$1 - $2"
  fi
}
echo "@user $(id -un) $UID $HOME"
block show - "$out"
if [ "$scope" = user ] && [ -d /run/systemd/users ]; then
  [ -e "/var/lib/systemd/linger/$(id -un)" ] || echo "@passing - $(id -un)"
fi
for each in $($ctl show --no-pager -p RequiredBy,BoundBy,ConsistsOf --value -- "$unit"); do
  ! $ctl is-active -- "$each" >/dev/null 2>&1 || echo "@with - $each"
done
[ ! -r /etc/machine-id ] || { id=$(sha256sum < /etc/machine-id) && echo "@machine - ${id%% *}"; }
nl=$'\n'; all=$nl$out
paths=${all#*"${nl}DropInPaths="}; paths=${paths%%"$nl"*}
fragment=${all#*"${nl}FragmentPath="}; fragment=${fragment%%"$nl"*}
# it ends at the first file that may not be read, or that is gone, and leaves out all that follow
if text=$($ctl cat --no-pager -- "$unit" 2>/dev/null; rc=$?; echo x; exit $rc); then
  block cat - "${text%x}"
else
  for path in "$fragment" $paths; do
    case $path in /*) up=$path ;; *) continue ;; esac
    while [ -n "$up" ] && [ ! -e "$up" ]; do up=${up%/*}; done
    if [ "$up" != "$path" ] && [ -x "${up:-/}" ]; then echo "@gone - $path"
    else each file "$path"
    fi
  done
fi
while IFS= read -r line; do
  case $line in EnvironmentFiles=?*)
    path=${line#EnvironmentFiles=}; path=${path% (ignore_errors=*}
    case $line in *'yes)') [ -e "$path" ] || continue ;; esac
    each environment "$path" ;;
  esac
done <<<"$out"
read_in=" "
for path in $paths; do read_in="$read_in${path##*/} "; done
stem=${unit%.*} kind=${unit##*.}; names=("$unit.d"); part=$stem
case $stem in *@*) names+=("${stem%%@*}@.$kind.d"); part=${stem%%@*} ;; esac
while [[ $part == *-* ]]; do part=${part%-*}; names+=("$part-.$kind.d"); done
names+=("$kind.d")
if [ "$scope" = user ]; then places=("$HOME/.config" /etc "$XDG_RUNTIME_DIR" /run /usr/lib)
else places=(/etc /run /usr/local/lib /usr/lib); fi
for place in "${places[@]}"; do
  for name in "${names[@]}"; do
    for path in "$place/systemd/$scope/$name"/*.conf; do
      # of files of one name, systemd takes the one of the first place
      case ${path##*/} in "$own"|'*.conf') continue ;; esac
      case "$read_in" in *" ${path##*/} "*) continue ;; esac
      [ -f "$path" ] && [ -s "$path" ] || continue
      read_in="$read_in${path##*/} "; each unread "$path"
    done
  done
done
if [ -e "$file" ]; then each ours "$file"; else echo "@none $file"; fi
echo "@end"
""",
)
"""Arguments: scope, unit. One shot: `@user NAME UID HOME`, then blocks `@KIND BYTES PATH`, those
bytes and a newline: `show` (properties), `cat` (`systemctl cat`; where that fails, `file` for each
file of the unit instead, and `@gone - PATH` for one that is there no more), `environment` (each
file of variables that must be there, or is), `unread` (each drop-in that systemd will take up with
its next reload) and `ours` (ddtui's own drop-in); `-` instead of the size of a file that may not be
read, `@none PATH` where there is no drop-in; `@machine - HASH` of the host's machine-id(5), which
itself is to be told nobody; `@passing - NAME` of a user whose manager ends with the last login;
`@with - UNIT` for each that is up and is stopped with it; `@end`."""

LOOK = Program(
    "ddtui:unit-look",
    PREAMBLE
    + _SCOPE
    + """
props=LoadState,ActiveState,SubState,Result,InvocationID,NRestarts,MainPID
props=$props,NeedDaemonReload,ControlGroup,TimeoutStopUSec
$ctl show --no-pager -p "$props" -- "$unit" || exit
if [ ! -s "$file" ]; then echo "DropIn="
elif [ -r "$file" ] && sum=$(sha256sum < "$file"); then echo "DropIn=${sum%% *}"
else echo "DropIn=unreadable"
fi
read -r boot < /proc/sys/kernel/random/boot_id && echo "Boot=$boot"
echo "@end"
""",
)
"""Arguments: scope, unit. One shot: properties of the unit, `DropIn=` and the hash of ddtui's
drop-in (empty: there is none, or it is empty), `Boot=` and which boot of the host this is, `@end`.
"""

WRITE_DROP_IN = Program(
    "ddtui:write-drop-in",
    PREAMBLE
    + _SCOPE
    + _CLOSED
    + f"""
text=$(cat; echo x); text=${{text%x}} over=$3 whole=$4
[ "${{#text}}" -gt 0 ] || {{ echo "nothing came on standard input" >&2; exit 3; }}
old=-; [ ! -s "$file" ] || {{ old=$(sha256sum < "$file") || exit; old=${{old%% *}}; }}
new=$(printf '%s' "$text" | sha256sum)
[ "${{new%% *}}" = "${{whole:-${{new%% *}}}}" ] ||
  {{ echo "it did not come whole: does a start-up file of the shell read its input?" >&2; exit 3; }}
case $old in
  "$over"|"${{new%% *}}") ;;
  *) [ -z "$over" ] || {{ echo "$file was changed meanwhile" >&2; exit 5; }} ;;
esac
umask 022
[ -d "$folder" ] || root {MKDIR} -p "$folder" || exit
[ -x "$folder" ] || {{ echo "what is in $folder may not be seen" >&2; exit 4; }}
clear_away() {{ # what was written beside it, or its text where it may not be removed
  [ -e "$file.new" ] || return
  if plainly; then rm -f -- "$file.new"; else root {TEE} "$file.new" </dev/null >/dev/null; fi
  if [ -s "$file.new" ]; then echo "$file.new stays: remove it, it holds the unit's command"
  elif [ -e "$file.new" ]; then echo "$file.new stays, empty; it may be removed"
  fi >&2
}}
fail() {{ clear_away; exit "$1"; }}
closed
[ -z "$mode" ] || umask 077
plainly && rm -f -- "$file.new" 2>/dev/null
printf '%s' "$text" | root {TEE} "$file.new" >/dev/null || fail $?
if [ -n "$mode" ]; then
  root chown "$owner" "$file.new" 2>/dev/null || mode=600
  root chmod "$mode" "$file.new" || fail $?
  # Whoever may read the fragment by an access list must be able to read this as well.
  [ -r "$file.new" ] || root chmod 644 "$file.new" || fail $?
fi
printf '%s' "$text" | cmp -s - "$file.new" ||
  {{ echo "$file.new does not hold what was written" >&2; fail 4; }}
root {MV} -T "$file.new" "$file" || fail $?
sum=$(sha256sum < "$file") && echo "@written ${{sum%% *}}"
""",
)
"""Arguments: scope, unit, hash of the drop-in that it may replace (`-`: there is none, or an empty
one; empty: whatever is there), hash of the new one; that on standard input. Writes it beside the
old one, reads it back, and renames it into place, as closed to others as the unit's fragment where
that is allowed. Prints `@written SHA256`; exit status 5 where another one is there, so that an
order that arrives late overwrites nothing; 3 for one that did not come whole. What a failure leaves
beside it is taken away, or said on standard error."""

DROP_IN_SIGHT = Program(
    "ddtui:drop-in-sight",
    PREAMBLE
    + _SCOPE
    + _CLOSED
    + """
closed
[ -z "$bare" ] || echo "@open $bare"
echo "@end"
""",
)
"""Arguments: scope, unit. Prints `@open FRAGMENT` where that is closed to others and sudo does not
allow to close the drop-in like it; `@end`."""

VERIFY_UNIT = Program(
    "ddtui:verify-unit",
    PREAMBLE
    + _SCOPE
    + """
command -v systemd-analyze >/dev/null || { echo "@absent"; exit 0; }
d=$(mktemp -d) || exit; trap 'rm -rf "$d"' EXIT
mkdir "$d/$unit.d"
cat > "$d/new"
out=$($ctl show --no-pager -p FragmentPath,DropInPaths -- "$unit"); nl=$'\\n'; out=$nl$out
path=${out#*"${nl}FragmentPath="}; path=${path%%"$nl"*}
[ -r "$path" ] || { echo "@absent $path"; exit 0; }
cp -- "$path" "$d/$unit"; cp -- "$d/new" "$d/$unit.d/$own"
paths=${out#*"${nl}DropInPaths="}; paths=${paths%%"$nl"*}
for path in $paths; do
  case ${path##*/} in
    "$own") ;;
    *.conf) cp -- "$path" "$d/$unit.d/" 2>/dev/null ;;
  esac
done
[ "$scope" = user ] && flag=--user || flag=--system
verify() { systemd-analyze "$flag" --man=no "$@" verify "$d/$unit" 2>&1; }
only=--recursive-errors=no
said=$(verify $only); rc=$?
case $said in *"unrecognized option"*) only=; said=$(verify); rc=$? ;; esac
echo "@folder $d"; echo "@status $rc"; printf '%s\\n' "$said"
[ "$rc" != 0 ] || exit 0
rm -- "$d/$unit.d/$own"
[ ! -r "$file" ] || cp -- "$file" "$d/$unit.d/"
echo "@before"; verify $only; exit 0
""",
)
"""Arguments: scope, unit; the drop-in on standard input. Verifies a copy of the unit with it, so
that nothing of the host is touched. Prints `@folder DIR`, `@status N` and systemd-analyze's words;
where it is not content, `@before` and its words about the unit as it is now; `@absent` where it
cannot be asked."""

SYSTEMCTL_RUN = Program(
    "ddtui:systemctl",
    PREAMBLE
    + _SCOPE
    + f"""
verb=$3 only=$4
if [ -n "$only" ]; then
  now=$($ctl show --no-pager -p InvocationID --value -- "$unit") || exit
  [ "$now" = "$only" ] || {{ echo "@other $now"; exit 0; }}
fi
[ "$verb" = daemon-reload ] && set -- || set -- "$unit"
if [ "$scope" = user ]; then systemctl --user "$verb" "$@"; exit; fi
if [ "$UID" = 0 ]; then {SYSTEMCTL} "$verb" "$@"; exit; fi
said=$(sudo -n {SYSTEMCTL} "$verb" "$@" 2>&1); rc=$?
case $rc:$said in
  0:*) ;;
  *sudo:*|*Sorry,*|127:*)
    # Without the sudo rule, polkit may allow it.
    other=$(systemctl --no-ask-password "$verb" "$@" 2>&1) && exit 0 ;;
esac
printf '%s\\n' "$said" >&2
exit $rc
""",
)
"""Arguments: scope, unit, `start`, `stop`, `reset-failed` or `daemon-reload`, and the invocation
that is meant or empty: under another one nothing is done and `@other ID` is printed, so that an
order to stop that arrives late (its link was cut, its packets were sent again) hits nothing."""

STOP_REQUESTS = Program(
    "ddtui:stop-requests",
    PREAMBLE
    + """
scope=$1 unit=$2
[ "$scope" = user ] && prefix=USER_ || prefix=
# systemd's SD_MESSAGE_UNIT_STOPPING: a job stops the unit; one that ends by itself has none
journalctl --quiet --no-pager --boot --lines=20 --output=export \\
  "${prefix}UNIT=$unit" MESSAGE_ID=de5b426a63be47a7b6ac3eaac82e2f6f </dev/null |
  while IFS= read -r line; do
    case $line in "${prefix}INVOCATION_ID="*) echo "@stop ${line#*=}" ;; esac
  done
[ "${PIPESTATUS[0]}" != 0 ] || echo "@end"
""",
)
"""Arguments: scope, unit. Prints `@stop INVOCATION` for each of the last jobs that stopped the unit
since the host's boot, the latest last; `@end` where the journal could be read."""

RIGHTS = Program(
    "ddtui:rights",
    PREAMBLE
    + """
set -f
echo "@user $(id -un) $UID"
why=
if [ "$UID" = 0 ]; then :
elif ! command -v sudo >/dev/null; then
  echo "@none"
  for command in "$@"; do echo "@missing $command"; done
elif [ $# = 0 ]; then
  sudo -n -l 2>/dev/null </dev/null | while IFS= read -r line; do echo "@rule $line"; done
else
  for command in "$@"; do
    said=$(sudo -n -l $command 2>&1 </dev/null) && continue
    while IFS= read -r line; do
      case $line in
        ''|*'not allowed'*|*'may not run'*|*'not in the sudoers'*|*'not found'*) ;;
        *'unable to resolve host'*) ;;
        *) why=$line ;; # it was not answered: a password, a terminal, privileges are wanted for it
      esac
    done <<<"$said"
    [ -z "$why" ] || { echo "@unknown $why"; break; }
    echo "@missing $command"
  done
fi
echo "@end"
""",
)
"""Arguments: commands, or none. Without, prints the lines of `sudo -n -l` behind `@rule`. Else
`@missing COMMAND` for each that sudo says that it does not allow (whether it would want a password
for one that it allows, it does not say), and `@unknown WHY` where it did not answer, after which
it is asked for no more; `@none` where there is no sudo. Nothing is run as root. Prints `@user NAME
UID` first."""

LOCK = Program(
    "ddtui:lock",
    PREAMBLE
    + """
key=$1 token=$2 text=$3 files=()
command -v flock >/dev/null || { echo "@absent flock"; exit 0; }
for folder in /run/lock /tmp; do
  file=$folder/ddtui-$key.lock
  [ -d "$folder" ] && [ ! -L "$file" ] || continue
  [ -e "$file" ] || (umask 000; set -C; : > "$file") 2>/dev/null
  [ -f "$file" ] && [ ! -L "$file" ] && [ -r "$file" ] || continue
  exec {fd}<"$file" || continue
  for try in 1 2 3 4 5 6 7 8 9 10; do
    flock -n "$fd" && break
    { read -r pid theirs said; } < "$file"
    # What a cut link has left of ourselves, until its heartbeat's limit.
    if [ "$theirs" = "$token" ] && [ "$try" -lt 10 ] && [ -n "$pid" ]; then
      args=(); mapfile -d '' args 2>/dev/null < "/proc/$pid/cmdline"
      case "${args[*]}" in *ddtui:lock*"$token"*) kill "$pid" 2>/dev/null ;; esac
      sleep 0.2; continue
    fi
    echo "@held $said"; exit 0
  done
  printf '%s\\n' "$$ $token $text" | dd of="$file" conv=nocreat status=none 2>/dev/null
  files+=("$file")
done
[ ${#files[@]} -gt 0 ] || { echo "@absent no folder for a lock"; exit 0; }
echo "@locked ${files[*]}"
while read -r -t LIMIT _; do :; done
""".replace("LIMIT", str(HEARTBEAT_LIMIT)),
)
"""Arguments: what is locked (letters, digits and `-_.@:` only), a token, a text about the holder.
Holds the lock for as long as it runs. Prints `@locked FILES`, `@held TEXT` when another has it,
or `@absent WHY`. Every file that can be locked is, so that operators with other rights meet."""

LOCK_HOLDER = Program(
    "ddtui:lock-holder",
    PREAMBLE
    + """
command -v flock >/dev/null || { echo "@free"; exit 0; } # LOCK says that it is not there
for file in "/run/lock/ddtui-$1.lock" "/tmp/ddtui-$1.lock"; do
  [ -f "$file" ] && [ ! -L "$file" ] && [ -r "$file" ] || continue
  exec {fd}<"$file" || continue
  flock -n -s "$fd" && continue
  { read -r _ token said; } < "$file"; echo "@held $said"; exit 0
done
echo "@free"
""",
)
"""Argument: what is locked. Prints `@held TEXT` or `@free`."""

HOLDERS = Program(
    "ddtui:holders",
    PREAMBLE
    + """
smi=$1 cgroup=$2 port=$3 known=$4
PATH=$PATH:/usr/bin:/usr/local/bin:/usr/local/nvidia/bin:/usr/lib/wsl/lib:/opt/bin
pids=" "
note() { case $pids in *" $1 "*) ;; *) pids="$pids$1 " ;; esac; }
[ -z "$cgroup" ] || while read -r pid; do echo "@unit $pid"; note "$pid"; done 2>/dev/null \\
  < "/sys/fs/cgroup$cgroup/cgroup.procs"
printf -v hex '%04X' "$port"; inodes=
for f in /proc/net/tcp /proc/net/tcp6; do
  while read -r _ local _ state _ _ _ uid _ inode _; do
    [ "$state" = 0A ] && [ "${local##*:}" = "$hex" ] || continue
    echo "@socket $uid $inode"; inodes="$inodes $inode"
  done 2>/dev/null < "$f"
done
if [ -n "$inodes" ]; then
  while read -r folder link; do
    link=${link#socket:[}; link=${link%]}
    case "$inodes " in *" $link "*) ;; *) continue ;; esac
    pid=${folder#/proc/}; pid=${pid%/fd}; echo "@listens $pid $link"; note "$pid"
  done < <(find /proc/[0-9]*/fd -maxdepth 1 -lname 'socket:*' -printf '%h %l\\n' 2>/dev/null)
fi
smi=${smi:-nvidia-smi}
if command -v "$smi" >/dev/null; then
  "$smi" --query-gpu=uuid,index,memory.used --format=csv,noheader,nounits 2>/dev/null |
    while IFS= read -r line; do echo "@gpu $line"; done
  while IFS=, read -r pid rest; do
    case $pid in ''|*[!0-9]*) continue ;; esac
    echo "@app $pid,$rest"; note "$pid"
  done < <("$smi" --query-compute-apps=pid,gpu_uuid,used_gpu_memory,process_name \\
    --format=csv,noheader,nounits 2>/dev/null)
fi
for pid in $known; do note "$pid"; done
for pid in $pids; do
  { read -r stat < "/proc/$pid/stat"; } 2>/dev/null || continue
  name=${stat#*(}; name=${name%)*}; set -- ${stat##*) }
  [ "$1" = Z ] && continue
  begun=${20} uid=- group= args=()
  while read -r key value _; do [ "$key" != Uid: ] || uid=$value; done 2>/dev/null \\
    < "/proc/$pid/status"
  while IFS=: read -r _ kind path; do [ -n "$kind" ] || group=$path; done 2>/dev/null \\
    < "/proc/$pid/cgroup"
  mapfile -d '' args 2>/dev/null < "/proc/$pid/cmdline"
  born= variables=()
  mapfile -d '' variables 2>/dev/null < "/proc/$pid/environ"
  for each in "${variables[@]}"; do
    case $each in INVOCATION_ID=*) born=${each#*=} ;; esac
  done
  printf '@process %s %s %s %q %q %q %q\\n' "$pid" "$begun" "$uid" "$group" "$name" \\
    "${args[*]:0:400}" "$born"
done
echo "@end"
""",
)
"""Arguments: nvidia-smi path or empty, the unit's control group or empty, port, known pids. One
shot: `@unit PID`, `@socket UID INODE`, `@listens PID INODE`, `@gpu UUID, INDEX, MIB`, `@app PID,
UUID, MIB, NAME`, and for each pid met `@process PID STARTTIME UID CGROUP NAME COMMAND INVOCATION`
(the last from its environment, as systemd sets it for processes of a service; empty where that may
not be read)."""

END_PROCESS = Program(
    "ddtui:end-process",
    PREAMBLE
    + """
pid=$1 begun=$2 signal=$3
{ read -r stat < "/proc/$pid/stat"; } 2>/dev/null || { echo "@gone"; exit 0; }
set -- ${stat##*) }
[ "${20}" = "$begun" ] || { echo "@gone"; exit 0; }
kill -s "$signal" "$pid" 2>/dev/null || sudo -n /usr/bin/kill -s "$signal" "$pid" || exit
echo "@sent"
""",
)
"""Arguments: pid, its start time (field 22 of /proc/PID/stat), TERM or KILL. Signals that process
and no other that has got its number since. Prints `@sent` or `@gone`."""

DISK_ROOM = Program(
    "ddtui:disk-room",
    PREAMBLE
    + """
seen=" "
for folder in "$@"; do
  [ -d "$folder" ] || continue
  free= mount=
  { read -r _; read -r _ _ _ free _ mount; } < <(df -P -B1 -- "$folder" 2>/dev/null)
  case $free:$seen in *[!0-9]*:*|:*|*" $mount "*) continue ;; esac
  seen="$seen$mount "
  while read -r _ on _ options _; do
    # What nobody can write to is always full.
    [ "$on" != "$mount" ] || case ,$options, in *,ro,*) continue 2 ;; esac
  done < /proc/mounts
  echo "@free $free $folder"
done
echo "@end"
""",
)
"""Arguments: folders. Prints `@free BYTES FOLDER` for the first one on each file system."""
