"""The scripts that run on the host: bash, and nothing is installed. One collector reads each.

Long programs read their heartbeat from standard input (`read -t`): end of input, or silence for
HEARTBEAT_LIMIT seconds, ends them, so that a dropped connection leaves nothing behind. They sleep
in that same `read`, so that waiting costs no process. Values that come from outside arrive as
arguments, never inside a script.
"""

from __future__ import annotations

from ddtui.collect.unit_start import HOW_STARTED
from ddtui.hosts.base import Program

HEARTBEAT_LIMIT = 45
"""Seconds without a heartbeat after which a program on the host ends itself. The host sends one
every 10 s."""

PREAMBLE = "export LC_ALL=C SYSTEMD_PAGER= SYSTEMD_COLORS=0 SYSTEMD_LESS= TZ=UTC\n"

LEFT_OVER = 75
"""Exit status (EX_TEMPFAIL) of the GPU programs: an nvidia-smi of an earlier look still hangs."""

# Runs "$@" as a child, and beside it a watcher that ends it when the heartbeat ends. Nobody polls.
# Both have process groups of their own: what the child started ends with it, and the watcher
# outlives whoever kills the script. A child that is deaf to TERM is killed; one that outlives even
# that (it hangs in the kernel) is left, because waiting for it would leave this script as well.
SUPERVISE = """
supervise() {
  exec 3<&0
  end_child() {
    kill -- -$child || return
    for _ in 1 2 3 4 5 6 7 8 9 10; do kill -0 -- -$child || return; sleep 0.2; done
    kill -KILL -- -$child
  } >/dev/null 2>&1
  set -m
  DDTUI_CHILD_OF=$$ "$@" </dev/null 3<&- & child=$!
  { while read -r -t LIMIT _; do :; done; end_child; kill $$; } <&3 >/dev/null 2>&1 & watcher=$!
  set +m
  exec 3<&- </dev/null
  trap 'end_child; kill "$watcher" 2>/dev/null' EXIT
  trap 'exit 143' TERM HUP INT
  wait "$child"
}
""".replace("LIMIT", str(HEARTBEAT_LIMIT))

# What hangs in the driver survives the connection that started it, and every further start would
# hang as well. The command line and environment of what hangs in the kernel are not read: that may
# hang too.
_FIND_SMI = """
PATH=$PATH:/usr/bin:/usr/local/bin:/usr/local/nvidia/bin:/usr/lib/wsl/lib:/opt/bin
smi=${1:-nvidia-smi}; shift
command -v "$smi" >/dev/null || { echo "$smi not found" >&2; exit 127; }
left_over() {
  local name=${smi##*/} p comm stat parent each
  for p in /proc/[0-9]*; do
    [ -O "$p" ] && read -r comm < "$p/comm" && [ "$comm" = "${name:0:15}" ] || continue
    read -r stat < "$p/stat" || continue
    stat=${stat##*) } parent=${stat#? }; parent=${parent%% *} stat=${stat%% *} environ=()
    case $stat in
      Z|X) continue ;;
      D) [ "$parent" = 1 ] || continue ;;
      *) mapfile -d '' environ < "$p/environ" || continue
        parent=
        for each in "${environ[@]}"; do
          case $each in DDTUI_CHILD_OF=*) parent=${each#*=} ;; esac
        done
        [ -n "$parent" ] && [ ! -O "/proc/$parent" ] || continue ;;
    esac
    echo "process ${p#/proc/} (state $stat)"; return
  done 2>/dev/null
  return 1
}
if left=$(left_over); then echo "$left of an earlier look still hangs" >&2; exit LEFT; fi
""".replace("LEFT", str(LEFT_OVER))

