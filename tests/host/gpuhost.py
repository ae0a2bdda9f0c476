"""The test host as an object: a real systemd, journald and OpenSSH in namespaces (gpuhost.sh)."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path(__file__).with_name("gpuhost.sh")
SHIM = Path(__file__).with_name("shim") / "nvidia-smi"
CAPTURES = ROOT / "tests" / "fixtures" / "nvidia-smi"
_SHARE = "/usr/local/lib/gpuhost/nvidia-smi"
_CONTROL = "/etc/gpuhost/nvidia-smi"
# The models of the simulated engine, as sparse files.
_MODELS = """
for each in kimi:4 draft:1; do
  mkdir -p "/models/${each%:*}"; cd "/models/${each%:*}"; echo '{}' > config.json
  for n in $(seq "${each#*:}"); do truncate -s 1G "model-$n.safetensors"; done
done
"""
_SIMULATED = "/opt/simulated"
_HELD = "/run/gpuhost-held"
_LAUNCHER = f"""import os, sys, time
def until_let_go():
    while os.path.exists("{_HELD}"):
        time.sleep(0.05)
class Held:
    def __init__(self, stream, words):
        self.stream, self.words, self.flush = stream, words, stream.flush
    def write(self, text):
        self.stream.write(text)
        if self.words in text:
            self.flush()
            until_let_go()
if os.path.exists("{_HELD}") and "--help" not in sys.argv:
    if words := open("{_HELD}").read():
        sys.stderr = Held(sys.stderr, words)
    else:
        until_let_go()
from ddtui.demo.engine_process import main
if __name__ == "__main__":
    sys.exit(main())
