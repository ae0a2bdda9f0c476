"""The simulated engine's command line: SGLang 0.5.23's arguments, plus those of a DDTree dialect.

Names and defaults (server_args.json) were read from `/server_info` of a real 0.5.23. The
speculative flags are resolved by SGLang's own coupling rules, with its texts and exit codes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

Value = str | int | float | bool | None | list[object] | dict[str, object]

VERSION = "0.5.23+simulated"
"""What the simulated engine calls itself."""

_DIALECT: dict[str, Value] = {"speculative_ddtree_budget": None}
ALIASES = {
    "model": "model_path",
    "tp": "tp_size",
    "tensor_parallel_size": "tp_size",
    "dp": "dp_size",
    "data_parallel_size": "dp_size",
    "ep": "ep_size",
    "speculative_draft_model": "speculative_draft_model_path",
    "cuda_graph_max_bs": "cuda_graph_max_bs_decode",
}
"""Other spellings of a flag, with underscores."""
_BLOCK_DRAFTERS = ("DFLASH", "DDTREE")
_ALGORITHMS = ("DFLASH", "DDTREE", "EAGLE", "EAGLE3", "NEXTN", "NGRAM", "STANDALONE", "DSPARK")
_DRAFT_BLOCK_SIZE = 8
"""What the simulated drafter was trained with."""


class ArgumentsRefused(Exception):
    """The engine does not start with these arguments: it prints `text` and exits with `status`."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.text = text
        self.status = status


@cache
def default_arguments() -> dict[str, Value]:
    """All server arguments by field name with their defaults."""
    source = resources.files("ddtui.demo").joinpath("server_args.json")
    known: dict[str, Value] = json.loads(source.read_text(encoding="utf-8"))
    return known | _DIALECT


@dataclass(frozen=True)
class EngineConfig:
    """A resolved command line."""

    arguments: dict[str, Value]
    """Every server argument, resolved."""
    command: tuple[str, ...]
    """The flags as given, without interpreter and module."""
    topk: int = 8
    """Candidates kept a depth (`SGLANG_DDTREE_MAX_TOPK`)."""

    def text(self, name: str, default: str = "") -> str:
        """An argument as text."""
        value = self.arguments.get(name)
        return default if value is None else str(value)

    def number(self, name: str, default: int = 0) -> int:
        """An argument as an integer."""
        value = self.arguments.get(name)
        return int(value) if isinstance(value, int | float | str) and value != "" else default

    @property
    def algorithm(self) -> str:
        """Speculative algorithm, or empty."""
        return self.text("speculative_algorithm")

    @property
    def block_size(self) -> int:
        """Tokens that the drafter proposes a pass, anchor included; 1 without speculation."""
        return self.number("speculative_num_draft_tokens", 1) if self.algorithm else 1

    @property
    def budget(self) -> int:
        """Nodes that one verification looks at, root excluded; 0 without speculation."""
        if self.algorithm == "DDTREE":
            return self.number("speculative_ddtree_budget", self.block_size - 1)
        return self.block_size - 1

    @property
    def window(self) -> int | None:
        """Sliding window of the draft cache in tokens."""
        return self.number("speculative_draft_window_size") or None

    @property
    def tp(self) -> int:
        """Tensor-parallel ranks."""
        return max(1, self.number("tp_size", 1))

    @property
    def port(self) -> int:
        """HTTP port."""
        return self.number("port", 30000)

    @property
    def bind_host(self) -> str:
        """HTTP address."""
        return self.text("host", "127.0.0.1")

    @property
    def model(self) -> str:
        """Name under which the model is served."""
        return self.text("served_model_name") or self.text("model_path")


