"""The script that asks an installed server for its flags; see `ddtui.collect.programs`."""

from __future__ import annotations

from ddtui.collect.programs import PREAMBLE
from ddtui.hosts.base import Program

HELP_LIMIT = 60
"""Seconds that a server may take to print its help: it imports its libraries first."""

# Which files make up the server is told by its interpreter alone, without importing the server:
# 50 ms instead of some 10 s. A fork that is worked on keeps its version, so the newest change of
# the files that define arguments is part of what identifies it.
_IDENTIFY = """
import importlib.metadata, importlib.util, os
try:
    version = importlib.metadata.version("sglang")
except importlib.metadata.PackageNotFoundError:
    version = "-"
spec = importlib.util.find_spec("sglang")
folder = os.path.dirname(spec.origin) if spec and spec.origin else ""
newest = 0
for part in ("srt/server_args.py", "srt/arg_groups", "srt/arg_groups/fields"):
    path = os.path.join(folder, part)
    inside = sorted(os.listdir(path)) if os.path.isdir(path) else []
    for name in [path, *(os.path.join(path, each) for each in inside if each.endswith(".py"))]:
        if os.path.exists(name):
            newest = max(newest, int(os.path.getmtime(name)))
print("@server", version, newest, folder)
"""

SERVER_HELP = Program(
    "ddtui:server-help",
    PREAMBLE
    + f"""
mode=$1 cwd=$2; shift 2
[ -z "$cwd" ] || cd "$cwd" 2>/dev/null || :
export CUDA_VISIBLE_DEVICES= HF_HUB_OFFLINE=1 COLUMNS=200 PYTHONDONTWRITEBYTECODE=1
words=("$@")
[ $# -lt 2 ] || [ "${{words[-1]}}" != serve ] || unset 'words[-1]'
count=${{#words[@]}}
if [ "$count" -gt 2 ] && [ "${{words[count - 2]}}" = -m ]; then words=("${{words[@]:0:count-2}}")
else
  case ${{words[-1]}} in
    *.py) unset 'words[-1]' ;;
    *)
      script=$(command -v -- "${{words[-1]}}") ||
        {{ echo "no such program: ${{words[-1]}}" >&2; exit 127; }}
      line=; read -r line < "$script"
      case $line in '#!'*python*) read -r -a python <<<"${{line#'#!'}}" ;; *) python=() ;; esac
      unset 'words[-1]'; words+=("${{python[@]}}")
      [ ${{#python[@]}} -gt 0 ] || words=(false)
      ;;
  esac
fi
timeout -k 5 15 "${{words[@]}}" - 2>/dev/null <<'PYTHON' || echo "@server - 0 "
{_IDENTIFY.strip()}
PYTHON
[ "$mode" = help ] || exit 0
echo "@help"
timeout -k 5 {HELP_LIMIT} "$@" --help </dev/null 2>&1
""",
)
"""Arguments: `identity` or `help`, the unit's working folder or empty, and the words of the unit's
command up to the engine's own arguments. Prints `@server VERSION NEWEST FOLDER` (the version or
`-`, when its argument definitions last changed in Unix seconds, its folder) and, asked for help,
`@help` and what `--help` prints. Touches no GPU and no network, and writes nothing. Its exit status
is that of `--help`; 124 when that took longer than HELP_LIMIT seconds."""
