"""SGLang's endpoints that generate text: their requests and the events of their streams.

Formats: `/generate` with its cumulative `meta_info` (managers/tokenizer_manager.py) and
`/v1/chat/completions` (entrypoints/openai), versions 0.4.6 to 0.5.23; the names of the draft counts
changed between them, and the old ones are read too.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ddtui.core.generation import Event, Prompt, Speculation, Wanted

_Count = int | None


class _Counts(msgspec.Struct, frozen=True):
    """A request's own counts of drafts, by their names of all versions."""

    spec_verify_ct: _Count = None
    spec_num_correct_drafts: _Count = None  # since 0.5.12
    spec_accepted_drafts: _Count = None  # 0.5.11 to 0.5.20
    spec_accept_token_num: _Count = None  # 0.5.5 to 0.5.10
    spec_correct_drafts_histogram: tuple[int, ...] | None = None
    spec_accept_histogram: tuple[int, ...] | None = None  # 0.5.9 to 0.5.20


class _Finish(msgspec.Struct, frozen=True):
    type: str = ""
    message: str | None = None


class _Meta(_Counts, frozen=True):
    finish_reason: _Finish | str | None = None
    completion_tokens: _Count = None
    reasoning_tokens: _Count = None
    prompt_tokens: _Count = None
    cached_tokens: _Count = None
    first_token_latency: float | None = None


class _Error(msgspec.Struct, frozen=True):
    message: str = ""
    code: int | str | None = None


class _Generated(msgspec.Struct, frozen=True):
    """An event of `/generate`."""

    text: str = ""
    meta_info: _Meta = _Meta()
    error: _Error | str | None = None


class _Delta(msgspec.Struct, frozen=True):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[msgspec.Raw] | None = None


class _Choice(msgspec.Struct, frozen=True):
    delta: _Delta = _Delta()
    finish_reason: str | None = None


class _PromptDetails(msgspec.Struct, frozen=True):
    cached_tokens: _Count = None


class _OutputDetails(msgspec.Struct, frozen=True):
    reasoning_tokens: _Count = None


class _Usage(msgspec.Struct, frozen=True):
    completion_tokens: _Count = None
    prompt_tokens: _Count = None
    reasoning_tokens: _Count = None
    prompt_tokens_details: _PromptDetails | None = None
    completion_tokens_details: _OutputDetails | None = None


class _Extension(msgspec.Struct, frozen=True):
    spec_tokens_details: _Counts | None = None


class _Chunk(msgspec.Struct, frozen=True):
    """An event of `/v1/chat/completions`."""

    choices: tuple[_Choice, ...] | None = None
    usage: _Usage | None = None
    sglext: _Extension | None = None
    error: _Error | str | None = None
    object: str = ""
    message: str = ""


class _Refusal(msgspec.Struct, frozen=True):
    error: _Error | str | None = None
    message: str | None = None
    detail: str | None = None


_generated = msgspec.json.Decoder(_Generated)
_chunk = msgspec.json.Decoder(_Chunk)
_END = b"[DONE]"


class GenerateFormat:
    """`/generate`: plain text in, cumulative text and counts out."""

    path = "/generate"

    def body(self, prompt: Prompt, wanted: Wanted) -> dict[str, Any]:
        """See GenerationFormat. The prompt's text is sent as it is, without a chat template."""
        sampling: dict[str, Any] = {
            "max_new_tokens": wanted.output_tokens,
            "temperature": wanted.temperature,
        }
        if wanted.seed is not None and wanted.temperature > 0:
            sampling["sampling_seed"] = wanted.seed
        return {"text": prompt.text, "sampling_params": sampling, "stream": True}

    def event(self, data: bytes) -> Event | None:
        """See GenerationFormat."""
        if data == _END:
            return None
        said = _decoded(_generated, data)
        meta = said.meta_info
        finish = meta.finish_reason
        kind = finish.type if isinstance(finish, _Finish) else finish or ""
        error = _message(said.error)
        if not error and kind == "abort" and isinstance(finish, _Finish):
            error = finish.message or ""
        return Event(
            content=said.text,
            cumulative_text=True,
            tokens=meta.completion_tokens,
            reasoning_tokens=meta.reasoning_tokens,
            prompt_tokens=meta.prompt_tokens,
            cached_tokens=meta.cached_tokens,
            finish=kind,
            speculation=_speculation(meta) if kind else None,
            server_ttft=meta.first_token_latency,
            error=error,
        )

    def error(self, body: bytes) -> str:
        """See GenerationFormat."""
        return _refusal(body)


