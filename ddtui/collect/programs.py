"""The scripts that run on the host. Each prints lines that one collector parses; all are bash, nothing is installed.

Long programs read their heartbeat from standard input (`read -t`): end of input, or silence for
HEARTBEAT_LIMIT seconds, ends them, so that a dropped connection leaves nothing behind. They sleep in that same
`read`, so that waiting costs no process. Values that come from outside arrive as arguments, never inside a script.
"""

from __future__ import annotations

from ddtui.hosts.base import Program

HEARTBEAT_LIMIT = 45
"""Seconds without a heartbeat after which a program on the host ends itself. The host sends one every 10 s."""

PREAMBLE = "export LC_ALL=C SYSTEMD_PAGER= SYSTEMD_COLORS=0 SYSTEMD_LESS= TZ=UTC\n"

# Runs "$@" as a child and ends it when the heartbeat ends. The child's own end ends the loop within a second.
_SUPERVISE = """
supervise() {
  "$@" </dev/null & child=$!
  trap 'kill "$child" 2>/dev/null' EXIT
  trap 'exit 143' TERM HUP INT
  quiet=0
  while kill -0 "$child" 2>/dev/null; do
    if read -r -t 1 _; then quiet=0
    else
      [ $? -gt 128 ] || exit 0
      quiet=$((quiet + 1)); [ "$quiet" -lt LIMIT ] || exit 0
    fi
  done
  trap - EXIT
  wait "$child"
}
""".replace("LIMIT", str(HEARTBEAT_LIMIT))

_FIND_SMI = """
PATH=$PATH:/usr/bin:/usr/local/bin:/usr/local/nvidia/bin:/usr/lib/wsl/lib:/opt/bin
smi=${1:-nvidia-smi}; shift
command -v "$smi" >/dev/null || { echo "nvidia-smi not found in $PATH" >&2; exit 127; }
"""

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
"""Fields of `nvidia-smi --query-gpu` that are asked for, in this order. A driver that does not know one says
`Field "x" is not a valid field to query.`; the collector then leaves that one out (or uses its older name)."""

GPU = Program(
    "ddtui:gpu",
    PREAMBLE
    + _SUPERVISE
    + _FIND_SMI
    + """
supervise "$smi" --query-gpu="$1" --format=csv,noheader,nounits -lms "$2"
""",
)
"""Arguments: nvidia-smi path or empty, comma-separated fields, interval in ms. Prints CSV rows, one a GPU and tick."""

GPU_PROCESSES = Program(
    "ddtui:gpu-processes",
    PREAMBLE
    + _FIND_SMI
    + """
"$smi" --query-compute-apps=pid,gpu_uuid,used_gpu_memory,process_name --format=csv,noheader,nounits
""",
)
"""Arguments: nvidia-smi path or empty. One shot."""

SYSTEM = Program(
    "ddtui:system",
    PREAMBLE
    + """
interval=$1 cgroup=$2 quiet=0
while :; do
  echo "@time ${EPOCHREALTIME/,/.}"
  for f in stat meminfo loadavg net/dev diskstats uptime; do
    echo "@file $f"
    while IFS= read -r line; do
      case $f:$line in stat:intr*|stat:softirq*) ;; *) echo "$line" ;; esac
    done < /proc/$f
  done 2>/dev/null
  echo "@io"
  if [ -n "$cgroup" ] && [ -r "/sys/fs/cgroup$cgroup/cgroup.procs" ]; then
    while read -r pid; do
      bytes=
      while read -r key value; do [ "$key" = read_bytes: ] && bytes=$value; done 2>/dev/null < "/proc/$pid/io"
      echo "$pid ${bytes:--}"
    done < "/sys/fs/cgroup$cgroup/cgroup.procs"
  fi 2>/dev/null
  echo "@end"
  if read -r -t "$interval" _; then quiet=0
  else
    [ $? -gt 128 ] || exit 0
    quiet=$((quiet + 1)); [ "$quiet" -lt LIMIT ] || exit 0
  fi
done
""".replace("LIMIT", str(HEARTBEAT_LIMIT)),
)
"""Arguments: interval in seconds, the unit's control group or empty. Prints /proc files in frames that end in `@end`;
`@io` lines are `PID READ_BYTES`, or `PID -` where it may not be read. No process is started per frame."""

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
)

