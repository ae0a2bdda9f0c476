from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddtui.core.events import Configured, PhaseBegan, PhaseEnded
from ddtui.core.journal_text import split_message
from ddtui.core.samples import JournalLine
from ddtui.engines.sglang import SGLANG
from tests.unit.engines.captures import FOLDER

LINES = [
    line
    for file in sorted(FOLDER.glob("*.log"))
    for line in file.read_text(encoding="utf-8").split("\n")
    if len(line) < 1000 and any(char.isdigit() for char in line)
]
STAMP = "[2026-10-01 10:00:02 TP0] "
NUMBERS = st.one_of(
    st.sampled_from(["9" * 5000, "9" * 400 + ".5", "1e999", "nan", "-1", "٣", "", "0x1f", "1.2.3"]),
    st.text("0123456789.", min_size=1, max_size=60),
)
PHRASES = st.sampled_from(
    [
        *("KV Cache is allocated. #tokens: ", "Memory pool end. avail mem=", "Load weight end. "),
        *("elapsed=", "mem usage=", "K size: ", " GB, ", " s. ", "type=", "V size: ", "Capture "),
        *(
            "CUDA graph begin. ",
            "num_tokens_per_req=",
            "Init parallel ends. ",
            "server_args={'a': ",
        ),
        *("max_total_num_tokens=", "context_len=", "Initialized DFLASH draft runner. block_size="),
        *("Engine startup timings (s): load_weight=", "Decode batch, #running-req: ", ", #token: "),
        *("token usage: ", "100%|###| ", "/", " [", ":", "<", ", 1it/s]", "Loading safetensors "),
        *("'", '"', "\\", "(", "[", "{", "}", "N{x}", "u12", " line 1: Killed"),
    ]
)


def read(*texts: str) -> list[object]:
    reader = SGLANG.log_reader()
    return [
        event
        for text in texts
        for part, bar in split_message(text)
        for event in reader.read(JournalLine(stamp=1.0, text=part, bar=bar))
    ]


@pytest.mark.parametrize(
    "line",
    [
        STAMP + "KV Cache is allocated. #tokens: " + "9" * 5000,
        STAMP + "KV Cache is allocated. #tokens: 5, K size: " + "9" * 400 + " GB",
        STAMP + "Load weight end. elapsed=" + "9" * 400 + " s, avail mem=" + "9" * 400 + " GB",
        STAMP + "Capture CUDA graph begin. num_tokens_per_req=" + "9" * 5000,
        STAMP + "Engine startup timings (s): load_weight=" + "9" * 400,
        "Loading safetensors using x: 100%|#| " + "9" * 400 + "/9 [00:01<00:00, 1it/s]",
        "Loading safetensors checkpoint shards: 100% Completed | 1/1 [" + "9" * 5000 + ", 1it/s]",
        "Loading safetensors checkpoint shards: 100% Completed | 1/1 [" + "9:" * 500 + "9, 1it/s]",
    ],
)
def test_figures_with_any_number_of_digits_are_left_out(line: str) -> None:
    for event in read(line):
        assert "99999" not in repr(event)
        match event:
            case PhaseEnded():
                assert (event.seconds, event.memory_available) == (None, None)
            case PhaseBegan():
                assert event.detail in ("", "target", "target, 5 tokens")
            case Configured():
                assert not event.values


def test_usual_figures_are_read() -> None:
    began, ended = read(
        STAMP + "Load weight begin. avail mem=93.50 GB",
        STAMP + "Load weight end. elapsed=1.2000000000000002 s, mem usage=1.5 GB. avail mem=2 GB",
    )
    assert isinstance(began, PhaseBegan)
    assert isinstance(ended, PhaseEnded)
    assert (ended.seconds, ended.memory_used) == (1.2000000000000002, 1.5 * 2**30)
    assert ended.memory_available == 2**31


@settings(max_examples=300)
@given(st.lists(st.tuples(st.booleans(), st.lists(st.one_of(PHRASES, NUMBERS), max_size=10))))
def test_no_text_makes_the_reader_fail(lines: list[tuple[bool, list[str]]]) -> None:
    read(*((STAMP if stamped else "") + "".join(parts) for stamped, parts in lines))


@given(st.sampled_from(LINES), st.data())
def test_no_number_in_a_real_line_makes_the_reader_fail(line: str, data: st.DataObject) -> None:
    places = [at for at, char in enumerate(line) if char.isdigit()]
    at = data.draw(st.sampled_from(places))
    read(line[:at] + data.draw(NUMBERS) + line[at + 1 :])


@pytest.mark.parametrize(("rank", "limit"), [("TP0", 16), ("DP1 TP1 EP1", 256)])
def test_the_part_of_a_rank_does_not_stand_for_the_limit_of_all(rank: str, limit: int) -> None:
    told = read(
        "[2026-10-01 10:00:01] server_args={'dp_size': 16, 'max_running_requests': 256}",
        f"[2026-10-01 10:00:02 {rank}] max_total_num_tokens=9, max_running_requests=16, "
        "context_len=4",
    )
    config: dict[str, object] = {}
    for event in told:
        if isinstance(event, Configured):
            config.update(event.values)
    assert (config["max_running_requests"], config["context_len"]) == (limit, 4)
