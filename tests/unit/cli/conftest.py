"""Every test of the command line has its own home: the developer's configuration is never read."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the configuration, which is empty."""
    folder = tmp_path / "config"
    monkeypatch.setenv("DDTUI_CONFIG_DIR", str(folder))
    monkeypatch.delenv("DDTUI_CONFIG_FILE", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("NO_COLOR", raising=False)
    return folder


@pytest.fixture
def run() -> Run:
    """Run the command line in this process."""
    from ddtui.cli.root import app

    def call(*arguments: str, input: str | None = None) -> Result:  # noqa: A002
        return CliRunner().invoke(app, list(arguments), input=input)

    return call


@pytest.fixture
def config_file(folders: Path) -> Path:
    """A configuration with two hosts."""
    folders.mkdir()
    file = folders / "config.toml"
    file.write_text(
        "[ui]\n"
        "mouse = false\n"
        "[hosts.ct200]\n"
        'ssh = "ops@ct200.lan"\n'
        'unit = "llm"\n'
        'api_key_command = ["pass", "--clip=secret-argument"]\n'
        "[hosts.mine]\n"
        'unit = "sg.service"\n'
        "user_unit = true\n"
    )
    return file
