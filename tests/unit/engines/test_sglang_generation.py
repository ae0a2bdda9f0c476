from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from ddtui.core.generation import Prompt, Speculation, Wanted
from ddtui.core.measurement import Cell
from ddtui.engines.sglang import SGLANG
from ddtui.engines.sglang.generation import ChatFormat, GenerateFormat

CAPTURES = Path(__file__).parents[2] / "fixtures" / "sglang"


def test_native_event_of_a_real_server() -> None:
    event = GenerateFormat().event((CAPTURES / "sglang-dflash.generate.json").read_bytes())
    assert event
    assert (event.tokens, event.finish, event.prompt_tokens) == (32, "length", 5)
    assert event.speculation == Speculation(8, 25, (0, 0, 0, 7, 1))
    assert event.server_ttft == pytest.approx(0.0119, abs=1e-4)
    assert event.cumulative_text


def test_chat_stream_of_a_real_server() -> None:
    form = ChatFormat()
    lines = (CAPTURES / "sglang-fresh-dflash.chat0.txt").read_bytes().split(b"\n\n")
    events = [form.event(line.removeprefix(b"data: ")) for line in lines if line.strip()]
    assert events[-1] is None
    role, first, second, finish, usage = events[:5]
    assert role
    assert not role.content
    assert first
    assert first.content == " del"
    assert second
    assert len(second.content) > 10
    assert finish
    assert finish.finish == "length"
    assert usage
    assert usage.summary
    assert (usage.tokens, usage.prompt_tokens, usage.reasoning_tokens) == (96, 57, 0)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ({"spec_verify_ct": 8}, Speculation(8)),
        (
            {"spec_verify_ct": 8, "spec_accept_token_num": 25, "spec_accept_histogram": [1, 7]},
            Speculation(8, 25, (1, 7)),
        ),
        ({"spec_verify_ct": 8, "spec_accepted_drafts": 25}, Speculation(8, 25)),
        (
            {
                "spec_verify_ct": 8,
                "spec_num_correct_drafts": 25,
                "spec_correct_drafts_histogram": [1, 7],
            },
            Speculation(8, 25, (1, 7)),
        ),
        ({"spec_verify_ct": 0}, None),
    ],
)
def test_draft_counts_of_all_versions(
    names: dict[str, object], expected: Speculation | None
) -> None:
    meta = {"completion_tokens": 33, "finish_reason": {"type": "stop"}, **names}
    event = GenerateFormat().event(json.dumps({"text": "", "meta_info": meta}).encode())
    assert event
    assert event.speculation == expected
    chunk = {"choices": [], "sglext": {"spec_tokens_details": names}}
    event = ChatFormat().event(json.dumps(chunk).encode())
    assert event
    assert event.speculation == expected


