from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddtui.core.redact import (
    is_secret_name,
    redact_argv,
    redact_environment,
    redact_mapping,
    redact_text,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("--api-key hush --tp 8", "--api-key <redacted> --tp 8"),
        ("--api-key=hush", "--api-key=<redacted>"),
        ("--admin-api-key hush", "--admin-api-key <redacted>"),
        ("--api-key 'hu sh' --tp", "--api-key '<redacted>' --tp"),
        ("['--api-key', 'hush', '--tp']", "['--api-key', '<redacted>', '--tp']"),
        ("{'api_key': 'hush', 'tp': 8}", "{'api_key': '<redacted>', 'tp': 8}"),
        ('{"api_key":"hush","x":1}', '{"api_key":"<redacted>","x":1}'),
        ("ServerArgs(api_key='hush', x=1)", "ServerArgs(api_key='<redacted>', x=1)"),
        ("api_key='it\\'s hush', x=1", "api_key='<redacted>', x=1"),
        ("api_key='cut of", "api_key='<redacted>"),
        ("api_key=hush&x=1", "api_key=<redacted>&x=1"),
        ("admin_api_key: hush", "admin_api_key: <redacted>"),
        ("X-Api-Key: hush", "X-Api-Key: <redacted>"),
        ("API_KEY=hush", "API_KEY=<redacted>"),
        ("Authorization: Bearer hush", "Authorization: Bearer <redacted>"),
        ("'authorization': 'Basic aHVzaA=='", "'authorization': 'Basic <redacted>'"),
        ("sent Bearer abcdef123456", "sent Bearer <redacted>"),
        ("HF_TOKEN=hf_x", "HF_TOKEN=<redacted>"),
        ("HUGGING_FACE_HUB_TOKEN=hush", "HUGGING_FACE_HUB_TOKEN=<redacted>"),
        ("--hf-token hush", "--hf-token <redacted>"),
        ("'hf_token': 'hush'", "'hf_token': '<redacted>'"),
        ('{"token": "hush"}', '{"token": "<redacted>"}'),
        ("x-auth-token: hush", "x-auth-token: <redacted>"),
        ("got hf_AbCdEfGhIjKlMnOpQrSt in", "got <redacted> in"),
        ("got sk-proj-1234567890 in", "got <redacted> in"),
        ("ghp_" + "a1" * 18, "<redacted>"),
        ("MY_SECRET=hush", "MY_SECRET=<redacted>"),
        ("PGPASSWORD=hush psql", "PGPASSWORD=<redacted> psql"),
        ("DB_PASSWORD_X=1 client_secret='hush'", "DB_PASSWORD_X=1 client_secret='<redacted>'"),
        ("AWS_ACCESS_KEY_ID=hush AWS_X=y", "AWS_ACCESS_KEY_ID=<redacted> AWS_X=<redacted>"),
        ("aws_secret_access_key = hush", "aws_secret_access_key = <redacted>"),
        ("ssl_keyfile_password='hush'", "ssl_keyfile_password='<redacted>'"),
        ("https://me:hush@host/x", "https://me:<redacted>@host/x"),
        ("'watermark_key': 'hush'", "'watermark_key': '<redacted>'"),
    ],
)
def test_secrets_in_texts(text: str, expected: str) -> None:
    assert redact_text(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "max_total_tokens=20000, max_total_num_tokens=20000, num_draft_tokens=8",
        "'speculative_num_draft_tokens': 8, 'tokenizer_path': '/m', 'speculative_token_map': None",
        "--max-total-tokens 20000 --speculative-num-draft-tokens 8 --tokenizer-path /m",
        "--speculative-token-map /m/map.pt --tokenizer-mode auto",
        "mask_token=<|mask|>, mask_token_id=3, bos_token='<s>', eos_token: '</s>'",
        '{"completion_tokens": 96, "total_tokens": 153, "tokens": 5}',
        "Decode batch, #token: 445, token usage: 0.02, gen throughput (token/s): 26.20",
        "Prefill batch, #new-token: 13, #cached-token: 0, #pending-token: 0",
        "'api_key': None, 'admin_api_key': None, \"api_key\": null, api_key=''",
        "'ssl_keyfile': '/etc/key.pem', 'ssl_keyfile_password': None",
        "/x/sglang/srt/utils/hf_transformers/config.py",
        "multi-task-learning and disk-based and mask-token",
        "http://127.0.0.1:30000/v1 and user@host:path",
        "basic functionality, bearer of news, tokens per second",
        "sort_key=abc routing_key='x' keyword=1",
    ],
)
def test_what_is_no_secret(text: str) -> None:
    assert redact_text(text) == text