def parse(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> EngineConfig:
    """Resolve a command line (flags only, or a whole `python -m sglang.launch_server ...`).

    Raises ArgumentsRefused for what the engine refuses.
    """
    flags = _without_program(list(argv))
    arguments = dict(default_arguments())
    unknown: list[str] = []
    position = 0
    while position < len(flags):
        position = _take(flags, position, arguments, unknown)
    if unknown:
        raise _usage(f"unrecognized arguments: {' '.join(unknown)}")
    if not arguments["model_path"]:
        raise _usage("the following arguments are required: --model-path/--model")
    arguments["tokenizer_path"] = arguments["tokenizer_path"] or arguments["model_path"]
    _resolve_speculation(arguments)
    topk = (environment or {}).get("SGLANG_DDTREE_MAX_TOPK", "8")
    return EngineConfig(arguments, tuple(flags), int(topk) if topk.isdigit() else 8)


def _without_program(argv: list[str]) -> list[str]:
    for index, word in enumerate(argv):
        if word.startswith("--"):
            return argv[index:]
    return []


def _take(flags: list[str], at: int, arguments: dict[str, Value], unknown: list[str]) -> int:
    """Read one flag; returns the index of the next one."""
    name, joined, value = flags[at].partition("=")
    end = at + 1
    while end < len(flags) and not flags[end].startswith("--"):
        end += 1
    values = [value] if joined else flags[at + 1 : end]
    field = name.removeprefix("--").replace("-", "_")
    field = ALIASES.get(field, field)
    negated = field.removeprefix("no_")
    if not name.startswith("--") or (field not in arguments and negated not in arguments):
        unknown.extend(flags[at:end])
        return end
    if field not in arguments:
        arguments[negated] = False
        return end
    default = default_arguments()[field]
    if isinstance(default, bool) or (default is None and not values):
        arguments[field] = True
        unknown.extend(values)
    elif not values:
        raise _usage(f"argument {name}: expected one argument")
    elif isinstance(default, list):
        arguments[field] = list(values)
    else:
        arguments[field] = _typed(name, values[0], default)
        unknown.extend(values[1:])
    return end


def _typed(name: str, text: str, default: Value) -> Value:
    wanted = type(default) if isinstance(default, int | float | str) else None
    if wanted is str:
        return text
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    if wanted in (int, float):
        raise _usage(f"argument {name}: invalid {default.__class__.__name__} value: '{text}'")
    return text


def _usage(message: str) -> ArgumentsRefused:
    usage = "usage: sglang serve [-h] --model-path MODEL_PATH\n"
    return ArgumentsRefused(f"{usage}sglang serve: error: {message}\n", 2)


def _value_error(message: str) -> ArgumentsRefused:
    path = "/opt/llm/venv/lib/python3.11/site-packages/sglang/srt"
    lines = (
        "Traceback (most recent call last):",
        f'  File "{path}/server_args.py", line 277, in resolve_once',
        "    run_resolution_pipeline(self)",
        f'  File "{path}/arg_groups/speculative_hook.py", line 242, in handle_speculative_decoding',
        f"ValueError: {message}",
    )
    return ArgumentsRefused("\n".join(lines) + "\n", 1)


def _resolve_speculation(arguments: dict[str, Value]) -> None:
    algorithm = arguments["speculative_algorithm"]
    if algorithm is None:
        return
    if algorithm not in _ALGORITHMS:
        raise _value_error(f"Unknown speculative algorithm name: {algorithm}")
    if algorithm not in _BLOCK_DRAFTERS:
        return
    if not arguments["speculative_draft_model_path"]:
        raise _value_error(
            f"{algorithm} speculative decoding requires setting --speculative-draft-model-path."
        )
    block = arguments["speculative_dflash_block_size"]
    width = arguments["speculative_num_draft_tokens"]
    if block and width and block != width:
        raise _value_error(
            "Both --speculative-num-draft-tokens and --speculative-dflash-block-size are set but "
            "they differ. For DFLASH they must match. "
            f"speculative_num_draft_tokens={width}, speculative_dflash_block_size={block}."
        )
    resolved = int(str(block or width or _DRAFT_BLOCK_SIZE))
    window = arguments["speculative_draft_window_size"]
    if window is not None and int(str(window)) < resolved:
        raise _value_error(
            "--speculative-draft-window-size must be >= speculative_num_draft_tokens. "
            f"speculative_draft_window_size={window}, speculative_num_draft_tokens={resolved}."
        )
    arguments["speculative_num_draft_tokens"] = resolved
    arguments["speculative_num_steps"] = arguments["speculative_eagle_topk"] = 1
    arguments["speculative_draft_model_revision"] = "main"
    budget = arguments["speculative_ddtree_budget"]
    if algorithm == "DDTREE":
        arguments["speculative_ddtree_budget"] = resolved - 1 if budget is None else budget
        if int(str(arguments["speculative_ddtree_budget"])) < 1:
            raise _value_error("--speculative-ddtree-budget must be >= 1.")