GPU_FIELDS = (
    "index",
    "uuid",
    "name",
    "pci.bus_id",
    "driver_version",
    "memory.used",
    "memory.total",
    "utilization.gpu",
    "utilization.memory",
    "power.draw",
    "power.limit",
    "temperature.gpu",
    "temperature.memory",
    "fan.speed",
    "clocks.current.sm",
    "clocks.current.memory",
    "clocks_event_reasons.active",
    "ecc.errors.uncorrected.volatile.total",
    "mig.mode.current",
    "pcie.link.gen.current",
    "pcie.link.width.current",
    "pstate",
)
"""Fields of `nvidia-smi --query-gpu` that are asked for, in this order. A driver that does not know
one says `Field "x" is not a valid field to query.`; the collector then leaves that one out (or uses
its older name)."""

GPU = Program(
    "ddtui:gpu",
    PREAMBLE
    + SUPERVISE
    + _FIND_SMI
    + """
supervise "$smi" ${3:+--id="$3"} --query-gpu="$1" --format=csv,noheader,nounits -lms "$2"
""",
)
"""Arguments: nvidia-smi path or empty, comma-separated fields, interval in ms, and which GPUs
(comma-separated bus ids; empty or left out: all). Prints CSV rows, one a GPU and tick. Ends with
LEFT_OVER while an nvidia-smi that an earlier one could not end is still there."""

GPU_PROCESSES = Program(
    "ddtui:gpu-processes",
    PREAMBLE
    + _FIND_SMI
    + """
# what ends this script in time asks the child to end as well, which may be deaf to it
trap 'kill -KILL $child; exit 143' TERM HUP INT
DDTUI_CHILD_OF=$$ "$smi" --query-compute-apps=pid,gpu_uuid,used_gpu_memory,process_name \\
  --format=csv,noheader,nounits </dev/null & child=$!
wait $child || exit
echo "@unit"
[ -z "$1" ] || cat "/sys/fs/cgroup$1/cgroup.procs" 2>/dev/null
exit 0
""",
)
"""Arguments: nvidia-smi path or empty, the unit's control group or empty. One shot: CSV rows, then
`@unit` and the pids of the unit's processes (whoever leaves them out leaves open which processes
are the unit's). Ends with LEFT_OVER as GPU does."""

# /proc files are read whole (mapfile): reading them line by line makes the kernel build them anew
# for each line.
SYSTEM = Program(
    "ddtui:system",
    PREAMBLE
    + """
interval=$1 cgroup=$2 quiet=0 cores=0
mapfile -t lines < /proc/stat
for line in "${lines[@]}"; do case $line in cpu[0-9]*) cores=$((cores + 1)) ;; esac; done
while :; do
  frame=("@time ${EPOCHREALTIME/,/.}" "@cores $cores")
  for f in stat:1 meminfo:8 loadavg:1 net/dev:0 diskstats:0 uptime:1; do
    frame+=("@file ${f%:*}")
    mapfile -t -n "${f#*:}" lines 2>/dev/null < "/proc/${f%:*}" || continue
    for line in "${lines[@]}"; do
      case $line in *" loop"[0-9]*|*" ram"[0-9]*|*" veth"*:*|veth*:*) ;; *) frame+=("$line") ;; esac
    done
  done
  frame+=("@io")
  if [ -n "$cgroup" ] && mapfile -t pids 2>/dev/null < "/sys/fs/cgroup$cgroup/cgroup.procs"; then
    for pid in "${pids[@]}"; do
      lines=() bytes=
      [ ! -r "/proc/$pid/io" ] || mapfile -t lines < "/proc/$pid/io"
      for line in "${lines[@]}"; do case $line in read_bytes:*) bytes=${line#*: } ;; esac; done
      [ -n "$bytes" ] || [ -e "/proc/$pid" ] || continue
      frame+=("$pid ${bytes:--}")
    done
  fi
  printf '%s\\n' "${frame[@]}" "@end"
  if read -r -t "$interval" _; then quiet=0
  else
    [ $? -gt 128 ] || exit 0
    quiet=$((quiet + 1)); [ "$quiet" -lt LIMIT ] || exit 0
  fi
done 2>/dev/null
""".replace("LIMIT", str(HEARTBEAT_LIMIT)),
)
"""Arguments: interval in seconds, the unit's control group or empty. Prints the beginning of /proc
files in frames that end in `@end`; `@cores` is the number of CPUs, `@io` lines are `PID
READ_BYTES`, or `PID -` where it may not be read. No process is started per frame."""