def test_command_lines() -> None:
    argv = (
        *("python", "-m", "sglang.launch_server", "--api-key", "hush", "--admin-api-key=hush"),
        *("--max-total-tokens", "5", "--enable-metrics", "HF_TOKEN=hush", "--api-key"),
        *(
            "--tp",
            "8",
            "exec x --api-key hush",
            "--tokenizer-path=/m",
            "--hf-token=",
            "--token",
            "-hush",
        ),
    )
    assert redact_argv(argv) == (
        *("python", "-m", "sglang.launch_server", "--api-key", "<redacted>"),
        *("--admin-api-key=<redacted>", "--max-total-tokens", "5", "--enable-metrics"),
        *("HF_TOKEN=<redacted>", "--api-key", "--tp", "8", "exec x --api-key <redacted>"),
        *("--tokenizer-path=/m", "--hf-token=", "--token", "<redacted>"),
    )


def test_environments() -> None:
    given_pairs = ["HF_TOKEN=hush", "PATH=/bin", "EMPTY_TOKEN=", "A=--api-key hush", "no pair"]
    assert redact_environment([*given_pairs, "AWS_X=a=b"]) == (
        *("HF_TOKEN=<redacted>", "PATH=/bin", "EMPTY_TOKEN=", "A=--api-key <redacted>"),
        *("no pair", "AWS_X=<redacted>"),
    )


def test_mappings_at_every_depth() -> None:
    values: dict[str, object] = {
        "api_key": "hush",
        "admin_api_key": None,
        "enable_password": True,
        "secret": {"a": 1},
        "states": [{"api_key": "hush", "max_total_tokens": 5}, 3],
        "nested": {"HF_TOKEN": "hush", "text": "api_key=hush"},
        "argv": ["--api-key", "hush"],
        "num_draft_tokens": 8,
    }
    assert redact_mapping(values) == {
        "api_key": "<redacted>",
        "admin_api_key": None,
        "enable_password": True,
        "secret": "<redacted>",
        "states": [{"api_key": "<redacted>", "max_total_tokens": 5}, 3],
        "nested": {"HF_TOKEN": "<redacted>", "text": "api_key=<redacted>"},
        "argv": ["--api-key", "<redacted>"],
        "num_draft_tokens": 8,
    }
    assert values["api_key"] == "hush"


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("api_key", True),
        ("--admin-api-key", True),
        ("HF_TOKEN", True),
        ("hf-token", True),
        ("token", True),
        ("DEPLOY_KEY", True),
        ("aws_session_token", True),
        ("ssl_keyfile_password", True),
        ("private_key", True),
        ("ssl_keyfile", False),
        ("max_total_tokens", False),
        ("mask_token", False),
        ("speculative_token_map", False),
        ("tokenizer_path", False),
        ("routing_key", False),
    ],
)
def test_names(name: str, *, secret: bool) -> None:
    assert is_secret_name(name) is secret


PIECES = st.sampled_from(
    [
        *("api_key", "--api-key", "HF_TOKEN", "token", "hf_", "sk-", "password", "Secret", "AWS_A"),
        *("authorization", "Bearer ", "://", "@", ":", "=", "'", '"', " ", ",", "\\", "<redacted>"),
        *("None", "abcdef123456", "hf_AbCdEfGhIjKlMnOpQrSt", "[", "]", "{", "}", "-", "_", "\n"),
    ]
)


@settings(max_examples=1000)
@given(st.lists(st.one_of(PIECES, st.text(max_size=4)), max_size=12).map("".join))
def test_redacting_twice_changes_nothing(text: str) -> None:
    once = redact_text(text)
    assert redact_text(once) == once


@given(st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=6))
def test_redacting_command_lines_twice_changes_nothing(argv: list[str]) -> None:
    once = redact_argv(argv)
    assert redact_argv(once) == once
    assert len(once) == len(argv)


@given(st.text(alphabet=st.characters(codec="ascii", categories=["L", "N"]), min_size=8))
def test_a_key_never_survives(key: str) -> None:
    for text in (
        f"--api-key {key} x",
        f"--api-key={key}",
        f"'api_key': '{key}'",
        f'"api_key":"{key}"',
        f"api_key='{key}'",
        f"Authorization: Bearer {key}",
        f"HF_TOKEN={key}",
    ):
        if key not in "redacted --api-key HF_TOKEN Authorization Bearer None null True False":
            assert key not in redact_text(text)
