"""What kernels say: those of the GPU of their assertions, that of the host of the GPU."""

from __future__ import annotations

import pytest

from ddtui.core.cause_of_failure import UNRECOGNIZED
from ddtui.core.kernel_words import KernelLine
from tests.support.diagnosed_log import HEADER, SIGQUIT, Log, cause_id, unit

DECODE = (
    "Decode batch, #running-req: 1, #token: 640, token usage: 0.00, accept len: 3.20, "
    "cuda graph: True, gen throughput (token/s): 190.00, #queue-req: 0"
)
KERNELS_ASSERTION = "Assertion failed: /x/kernels/internode.cu:483, condition: pairs >= channels"
LOST = "NVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus."
OUT_OF_MEMORY = "Out of memory: Killed process 77 (sglang::schedul) total-vm:1kB"
XID = "NVRM: Xid (PCI:0000:db:00): 13, pid=7, Graphics SM Warp Exception: CTA Not Present"


def test_an_assertion_of_a_kernel_is_the_root_of_what_cuda_says_of_it() -> None:
    log = Log().up().bare(*[KERNELS_ASSERTION] * 20)
    cause = log.crash("RuntimeError: CUDA error: unspecified launch failure").diagnosed().cause
    assert cause is not None
    assert cause.id == "kernel-assertion-failed"
    assert cause.title.endswith("condition: pairs >= channels")
    assert cause.evidence[0] == KERNELS_ASSERTION
    raised = "RuntimeError: Failed: Assertion error csrc/deep_ep.cpp:104 'ranks == 8'"
    assert cause_id(Log().starting().crash(raised).diagnosed()) == "kernel-assertion-failed"


def test_what_the_kernel_says_of_a_gpu_is_shown_with_the_exception_that_it_belongs_to() -> None:
    error = "torch.AcceleratorError: CUDA error: unspecified launch failure"
    log = Log().up()
    xid = KernelLine(1000 + log.second, XID)
    cause = log.crash(error).diagnosed(kernel=(xid,)).cause
    assert cause is not None
    assert (cause.id, cause.evidence) == ("illegal-memory-access", (error, XID))
    odd = Log().up().crash("OddError: three").diagnosed(kernel=(xid,)).cause
    assert odd is not None
    assert odd.evidence == ("OddError: three", XID)
    log = Log().up().say(DECODE, "TP0", after=90)
    long_ago = log.crash(error).diagnosed(kernel=(xid,)).cause
    assert long_ago is not None
    assert long_ago.evidence == (error,)


@pytest.mark.parametrize(
    ("before_the_end", "id_"),
    [(5.0, "gpu-fell-off-the-bus"), (500.0, "gpu-fell-off-the-bus"), (1000.0, UNRECOGNIZED)],
)
def test_what_the_kernel_said_long_before_an_engine_that_served_died_is_of_something_else(
    before_the_end: float, id_: str
) -> None:
    log = Log().up().say(DECODE, "TP0", after=1200).crash("OddError: three")
    lost = KernelLine(1000 + log.second - before_the_end, LOST)
    assert cause_id(log.diagnosed(kernel=(lost,))) == id_


@pytest.mark.parametrize(
    ("second", "id_"),
    [(0.0, UNRECOGNIZED), (6.0, "gpu-fell-off-the-bus"), (300.0, UNRECOGNIZED)],
)
def test_what_the_kernel_said_before_a_start_or_after_its_end_is_of_something_else(
    second: float, id_: str
) -> None:
    log = Log().starting().crash("OddError: three")
    assert cause_id(log.diagnosed(kernel=(KernelLine(1000 + second, LOST),))) == id_


def test_an_idle_engine_may_be_ended_hours_after_it_said_anything() -> None:
    log = Log().up()
    killed = KernelLine(1000 + log.second + 7200, OUT_OF_MEMORY)
    found = log.diagnosed(unit("signal"), (killed,))
    assert cause_id(found) == "host-out-of-memory"
    log.second += 7201
    log.systemd("llm.service: Main process exited, code=killed, status=9/KILL")
    assert cause_id(log.diagnosed(kernel=(killed,))) == "host-out-of-memory"


def test_ranks_that_waited_in_vain_are_not_told_as_a_fault_of_the_graphs() -> None:
    waited = "[/x/gloo/transport/tcp/buffer.cc:133] Timed out waiting 1800000ms for send operation"
    log = Log().starting().say(f"Scheduler hit an exception: {HEADER}", "TP0")
    log.bare('  File "/x"', f"RuntimeError: {waited} to complete", "")
    log.bare("During handling of the above exception, another exception occurred:", "", HEADER)
    log.bare('  File "/x"', f"Exception: Capture cuda graph failed: {waited} to complete", "")
    assert cause_id(log.say(SIGQUIT).diagnosed()) == "collective-timeout"