UNIT_PROPERTIES = (
    "Id",
    "LoadState",
    "ActiveState",
    "SubState",
    "Result",
    "MainPID",
    "InvocationID",
    "ActiveEnterTimestamp",
    "ExecMainStartTimestamp",
    "StateChangeTimestamp",
    "NRestarts",
    "ExecMainCode",
    "ExecMainStatus",
    "MemoryCurrent",
    "TasksCurrent",
    "UnitFileState",
    "FragmentPath",
    "DropInPaths",
    "ControlGroup",
    "NeedDaemonReload",
    "ExecStart",
    "Environment",
    "EnvironmentFiles",
    "PassEnvironment",
    "UnsetEnvironment",
    "WorkingDirectory",
    "User",
    "StatusText",
)

# What the unit does is asked of the service manager (5 ms of CPU) only when something may have
# happened: when the manager has run, by /proc/PID/schedstat. It does so for every job, signal, exit
# and request. Where that may not be read it is asked every time.
UNIT = Program(
    "ddtui:unit",
    PREAMBLE
    + """
scope=$1 unit=$2 props=$3 quiet=0 nl=$'\\n'
if [ "$scope" = user ]; then
  ctl="systemctl --user"
  export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-/run/user/$UID}"
  slice=/sys/fs/cgroup/user.slice/user-$UID.slice/user@$UID.service
  read -r manager 2>/dev/null < "$slice/init.scope/cgroup.procs" || manager=0
else
  ctl=systemctl manager=1
fi
"""
    + HOW_STARTED
    + """
set -f
show() {
  out=$($ctl show --no-pager -p "$props" -- "$unit" 2>&1); rc=$?
  said=0 asked=0
  read_properties
  args=() # those of the manager's child first, which becomes the service a moment later
  [ ! -r "/proc/$pid/cmdline" ] || mapfile -d '' args 2>/dev/null < "/proc/$pid/cmdline"
  how_started
  steady=$steady$nl${args[*]}$nl${start[*]}
  if [ "$steady" = "$last_steady" ]; then calm=$((calm + 1)); else calm=0 last_steady=$steady; fi
  whole="$rc:$out:${args[*]}:${start[*]}"
  if [ "$whole" = "$last_out" ]; then echo "@same ${EPOCHREALTIME/,/.}"; return; fi
  last_out=$whole
  frame=("@show $rc ${EPOCHREALTIME/,/.}" "$out")
  if [ "$pid" != 0 ]; then
    frame+=("@cmdline")
    for a in "${args[@]}"; do printf -v a %q "$a"; frame+=("$a"); done
    frame+=("${start[@]}")
  fi
  printf '%s\\n' "${frame[@]}" "@end"
}
last_out= last_steady= ran= ran_before= undated= calm=0
show
while :; do
  if read -r -t 0.4 _; then quiet=0
  else
    [ $? -gt 128 ] || exit 0
    quiet=$((quiet + 1)); [ "$quiet" -lt LIMIT ] || exit 0
  fi
  asked=$((asked + 1)) said=$((said + 1))
  { read -r ran < "/proc/$manager/schedstat" || ran=; } 2>/dev/null
  # asking makes the manager run, which hides what else it does in that moment: after a change
  # it is asked until it has given the same answer twice more
  if [ $calm -lt 2 ] || [ $asked -ge 25 ] || [ "$ran" != "$ran_before" ] || [ -z "$ran" ]; then
    # what the manager did may be of files
    [ $calm -ge 2 ] && [ "$ran" = "$ran_before" ] || undated=1
    [ -z "$undated" ] || [ $((SECONDS - dated_at)) -lt 2 ] || stale=1 undated=
    show; { read -r ran_before < "/proc/$manager/schedstat"; } 2>/dev/null
  elif [ $said -ge 5 ]; then echo "@same ${EPOCHREALTIME/,/.}"; said=0
  fi
done
""".replace("LIMIT", str(int(HEARTBEAT_LIMIT / 0.4))),
)
"""Arguments: `system` or `user`, the unit, comma-separated properties. Prints frames: `@show STATUS
HOST_TIME`, the properties; while a main process runs `@cmdline` with one shell-quoted argument a
line, and the lines of HOW_STARTED; `@end`; and, as a sign of life, single lines `@same HOST_TIME`
that say that the last frame still holds."""

