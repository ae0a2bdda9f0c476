"""The simulated engine's HTTP routes: SGLang 0.5.23's paths, shapes and readiness rules."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

from ddtui.demo.answer_shapes import finish_reason, meta_info, speculation, text_of, usage
from ddtui.demo.coding_answers import Script, script_for
from ddtui.demo.engine import EngineState, SimulatedEngine
from ddtui.demo.http import Answer, EventStream, Request, reason
from ddtui.demo.metrics import exposition, loads, server_info
from ddtui.demo.serving import Generation

_HEALTH_PATIENCE = 20.0
"""Seconds after which a health check of a hung engine gives up (SGLANG_HEALTH_CHECK_TIMEOUT)."""
_OPEN = ("/health", "/health_generate", "/ready", "/metrics")
"""Paths that need no API key."""

_REASONING = 0.3
"""Share of an answer that is reasoning, where the model reasons."""

_Route = Callable[["Routes", Request, EventStream], Awaitable[Answer | None]]


class Routes:
    """Answers requests to one engine."""

    def __init__(self, engine: SimulatedEngine) -> None:
        self._engine = engine
        self._created = int(engine.clock())

    async def __call__(self, request: Request, stream: EventStream) -> Answer | None:
        """Answer one request, and log it as uvicorn does."""
        answer: Answer | None
        route = _ROUTES.get(request.path)
        if route is None or (request.path == "/metrics" and not self._metered):
            answer = Answer.of({"detail": "Not Found"}, 404)
        elif request.method not in route[0]:
            answer = Answer.of({"detail": "Method Not Allowed"}, 405)
        elif not self._allowed(request):
            answer = Answer.of({"error": "Unauthorized"}, 401)
        else:
            try:
                answer = await route[1](self, request, stream)
            except ValueError as error:
                answer = _bad_request(str(error))
        status = answer.status if answer else 200
        call = f"{request.method} {request.path}"
        self._engine.log_access(call, status, reason(status), request.client)
        return answer

    @property
    def _metered(self) -> bool:
        return bool(self._engine.config.arguments["enable_metrics"])

    def _allowed(self, request: Request) -> bool:
        key = self._engine.config.text("api_key")
        if not key or request.path in _OPEN:
            return True
        return request.headers.get("authorization") == f"Bearer {key}"

    # ---- state ----------------------------------------------------------------------------------

    async def health(self, _request: Request, _stream: EventStream) -> Answer:
        """A one-token generation, as SGLang's own check is."""
        engine = self._engine
        if engine.state is not EngineState.READY:
            return Answer(503)
        if engine.hung:
            await asyncio.sleep(_HEALTH_PATIENCE)
            engine.warn(
                "Health check failed. Server couldn't get a response from detokenizer for last 20 "
                "seconds. tic start time: 00:00:00. last_heartbeat time: 00:00:00"
            )
            return Answer(503)
        if not engine.scheduler.running:
            engine.scheduler.submit(1, 1, streaming=False, watched=False)
        await asyncio.sleep(engine.health_seconds)
        return Answer(200)

    async def ready(self, _request: Request, _stream: EventStream) -> Answer:
        """Whether requests would be served now."""
        fine = self._engine.state is EngineState.READY and not self._engine.hung
        return Answer(200 if fine else 503)

    async def models(self, _request: Request, _stream: EventStream) -> Answer:
        """The served model."""
        engine = self._engine
        model = {
            "id": engine.config.model,
            "object": "model",
            "created": self._created,
            "owned_by": "sglang",
            "root": engine.config.model,
            "parent": None,
            "max_model_len": engine.plan.context_length,
        }
        return Answer.of({"object": "list", "data": [model]})

    async def model_info(self, request: Request, _stream: EventStream) -> Answer:
        """What the model is."""
        config = self._engine.config
        if request.path.startswith("/get_"):
            self._deprecated(request)
        return Answer.of(
            {
                "model_path": config.text("model_path"),
                "served_model_name": config.model,
                "tokenizer_path": config.text("tokenizer_path"),
                "is_generation": True,
                "preferred_sampling_params": None,
                "weight_version": "default",
                "load_format": config.text("load_format"),
                "reasoning_parser": config.arguments["reasoning_parser"],
                "tool_call_parser": config.arguments["tool_call_parser"],
                "disaggregation_mode": "null",
                "has_image_understanding": False,
                "has_audio_understanding": False,
                "model_type": "kimi_k25",
                "architectures": ["KimiK25ForConditionalGeneration"],
                "embedding": {"family": "none", "task": "none", "enabled": False},
            }
        )

    async def server_info(self, request: Request, _stream: EventStream) -> Answer:
        """The resolved configuration."""
        if request.path.startswith("/get_"):
            self._deprecated(request)
        return Answer.of(server_info(self._engine))

    def _deprecated(self, request: Request) -> None:
        newer = request.path.replace("/get_", "/")
        self._engine.warn(
            f"Endpoint '{request.path}' is deprecated and will be removed in a future version. "
            f"Please use '{newer}' instead."
        )

    async def loads(self, _request: Request, _stream: EventStream) -> Answer:
        """What is running."""
        return Answer.of(loads(self._engine))

    async def metrics(self, _request: Request, _stream: EventStream) -> Answer:
        """Prometheus figures."""
        text = exposition(self._engine)
        return Answer(200, text.encode(), "text/plain; version=1.0.0; charset=utf-8")

    # ---- control --------------------------------------------------------------------------------

    async def flush_cache(self, request: Request, _stream: EventStream) -> Answer:
        """Empty the prefix cache; refused while requests run."""
        with suppress(TimeoutError):
            async with asyncio.timeout(float(request.query.get("timeout", ["0"])[0])):
                await self._engine.scheduler.wait_idle()
        if self._engine.scheduler.flush():
            return Answer.text("Cache flushed.\n")
        return Answer.text("Cache not flushed: there are running or waiting requests.\n", 400)

    async def abort(self, request: Request, _stream: EventStream) -> Answer:
        """End one request or all."""
        asked = request.json()
        self._engine.scheduler.abort(None if asked.get("abort_all") else str(asked.get("rid", "-")))
        return Answer(200)

    # ---- generation -----------------------------------------------------------------------------

    async def generate(self, request: Request, stream: EventStream) -> Answer | None:
        """SGLang's own endpoint."""
        asked = request.json()
        text, ids = asked.get("text"), asked.get("input_ids")
        if text is None and ids is None:
            raise ValueError("Either text, input_ids or input_embeds should be provided.")
        parameters = asked.get("sampling_params")
        limit = parameters.get("max_new_tokens", 128) if isinstance(parameters, dict) else 128
        prompt = len(ids) if isinstance(ids, list) else _count(str(text))
        streaming = bool(asked.get("stream"))
        generation = self._submit(
            prompt,
            limit,
            streaming=streaming,
            script=script_for(str(text), self._engine.config),
            subject=_subject(ids if text is None else text, parameters),
        )
        last: dict[str, object] = {}
        async for done in self._progress(generation):
            _, words = text_of(generation)
            last = {
                "text": words,
                "output_ids": list(range(1000, 1000 + generation.tokens)),
                "meta_info": meta_info(generation, self._engine.config, done=done),
            }
            if streaming:
                await stream.send(last)
        if not streaming:
            return Answer.of(last)
        await stream.send("[DONE]")
        return None

    async def chat(self, request: Request, stream: EventStream) -> Answer | None:
        """OpenAI's chat endpoint."""
        asked = request.json()
        messages = asked.get("messages")
        if not isinstance(messages, list) or not messages:
            raise ValueError("messages: a list with at least one message is required")
        prompt = 12 + sum(_count(str(message)) for message in messages)
        limit = asked.get("max_completion_tokens") or asked.get("max_tokens") or 512
        streaming = bool(asked.get("stream"))
        thinks = _thinks(asked.get("chat_template_kwargs"))
        generation = self._submit(
            prompt,
            limit,
            streaming=streaming,
            script=self._script(messages, thinks=thinks),
            subject=_subject(messages, asked),
        )
        if thinks and self._reasons_apart:
            generation.thoughts = round(_REASONING * generation.max_tokens)
        if streaming:
            await self._chat_stream(generation, asked, stream)
            return None
        async for _ in self._progress(generation):
            pass
        reasoning, content = text_of(generation)
        choice = {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": content,
                "reasoning_content": reasoning or None,
                "tool_calls": None,
            },
            "logprobs": None,
            "finish_reason": finish_reason(generation),
            "matched_stop": None,
        }
        head = self._chat_head(generation, "chat.completion")
        return Answer.of({**head, "choices": [choice], "usage": usage(generation)})

    async def _chat_stream(
        self, generation: Generation, asked: dict[str, object], stream: EventStream
    ) -> None:
        head = self._chat_head(generation, "chat.completion.chunk")

        def chunk(delta: dict[str, object], finish: str | None = None) -> dict[str, object]:
            choice = {
                "index": 0,
                "delta": {"reasoning_content": None, **delta},
                "logprobs": None,
                "finish_reason": finish,
                "matched_stop": None,
            }
            return {**head, "choices": [choice]}

        options = asked.get("stream_options")
        options = options if isinstance(options, dict) else {}
        sent = 0
        async for _ in self._progress(generation):
            if sent == 0:
                await stream.send(chunk({"role": "assistant", "content": ""}))
            reasoning, text = text_of(generation, sent)
            sent = generation.tokens
            event = chunk({"reasoning_content": reasoning or None, "content": text})
            if options.get("continuous_usage_stats"):
                event["usage"] = usage(generation)
            await stream.send(event)
        await stream.send(chunk({}, finish_reason(generation)))
        if asked.get("return_spec_tokens_details"):
            details = speculation(generation, self._engine.config)
            await stream.send({**head, "choices": [], "sglext": {"spec_tokens_details": details}})
        if options.get("include_usage"):
            await stream.send({**head, "choices": [], "usage": usage(generation)})
        await stream.send("[DONE]")

    def _chat_head(self, generation: Generation, kind: str) -> dict[str, object]:
        return {
            "id": generation.rid,
            "object": kind,
            "created": int(generation.arrived),
            "model": self._engine.config.model,
        }

    @property
    def _reasons_apart(self) -> bool:
        return bool(self._engine.config.text("reasoning_parser"))

    def _script(self, messages: list[object], *, thinks: bool) -> Script | None:
        said = "\n".join(str(each.get("content")) for each in messages if isinstance(each, dict))
        return script_for(said, self._engine.config, thinking=thinks, apart=self._reasons_apart)

    def _submit(
        self, prompt: int, limit: object, *, streaming: bool, script: Script | None, subject: str
    ) -> Generation:
        if not isinstance(limit, int) or limit < 1:
            raise ValueError(f"max_new_tokens must be at least 1, got {limit}.")
        if prompt + limit > self._engine.plan.context_length:
            longest = self._engine.plan.context_length
            raise ValueError(
                "Requested token count exceeds the model's maximum context length of "
                f"{longest} tokens."
            )
        length = min(limit, len(script.tokens)) if script else limit
        generation = self._engine.scheduler.submit(
            prompt, length, streaming=streaming, subject=subject
        )
        generation.script = script
        return generation

    async def _progress(self, generation: Generation) -> AsyncIterator[bool]:
        """Whether it is done, at each step; a client that goes away aborts it."""
        try:
            while not generation.finished:
                await generation.progress.wait()
                generation.progress.clear()
                yield bool(generation.finished)
        finally:
            if not generation.finished:
                self._engine.scheduler.abort(generation.rid)