UNIT = Program(
    "ddtui:unit",
    PREAMBLE
    + """
scope=$1 unit=$2 props=$3 quiet=0 n=0 last=
if [ "$scope" = user ]; then
  ctl="systemctl --user"; mask="$HOME/.config/systemd/user/$unit"; inv="${XDG_RUNTIME_DIR:-/run/user/$UID}/systemd/units/invocation:$unit"
else
  ctl=systemctl; mask="/etc/systemd/system/$unit"; inv="/run/systemd/units/invocation:$unit"
fi
show() {
  out=$($ctl show --no-pager -p "$props" -- "$unit" 2>&1); rc=$?
  echo "@show $rc ${EPOCHREALTIME/,/.}"; printf '%s\\n' "$out"
  pid=${out#*MainPID=}; pid=${pid%%[!0-9]*}
  cg=${out#*ControlGroup=}; cg=${cg%%$'\\n'*}; [ "$cg" != "$out" ] || cg=
  if [ -n "$pid" ] && [ "$pid" != 0 ]; then
    echo "@cmdline"
    while IFS= read -r -d '' a; do printf '%q\\n' "$a"; done 2>/dev/null < "/proc/$pid/cmdline"
  fi
  echo "@end"
}
look() {  # whatever changes when the unit does, read without starting a process
  first=-; populated=-
  if [ -n "$cg" ]; then
    { read -r first < "/sys/fs/cgroup$cg/cgroup.procs"; } 2>/dev/null || first=-
    { read -r populated < "/sys/fs/cgroup$cg/cgroup.events"; } 2>/dev/null || populated=-
  fi
  alive=-; [ "${pid:-0}" = 0 ] || { [ -e "/proc/$pid" ] && alive=1 || alive=0; }
  masked=0; [ "$mask" -ef /dev/null ] && masked=1
  invoked=0; [ -L "$inv" ] && invoked=1
  now="$first $populated $alive $masked $invoked"
}
cg= pid=
show; look; last=$now; n=0
while :; do
  if read -r -t 0.25 line; then quiet=0; [ "$line" != show ] || n=1000
  else
    [ $? -gt 128 ] || exit 0
    quiet=$((quiet + 1)); [ "$quiet" -lt LIMIT ] || exit 0
  fi
  look; n=$((n + 1))
  # while the unit is neither up nor down its states change without a trace in its control group
  case $out in *ActiveState=activating*|*ActiveState=deactivating*|*ActiveState=reloading*) every=2 ;; *) every=8 ;; esac
  if [ "$now" != "$last" ] || [ $n -ge $every ]; then show; look; last=$now; n=0; fi
done
""".replace("LIMIT", str(HEARTBEAT_LIMIT * 4)),
)
"""Arguments: `system` or `user`, the unit, comma-separated properties. Prints frames: `@show STATUS HOST_TIME`, the
properties, `@cmdline` with one shell-quoted argument a line while a main process runs, `@end`."""

JOURNAL = Program(
    "ddtui:journal",
    PREAMBLE
    + _SUPERVISE
    + """
scope=$1 unit=$2 cursor=$3 lines=$4
[ "$scope" = user ] && flag=--user-unit || flag=--unit
if [ -n "$cursor" ]; then set -- --after-cursor="$cursor"; else set -- --lines="$lines"; fi
supervise journalctl --follow --all --output=json --no-pager --quiet "$flag=$unit" "$@"
""",
)
"""Arguments: `system` or `user`, the unit, a cursor or empty, how many old lines without a cursor. Prints one JSON
object an entry (see systemd.journal-fields(7)), the lines of the service manager about the unit among them."""

JOURNAL_INVOCATION = Program(
    "ddtui:journal-invocation",
    PREAMBLE
    + """
[ "$1" = user ] && flag=--user-unit || flag=--unit
exec journalctl --all --output=json --no-pager --quiet "$flag=$2" --lines="$4" "_SYSTEMD_INVOCATION_ID=$3" + "INVOCATION_ID=$3" </dev/null
""",
)
"""Arguments: scope, unit, invocation, most lines. The journal of one invocation, one shot."""