class ChatFormat:
    """`/v1/chat/completions`: messages in, differences out, counts with `usage`."""

    path = "/v1/chat/completions"

    def body(self, prompt: Prompt, wanted: Wanted) -> dict[str, Any]:
        """See GenerationFormat. Counts are asked for with every event, drafts with the last one.

        Reasoning models differ in the name of the switch of their chat template: Kimi and DeepSeek
        call it `thinking`, Qwen and GLM `enable_thinking`; templates pass over what they do not
        know.
        """
        body: dict[str, Any] = {
            "model": wanted.model or "default",
            "messages": [{"role": role, "content": text} for role, text in prompt.messages],
            "max_tokens": wanted.output_tokens,
            "temperature": wanted.temperature,
            "stream": True,
            "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        }
        if wanted.seed is not None and wanted.temperature > 0:
            body["seed"] = wanted.seed
        if wanted.thinking is not None:
            body["chat_template_kwargs"] = {
                "thinking": wanted.thinking,
                "enable_thinking": wanted.thinking,
            }
        if wanted.speculation:
            body["return_spec_tokens_details"] = True
        return body

    def event(self, data: bytes) -> Event | None:
        """See GenerationFormat."""
        if data == _END:
            return None
        said = _decoded(_chunk, data)
        choice = said.choices[0] if said.choices else _Choice()
        delta, usage = choice.delta, said.usage
        details = said.sglext.spec_tokens_details if said.sglext else None
        error = _message(said.error) or (said.message if said.object == "error" else "")
        return Event(
            content=delta.content or "",
            reasoning=delta.reasoning_content or delta.reasoning or "",
            other=bool(delta.tool_calls),
            summary=not said.choices,
            tokens=usage.completion_tokens if usage else None,
            reasoning_tokens=_reasoning_tokens(usage),
            prompt_tokens=usage.prompt_tokens if usage else None,
            cached_tokens=_cached_tokens(usage),
            finish=choice.finish_reason or "",
            speculation=_speculation(details) if details else None,
            error=error,
        )

    def error(self, body: bytes) -> str:
        """See GenerationFormat."""
        return _refusal(body)


FORMATS: dict[Literal["chat", "generate"], GenerateFormat | ChatFormat] = {
    "chat": ChatFormat(),
    "generate": GenerateFormat(),
}
"""By the endpoint's name in a bench plan."""


def _decoded(decoder: msgspec.json.Decoder[Any], data: bytes) -> Any:
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as exc:
        raise ValueError(f"an event of the stream is not understood: {exc}") from exc


def _message(error: _Error | str | None) -> str:
    if isinstance(error, _Error):
        return error.message or "the engine reports an error without a message"
    return error or ""


def _refusal(body: bytes) -> str:
    try:
        said = msgspec.json.decode(body, type=_Refusal)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return ""
    return _message(said.error) or said.message or said.detail or ""


def _speculation(counts: _Counts) -> Speculation | None:
    verifications = counts.spec_verify_ct
    if not verifications or verifications < 0:
        return None
    accepted = (
        counts.spec_num_correct_drafts,
        counts.spec_accepted_drafts,
        counts.spec_accept_token_num,
    )
    return Speculation(
        verifications,
        next((count for count in accepted if count is not None and count >= 0), None),
        counts.spec_correct_drafts_histogram or counts.spec_accept_histogram or (),
    )


def _reasoning_tokens(usage: _Usage | None) -> int | None:
    if usage is None:
        return None
    if usage.completion_tokens_details is not None:
        inner = usage.completion_tokens_details.reasoning_tokens
        return usage.reasoning_tokens if inner is None else inner
    return usage.reasoning_tokens


def _cached_tokens(usage: _Usage | None) -> int | None:
    details = usage.prompt_tokens_details if usage else None
    return details.cached_tokens if details else None
