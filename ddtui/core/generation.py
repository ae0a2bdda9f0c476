"""Asking an engine to generate text: what is asked, and what an event of its answer says.

Pure data. The formats themselves are the engines' (`ddtui.engines.sglang.generation`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec


class Prompt(msgspec.Struct, frozen=True):
    """What a request begins with: messages of a chat, as (role, text)."""

    messages: tuple[tuple[str, str], ...]
    name: str = ""
    """How a set calls it; empty where it has no name."""

    @classmethod
    def of(cls, text: str, name: str = "") -> Prompt:
        """One message of a user."""
        return cls((("user", text),), name)

    @property
    def text(self) -> str:
        """The messages' texts alone, for an endpoint without a chat template."""
        return "\n\n".join(text for _, text in self.messages)


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """How a request is to be answered."""

    model: str = ""
    output_tokens: int
    """At most."""
    temperature: float = 0.0
    thinking: bool | None = None
    """Ask a reasoning model to think or not; None leaves it to its template."""
    seed: int | None = None
    speculation: bool = True
    """Ask for the request's own counts of drafts."""


class Speculation(msgspec.Struct, frozen=True):
    """A request's own counts of drafts."""

    verifications: int
    accepted: int | None = None
    """Drafts accepted; None where the server does not say."""
    histogram: tuple[int, ...] = ()
    """Verifications by the number of drafts that they accepted; empty where it is not told."""


class Event(msgspec.Struct, frozen=True):
    """What one event of a streamed answer says."""

    content: str = ""
    """Visible text that it adds; with `cumulative_text`, all visible text so far."""
    reasoning: str = ""
    """Text of the reasoning that it adds."""
    other: bool = False
    """Whether it brings tokens of another channel, such as a call of a tool."""
    summary: bool = False
    """Whether it only counts what other events have brought."""
    cumulative_text: bool = False
    tokens: int | None = None
    """Tokens generated so far, reasoning included; None where the event does not say."""
    reasoning_tokens: int | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    finish: str = ""
    """Why the answer ends: `stop`, `length`, `abort`, ...; empty while it goes on."""
    speculation: Speculation | None = None
    server_ttft: float | None = None
    """Seconds to the first token by the engine's own clock."""
    error: str = ""
    """What the engine says went wrong."""


class GenerationFormat(Protocol):
    """One endpoint that generates: its path, its requests and its events."""

    path: str

    def body(self, prompt: Prompt, wanted: Wanted) -> Mapping[str, Any]:
        """The request's JSON; the answer is streamed."""
        ...

    def event(self, data: bytes) -> Event | None:
        """What the data of one event says; None for the mark of the end.

        Raises ValueError for what is none of this endpoint's.
        """
        ...

    def error(self, body: bytes) -> str:
        """The message in the body of an answer that refuses, or an empty string."""
        ...
