"""One request to the engine: what is cut, followed, and told apart."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import httpx
import pytest

from ddtui.collect import engine_client
from ddtui.collect.engine_client import BODY_LIMIT, EngineClient, NoAnswer, TooLong
from ddtui.collect.observed import Observed
from ddtui.collect.settings import HostSettings
from ddtui.core.samples import LinkSample, LinkState
from ddtui.hosts.base import LinkDown
from tests.unit.collect.fakes import FakeHost, unit

Handler = Callable[[httpx.Request], httpx.Response]


def client_of(host: FakeHost, observed: Observed, handler: Handler) -> EngineClient:
    host.http = httpx.MockTransport(handler)
    return EngineClient(host, HostSettings(), observed)


async def test_an_endless_answer_is_cut(host: FakeHost, observed: Observed) -> None:
    client = client_of(
        host, observed, lambda _: httpx.Response(200, content=b"x" * (BODY_LIMIT + 1))
    )
    with pytest.raises(NoAnswer, match="more than 2 MiB"):
        await client.get("/metrics")
    await client.close()


async def test_what_is_too_long_is_asked_less_and_less(
    host: FakeHost, observed: Observed, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(engine_client, "time", SimpleNamespace(monotonic=lambda: now))
    asked: list[float] = []
    body = b"x" * (BODY_LIMIT + 1)

    def handler(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/metrics":
            asked.append(now)
            return httpx.Response(200, content=body)
        return httpx.Response(200)

    client = client_of(host, observed, handler)
    for _ in range(300):
        with pytest.raises(TooLong):
            await client.get("/metrics")
        assert (await client.get("/health")).status == 200
        now += 1
    assert [at - 1000 for at in asked] == [0, 2, 6, 14, 30, 62, 122, 182, 242]
    body = b""
    now += 60
    for _ in range(3):
        assert (await client.get("/metrics")).status == 200
    await client.close()


async def test_redirects_are_not_followed(host: FakeHost, observed: Observed) -> None:
    client = client_of(
        host, observed, lambda _: httpx.Response(302, headers={"location": "http://evil/"})
    )
    assert (await client.get("/metrics")).status == 302
    await client.close()


async def test_a_broken_link_is_no_closed_port(host: FakeHost, observed: Observed) -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("the SSH link is down", request=request)

    client = client_of(host, observed, handler)
    with pytest.raises(NoAnswer) as caught:
        await client.get("/health")
    assert caught.value.closed
    host.link = LinkSample(0.0, "link", LinkState.RETRYING)
    with pytest.raises(LinkDown):
        await client.get("/health")
    await client.close()


async def test_forwarding_that_is_forbidden_is_no_closed_port(
    host: FakeHost, observed: Observed
) -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("the host's sshd forbids forwarding", request=request)

    client = client_of(host, observed, handler)
    with pytest.raises(NoAnswer) as caught:
        await client.get("/health")
    assert not caught.value.closed
    await client.close()


@pytest.mark.parametrize(
    ("arguments", "url"),
    [
        ((), "http://127.0.0.1:30000/x"),
        (("--host", "0.0.0.0", "--port", "8000"), "http://127.0.0.1:8000/x"),
        (("--host", "::"), "http://[::1]:30000/x"),
        (("--host", "10.0.0.5"), "http://10.0.0.5:30000/x"),
    ],
)
async def test_addresses(
    host: FakeHost, observed: Observed, arguments: tuple[str, ...], url: str
) -> None:
    observed.apply(unit("9", *arguments))
    client = EngineClient(host, HostSettings(), observed)
    assert client.url("/x") == url
    await client.close()
