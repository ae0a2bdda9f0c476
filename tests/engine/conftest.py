"""A test host with a real SGLang beside it: an environment that is built once, and tiny models."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import platformdirs
import pytest

from tests.engine.sglang_unit import RealEngine
from tests.host.gpuhost import HostMissing, project_binds, running_host
from tests.host.measured import RESULTS
from tests.host.watching import Watcher, watching

HERE = Path(__file__).parent
VENV_VARIABLE = "DDTUI_ENGINE_VENV"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder; a load takes its time on a busy machine."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.engine)
            item.add_marker(pytest.mark.timeout(900))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what was measured."""
    terminalreporter.section("what the real engine did and what ddtui showed")
    for line in RESULTS:
        terminalreporter.line(line)


@pytest.fixture(scope="session")
def venv() -> Path:
    """The engine's environment: built here if it is not complete."""
    named = os.environ.get(VENV_VARIABLE)
    path = Path(named) if named else platformdirs.user_cache_path("ddtui") / "engine"
    path.parent.mkdir(parents=True, exist_ok=True)
    python = {"PYTHON": sys.executable} if sys.version_info[:2] == (3, 11) else {}
    subprocess.run(
        [str(HERE / "install.sh"), str(path)], env=os.environ | python, check=True, timeout=880
    )
    return path


@pytest.fixture(scope="session")
def models(venv: Path) -> Path:
    """Folder of the tiny models."""
    folder = venv / "models"
    subprocess.run(
        [str(venv / "bin" / "python"), str(HERE / "make_tiny_model.py"), str(folder)],
        check=True,
        timeout=120,
    )
    return folder


@pytest.fixture(scope="session")
def engine(venv: Path, models: Path) -> Iterator[RealEngine]:
    """A test host on which the engine can be started as a unit."""
    base = subprocess.run(
        [str(venv / "bin" / "python"), "-c", "import sys; print(sys.base_prefix)"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    binds = project_binds()
    for each in (venv.resolve(), Path(base).resolve()):
        if each != Path("/usr") and not any(each.is_relative_to(other) for other in binds):
            binds.append(each)
    try:
        with running_host(binds) as host:
            yield RealEngine(host, venv, models)
    except HostMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture
async def watcher(engine: RealEngine) -> AsyncIterator[Watcher]:
    """Watches units of the host as ddtui does."""
    async with watching(engine.host) as watcher:
        yield watcher
