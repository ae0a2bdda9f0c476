"""SGLang's JSON endpoints: `/server_info`, `/v1/loads`, `/model_info`, `/v1/models`.

Older servers give `/server_info` under `/get_server_info`.
`/server_info` holds the API keys in clear: nothing leaves this module before they are masked.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import cast

import msgspec

from ddtui.core.redact import redact_argv, redact_mapping
from ddtui.core.reported_command import masked_words, without_rest
from ddtui.core.samples import EngineCounters, ServerInfoSample
from ddtui.engines.sglang.arguments import Scalar, is_scalar
from ddtui.engines.sglang.possible import possible


class NotUnderstood(ValueError):
    """An endpoint's answer is not what SGLang sends; the text says what is wrong with it."""


def parse_server_info(
    body: bytes | str, at: float, source: str = "/server_info"
) -> tuple[ServerInfoSample, EngineCounters]:
    """Return the server's own report and the figures in it.

    The report's acceptance length is the average since start or flush, and is marked so. Raises
    NotUnderstood.
    """
    info = redact_mapping(_object(body))
    states = _states(info)
    arguments = {name: value for name, value in info.items() if is_scalar(value)}
    if "model_path" not in arguments and states:
        # Old servers gave the arguments within the state of each replica only.
        arguments |= {name: value for name, value in states[0].items() if is_scalar(value)}
    text = " ".join(masked_words(_text(info.get("launch_command"))))
    if text:
        arguments["launch_command"] = text
    sample = ServerInfoSample(
        at=at,
        source=source,
        arguments=arguments,
        launch_command=_command(info.get("launch_command")),
        launch_text=text,
        version=_text(info.get("version")),
        status=_text(info.get("status")),
        model=_text(arguments.get("served_model_name") or arguments.get("model_path")),
    )
    return sample, _state_counters(states or [info], arguments)


def parse_loads(body: bytes | str) -> EngineCounters:
    """Return the figures of `/v1/loads`, over all replicas. Raises NotUnderstood."""
    loads = _object(body).get("loads")
    if not isinstance(loads, list) or not loads:
        raise NotUnderstood("/v1/loads gave no loads")
    replicas = [load for load in loads if isinstance(load, dict)]
    running = _sum(replicas, "num_running_reqs")
    throughput = _sum(replicas, "gen_throughput")
    accepted = [
        length
        for load in replicas
        if isinstance(spec := load.get("speculative"), dict)
        and (length := _number(spec.get("accept_length")))
    ]
    counters = EngineCounters(
        # Always 0 on servers without --enable-metrics, whatever they do.
        generation_throughput=None if throughput == 0 and running else throughput,
        acceptance_length=sum(accepted) / len(accepted) if accepted else None,
        acceptance_is_lifetime=bool(accepted),
        running=running,
        queued=_sum(replicas, "num_waiting_reqs"),
        kv_usage=max(_figures(replicas, "token_usage"), default=None),
        max_total_tokens=_sum(replicas, "max_total_num_tokens"),
        cache_hit_rate=_mean(_figures(replicas, "cache_hit_rate")),
    )
    return possible(counters)


def parse_models(body: bytes | str) -> str:
    """Return the first model's name of `/v1/models`, or an empty string. Raises NotUnderstood."""
    data = _object(body).get("data")
    if not isinstance(data, list):
        raise NotUnderstood("/v1/models gave no list of models")
    first = data[0] if data and isinstance(data[0], dict) else {}
    return _text(first.get("id"))


def _object(body: bytes | str) -> dict[str, object]:
    try:
        decoded: object = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise NotUnderstood(f"the answer is no JSON: {error}") from error
    if not isinstance(decoded, dict):
        raise NotUnderstood("the answer is no JSON object")
    return decoded


def _states(info: dict[str, object]) -> list[dict[str, object]]:
    """The state of each data-parallel replica: a list, or one object on older servers."""
    states = info.get("internal_states")
    if isinstance(states, dict):
        return [states]
    if isinstance(states, list):
        return [cast("dict[str, object]", state) for state in states if isinstance(state, dict)]
    return []


def _state_counters(
    states: list[dict[str, object]], arguments: dict[str, Scalar]
) -> EngineCounters:
    accepted = [length for length in _figures(states, "avg_spec_accept_length") if length > 0]
    drafts = _number(arguments.get("speculative_num_draft_tokens"))
    capacity = _number(arguments.get("max_total_num_tokens"))
    counters = EngineCounters(
        generation_throughput=_sum(states, "last_gen_throughput"),
        acceptance_length=_mean(accepted),
        acceptance_is_lifetime=bool(accepted),
        draft_tokens=drafts,
        max_total_tokens=capacity * len(states) if capacity is not None else None,
    )
    return possible(counters)


def _command(value: object) -> tuple[str, ...]:
    """The arguments as given: one string on 0.5.23, without the program before them.

    It is joined without quotes there: `launch_text` is what can be compared.
    """
    if isinstance(value, str):
        try:
            words = shlex.split(value)
        except ValueError:
            words = value.split()
    elif isinstance(value, list):
        words = [str(word) for word in value]
    else:
        return ()
    return without_rest(redact_argv(words))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> float | None:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    try:
        return float(value)
    except OverflowError:  # JSON knows integers of any length
        return None


def _figures(items: Iterable[dict[str, object]], name: str) -> list[float]:
    return [value for item in items if (value := _number(item.get(name))) is not None]


def _sum(items: Iterable[dict[str, object]], name: str) -> float | None:
    figures = _figures(items, name)
    return sum(figures) if figures and min(figures) >= 0 else None  # None is negative


def _mean(figures: list[float]) -> float | None:
    return sum(figures) / len(figures) if figures else None