def test_reasoning_in_the_delta_and_in_usage() -> None:
    chunk = {
        "choices": [{"delta": {"reasoning_content": "hm", "content": None}}],
        "usage": {"completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 4}},
    }
    event = ChatFormat().event(json.dumps(chunk).encode())
    assert event
    assert (event.reasoning, event.content, event.tokens, event.reasoning_tokens) == (
        "hm", "", 5, 4,
    )  # fmt: skip


@pytest.mark.parametrize(
    "data",
    [
        b'{"error":{"message":"out of memory","code":500}}',
        b'{"error":"out of memory"}',
        b'{"object":"error","message":"out of memory"}',
    ],
)
def test_errors_in_the_stream(data: bytes) -> None:
    event = ChatFormat().event(data)
    assert event
    assert event.error == "out of memory"


@pytest.mark.parametrize("data", [b"", b"<html>", b"[]", b'{"choices": 3}', b"\xff", b"[" * 5000])
def test_what_is_no_event_is_refused(data: bytes) -> None:
    for form in (ChatFormat(), GenerateFormat()):
        if data != b'{"choices": 3}' or isinstance(form, ChatFormat):
            with pytest.raises(ValueError, match="not understood"):
                form.event(data)


def test_bodies() -> None:
    prompt = Prompt((("system", "Be brief."), ("user", "Hello")))
    wanted = Wanted(output_tokens=7, temperature=0.6, seed=3, model="m", thinking=True)
    chat = ChatFormat().body(prompt, wanted)
    assert chat["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
    ]
    assert chat["return_spec_tokens_details"] is True
    assert chat["seed"] == 3
    native = GenerateFormat().body(prompt, wanted)
    assert native == {
        "text": "Be brief.\n\nHello",
        "sampling_params": {"max_new_tokens": 7, "temperature": 0.6, "sampling_seed": 3},
        "stream": True,
    }


def test_refusals() -> None:
    form = ChatFormat()
    assert form.error(b'{"error":"Unauthorized"}') == "Unauthorized"
    assert form.error(b'{"object":"error","message":"too long","code":400}') == "too long"
    assert form.error(b"<html>nope") == ""


def test_serving_benchmark_of_a_real_server() -> None:
    line = (CAPTURES / "sglang-bench_serving.jsonl").read_bytes().split(b"\n")[0]
    cell = SGLANG.parse_benchmark(line)
    assert (cell.concurrency, cell.requests, cell.output_tokens) == (8, 32, 1329)
    assert cell.total_rate
    assert cell.total_rate.median == pytest.approx(1568.71, abs=0.01)
    assert cell.tpot
    assert cell.tpot.median == pytest.approx(0.0049, abs=1e-4)
    assert cell.ttft
    assert cell.ttft.median == pytest.approx(0.02804, abs=1e-5)
    assert cell.acceptance_length
    assert any("last flush" in note for note in cell.notes)


@pytest.mark.parametrize("line", [b"{}", b"{", b'{"output_throughput": 3, "completed": 0}', b"[1]"])
def test_what_is_no_result_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"sglang|JSON"):
        SGLANG.parse_benchmark(line)


@pytest.mark.parametrize("name", ["mean_tpot_ms", "max_concurrency", "duration"])
def test_a_number_without_end_is_no_figure(name: str) -> None:
    line = f'{{"output_throughput": 3.5, "completed": 2, "{name}": 1{"0" * 400}}}'
    cell = SGLANG.parse_benchmark(line.encode())
    assert (cell.concurrency, cell.tpot, cell.seconds) == (1, None, 0.0)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mean_tpot_ms", "1e-306"),
        ("median_ttft_ms", "-7"),
        ("p99_itl_ms", '"\\u001b[2J soon"'),
        ("output_throughput", "1e300"),
        ("accept_length", "0.2"),
        ("max_concurrency", "1e14"),
        ("duration", "Infinity"),
    ],
)
def test_figure_that_cannot_be_is_left_out_and_told(name: str, said: str) -> None:
    said_of_all = '"output_throughput": 3.5, "completed": 2, "mean_tpot_ms": 5'
    cell = SGLANG.parse_benchmark(f'{{{said_of_all}, "{name}": {said}}}'.encode())
    (note,) = (each for each in cell.notes if "no figure" in each)
    assert note.startswith(f"{name} of ")
    assert note.isprintable()
    assert msgspec.json.decode(msgspec.json.encode(cell), type=Cell) == cell


def test_errors_are_counted_and_the_most_frequent_ones_kept_safe() -> None:
    hostile = "\x1b]0;owned\x07\x1b[2J Authorization: Bearer sk-abcdef0123456789 \ud800"
    errors = [hostile] * 3 + ["again"] * 2 + [f"error {number}" for number in range(20_000)]
    result = {"output_throughput": 3.5, "completed": 2, "errors": errors}
    cell = SGLANG.parse_benchmark(json.dumps(result).encode())
    assert cell.failed == 20_005
    assert len(cell.errors) == 20
    (worst, count), (second, _), *_ = cell.errors.items()
    assert (count, second) == (3, "again")
    assert worst.isprintable()
    assert "sk-abcdef" not in worst
    assert msgspec.json.decode(msgspec.json.encode(cell), type=Cell) == cell


def test_result_with_nan_and_infinity_gives_what_is_left() -> None:
    line = b'{"output_throughput": 3.5, "completed": 2, "mean_tpot_ms": NaN, "concurrency": 1.2}'
    cell = SGLANG.parse_benchmark(line)
    assert isinstance(cell, Cell)
    assert cell.tpot is None
    assert cell.concurrency == 1
