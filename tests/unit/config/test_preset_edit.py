"""Presets that are saved come back as they were asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from ddtui.config.errors import ConfigError
from ddtui.config.load import load
from ddtui.config.preset_edit import save_preset
from ddtui.config.presets import load_presets
from ddtui.core.launch import Request

ASKED = Request(
    knobs={"budget": 16, "window": None},
    flags={"max-running-requests": 4, "disable-radix-cache": True, "dtype": None, "x": "true"},
    environment={"A": "b c", "B": None},
)


def test_a_saved_preset_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("# kept\n[ui]\nascii = true\n")
    save_preset(file, "deep", "a deep tree", ASKED)
    save_preset(file, "other", "", Request(knobs={"budget": 8}))
    found = load_presets(load(file), tmp_path / "nowhere")
    asked = found.request("deep")
    assert (asked.knobs, asked.flags, asked.environment) == (
        ASKED.knobs,
        ASKED.flags,
        ASKED.environment,
    )
    assert found.find("deep").table.description == "a deep tree"
    assert file.read_text().startswith("# kept\n[ui]\nascii = true\n")
    with pytest.raises(ConfigError, match="in the file already"):
        save_preset(file, "deep", "", ASKED)


def test_a_bad_name_is_refused_and_nothing_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not a preset's name"):
        save_preset(tmp_path / "x.toml", "a b", "", ASKED)
    assert not (tmp_path / "x.toml").exists()
