"""Saved logs in every form in which people keep them."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddtui.collect.journal_export import entries
from ddtui.collect.saved_log import LONGEST_LINE, NotALog, SavedLog
from ddtui.core.samples import JournalLine
from ddtui.ui.log_files import write_new
from ddtui.ui.log_filter import LogLine

CAPTURE = Path(__file__).resolve().parents[2] / "fixtures" / "sglang" / "sglang-dflash.log"
NOW = 1_795_990_000.0
"""2026-11-29 19:26:40 UTC."""


def read(data: bytes | str, unit: str = "") -> tuple[list[JournalLine], SavedLog]:
    raw = data.encode() if isinstance(data, str) else data
    log = SavedLog(io.BytesIO(raw), now=NOW, unit=unit)
    return list(log.lines()), log


def texts(data: bytes | str) -> list[str]:
    return [line.text for line in read(data)[0]]


MESSAGE = "[2026-11-29 17:20:47 TP0] Load weight begin. avail mem=90.00 GB"


@pytest.mark.parametrize(
    "prefix",
    [
        "Nov 29 17:20:47 ct200 python[2950]: ",
        "Nov 29 17:20:47.123456 ct200 python[2950]: ",
        "2026-11-29T17:20:47+0000 ct200 python[2950]: ",
        "2026-11-29T17:20:47+00:00 ct200 python[2950]: ",
        "2026-11-29T18:20:47.123456+01:00 ct200 python[2950]: ",
        "Sun 2026-11-29 17:20:47 UTC ct200 python[2950]: ",
        "Sun 2026-11-29 17:20:47 UTC ct200 llm.service[2950]: ",
        "Sun 2026-11-29 17:20:47 UTC ct200 user@1000.service/llm.service[2950]: ",
        "2026-11-29T17:20:47+00:00 [REDACTED_HOST] docker[2950]: ",
    ],
)
def test_the_prefix_of_journalctls_text_is_taken_off(prefix: str) -> None:
    (line,), _ = read(prefix + MESSAGE + "\n")
    bare, _ = read(MESSAGE)
    assert (line.text, line.pid, line.from_manager) == (MESSAGE, 2950, False)
    assert line.stamp == bare[0].stamp


def test_prefixes_with_other_clocks() -> None:
    (unix,), _ = read("1795972847.5 ct200 python[1]: hello")
    (boot,), _ = read("[   12.345678] ct200 python[1]: hello")
    for first_or_next in ("                ", " <    0.000123 >", " <    0.000123*>"):
        (delta,), _ = read(f"[   12.345678{first_or_next}] ct200 python[1]: hello")
        assert (delta.stamp, delta.text) == (boot.stamp, boot.text)
    assert (unix.stamp, unix.text) == (1795972847.5, "hello")
    assert (boot.stamp, boot.text) == (12.345678, "hello")


def test_a_date_without_a_year_lies_in_the_past() -> None:
    (before,), _ = read("Nov 29 17:20:47 ct200 python[1]: x")
    (last_year,), _ = read("Dec 24 17:20:47 ct200 python[1]: x")
    assert NOW - 86400 < before.stamp < NOW
    assert last_year.stamp < before.stamp


def test_systemds_and_the_kernels_lines() -> None:
    lines, log = read(
        "Nov 29 17:20:47 ct200 systemd[1]: llm.service: Failed with result 'oom-kill'.\n"
        "Nov 29 17:20:47 ct200 systemd[1]: Started session-5.scope - Session 5 of User ops.\n"
        "Nov 29 17:20:47 ct200 kernel: Out of memory: Killed process 7 (python)\n"
        "Nov 29 17:20:47 ct200 init.scope[1]: llm.service: Start request repeated too quickly.\n"
        "-- Boot 5e0c1d --\n"
    )
    assert [(line.text, line.from_manager) for line in lines] == [
        ("llm.service: Failed with result 'oom-kill'.", True),
        ("llm.service: Start request repeated too quickly.", True),
    ]
    assert [line.text for line in log.kernel()] == ["Out of memory: Killed process 7 (python)"]


def test_a_pasted_log_with_colours_and_dos_line_ends() -> None:
    data = f"\x1b[32m{MESSAGE}\x1b[0m\r\n\r\nValueError: x\r\n"
    assert texts(data) == [MESSAGE, "ValueError: x"]


def test_a_bar_is_taken_apart() -> None:
    bar = "Multi-thread loading shards:  33% Completed | 2/6 [00:00<00:01, 2.50it/s]"
    lines, _ = read(f"{bar}\r{bar}{MESSAGE}\n")
    assert [(line.bar, line.text) for line in lines] == [(True, bar), (True, bar), (False, MESSAGE)]


def test_container_and_vllm_stamps() -> None:
    lines, _ = read(
        f"2026-11-29T17:20:48.123456789Z {MESSAGE}\n"
        "(EngineCore pid=2) INFO 11-29 17:20:49 [core.py:1] hello\n"
        "ValueError: no stamp\n"
    )
    assert lines[0].text == MESSAGE
    assert lines[1].text.startswith("(EngineCore")
    assert lines[1].stamp == lines[0].stamp + 1
    assert lines[2].stamp == lines[1].stamp


def entry(**fields: object) -> str:
    known = {
        "__CURSOR": f"c{len(json.dumps(fields))}{fields.get('MESSAGE')}",
        "__REALTIME_TIMESTAMP": "1795972847000000",
        "_SYSTEMD_UNIT": "llm.service",
        "_SYSTEMD_INVOCATION_ID": "a" * 32,
        "_PID": "2950",
    }
    return json.dumps(known | fields)


def test_json_entries() -> None:
    lines, log = read(
        "\n".join(
            [
                entry(MESSAGE=list(b"\x1b[1mhello\x1b[0m")),
                entry(MESSAGE="key", _SYSTEMD_UNIT="sshd.service"),
                entry(
                    MESSAGE="llm.service: Failed", UNIT="llm.service", _SYSTEMD_UNIT="init.scope"
                ),
                entry(MESSAGE="Xid 79", _TRANSPORT="kernel"),
                '{"cut in the mid',
            ]
        ),
        unit="llm.service",
    )
    assert [(line.text, line.from_manager) for line in lines] == [
        ("hello", False),
        ("llm.service: Failed", True),
    ]
    assert lines[0].invocation == "a" * 32
    assert [line.text for line in log.kernel()] == ["Xid 79"]


def test_the_unit_is_settled_by_the_line_read_last() -> None:
    data = "\n".join([entry(MESSAGE="mine"), entry(MESSAGE="other", _SYSTEMD_UNIT="sshd.service")])
    log = SavedLog(io.BytesIO(data.encode()), now=NOW)
    lines = log.lines()
    assert next(lines).text == "mine"
    log.settle_unit()
    assert list(lines) == []


def test_compressed_text_is_read() -> None:
    assert texts(gzip.compress(MESSAGE.encode())) == [MESSAGE]
    with pytest.raises(NotALog, match="it is empty"):
        texts(gzip.compress(b""))


def test_compressed_text_is_read_as_far_as_it_goes() -> None:
    whole = CAPTURE.read_bytes()
    packed = gzip.compress(whole)
    cut = packed[: len(packed) // 2]
    lines, log = read(cut)
    assert log.cut == "cut off"
    unpacked = zlib.decompressobj(wbits=31).decompress(cut)  # all that is to be had
    assert log.bytes_read == len(unpacked) > len(whole) // 4
    assert [each.text for each in lines] == texts(unpacked)
    broken = bytearray(packed)
    broken[-6] ^= 0xFF  # its checksum
    lines, log = read(bytes(broken))
    assert log.cut.startswith("damaged")
    assert len(lines) == len(texts(whole))
    stored = zlib.compressobj(0, wbits=31)
    begin = stored.compress(MESSAGE.encode() * 200) + stored.flush(zlib.Z_FULL_FLUSH)
    lines, log = read(begin + b"\x07" * 20_000)  # no kind of block that there is
    assert log.cut.startswith("damaged")
    assert len(lines) == 1
    with pytest.raises(NotALog, match="is cut off"):
        texts(packed[:12])


def test_other_encodings() -> None:
    assert texts(MESSAGE.encode("utf-16")) == [MESSAGE]
    assert texts(b"\xef\xbb\xbf" + MESSAGE.encode()) == [MESSAGE]
    assert texts(MESSAGE.encode() + b" \xff\xfe") == [MESSAGE + " \ufffd\ufffd"]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "empty"),
        (b"LPKSHHRH" + b"\0" * 100, "binary journal"),
        (b"\x28\xb5\x2f\xfd" + b"x" * 50, "zstd"),
        (bytes(range(256)) * 40, "no text"),
        (b"\x7fELF\x02\x01\x01" + b"\0" * 500, "no text"),
        (b'{\n  "MESSAGE" : "x"\n}\n', "json-pretty"),
        (b'data: {"MESSAGE":"x"}\n\n', "json-sse"),
        (b'\x1e{"MESSAGE":"x","__CURSOR":"s=1"}\n', "json-seq"),
        (b"Mon 2026-11-30 01:01:54.274072 UTC [s=" + b"2" * 32 + b";i=b7]\n    M=x\n", "verbose"),
        (b"-- Logs begin at Mon. --\n__CURSOR=s=1\nMESSAGE=x\n", "export"),
    ],
)
def test_what_is_no_log_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(NotALog, match=said):
        texts(data)


def exported(*messages: bytes, unit: str = "llm.service", size: int | None = None) -> bytes:
    """Entries in journalctl's export format: values that are no plain line have their length."""
    data = b""
    for n, message in enumerate(messages):
        binary = any(byte < 32 and byte != 9 for byte in message)
        length = (len(message) if size is None else size).to_bytes(8, "little")
        told = b"MESSAGE\n" + length + message if binary else b"MESSAGE=" + message
        data += f"__CURSOR=s=1;i={n}\n__REALTIME_TIMESTAMP=17959900{n:02}000000\n".encode()
        data += f"_SYSTEMD_UNIT={unit}\n_PID=7\n".encode() + told + b"\n\n"
    return data