"""
_NAMESPACES = ("-m", "-p", "-u", "-i", "-n", "-C", "-r", "-w")
_ENVIRONMENT = ("PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "TERM=dumb")
_REMOVE = """
systemctl kill -s KILL "$1"  # it need not end in good order
systemctl stop "$1"
for each in etc run usr/lib; do rm -rf "/$each/systemd/system/$1" "/$each/systemd/system/$1.d"; done
systemctl daemon-reload
systemctl reset-failed "$1"
exit 0
"""
_UNTIL_READY = """
says() {
  id=$(systemctl show --value -p InvocationID "$1")
  journalctl --all --output=cat --quiet "_SYSTEMD_INVOCATION_ID=$id" | grep -q "ready to roll"
}
until says "$1"; do sleep 0.1; done
"""
_FOLDER_PREFIX = "ddtui-host-"
PATIENCE = 60.0
"""Seconds for what comes by itself: many times what it takes, also on a busy machine. What is asked
for is whether it comes; how soon it came is measured, not asserted."""
AT_ONCE = 40.0
"""Seconds for what ends with its connection: without it, it would end only when its heartbeat has
been missed for 45 s."""
T = TypeVar("T")


class HostMissing(Exception):
    """This machine cannot run the test host; says what is missing."""


class GpuHost:
    """A running test host. Its methods block; a test that awaits calls them in a thread."""

    def __init__(self, name: str, folder: Path, *, binds: Sequence[Path] = ()) -> None:
        self.name = name
        self.folder = folder
        self._env = {
            **os.environ,
            "GPUHOST_DIR": str(folder),
            "GPUHOST_BIND": " ".join(f"{each}:{each}" for each in binds),
            "GPUHOST_QUIET": "1",
        }
        self._info: dict[str, str] = {}

    # ---- from start to end -------------------------------------------------------------------

    def missing(self) -> list[str]:
        """What this machine lacks for a test host; empty when nothing."""
        if sys.platform != "linux":
            return ["Linux"]
        return self._call("deps", check=False).stdout.split("\n")[:-1]

    def up(self) -> None:
        """Start it, with an nvidia-smi that answers from captures. Raises HostMissing."""
        if missing := self.missing():
            raise HostMissing(f"no test host on this machine, missing: {', '.join(missing)}")
        answer = self._call("up", self.name, timeout=150).stdout
        self._info = dict(line.split("=", 1) for line in answer.splitlines() if "=" in line)
        text = Path(self._info["ssh_config"]).read_text()
        others = [
            text.replace(f"Host {self.name}\n", f"Host {self.name}-{user}\n").replace(
                "User ops", f"User {user}"
            )
            for user in ("dev", "root")
        ]
        self.ssh_config.write_text(text + "".join(others))
        for file in sorted(CAPTURES.iterdir()):
            self.write(f"{_SHARE}/{file.name}", file.read_bytes())
        self.write(f"{_SHARE}/shim", SHIM.read_bytes(), mode=0o755)
        self.nvidia_smi()
        self.sh(_MODELS)
        self.write(f"{_SIMULATED}/sglang/__init__.py", "")
        self.write(f"{_SIMULATED}/sglang/launch_server.py", _LAUNCHER)

    def purge(self) -> None:
        """End it and remove every trace."""
        if self.folder.exists():
            self._call("purge", timeout=150)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _call(
        self, *args: str, stdin: bytes = b"", check: bool = True, timeout: float = PATIENCE
    ) -> subprocess.CompletedProcess[str]:
        return self._run([str(SCRIPT), *args], self._env, stdin, check, timeout)

    def _run(
        self, argv: list[str], env: dict[str, str], stdin: bytes, check: bool, timeout: float
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            argv,
            env=env or None,
            input=stdin,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
        stdout, stderr = (each.decode(errors="replace") for each in (done.stdout, done.stderr))
        if check and done.returncode:
            raise RuntimeError(f"{shlex.join(argv)}: status {done.returncode}: {stderr}{stdout}")
        return subprocess.CompletedProcess(done.args, done.returncode, stdout, stderr)

    # ---- reaching it ---------------------------------------------------------------------------

    @property
    def ssh_config(self) -> Path:
        """Leads the host's name to it as `ops`, and NAME-dev and NAME-root as these users."""
        return self.folder / "ssh_config"

    @property
    def address(self) -> str:
        """Its IP address."""
        return self._info["addr"]

    def exec(
        self, *argv: str, stdin: bytes = b"", check: bool = True, timeout: float = PATIENCE
    ) -> subprocess.CompletedProcess[str]:
        """Run a program in it as root, past SSH and the link: `gpuhost.sh exec` without a shell."""
        try:
            pid = (self.folder / self.name / "pid1").read_text().split()[0]
        except FileNotFoundError:
            raise RuntimeError(f"{self.name} is off") from None
        enter = ["nsenter", "-t", pid, *_NAMESPACES, "--", "env", "-i", *_ENVIRONMENT]
        return self._run([*enter, *argv], {}, stdin, check, timeout)

    def sh(self, script: str, *args: str, check: bool = True) -> str:
        """Run a bash script in it as root and return its output."""
        return self.exec("bash", "-c", script, "test", *args, check=check).stdout

    def write(self, path: str, content: bytes | str, mode: int = 0o644) -> None:
        """Write a file of it, its folders included."""
        data = content.encode() if isinstance(content, str) else content
        script = 'mkdir -p "${1%/*}"; cat > "$1.new"; chmod "$2" "$1.new"; mv "$1.new" "$1"'
        self.exec("bash", "-c", script, "write", path, f"{mode:o}", stdin=data)

    # ---- faults --------------------------------------------------------------------------------

    def link(self, *what: str) -> None:
        """Break the link: `cut`, `cut-in`, `cut-out`, `reset`, `lossy PCT`, `wire delay=MS ...`."""
        self._call("link", self.name, *what)

    def heal(self) -> None:
        """Mend the link."""
        self._call("link", self.name, "heal")

    def freeze(self) -> None:
        """Stop all its processes; TCP stays up."""
        self._call("freeze", self.name)

    def thaw(self) -> None:
        """Let them go on."""
        self._call("thaw", self.name)

    def crash(self) -> None:
        """Kill it as if its power had failed; the disk stays."""
        self._call("crash", self.name)

    def boot(self) -> None:
        """Boot it again."""
        self._call("boot", self.name, timeout=150)

    def reboot(self) -> None:
        """Reboot it in good order."""
        self._call("reboot", self.name, timeout=250)

    def kmsg(self, text: str) -> None:
        """A line of the kernel log."""
        self._call("kmsg", self.name, text)

    def nvidia_smi(self, *, present: bool = True, **control: str) -> None:
        """What its nvidia-smi says from now on: see the keys in shim/nvidia-smi."""
        self.write(_CONTROL, "".join(f"{key}={value}\n" for key, value in control.items()))
        if present:
            self.exec("ln", "-sf", f"{_SHARE}/shim", "/usr/local/bin/nvidia-smi")
        else:
            self.exec("rm", "-f", "/usr/local/bin/nvidia-smi")

    @contextlib.contextmanager
    def held(self, after: str = "") -> Iterator[None]:
        """Engines that start now stand still after a line with these words until the end of this.

        Without words they say nothing at all. Whatever must happen in the middle of a start then
        does, however slow this machine is.
        """
        self.write(_HELD, after)
        try:
            yield
        finally:
            self.exec("rm", "-f", _HELD)

    # ---- units ---------------------------------------------------------------------------------

    def install_unit(
        self,
        name: str,
        exec_start: str | Sequence[str],
        *,
        user: str = "",
        service: str = "",
        unit: str = "",
        folder: str = "/etc/systemd/system",
        start: bool = True,
    ) -> None:
        """Install a system service; `service` and `unit` are further lines of these sections."""
        line = exec_start if isinstance(exec_start, str) else exec_line(exec_start)
        self.write(f"{folder}/{name}", unit_file(line, user, service, unit))
        self.systemctl("daemon-reload")
        if start:
            self.systemctl("restart", name)

    @contextlib.contextmanager
    def unit(self, name: str, exec_start: str | Sequence[str], **options: Any) -> Iterator[GpuHost]:
        """`install_unit`, and its removal at the end."""
        try:
            self.install_unit(name, exec_start, **options)
            yield self
        finally:
            self.remove_unit(name)

    def remove_unit(self, name: str) -> None:
        """End a service and forget it."""
        self.exec("bash", "-c", _REMOVE, "remove", name)

    def systemctl(self, *args: str, check: bool = True) -> str:
        """`systemctl ARGS` as root."""
        return self.exec("systemctl", *args, check=check).stdout

    def show(self, unit: str, name: str) -> str:
        """One property of a unit."""
        return self.systemctl("show", "--value", "-p", name, unit).strip()

    def main_pid(self, unit: str) -> int:
        """The main process of a unit, 0 when there is none."""
        return int(self.show(unit, "MainPID"))

    def journal(self, unit: str, *options: str) -> list[str]:
        """The journal's messages of a unit's processes, oldest first, as the host's own tool says.

        Bytes that are no UTF-8 are replaced.
        """
        wanted = ("--all", "--output=cat", "--no-pager", "--quiet", f"_SYSTEMD_UNIT={unit}")
        return self.exec("journalctl", *wanted, *options).stdout.split("\n")[:-1]

    def until_ready(self, unit: str) -> None:
        """Wait until the simulated engine says that it serves: that of the present start."""
        self.exec("bash", "-c", _UNTIL_READY, "until-ready", unit)

    def programs(self, label: str = "ddtui:") -> list[str]:
        """Command lines of processes of it that carry a label of ddtui's programs."""
        listed = self.exec("ps", "-eo", "args", "--no-headers").stdout.splitlines()
        return [line for line in listed if label in line and "ps -eo" not in line]


