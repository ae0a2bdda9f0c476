"""`--help` of the simulated engine, in the format of SGLang's (Python's argparse)."""

from __future__ import annotations

import argparse
from functools import cache

from ddtui.demo.config import ALIASES, default_arguments

_CHOICES = {
    "dtype": ("auto", "half", "float16", "bfloat16", "float", "float32"),
    "kv_cache_dtype": ("auto", "fp8_e5m2", "fp8_e4m3", "bf16", "bfloat16"),
    "attention_backend": ("triton", "flashinfer", "fa3", "fa4", "trtllm_mha", "torch_native"),
    "speculative_draft_attention_backend": ("flashinfer", "fa3", "fa4", "triton", "trtllm_mha"),
    "schedule_policy": ("lpm", "random", "fcfs", "dfs-weight", "lof", "priority"),
}
"""Of a real server's choices those that operators set."""


@cache
def help_text() -> str:
    """All flags of the simulated engine."""
    parser = argparse.ArgumentParser(prog="sglang serve", formatter_class=_Formatter)
    for field, default in default_arguments().items():
        if field.startswith("_"):
            continue
        names = [field, *(alias for alias, name in ALIASES.items() if name == field)]
        flags = ["--" + name.replace("_", "-") for name in names]
        if isinstance(default, bool):
            action = argparse.BooleanOptionalAction if default else "store_true"
            parser.add_argument(
                *flags, action=action, default=default, help=f"(default: {default})"
            )
        elif isinstance(default, list):
            parser.add_argument(*flags, nargs="*", default=default, help="a list")
        else:
            parser.add_argument(
                *flags,
                choices=_CHOICES.get(field),
                default=default,
                required=field == "model_path",
                help=f"(default: {default})".replace("%", "%%"),
            )
    return parser.format_help()


class _Formatter(argparse.HelpFormatter):
    """As wide on every terminal."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=100, max_help_position=24)