# With --after-cursor journalctl skips an entry blindly, which loses a line when the cursor's own
# entry has been vacuumed.
JOURNAL = Program(
    "ddtui:journal",
    PREAMBLE
    + SUPERVISE
    + """
scope=$1 unit=$2 cursor=$3 lines=$4
[ "$scope" = user ] && flag=--user-unit || flag=--unit
if [ -n "$cursor" ]; then set -- --cursor="$cursor" --no-tail; else set -- --lines="$lines"; fi
# its hint about missing rights comes with texts only, never with JSON
[ "$scope" = user ] || journalctl --no-pager --lines=0 "$flag=$unit" </dev/null >/dev/null
# --follow shows the present boot only: what an earlier one wrote after the cursor is read before
read -r boot < /proc/sys/kernel/random/boot_id; boot=${boot//-/}
case $cursor in *";b=$boot;"*) ;; *";b="*)
  journalctl --all --output=json --no-pager "$flag=$unit" --cursor="$cursor" </dev/null |
    sed -n '/"_BOOT_ID":"'"$boot"'"/q;p'
esac
supervise journalctl --follow --all --output=json --no-pager "$flag=$unit" "$@"
""",
)
"""Arguments: `system` or `user`, the unit, a cursor or empty, how many old lines without a cursor.
Begins at the cursor's own entry, or at the next one when that is gone. Prints one JSON object an
entry (see systemd.journal-fields(7)), the lines of the service manager about the unit among them.
What journalctl says of missing rights is on standard error."""

JOURNAL_INVOCATION = Program(
    "ddtui:journal-invocation",
    PREAMBLE
    + """
[ "$1" = user ] && flag=--user-unit || flag=--unit
read_journal() {
  journalctl --all --output=json --no-pager --quiet "$flag=$2" "${@:5}" \\
    "_SYSTEMD_INVOCATION_ID=$3" + "INVOCATION_ID=$3" + "USER_INVOCATION_ID=$3" </dev/null
}
if [ "${5:-last}" = first ]; then read_journal "${@:1:4}" | head -n "$4"
else read_journal "${@:1:4}" --lines="$4"
fi
""",
)
"""Arguments: scope, unit, invocation, most lines, `last` (also when left out) or `first`: which end
of the invocation to read. Oldest first, one shot."""

KERNEL = Program(
    "ddtui:kernel",
    PREAMBLE
    + """
journalctl --dmesg --no-pager --quiet --output=short-unix --since="@$1" </dev/null |
  grep -aE 'Xid|[Oo]ut of memory|oom-kill|fallen off the bus|segfault|[Nn]v[Ll]ink' | tail -n "$2"
exit 0
""",
)
"""Arguments: since when (Unix seconds), most lines. One shot: what the kernel said that may have
ended an engine. Nothing where the user may not read the kernel's journal."""