def test_the_export_format_of_journalctl() -> None:
    bar = b"Loading: 50%|# | 1/2 [00:01<00:01, 1it/s]\rLoading: 100%|##| 2/2 [00:02<00:00, 1it/s]"
    lines, log = read(exported(MESSAGE.encode(), bar, b"a\n\nb=c\n__CURSOR=x", b"\xff\x01\xfe"))
    assert [line.text for line in lines] == [
        MESSAGE,
        "Loading: 50%|# | 1/2 [00:01<00:01, 1it/s]",
        "Loading: 100%|##| 2/2 [00:02<00:00, 1it/s]",
        *["a", "b=c", "__CURSOR=x"],
        *texts(json.dumps({"MESSAGE": [255, 1, 254], "__CURSOR": "y"})),
    ]
    assert {line.pid for line in lines} == {7}
    assert [line.stamp for line in lines][:2] == [1_795_990_000.0, 1_795_990_001.0]
    assert log.lines_read == 4


@pytest.mark.parametrize("cut", range(1, 60))
def test_an_export_that_is_cut_off_is_read_as_far_as_it_goes(cut: int) -> None:
    data = exported(MESSAGE.encode(), b"x\ry" * 40)
    lines = texts(data[:-cut])
    assert lines[:1] == [MESSAGE]
    assert all(set(line) <= {"x", "y"} for line in lines[1:])


