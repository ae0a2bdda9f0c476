"""Themes: TOML files, checked before Textual sees them.

A theme file is named for its theme (`ddtui-dark.toml`) and has a flag and two tables:

    dark = true

    [colors]       # what Textual's own widgets are drawn with; all of COLORS are required
    primary = "#6cb6ff"

    [variables]    # optional: ddtui's own colours (VARIABLES) and Textual's theme variables
    graph-throughput = "#6fd08c"

Colours are what Textual reads: `#rgb`, `#rrggbb`, `#rrggbbaa`, `rgb(...)`, `hsl(...)` or a name.
ddtui's own are `$bar-track` and so on in styles, `app.theme_variables["bar-track"]` in code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli
from textual.app import App
from textual.color import Color, ColorParseError
from textual.theme import BUILTIN_THEMES, Theme

from ddtui.config.errors import did_you_mean
from ddtui.config.themes import packaged_folder, user_folder

DEFAULT = "ddtui-dark"
"""The theme in force when none is chosen, or the chosen one is broken."""

COLORS = (
    "primary",
    "secondary",
    "accent",
    "foreground",
    "background",
    "surface",
    "panel",
    "success",
    "warning",
    "error",
)
"""Keys of `[colors]`: every theme has them all."""

VARIABLES: Mapping[str, str] = {
    # Names of figures, units and ages; and what is out of date or does not matter now.
    "label": "secondary",
    "dim": "secondary",
    "frame": "panel",
    # History charts and bars.
    "graph-throughput": "primary",
    "graph-acceptance": "accent",
    "graph-utilization": "success",
    "bar-memory": "primary",
    "bar-progress": "accent",
    "bar-track": "panel",
    # The log.
    "log-error": "error",
    "log-warning": "warning",
    "log-info": "foreground",
    "log-debug": "secondary",
    "log-stamp": "secondary",
    "log-rank": "primary",
    "log-manager": "accent",
    "log-separator": "accent",
    "log-cursor-background": "panel",
    "log-selection-background": "panel",
    "log-match-foreground": "background",
    "log-match-background": "warning",
    "log-current-foreground": "background",
    "log-current-background": "accent",
}
"""ddtui's own variables, each with the key of `[colors]` that it takes where a theme sets none."""

_TEXTUAL = frozenset(
    name
    for name in BUILTIN_THEMES["textual-dark"].to_color_system().generate()
    # Styles are no colours, and generated shades follow from `[colors]`.
    if not name.endswith("-style") and name not in COLORS and not name[-1].isdigit()
)


class ThemeError(ValueError):
    """A theme file that cannot be used: says which file, which key and why."""


@dataclass(frozen=True)
class Themes:
    """What the theme folders hold."""

    themes: Mapping[str, Theme]
    problems: tuple[str, ...] = ()
    """One line for each file that cannot be used."""


def variable_defaults(theme: Theme | None = None) -> dict[str, str]:
    """Values of ddtui's own variables that follow from a theme's `[colors]`.

    What an app returns from `get_theme_variable_defaults`, so that its styles may use them whatever
    the theme.
    """
    base = theme or BUILTIN_THEMES["textual-dark"]
    system = base.to_color_system().generate()
    return {name: system[color] for name, color in VARIABLES.items()}


def read_theme(path: Path) -> Theme:
    """The theme that a file describes.

    Raises:
        ThemeError: it cannot be read, is no TOML, lacks a colour, has an unknown key or a value
            that is no colour. All of a file's mistakes are in one message.
    """
    try:
        data = tomli.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ThemeError(f"theme {path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ThemeError(f"theme {path}: is no UTF-8 text: {error.reason}") from error
    except tomli.TOMLDecodeError as error:
        raise ThemeError(f"theme {path}: is no TOML: {error}") from error
    problems = list(_problems(data))
    if problems:
        raise ThemeError(f"theme {path}: {'; '.join(problems)}")
    theme = Theme(name=path.stem, dark=data["dark"], **data["colors"])
    theme.variables = {**variable_defaults(theme), **data.get("variables", {})}
    return theme


def load_themes(folders: Iterable[Path] | None = None) -> Themes:
    """All themes of some folders; of two with one name, that of the later folder.

    Args:
        folders: Default: the packaged themes, then the user's. A missing folder has no themes.
    """
    themes: dict[str, Theme] = {}
    problems: list[str] = []
    for folder in (packaged_folder(), user_folder()) if folders is None else folders:
        for path in sorted(folder.glob("*.toml")):
            try:
                theme = read_theme(path)
            except ThemeError as error:
                problems.append(str(error))
            else:
                themes[theme.name] = theme
    return Themes(themes, tuple(problems))


def install_themes(app: App[Any], wanted: str = "", found: Themes | None = None) -> list[str]:
    """Register ddtui's themes in an app, in place of Textual's, and put one in force.

    Args:
        app: The app; its `get_theme_variable_defaults` returns `variable_defaults()`.
        wanted: Name of the theme to use; empty for the default.
        found: What `load_themes` gave, when it was called before.

    Returns:
        What to tell the operator, one line each: broken files, an unknown name. The app then runs
        on the default theme.
    """
    found = load_themes() if found is None else found
    problems = list(found.problems)
    for theme in found.themes.values():
        app.register_theme(theme)
    name = wanted or DEFAULT
    if name not in found.themes:
        known = ", ".join(sorted(found.themes))
        if not any(f"{name}.toml" in problem for problem in problems):
            problems.append(
                f"theme {name}: no such theme{did_you_mean(name, found.themes)} ({known})"
            )
        name = DEFAULT
    app.theme = name
    # Those would lack ddtui's own colours, and nobody has checked their contrast here.
    for builtin in BUILTIN_THEMES.keys() - found.themes.keys():
        app.unregister_theme(builtin)
    return problems


def _problems(data: Mapping[str, object]) -> Iterable[str]:
    for key in data.keys() - {"dark", "colors", "variables"}:
        yield f"{key}: unknown key{did_you_mean(key, ('dark', 'colors', 'variables'))}"
    if not isinstance(data.get("dark"), bool):
        yield "dark: must be true or false"
    colors = data.get("colors", {})
    if not isinstance(colors, Mapping):
        yield "colors: must be a table"
    else:
        for key in COLORS:
            if key not in colors:
                yield f"colors.{key}: missing"
        yield from _bad_colors("colors", colors, frozenset(COLORS), opaque=True)
    variables = data.get("variables", {})
    if not isinstance(variables, Mapping):
        yield "variables: must be a table"
    else:
        yield from _bad_colors("variables", variables, frozenset(VARIABLES) | _TEXTUAL)


def _bad_colors(
    table: str, values: Mapping[str, object], known: frozenset[str], *, opaque: bool = False
) -> Iterable[str]:
    for key, value in values.items():
        if key not in known:
            yield f"{table}.{key}: unknown key{did_you_mean(key, known)}"
            continue
        if not isinstance(value, str):
            yield f"{table}.{key}: must be a colour in quotes, not {value!r}"
            continue
        try:
            color = Color.parse(value)
        except ColorParseError:
            yield f"{table}.{key}: {value!r} is no colour; write it as #rrggbb"
            continue
        if opaque and (color.a < 1 or color.ansi is not None):
            yield f"{table}.{key}: {value!r} must be one opaque colour; write it as #rrggbb"
