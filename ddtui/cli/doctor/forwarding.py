"""Whether the engine can be reached over the link, and whether it takes our key."""

from __future__ import annotations

import httpx

from ddtui.cli.doctor.check import Check, fail, ok, skip, warn
from ddtui.core.engine import Engine
from ddtui.hosts.base import Host

TIMEOUT = 8.0
METRICS_REMEDIES = {"sglang": "add --enable-metrics to the engine's command line"}

_LOG = "the engine's log says what it is busy with; `port` in the host's section names another one"


async def reach_engine(
    host: Host, engine: Engine, address: str, port: int, api_key: str | None
) -> list[Check]:
    """Ask the engine what costs it nothing: which models it serves, and its metrics."""
    url = f"http://{_bracketed(address)}:{port}"
    where = f"{_bracketed(address)}:{port} on the host"
    headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
    async with httpx.AsyncClient(
        transport=host.transport(), timeout=TIMEOUT, base_url=url, headers=headers
    ) as client:
        try:
            answer = await client.get("/v1/models")
            metrics = await client.get("/metrics")
        except httpx.ConnectError as error:
            return _not_connected(str(error), where)
        except httpx.TimeoutException:
            return [
                ok("forwarding", "connections through the link are allowed"),
                warn("engine http", f"{where} took the connection and did not answer", _LOG),
            ]
        except httpx.HTTPError as error:
            return [fail("engine http", f"{where}: {type(error).__name__}: {error}", _LOG)]
    return [
        ok("forwarding", "connections through the link are allowed"),
        *_answered(answer.status_code, where, with_key=api_key is not None),
        _metrics(metrics, engine),
    ]


def _metrics(answer: httpx.Response, engine: Engine) -> Check:
    """Counters give the best live figures; the log and lesser endpoints must do without them."""
    name = "metrics"
    if answer.status_code == 200 and engine.parse_metrics(answer.text) is not None:
        return ok(name, "the engine has /metrics")
    if answer.status_code in {401, 403}:
        return skip(name, "not to be seen without a key")
    return warn(
        name,
        f"the engine has no /metrics of its own (status {answer.status_code}): throughput comes"
        " from its log or lesser endpoints",
        METRICS_REMEDIES[engine.name],
    )


def _not_connected(said: str, where: str) -> list[Check]:
    lowered = said.lower()
    if "forbid" in lowered or "prohibited" in lowered:
        return [
            fail(
                "forwarding",
                said,
                "set AllowTcpForwarding yes (or local) in the host's sshd_config, at least for"
                " this user (Match User)",
            ),
            skip("engine http", "not reachable without forwarding"),
        ]
    return [
        ok("forwarding", "connections through the link are allowed"),
        warn(
            "engine http",
            f"nothing answers at {where}{_why(said)}",
            "see the unit above: once the engine is up it answers there",
        ),
    ]


def _why(said: str) -> str:
    """What the link said; the local transport's own words say nothing."""
    return "" if not said or said == "All connection attempts failed" else f": {said}"


def _answered(status: int, where: str, *, with_key: bool) -> list[Check]:
    if status in {401, 403}:
        if with_key:
            return [
                ok("engine http", f"answers at {where}"),
                fail("api key", "the engine refuses the key", "check what gives it (api_key_...)"),
            ]
        return [
            ok("engine http", f"answers at {where}"),
            fail(
                "api key",
                "the engine asks for one and none is configured",
                "set api_key_env or api_key_command in the host's section",
            ),
        ]
    if status >= 400:
        return [warn("engine http", f"{where} answers with status {status}", _LOG)]
    key = "the engine takes it" if with_key else "none is needed"
    return [ok("engine http", f"answers at {where}"), ok("api key", key)]


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address
