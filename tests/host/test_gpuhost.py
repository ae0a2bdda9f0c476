"""The test host itself: what the other tests stand on."""

from __future__ import annotations

from tests.host.gpuhost import GpuHost, wait_until

SAY = 'echo "50% of \'\\"$$\\"\'"; exec sleep 60'


def test_it_is_a_booted_system_of_its_own(gpuhost: GpuHost) -> None:
    state = wait_until(
        lambda: gpuhost.systemctl("is-system-running", check=False).strip() == "running"
    )
    assert state
    assert gpuhost.exec("hostname").stdout.strip() == gpuhost.name
    assert gpuhost.exec("ps", "-o", "comm=", "-p", "1").stdout.strip() == "systemd"


def test_an_installed_unit_runs_and_its_lines_are_in_the_journal(gpuhost: GpuHost) -> None:
    gpuhost.install_unit("llm-echo.service", ["/bin/sh", "-c", SAY])
    try:
        pid = gpuhost.main_pid("llm-echo.service")
        assert wait_until(lambda: gpuhost.journal("llm-echo.service")) == [f"50% of '\"{pid}\"'"]
    finally:
        gpuhost.remove_unit("llm-echo.service")
    assert gpuhost.show("llm-echo.service", "LoadState") == "not-found"


def test_nvidia_smi_answers_as_it_is_told(gpuhost: GpuHost) -> None:
    query = ("nvidia-smi", "--query-gpu=index,memory.used,fan.speed", "--format=csv,noheader")
    gpuhost.nvidia_smi(state="loaded")
    assert gpuhost.exec(*query).stdout == "0, 41843 MiB, [N/A]\n1, 41843 MiB, [N/A]\n"
    gpuhost.nvidia_smi(refuse="fan.speed")
    refused = gpuhost.exec(*query, check=False)
    assert refused.returncode == 2
    assert refused.stdout == 'Field "fan.speed" is not a valid field to query.\n\n'
    gpuhost.nvidia_smi(driver="failed")
    assert gpuhost.exec(*query, check=False).returncode == 9
    gpuhost.nvidia_smi(present=False)
    assert gpuhost.exec("bash", "-c", "command -v nvidia-smi", check=False).returncode == 1
    gpuhost.nvidia_smi()
    assert gpuhost.exec("nvidia-smi", "-L").stdout.startswith("GPU 0: NVIDIA H200 (UUID: GPU-")