def test_a_length_that_is_not_true_takes_no_memory_and_no_time() -> None:
    for size in (1 << 60, 0, 3):
        assert texts(exported(MESSAGE.encode(), b"x\ry", size=size))[:1] == [MESSAGE]


@given(st.binary(max_size=200), st.integers(1, 40))
def test_no_bytes_break_the_export_format(data: bytes, piece: int) -> None:
    whole = b"__CURSOR=s=1\n" + data
    pieces = [whole[n : n + piece] for n in range(0, len(whole), piece)]
    rest = iter(pieces[1:])
    told = [*entries(pieces[0], lambda: next(rest, b""))]
    assert told == [*entries(whole, lambda: b"")]
    assert all(isinstance(json.loads(each), dict) for each in told)


def test_a_line_without_an_end_takes_no_memory() -> None:
    lines = texts(b"x" * (5 * LONGEST_LINE) + b"\nnext\n")
    assert [len(line) for line in lines] == [48 * 1024, 4]


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=2000))
def test_bytes_are_a_log_or_refused(data: bytes) -> None:
    try:
        lines, _ = read(data)
    except NotALog:
        return
    assert all(line.text.isprintable() for line in lines)


def test_what_the_log_screen_saves_is_read_again(tmp_path: Path) -> None:
    kept = [
        JournalLine(1795972846.25, "Starting llm.service - The engine...", from_manager=True),
        JournalLine(1795972847.5, MESSAGE, pid=2950),
        JournalLine(1795972848.0, "torch.OutOfMemoryError: CUDA out of memory.", pid=2950),
        JournalLine(1795972849.0, "INFO foo: words that look like a host and a program"),
        JournalLine(
            1795972851.0, "llm.service: Failed with result 'exit-code'.", from_manager=True
        ),
        JournalLine(1e18, "a line without a time"),
    ]
    shown = [LogLine(n, line, text=line.text) for n, line in enumerate(kept)]
    shown.insert(1, LogLine(0, kept[1], "another start of the unit"))
    file = tmp_path / "saved.log"
    write_new(file, shown)
    lines, _ = read(file.read_bytes())
    assert [(line.text, line.from_manager) for line in lines] == [
        (line.text, line.from_manager) for line in kept
    ]
    assert [line.stamp for line in lines[:3]] == [1795972846.0, 1795972847.0, 1795972848.0]


