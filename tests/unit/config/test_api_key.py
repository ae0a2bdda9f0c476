"""The API key comes from where the options say, and no message shows it."""

import sys

import pytest

from ddtui.config import api_key as module
from ddtui.config.api_key import ApiKeyError, api_key
from ddtui.config.model import HostOptions


def command(code: str) -> HostOptions:
    return HostOptions(api_key_command=(sys.executable, "-c", code, "secret-argument"))


def test_no_key_is_asked_for_by_default() -> None:
    assert api_key(HostOptions()) is None


def test_from_the_environment() -> None:
    options = HostOptions(api_key_env="KEY")
    assert api_key(options, {"KEY": " k1\n"}) == "k1"
    with pytest.raises(ApiKeyError, match=r"KEY .api_key_env. is not set"):
        api_key(options, {})


def test_from_a_program_without_a_shell() -> None:
    assert api_key(command("import sys; print('k', sys.argv[1][:6], sep='-')")) == "k-secret"
    assert api_key(HostOptions(api_key_command=("echo", "$HOME;id"))) == "$HOME;id"


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("import sys; print('sk-1'); sys.exit(3)", "failed with status 3"),
        ("pass", "printed nothing"),
        ("print('sk-1'); print('sk-2')", "is no API key"),
        ("print('sk-\\x1b[0m')", "is no API key"),
        ("print('sk-' + 'x' * 5000)", "is no API key"),
        ("import sys; sys.stdout.buffer.write(b'sk-\\xff')", "is no API key"),
    ],
)
def test_a_program_that_gives_no_key(code: str, told: str) -> None:
    with pytest.raises(ApiKeyError, match=told) as caught:
        api_key(command(code))
    assert "sk-" not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_program_that_waits_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TIMEOUT", 0.2)
    with pytest.raises(ApiKeyError, match="printed no key within"):
        api_key(command("import time; time.sleep(60)"))


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(ApiKeyError, match="cannot be run: No such file"):
        api_key(HostOptions(api_key_command=("/no/such/program",)))
