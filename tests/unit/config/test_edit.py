"""Writing the configuration without losing what the operator wrote."""

import re
from pathlib import Path

import pytest

from ddtui.config.edit import add_host, default_text, write_default
from ddtui.config.errors import ConfigError
from ddtui.config.load import parse
from ddtui.config.model import Config, HostOptions, UiOptions, option_fields


def test_the_default_file_means_the_defaults() -> None:
    assert parse(default_text(), Path("x")) == Config()


def test_the_default_file_shows_every_option_with_its_default() -> None:
    set_all = re.sub(r"(?m)^# (?=\[(?:hosts|presets)|\w+ = )", "", default_text())
    config = parse(set_all.replace("api_key_env =", "# api_key_env ="), Path("x"))
    assert config.ui == UiOptions()
    for name, field in option_fields(HostOptions).items():
        assert re.search(rf"(?m)^{name} = ", set_all), name
        if field.default is not None:
            assert getattr(config.hosts["ct200"], name) == field.default


def test_an_existing_file_is_never_overwritten_unasked(tmp_path: Path) -> None:
    file = tmp_path / "new" / "config.toml"
    assert write_default(file, force=False) is None
    file.write_text("# mine\n")
    with pytest.raises(ConfigError, match="exists already"):
        write_default(file, force=False)
    assert file.read_text() == "# mine\n"
    kept = write_default(file, force=True)
    assert kept is not None
    assert kept.read_text() == "# mine\n"
    assert file.read_text() == default_text()


MINE = """\
# my file
[hosts.a]   # the old one
unit = "a.service"  # keep me
port = 1234

[ui]
mouse = false  # no mouse
"""


def test_a_section_is_added_and_all_else_stays(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(MINE)
    file.chmod(0o600)
    add_host(file, "b.c", {"unit": "b.service", "user_unit": True}, force=False)
    text = file.read_text()
    config = parse(text, file)
    assert config.hosts["b.c"] == HostOptions(unit="b.service", user_unit=True)
    assert config.hosts["a"] == HostOptions(unit="a.service", port=1234)
    for line in MINE.splitlines():
        assert line in text
    assert file.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "config.toml.bak").read_text() == MINE


def test_an_existing_section_is_changed_only_with_force(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(MINE)
    with pytest.raises(ConfigError, match="stands in the file already"):
        add_host(file, "a", {"unit": "x.service"}, force=False)
    assert file.read_text() == MINE
    add_host(file, "a", {"unit": "x.service"}, force=True)
    assert file.read_text() == MINE.replace('"a.service"', '"x.service"')


@pytest.mark.parametrize("text", ["[ui]\nnope = 1\n", "[ui\n", "[hosts]\na = 1\n"])
def test_a_file_with_mistakes_is_not_touched(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(ConfigError):
        add_host(file, "b", {"unit": "x.service"}, force=True)
    assert file.read_text() == text
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    "text", ["", "hosts.a.port = 1\n", "[hosts]\n", "[hosts]\na = {port = 1}\n"]
)
def test_every_way_to_write_hosts_can_be_added_to(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    before = parse(text, file).hosts
    add_host(file, "b", {"unit": "x.service"}, force=False)
    assert parse(file.read_text(), file).hosts == {**before, "b": HostOptions(unit="x.service")}


def test_a_linked_file_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real.toml", tmp_path / "config.toml"
    real.write_text("# mine\n")
    link.symlink_to(real)
    add_host(link, "b", {"unit": "x.service"}, force=False)
    assert link.is_symlink()
    assert "x.service" in real.read_text()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written: "):
        write_default(tmp_path / "file" / "config.toml", force=False)