LISTENER = Program(
    "ddtui:listener",
    PREAMBLE
    + """
port=$1 cgroup=$2
printf -v hex '%04X' "$port"
for f in /proc/net/tcp /proc/net/tcp6; do
  while read -r _ local _ state _ _ _ uid _ inode _; do
    [ "$state" = 0A ] && [ "${local##*:}" = "$hex" ] && echo "@socket $uid $inode"
  done < "$f"
done 2>/dev/null
if [ -n "$cgroup" ] && [ -r "/sys/fs/cgroup$cgroup/cgroup.procs" ]; then
  while read -r pid; do
    uid=; while read -r key value _; do [ "$key" = Uid: ] && uid=$value; done 2>/dev/null < "/proc/$pid/status"
    if [ -r "/proc/$pid/fd" ] && ls "/proc/$pid/fd" >/dev/null 2>&1; then
      echo "@process $pid ${uid:--} readable"
      for fd in $(ls -l "/proc/$pid/fd" 2>/dev/null); do
        case $fd in socket:*) fd=${fd#socket:[}; echo "@holds $pid ${fd%]}" ;; esac
      done
    else
      echo "@process $pid ${uid:--} unreadable"
    fi
  done < "/sys/fs/cgroup$cgroup/cgroup.procs"
fi
echo "@end"
""",
)
"""Arguments: port, the unit's control group or empty. One shot: who listens, and which sockets the unit holds."""

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
disk=$(df -P . 2>/dev/null | tail -n 1); echo "@disk ${disk%% *}"
find -L . -maxdepth 2 -type f \\( -name '*.safetensors' -o -name '*.bin' -o -name '*.pt' -o -name '*.gguf' \\) -printf '@file %s %f\\n' 2>/dev/null
if [ -r config.json ]; then echo "@config"; head -c 65536 config.json; echo; fi
echo "@end"
""",
)
"""Arguments: model path or hub name, the unit's working folder or empty, another hub cache or empty. One shot."""

UNITS = Program(
    "ddtui:units",
    PREAMBLE
    + """
[ "$1" = user ] && ctl="systemctl --user" || ctl=systemctl
names=$($ctl list-unit-files --type=service --no-pager --no-legend --plain 2>/dev/null | while read -r name _; do case $name in *@.service) ;; *) echo "$name" ;; esac; done
  $ctl list-units --type=service --all --no-pager --no-legend --plain 2>/dev/null | while read -r name _; do echo "$name"; done)
[ -n "$names" ] || exit 0
sort -u <<<"$names" | xargs -d '\\n' $ctl show --no-pager -p Id,ActiveState,LoadState,ExecStart,FragmentPath -- 2>/dev/null
""",
)
"""Arguments: `system` or `user`. One shot: properties of every service, blocks separated by an empty line."""

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
say journal "$(journalctl --no-pager -n 1 -o cat --quiet ${1:+--unit="$1"} 2>&1 >/dev/null | head -n 2 | tr '\\n' ' ')"
say journal_entries "$(journalctl --no-pager -n 1 -o cat --quiet ${1:+--unit="$1"} 2>/dev/null | head -c 1 | wc -c)"
say nvidia_smi "$(command -v "${2:-nvidia-smi}")"
smi=$("${2:-nvidia-smi}" --query-gpu=index,name,driver_version --format=csv,noheader 2>&1); say nvidia_smi_status "$?"
printf '%s\\n' "$smi" | while IFS= read -r l; do say gpu "$l"; done
say cgroup "$(stat -fc %T /sys/fs/cgroup 2>/dev/null)"
say sudo "$(command -v sudo)"
if command -v sudo >/dev/null; then
  sudo -n -l 2>&1 </dev/null | while IFS= read -r l; do say sudo_rule "$l"; done
fi
echo "@end"
""",
)
"""Arguments: unit or empty, nvidia-smi path or empty. One shot: what the doctor and `init` ask of a host."""

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
    LISTENER,
    CHECKPOINT,
    UNITS,
    FACTS,
    READ_FILE,
)
