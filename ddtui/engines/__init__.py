"""Engine adapters: all that is one inference server's own. Pure functions over text, no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ddtui.core.engine import Engine, LogDialect
from ddtui.engines.sglang import SGLANG
from ddtui.engines.vllm import VLLM

ENGINES: dict[str, Engine] = {SGLANG.name: SGLANG}
"""Every engine by the name that hosts are configured with."""


_SGLANG_SIGNS = re.compile(
    r"^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?(?: [A-Z_]+\d+)*\] "
    r"|[/. \"]sglang[/.: ]|sglang::|\bsgl_kernel\b|launch_server\.py: error: "
)
_VLLM_SIGNS = re.compile(
    r"^(?:\([A-Za-z][\w.-]* pid=\d+\) )?(?:DEBUG|INFO|WARNING|ERROR) \d\d-\d\d \d\d:\d\d:\d\d \["
    r"|^\((?:EngineCore|APIServer|Worker)\w* pid=\d+\)|[/ ]vllm/|\bvLLM API server\b"
)


def dialect_of_log(lines: Iterable[str]) -> LogDialect | None:
    """Return whose log this is, by the first line that only one engine writes; None for none."""
    for line in lines:
        head = line[:400]
        if _VLLM_SIGNS.search(head) is not None:
            return VLLM
        if _SGLANG_SIGNS.search(head) is not None:
            return SGLANG
    return None