def exec_line(argv: Sequence[str]) -> str:
    """Words quoted as systemd.service(5) reads them, so that they arrive as they are."""
    escapes = {"\\": "\\\\", '"': '\\"', "$": "$$", "%": "%%", "\n": "\\n"}
    return " ".join('"' + "".join(escapes.get(c, c) for c in word) + '"' for word in argv)


def unit_file(exec_start: str, user: str = "", service: str = "", unit: str = "") -> str:
    """A service as an operator would write it; its journal has no rate limit."""
    return (
        f"[Unit]\nDescription=test service\n{unit}\n"
        "[Service]\nType=simple\nLogRateLimitIntervalSec=1s\nLogRateLimitBurst=1000000\n"
        f"Environment=PYTHONPATH={_SIMULATED}\n"
        f"TimeoutStopSec=3\n{f'User={user}' if user else ''}\nExecStart={exec_start}\n{service}\n"
        "[Install]\nWantedBy=default.target\n"
    )


def wait_until(
    look: Callable[[], T], seconds: float = PATIENCE, what: str = "", pause: float = 0.05
) -> T:
    """Poll until `look` gives something true; raises TimeoutError.

    Whoever looks with much work, begins with a longer pause: it is taken from what is waited for.
    """
    end = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() > end:
            raise TimeoutError(what or f"not within {seconds:g} s")
        time.sleep(pause)
        pause = max(pause, min(0.4, 1.3 * pause))
    return found


def remove_left_over() -> None:
    """Remove hosts of earlier runs that were killed before they could clean up."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER_PREFIX}*"):
        pid = folder.name.removeprefix(_FOLDER_PREFIX).partition("-")[0]
        if not pid.isdecimal() or Path("/proc", pid).exists():
            continue
        GpuHost("left", folder).purge()


@contextlib.contextmanager
def running_host(binds: Sequence[Path]) -> Iterator[GpuHost]:
    """A host of its own for this process, from its start to its removal. Raises HostMissing."""
    if os.geteuid() == 0:
        remove_left_over()
    folder = Path(tempfile.mkdtemp(prefix=f"{_FOLDER_PREFIX}{os.getpid()}-"))
    host = GpuHost(f"gpu{os.getpid() % 1_000_000}", folder, binds=binds)
    # A terminated test run must clean up as well.
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        host.up()
        yield host
    finally:
        signal.signal(signal.SIGTERM, before)
        host.purge()


def project_binds() -> list[Path]:
    """What a unit needs to run this project's Python: source, environment, interpreter."""
    binds = [ROOT]
    for prefix in (Path(sys.prefix), Path(sys.base_prefix)):
        resolved = prefix.resolve()
        # What is below /usr is seen in the host already.
        if resolved != Path("/usr") and not any(resolved.is_relative_to(each) for each in binds):
            binds.append(resolved)
    return binds


ENGINE = "llm-sglang.service"
DFLASH = (
    *("--model-path", "/models/kimi", "--tp-size", "2", "--enable-metrics"),
    *("--speculative-algorithm", "DFLASH", "--speculative-draft-model-path", "/models/draft"),
    *("--speculative-dflash-block-size", "8"),
)


def engine_command(*flags: str, port: int = 30000, load_seconds: float = 0.5) -> list[str]:
    """The simulated engine (ddtui.demo.engine_process) by the name of the real one.

    `flags` are its own or SGLang's.
    """
    own = ["--port", str(port), "--load-seconds", str(load_seconds)]
    return [sys.executable, "-m", "sglang.launch_server", *own, *flags]
