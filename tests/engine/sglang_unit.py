"""The real SGLang as a service of the test host, and requests to it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.host.gpuhost import GpuHost, exec_line

UNIT = "llm-sglang.service"
PORT = 30000
SIMULATED_ACCEPTANCE = 4.2
# SGLang's own switches: the CPU build; no network; few threads, or a busy neighbour slows it
# fifty times; an acceptance length as chosen (the drafter has random weights).
ENVIRONMENT = {
    "SGLANG_USE_CPU_ENGINE": "1",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "SGLANG_CPU_OMP_THREADS_BIND": "0",
    "SGLANG_SIMULATE_ACC_LEN": str(SIMULATED_ACCEPTANCE),
}
_CLIENT = """
import json, sys, threading, urllib.request
port, count, tokens = map(int, sys.argv[1:])
answers = [None] * count
def ask(n):
    body = {"text": f"def f{n}(x):", "sampling_params":
            {"max_new_tokens": tokens, "ignore_eos": True, "temperature": 0}}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/generate", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    answers[n] = json.load(urllib.request.urlopen(request, timeout=300))["meta_info"]
threads = [threading.Thread(target=ask, args=(n,)) for n in range(count)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
json.dump(answers, sys.stdout)
"""


@dataclass
class RealEngine:
    """The host, and how the engine is started on it."""

    host: GpuHost
    venv: Path
    models: Path

    def command(self, *flags: str, port: int = PORT) -> list[str]:
        """The engine's command line: DFLASH on a CPU, and further flags."""
        native = "torch_native"
        return [
            *(str(self.venv / "bin" / "python"), "-m", "sglang.launch_server"),
            *("--model-path", str(self.models / "tiny-qwen3"), "--served-model-name", "tiny"),
            *("--device", "cpu", "--host", "127.0.0.1", "--port", str(port)),
            *("--load-format", "dummy", "--enable-metrics", "--max-total-tokens", "20000"),
            *("--max-running-requests", "8", "--decode-log-interval", "10"),
            *("--attention-backend", native, "--disable-overlap-schedule"),
            *("--speculative-algorithm", "DFLASH"),
            *("--speculative-draft-model-path", str(self.models / "tiny-dflash")),
            *("--speculative-draft-attention-backend", native),
            *flags,
        ]

    def install(self, *flags: str, start: bool = True) -> None:
        """Install the unit, run by the user that ddtui logs in as."""
        service = "".join(f"Environment={key}={value}\n" for key, value in ENVIRONMENT.items())
        service += "Environment=PYTHONPATH= PYTHONDONTWRITEBYTECODE=1\nTimeoutStopSec=20\n"
        self.host.install_unit(UNIT, self.command(*flags), user="ops", service=service, start=start)

    def drop_in(self, *flags: str) -> None:
        """Change the command line as an operator would, without a restart."""
        line = exec_line(self.command(*flags))
        self.host.write(
            f"/etc/systemd/system/{UNIT}.d/50-experiment.conf",
            f"[Service]\nExecStart=\nExecStart={line}\n",
        )
        self.host.systemctl("daemon-reload")

    def remove(self) -> None:
        """Stop the unit and forget it."""
        self.host.remove_unit(UNIT)

    def generate(self, count: int, tokens: int) -> list[dict[str, Any]]:
        """So many requests at once, each for so many tokens; what the engine says of each."""
        answer = self.host.exec(
            *("/usr/bin/python3", "-c", _CLIENT, str(PORT), str(count), str(tokens)), timeout=320
        )
        return list(json.loads(answer.stdout))

    def server_info(self) -> dict[str, Any]:
        """The engine's own report, asked past ddtui."""
        ask = (
            "import sys, urllib.request as u;"
            "sys.stdout.write(u.urlopen(sys.argv[1], timeout=20).read().decode())"
        )
        url = f"http://127.0.0.1:{PORT}/server_info"
        return dict(json.loads(self.host.exec("/usr/bin/python3", "-c", ask, url).stdout))
