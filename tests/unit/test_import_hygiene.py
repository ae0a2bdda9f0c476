"""What a package drags in when it is imported, seen from a fresh interpreter."""

import json
import subprocess
import sys

import pytest

PROBE = """
import importlib, json, pkgutil, sys

def load(name):
    module = importlib.import_module(name)
    for found in pkgutil.walk_packages(getattr(module, "__path__", []), name + "."):
        importlib.import_module(found.name)

name, whole, banned = json.loads(sys.argv[1])
load(name) if whole else importlib.import_module(name)
print(json.dumps([module for module in banned if module in sys.modules]))
"""


def dragged_in(name: str, banned: list[str], *, whole: bool) -> list[str]:
    """Those of `banned` that importing `name` (`whole`: with all submodules) has loaded."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, json.dumps([name, whole, banned])],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    loaded: list[str] = json.loads(done.stdout)
    return loaded


@pytest.mark.parametrize("name", ["ddtui.core", "ddtui.engines"])
def test_pure_packages_load_no_ui_transport_or_database(name: str) -> None:
    banned = ["textual", "asyncssh", "httpx", "sqlalchemy"]
    assert dragged_in(name, banned, whole=True) == []


def test_the_command_starts_without_its_heavy_parts() -> None:
    """`ddtui --help` must answer at once: a command loads what it needs when it runs."""
    assert dragged_in("ddtui.cli", ["textual", "asyncssh", "sqlalchemy"], whole=False) == []