_ROUTES: dict[str, tuple[tuple[str, ...], _Route]] = {
    "/health": (("GET",), Routes.health),
    "/health_generate": (("GET",), Routes.health),
    "/ready": (("GET",), Routes.ready),
    "/v1/models": (("GET",), Routes.models),
    "/model_info": (("GET",), Routes.model_info),
    "/get_model_info": (("GET",), Routes.model_info),
    "/server_info": (("GET",), Routes.server_info),
    "/get_server_info": (("GET",), Routes.server_info),
    "/v1/loads": (("GET",), Routes.loads),
    "/metrics": (("GET",), Routes.metrics),
    "/flush_cache": (("GET", "POST"), Routes.flush_cache),
    "/abort_request": (("POST",), Routes.abort),
    "/generate": (("POST", "PUT"), Routes.generate),
    "/v1/chat/completions": (("POST",), Routes.chat),
}


def _bad_request(message: str) -> Answer:
    return Answer.of(
        {
            "object": "error",
            "message": message,
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
        400,
    )


def _thinks(options: object) -> bool:
    """Whether a request lets the model reason, which it does unless told not to."""
    return not (isinstance(options, dict) and options.get("thinking") is False)


def _subject(prompt: object, sampling: object) -> str:
    """What is asked, where the same question gets the same answer: without temperature."""
    given = sampling.get("temperature", 1.0) if isinstance(sampling, dict) else 1.0
    return str(prompt) if given == 0 else ""


def _count(text: str) -> int:
    """About how many tokens a text has."""
    return max(1, len(text) // 4)
