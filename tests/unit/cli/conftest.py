"""What every test of the command line has: its own home, and how to run a command."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.support.own_folders import folders

__all__ = ["folders", "run"]

Run = Callable[..., Result]


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
