from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from textual.app import App, ComposeResult
from textual.color import Color
from textual.theme import Theme
from textual.widgets import Static

from ddtui.config.themes import packaged_folder, user_folder
from ddtui.ui.themes import (
    COLORS,
    DEFAULT,
    VARIABLES,
    ThemeError,
    install_themes,
    load_themes,
    read_theme,
    variable_defaults,
)

PACKAGED = sorted(packaged_folder().glob("*.toml"))

GOOD = "dark = true\n[colors]\n" + "".join(f'{name} = "#808080"\n' for name in COLORS)


class Small(App[object]):
    CSS = "Static { color: $graph-utilization; background: $bar-track; }"

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return variable_defaults()

    def compose(self) -> ComposeResult:
        yield Static("x")


def contrast(foreground: str, background: str) -> float:
    """Contrast ratio of WCAG 2.2 (1 to 21)."""

    def luminance(color: Color) -> float:
        def linear(channel: int) -> float:
            share = channel / 255
            return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4

        return 0.2126 * linear(color.r) + 0.7152 * linear(color.g) + 0.0722 * linear(color.b)

    one, other = sorted((luminance(Color.parse(foreground)), luminance(Color.parse(background))))
    return (other + 0.05) / (one + 0.05)


def test_the_three_themes_come_with_ddtui() -> None:
    assert [path.stem for path in PACKAGED] == ["ddtui-contrast", "ddtui-dark", "ddtui-light"]
    assert load_themes([packaged_folder()]).problems == ()
    assert [read_theme(path).dark for path in PACKAGED] == [True, True, False]


def test_contrast_is_reckoned_as_wcag_does() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("path", PACKAGED, ids=lambda path: path.stem)
def test_text_stands_out(path: Path) -> None:
    theme = read_theme(path)
    values = {**variable_defaults(theme), **theme.variables}
    values |= {name: getattr(theme, name) for name in COLORS}
    least = 7.0 if path.stem == "ddtui-contrast" else 4.5
    grounds = ["background", "surface"]
    shapes = {"bar-memory", "bar-progress"}
    texts = {"foreground", "primary", "secondary", "accent", "success", "warning", "error"}
    texts |= {
        name for name in VARIABLES if name not in shapes and not name.endswith("-background")
    } - {"log-match-foreground", "log-current-foreground", "frame", "bar-track"}
    pairs = list(product(sorted(texts), grounds))
    pairs += [("foreground", "panel"), ("label", "panel")]
    log = [name for name in sorted(texts) if name.startswith("log-")]
    pairs += list(product(log, ["log-cursor-background", "log-selection-background"]))
    pairs += [("log-match-foreground", "log-match-background")]
    pairs += [("log-current-foreground", "log-current-background")]
    pairs += [("footer-key-foreground", "footer-background")]
    pairs += [("footer-description-foreground", "footer-background")]
    low = {
        f"{text} on {ground}": round(contrast(values[text], values[ground]), 2)
        for text, ground in pairs
        if contrast(values[text], values[ground]) < least
    }
    assert not low
    # Shapes need 3 to 1 (WCAG 1.4.11).
    assert all(contrast(values[shape], values["background"]) >= 3 for shape in shapes)


def test_a_theme_without_variables_takes_them_from_its_colors(tmp_path: Path) -> None:
    path = tmp_path / "grey.toml"
    path.write_text(GOOD.replace('success = "#808080"', 'success = "#00ff00"'))
    theme = read_theme(path)
    assert theme.name == "grey"
    assert Color.parse(theme.variables["graph-utilization"]) == Color.parse("#00ff00")
    assert set(VARIABLES) == set(theme.variables)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (GOOD.replace("primary", "primry"), "colors.primry: unknown key; did you mean 'primary'?"),
        (GOOD.replace("primary", "primry"), "colors.primary: missing"),
        (GOOD.replace('error = "#808080"', 'error = "#80808"'), "colors.error: '#80808' is no col"),
        (GOOD.replace('error = "#808080"', "error = 3"), "must be a colour in quotes, not 3"),
        (GOOD.replace('panel = "#808080"', 'panel = "#80808040"'), "must be one opaque colour"),
        (GOOD.replace('panel = "#808080"', 'panel = "ansi_red"'), "must be one opaque colour"),
        (GOOD + '[variables]\nbar-trak = "red"', "did you mean 'bar-track'?"),
        (GOOD + '[variables]\ndim = "gray-ish"', "variables.dim: 'gray-ish' is no colour"),
        (GOOD + '[variable]\ndim = "red"', "variable: unknown key; did you mean 'variables'?"),
        (GOOD.replace("true", '"yes"'), "dark: must be true or false"),
        ('dark = true\ncolors = "red"', "colors: must be a table"),
        ('dark = true\nvariables = "red"\n', "variables: must be a table"),
        ("dark = ", "is no TOML"),
    ],
)
def test_a_mistake_is_named_by_file_key_and_reason(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(ThemeError) as caught:
        read_theme(path)
    assert str(caught.value).startswith(f"theme {path}: ")
    assert says in str(caught.value)


def test_a_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_bytes(b"\xff\xfe")
    (tmp_path / "folder.toml").mkdir()
    folder, mine = load_themes([tmp_path]).problems
    assert "folder.toml: cannot be read: Is a directory" in folder
    assert "mine.toml: is no UTF-8 text" in mine


def test_users_themes_lie_in_the_configuration_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DDTUI_CONFIG_DIR", str(tmp_path))
    assert user_folder() == tmp_path / "themes"
    user_folder().mkdir()
    (user_folder() / "mine.toml").write_text(GOOD)
    # A user's theme may stand in for one of ddtui's.
    (user_folder() / "ddtui-light.toml").write_text(GOOD)
    themes = load_themes().themes
    assert set(themes) == {"ddtui-contrast", "ddtui-dark", "ddtui-light", "mine"}
    assert themes["ddtui-light"].primary == "#808080"


@pytest.mark.parametrize("path", PACKAGED, ids=lambda path: path.stem)
async def test_a_theme_colours_the_app(path: Path) -> None:
    app = Small()
    assert install_themes(app, path.stem) == []
    async with app.run_test():
        assert app.theme == path.stem
        assert set(app.available_themes) >= {each.stem for each in PACKAGED}
        assert "nord" not in app.available_themes
        expected = Color.parse(read_theme(path).variables["graph-utilization"])
        assert app.query_one(Static).styles.color == expected


async def test_a_broken_theme_leaves_the_default_and_one_message(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(GOOD.replace("#808080", "grray", 1))
    app = Small()
    (problem,) = install_themes(app, "mine", load_themes([packaged_folder(), tmp_path]))
    assert problem == (
        f"theme {tmp_path / 'mine.toml'}: colors.primary: 'grray' is no colour; write it as #rrggbb"
    )
    async with app.run_test():
        assert app.theme == DEFAULT


async def test_an_unknown_theme_names_the_nearest() -> None:
    app = Small()
    (problem,) = install_themes(app, "ddtui-drak", load_themes([packaged_folder()]))
    assert problem.startswith("theme ddtui-drak: no such theme; did you mean 'ddtui-dark'?")
    async with app.run_test():
        assert app.theme == DEFAULT


def test_defaults_cover_every_variable() -> None:
    assert set(variable_defaults()) == set(VARIABLES)
    other = Theme(name="x", primary="#123456")
    assert Color.parse(variable_defaults(other)["bar-memory"]) == Color.parse("#123456")
