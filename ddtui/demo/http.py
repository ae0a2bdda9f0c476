"""HTTP/1.1 for the simulated engine, over a real socket's streams or an SSH channel's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Protocol
from urllib.parse import parse_qs, urlsplit

_MAX_BODY = 32 << 20
_MAX_HEAD = 64


class Reader(Protocol):
    """What asyncio's and asyncssh's readers have in common."""

    async def readline(self) -> bytes:
        """One line, or what is left at the end."""
        ...

    async def readexactly(self, n: int) -> bytes:
        """Exactly `n` bytes."""
        ...


class Writer(Protocol):
    """What asyncio's and asyncssh's writers have in common."""

    def write(self, data: bytes) -> None:
        """Queue bytes."""
        ...

    async def drain(self) -> None:
        """Wait until there is room."""
        ...

    def close(self) -> None:
        """End the connection."""
        ...


@dataclass
class Request:
    """One request."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes = b""
    client: str = "127.0.0.1:0"

    def json(self) -> dict[str, object]:
        """The body as a JSON object. Raises ValueError."""
        value = json.loads(self.body or b"{}")
        if not isinstance(value, dict):
            raise ValueError("the body is not a JSON object")
        return value


@dataclass
class Answer:
    """A whole answer."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def of(value: object, status: int = 200) -> Answer:
        """A JSON answer."""
        return Answer(status, json.dumps(value, separators=(",", ":")).encode())

    @staticmethod
    def text(text: str, status: int = 200) -> Answer:
        """A plain text answer."""
        return Answer(status, text.encode(), "text/plain; charset=utf-8")


class EventStream:
    """An answer of server-sent events, chunk by chunk."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self.started = False

    async def send(self, value: object) -> None:
        """One event: a JSON value, or `[DONE]`."""
        if not self.started:
            self.started = True
            head = (
                "HTTP/1.1 200 OK\r\nserver: uvicorn\r\n"
                "content-type: text/event-stream; charset=utf-8\r\n"
                "transfer-encoding: chunked\r\n\r\n"
            )
            self._writer.write(head.encode())
        text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
        data = f"data: {text}\n\n".encode()
        self._writer.write(b"%x\r\n%s\r\n" % (len(data), data))
        await self._writer.drain()

    async def end(self) -> None:
        """Finish the answer."""
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()


class Application(Protocol):
    """Answers requests; None when it has answered through the event stream."""

    async def __call__(self, request: Request, stream: EventStream) -> Answer | None:
        """Answer one request."""
        ...


async def serve_connection(
    reader: Reader, writer: Writer, application: Application, client: str
) -> None:
    """Answer the requests of one connection until it ends."""
    try:
        while True:
            request = await _read_request(reader, client)
            if request is None:
                return
            stream = EventStream(writer)
            answer = await application(request, stream)
            if answer is not None:
                _write(writer, answer, head_only=request.method == "HEAD")
                await writer.drain()
            else:
                await stream.end()
            if request.headers.get("connection", "").lower() == "close":
                return
    except (ConnectionError, EOFError):
        return  # the client is gone: nobody is left to tell
    except ValueError as error:
        _write(writer, Answer.of({"error": {"message": str(error)}}, 400))
    finally:
        writer.close()


async def _read_request(reader: Reader, client: str) -> Request | None:
    line = await reader.readline()
    if not line:
        return None
    words = line.decode("latin-1").split()
    if len(words) != 3:
        raise ValueError("bad request line")
    headers: dict[str, str] = {}
    for _ in range(_MAX_HEAD):
        line = await reader.readline()
        if line in (b"\r\n", b"\n", b""):
            break
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    length = int(headers.get("content-length", "0"))
    if not 0 <= length <= _MAX_BODY:
        raise ValueError("bad content length")
    body = await reader.readexactly(length) if length else b""
    target = urlsplit(words[1])
    return Request(words[0], target.path, parse_qs(target.query), headers, body, client)


def reason(status: int) -> str:
    """The status in words."""
    return HTTPStatus(status).phrase


def _write(writer: Writer, answer: Answer, *, head_only: bool = False) -> None:
    lines = [f"HTTP/1.1 {answer.status} {reason(answer.status)}", "server: uvicorn"]
    lines.append(f"content-length: {len(answer.body)}")
    lines.append(f"content-type: {answer.content_type}")
    lines += [f"{name}: {value}" for name, value in answer.headers.items()]
    writer.write("\r\n".join([*lines, "", ""]).encode() + (b"" if head_only else answer.body))