LISTENER = Program(
    "ddtui:listener",
    PREAMBLE
    + """
port=$1 cgroup=$2 main=${4:-0} inodes=
printf -v hex '%04X' "$port"
for f in /proc/net/tcp /proc/net/tcp6; do
  [ ! -r "$f" ] || mapfile -t lines < "$f"
  for line in "${lines[@]}"; do
    read -r _ local _ state _ _ _ uid _ inode _ <<<"$line"
    [ "$state" = 0A ] && [ "${local##*:}" = "$hex" ] || continue
    echo "@socket $uid $inode"; inodes="$inodes $inode"
  done
  lines=()
done
pids=()
if [ -n "$inodes" ] && [ -n "$cgroup" ] && [ -r "/sys/fs/cgroup$cgroup/cgroup.procs" ]; then
  mapfile -t pids < "/sys/fs/cgroup$cgroup/cgroup.procs"
fi
# with PAMName= the main process is moved into a session's group, with its children
if [ -n "$inodes" ] && [ "$main" != 0 ]; then
  case " ${pids[*]} " in *" $main "*) ;; *)
    lines=(); read -r -a lines 2>/dev/null < "/proc/$main/task/$main/children"
    [ ! -d "/proc/$main" ] || pids+=("$main" "${lines[@]}") ;;
  esac
fi
folders=() unseen=
for pid in "${pids[@]}"; do
  uid=
  while read -r key value _; do
    [ "$key" != Uid: ] || uid=$value
  done 2>/dev/null < "/proc/$pid/status"
  [ -n "$uid" ] || unseen=$5
  if [ -r "/proc/$pid/fd" ]; then
    echo "@process $pid ${uid:--} readable"; folders+=("/proc/$pid/fd")
  else echo "@process $pid ${uid:--} unreadable"
  fi
done
# of processes that /proc hides the service manager still tells the user
[ -z "$unseen" ] || echo "@unit $(systemctl show -p UID --value -- "$unseen" 2>/dev/null)"
holders() {
  find "$@" -maxdepth 1 -lname 'socket:*' -printf '%h %l\\n' 2>/dev/null |
  while read -r folder link; do
    link=${link#socket:[}; link=${link%]}
    case "$inodes " in *" $link "*) pid=${folder#/proc/}; echo "$pid $link" ;; esac
  done
}
if [ ${#folders[@]} != 0 ]; then
  while read -r pid link; do echo "@holds ${pid%/fd} $link"; done < <(holders "${folders[@]}")
fi
if [ "$3" = name ] && [ -n "$inodes" ]; then
  while read -r pid link; do
    pid=${pid%/fd}; read -r name 2>/dev/null < "/proc/$pid/comm" && echo "@other $pid $link $name"
  done < <(holders /proc/[0-9]*/fd)
fi
echo "@end"
""",
)
"""Arguments: port, the unit's control group or empty, `name` to look for the holder among all
processes (dear on a busy host; ask once), the main process's pid or 0, the system unit or empty.
One shot: `@socket UID INODE` for each listener, `@process PID UID readable|unreadable` for each of
the unit's, `@unit UID` where one is hidden, `@holds PID INODE`, and `@other PID INODE NAME`."""

CHECKPOINT = Program(
    "ddtui:checkpoint",
    PREAMBLE
    + """
model=$1 cwd=$2
[ -z "$cwd" ] || cd "$cwd" 2>/dev/null || :
if [ ! -d "$model" ]; then
  hub=${HF_HUB_CACHE:-${HF_HOME:-$HOME/.cache/huggingface}/hub}
  for d in "$hub" "$3"; do
    [ -n "$d" ] || continue
    s=$(ls -td "$d/models--${model//\\//--}/snapshots/"*/ 2>/dev/null | head -n 1)
    [ -z "$s" ] || { model=$s; break; }
  done
fi
[ -d "$model" ] || { echo "no such folder: $model" >&2; exit 3; }
cd "$model" || exit 3
echo "@path $PWD"
disk=$(df -P . 2>/dev/null | tail -n 1); disk=${disk%% *}
case $disk in /dev/*) disk=$(readlink -f "$disk") ;; esac
echo "@disk $disk"
find -L . -maxdepth 2 -type f \\( -name '*.safetensors' -o -name '*.bin' -o -name '*.pt' \\
  -o -name '*.gguf' \\) -printf '@file %s %f\\n' 2>/dev/null
if [ -r config.json ]; then echo "@config"; head -c 65536 config.json; echo; fi
echo "@end"
""",
)
"""Arguments: model path or hub name, the unit's working folder or empty, another hub cache or
empty. One shot."""

