"""Every test has its own home: the developer's configuration is never read."""

from pathlib import Path

import pytest


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
