from __future__ import annotations

import re
from pathlib import Path

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
from ddtui.core.secret_names import ABBREVIATIONS


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
        ("api_key=hush&x=1", "api_key=<redacted>"),
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
        # beginnings of flags that argparse takes for the whole names
        ("serve --api-k hush --tp 8", "serve --api-k <redacted> --tp 8"),
        ("--admin hush --ssl-keyfile-p=hush", "--admin <redacted> --ssl-keyfile-p=<redacted>"),
        ("--watermark-c hush --hf-tok hush", "--watermark-c <redacted> --hf-tok <redacted>"),
        # whole words, and what stands behind them
        ("--api-key a(REST) --tp", "--api-key <redacted>) --tp"),
        ("--api-keys A,B;C&D[E] --tp", "--api-keys <redacted>] --tp"),
        ("GET /x?api_key=a&REST HTTP/1.1", "GET /x?api_key=<redacted> HTTP/1.1"),
        ('"--api-key a{b", "x"', '"--api-key <redacted>", "x"'),
        ("(api_key=hush, x=1)", "(api_key=<redacted>, x=1)"),
        ('{"api_key":12345,"x":1}', '{"api_key":<redacted>,"x":1}'),
        ('{\\"api_key\\": \\"hush\\", 1}', '{\\"api_key\\": \\"<redacted>\\", 1}'),
        ("--api-key --tp 8 --api-key=--x", "--api-key --tp 8 --api-key=<redacted>"),
        # objects and collections
        ("A(api_key=SecretStr('X'), x=1)", "A(api_key=<redacted>, x=1)"),
        ("api_keys=['A', 'B'], x=1", "api_keys=<redacted>, x=1"),
        ("'api_keys': {'a': ['b'], 'c)': 'd'}, 'x'", "'api_keys': <redacted>, 'x'"),
        ("api_keys=['A', 'B", "api_keys=<redacted>"),
        ("api_key=b'hush'", "api_key=b'<redacted>'"),
        # headers
        ("Authorization: ApiKey hu sh", "Authorization: ApiKey <redacted> sh"),
        ("Authorization: hush sh", "Authorization: <redacted>"),
        ('--header "Authorization: X hush" y', '--header "Authorization: <redacted>" y'),
        ("-H 'Authorization: ApiKey hu sh' y", "-H 'Authorization: ApiKey <redacted>' y"),
        ('Authorization: Digest u="me", r="hush"', "Authorization: Digest <redacted>"),
        ("(b'authorization', b'Bearer abcdefgh')", "(b'authorization', b'Bearer <redacted>')"),
        ("(b'x-api-key', b'hush'), 1", "(b'x-api-key', b'<redacted>'), 1"),
        ("'proxy-authorization': 'hu sh', 1", "'proxy-authorization': '<redacted>', 1"),
        ("Cookie: a=hush; b=hush", "Cookie: <redacted>"),
        ("'set-cookie': 'a=hush', 1", "'set-cookie': '<redacted>', 1"),
        # the bare word
        ("token: abcd1234efgh, x", "token: <redacted>, x"),
        ("got token=abcd1234efgh==", "got token=<redacted>"),
        ("access token: hush", "access token: <redacted>"),
        # addresses
        ("https://hush@host/x", "https://<redacted>@host/x"),
        (
            "https://hush:@host https://hush:x@y@host",
            "https://<redacted>:@host https://hush:<redacted>@host",
        ),
        # environment variables
        ("docker run -eHF_TOKEN=hush x", "docker run -eHF_TOKEN=<redacted> x"),
        (
            "DB_PASS=hush DB_PWD=hush GH_PAT=hush",
            "DB_PASS=<redacted> DB_PWD=<redacted> GH_PAT=<redacted>",
        ),
        ("JWT=hush COOKIE=hush TOKEN2=hush", "JWT=<redacted> COOKIE=<redacted> TOKEN2=<redacted>"),
        (
            "HF_TOKEN_2=hush SSHKEY=hush TOKEN=hush",
            "HF_TOKEN_2=<redacted> SSHKEY=<redacted> TOKEN=<redacted>",
        ),
        # shapes
        *(
            (f"got {key} in", "got <redacted> in")
            for key in (
                "sk_live_" + "a1" * 10,
                "rk_test_" + "a1" * 10,
                "gsk_" + "a1" * 20,
                "AIza" + "a1" * 18,
                "github_pat_" + "a1" * 20,
                "xoxb-12345-abcdef",
                "AKIA" + "ABCD" * 4,
                "eyJhbGciOiJI.eyJzdWIiOi.c2ln-_x",
            )
        ),
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
        "#token: 553, #full token: 12345678, next token: abcdefgh, token: 12345678",
        "unexpected token: } at 5, token=None, token: '</s>'",
        "PWD=/home/x OLDPWD=/ MASK_TOKEN=x IMAGE_TOKEN=<image> COMPASS=1 MODEL_PATH=/m",
        "[--api-key API_KEY] [--admin-api-key ADMIN_API_KEY] --api-server-count 4 --hf-chat x",
        "--ssl-keyfile /etc/key.pem --watermark x --apiary x --adaptive x",
        "ssh://git@github.com/x git+ssh://git@host http://host:80/a@b",
        "cookies are off; the authorization of users; ('token', 5) ['api_key', 'x']",
        'api_keys=[], api_key={}, password=""',
        "sk-short eyJnotajwt xoxo",
    ],
)
def test_what_is_no_secret(text: str) -> None:
    assert redact_text(text) == text


FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"


def test_of_real_captures_nothing_but_secrets_changes() -> None:
    changed = set()
    for file in sorted(FIXTURES.rglob("*")):
        if not file.is_file():
            continue
        for line in file.read_text(encoding="utf-8").split("\n"):
            redacted = redact_text(line)
            assert redact_text(redacted) == redacted
            before, _, after = redacted.partition("<redacted>")
            if redacted != line:
                assert line.startswith(before)
                assert line.endswith(after)
                changed.add((before[-13:], line[len(before) : len(line) - len(after)]))
    assert changed == {
        (" 'api_key': '", "sk-notreal0123456789"),
        ("05 --api-key ", "sk-test"),
    }


def test_beginnings_of_secret_flags_are_those_of_no_other_flag() -> None:
    usage = (FIXTURES / "sglang" / "sglang-help-usage.txt").read_text(encoding="utf-8")
    flags = set(re.findall(r"--([a-z0-9][a-z0-9-]*)", usage))
    assert len(flags) > 500
    for beginning in ABBREVIATIONS:
        meant = [flag for flag in flags if flag.startswith(beginning)]
        assert all(is_secret_name(flag) for flag in meant), beginning


HUGE = 40_000


@pytest.mark.parametrize(
    ("piece", "expected"),
    [
        ("token=", None),
        ("token={", None),
        ("-eyJ", None),
        ("api_key=[]", None),
        ("a_MAX_", None),
        ("token:'", None),
        ("api_key={", "api_key=<redacted>"),
        ("api_key=f('", "api_key=<redacted>"),
        ("eyJaaaaaaaa.", "<redacted>"),
    ],
)
def test_hostile_texts_are_read_once(piece: str, expected: str | None) -> None:
    text = (piece * HUGE)[:HUGE]
    result = redact_text(text)
    assert result == (text if expected is None else result)
    assert expected is None or result.startswith(expected)


def test_command_lines_with_blanks_in_a_secret() -> None:
    words = (
        *("serve", "--api-key", "my", "hush", "hush", "--tp", "8", "--token", "a", "-v", "b"),
        *("--env=X_TOKEN=a", "-eY_TOKEN=a"),
    )
    expected = (
        *("serve", "--api-key", "#", "#", "#", "--tp", "8", "--token", "#", "-v", "b"),
        *("--env=X_TOKEN=#", "-eY_TOKEN=#"),
    )
    assert redact_argv(words) == tuple(word.replace("#", "<redacted>") for word in expected)
    assert redact_argv(["-eX_TOKEN=hu sh", "--env=X_TOKEN=hu sh", "--api-k", "hush"]) == (
        *("-eX_TOKEN=<redacted>", "--env=X_TOKEN=<redacted>", "--api-k", "<redacted>"),
    )
    assert redact_argv(["-H", "Authorization: X hu sh"]) == ("-H", "Authorization: <redacted>")


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


def test_what_lies_too_deep_is_masked() -> None:
    value: object = "hush"
    for _ in range(5000):
        value = {"a": [value]}
    assert "hush" not in str(redact_mapping({"x": value}))


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
        *((name, True) for name in ("DB_PASS", "DB_PWD", "GH_PAT", "JWT", "COOKIE", "TOKEN2")),
        *((name, True) for name in ("HF_TOKEN_2", "SSHKEY", "--api-k", "ssl-keyfile-p")),
        *((name, False) for name in ("PWD", "PATH", "IMAGE_TOKEN", "x" * 200, "COMPASS")),
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
        *("Cookie", "SecretStr(", "b'", "(", ")", "&", ";", "Digest ", "--api-k ", "token: ", "-e"),
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