UNITS = Program(
    "ddtui:units",
    PREAMBLE
    + """
[ "$1" = user ] && ctl="systemctl --user" || ctl=systemctl
export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-/run/user/$UID}"
list() { $ctl "$@" --type=service --no-pager --no-legend --plain 2>/dev/null; }
names=$(
  list list-unit-files | while read -r name _; do
    case $name in *@.service) ;; *) echo "$name" ;; esac
  done
  list list-units --all | while read -r name _; do echo "$name"; done
)
shown=$([ -z "$names" ] || sort -u <<<"$names" | xargs -d '\\n' \\
  $ctl show --no-pager -p Id,ActiveState,LoadState,ExecStart,FragmentPath -- 2>/dev/null)
if [ -n "$shown" ]; then printf '%s\\n' "$shown"
elif ! command -v systemctl >/dev/null; then echo "@none command not found"
elif [ ! -d /run/systemd/system ]; then echo "@none not been booted with systemd"
else echo "@none $($ctl list-units --type=service --no-pager 2>&1 >/dev/null | tr '\\n' ' ')"
fi
""",
)
"""Arguments: `system` or `user`. One shot: properties of every service, blocks separated by an
empty line; or `@none`, and what the service manager says instead (nothing, if it has no service).
Whether the host was booted with systemd is told as sd_booted(3) does."""

FACTS = Program(
    "ddtui:facts",
    PREAMBLE
    + """
PATH=$PATH:/usr/local/bin:/usr/local/nvidia/bin:/sbin:/usr/sbin
say() { printf '@%s %s\\n' "$1" "$2"; }
say time "${EPOCHREALTIME/,/.}"
say user "$(id -un) $(id -u)"
say groups "$(id -Gn)"
say hostname "$(hostname 2>/dev/null || echo "$HOSTNAME")"
say kernel "$(uname -sr)"
say bash "$BASH_VERSION"
say systemd "$(systemctl --version 2>&1 | head -n 1)"
say state "$(systemctl is-system-running 2>&1)"
say journalctl "$(command -v journalctl)"
last() { journalctl --no-pager -n 1 "$@"; }
say journal "$(last ${1:+--unit="$1"} 2>&1 >/dev/null | head -n 2 | tr '\\n' ' ')"
say journal_entries "$(last -o cat ${1:+--unit="$1"} 2>/dev/null | head -c 1 | wc -c)"
say nvidia_smi "$(command -v "${2:-nvidia-smi}")"
smi=$("${2:-nvidia-smi}" --query-gpu=index,name,driver_version --format=csv,noheader 2>&1)
say nvidia_smi_status "$?"
printf '%s\\n' "$smi" | while IFS= read -r l; do say gpu "$l"; done
say cgroup "$(stat -fc %T /sys/fs/cgroup 2>/dev/null)"
say sudo "$(command -v sudo)"
if command -v sudo >/dev/null; then
  sudo -n -l 2>&1 </dev/null | while IFS= read -r l; do say sudo_rule "$l"; done
fi
echo "@end"
""",
)
"""Arguments: unit or empty, nvidia-smi path or empty. One shot: what the doctor and `init` ask of a
host."""

READ_FILE = Program(
    "ddtui:read-file",
    PREAMBLE + 'head -c "$2" -- "$1"\n',
)
"""Arguments: path, most bytes."""

ALL_PROGRAMS = (
    GPU,
    GPU_PROCESSES,
    SYSTEM,
    UNIT,
    JOURNAL,
    JOURNAL_INVOCATION,
    KERNEL,
    LISTENER,
    CHECKPOINT,
    UNITS,
    FACTS,
    READ_FILE,
)