# ---- other forms ---------------------------------------------------------------------------------


def test_a_file_of_dockers_own() -> None:
    entries = [
        {"log": MESSAGE + "\n", "stream": "stderr", "time": "2026-11-29T17:20:47.5Z"},
        {"log": "cut after ", "stream": "stderr", "time": "2026-11-29T17:20:48Z"},
        {"log": "16 KiB\n", "stream": "stderr", "time": "2026-11-29T17:20:48Z"},
        {"log": "\n", "stream": "stderr", "time": "2026-11-29T17:20:49Z"},
        {"log": "bare\n", "stream": "stderr", "time": "2026-11-29T17:20:50Z"},
    ]
    lines, _ = read("".join(json.dumps(entry) + "\n" for entry in entries))
    assert [line.text for line in lines] == [MESSAGE, "cut after 16 KiB", "bare"]
    assert lines[2].stamp - lines[0].stamp == 3.0


def test_the_last_line_of_a_file_of_dockers_own_may_end_nowhere() -> None:
    words = [MESSAGE + "\n", "Killed", " by the kernel"]
    text = "".join(json.dumps({"log": each, "stream": "stderr"}) + "\n" for each in words)
    assert texts(text) == [MESSAGE, "Killed by the kernel"]


@pytest.mark.parametrize("key", ["message", "msg", "line", "textPayload", "text"])
def test_exports_of_log_collectors(key: str) -> None:
    entry = {key: MESSAGE, "timestamp": "2026-11-29T17:20:47Z", "level": "info"}
    assert texts(json.dumps(entry) + "\nplain\n") == [MESSAGE, "plain"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_two_bytes_a_character(encoding: str) -> None:
    assert texts(f"{MESSAGE}\r\nnext\r\n".encode(encoding)) == [MESSAGE, "next"]


def test_wrapped_lines_within_the_journal() -> None:
    prefix = "Nov 29 17:20:47 ct200 docker[7]: "
    assert texts(f"{prefix}engine-1  | {MESSAGE}\n{prefix}engine-1  | x\n") == [MESSAGE, "x"]


def test_the_inner_stamp_of_a_wrapped_line_counts() -> None:
    lines, _ = read(f"engine-1  | {MESSAGE}\n")
    plain, _ = read(f"{MESSAGE}\n")
    assert lines == plain
