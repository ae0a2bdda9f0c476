"""The options that the screens take: a configuration whose keys and theme are checked as well.

Only the screens know their actions. Other verbs do not load them, and work with a wrong key.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ddtui.cli.context import Options
from ddtui.config.errors import ConfigError, Problem
from ddtui.config.load import Loaded, key_lines, placed, read_document, read_text
from ddtui.config.paths import find_config
from ddtui.config.themes import theme_fault


def load_for_screens(options: Options) -> Loaded:
    """The configuration. Raises ConfigError with all its mistakes, those in `[keys]` included."""
    try:
        loaded = options.load()
    except ConfigError as error:
        found = [*error.problems, *_more(options, error)]
        raise ConfigError(sorted(found, key=lambda problem: problem.line or 0)) from error
    document = {"keys": loaded.config.key_table(), "ui": {"theme": loaded.config.ui.theme}}
    if problems := screen_problems(document, loaded.path.file, loaded.lines):
        raise ConfigError(problems)
    return loaded


def _more(options: Options, error: ConfigError) -> list[Problem]:
    """Mistakes of the screens' options in a file that has others."""
    file = find_config(options.config).file
    try:
        text = read_text(file)
        document = read_document(text, file)
    except (ConfigError, OSError):  # what was told already
        return []
    told = {problem.where for problem in error.problems}
    found = screen_problems(document, file, key_lines(text))
    return [problem for problem in found if problem.where not in told]


def screen_problems(
    document: Mapping[str, Any], file: Path, lines: Mapping[tuple[str, ...], int]
) -> list[Problem]:
    """Mistakes in `[keys]` and the theme's name, each with its place."""
    found: list[tuple[tuple[str, ...], str]] = []
    ui, keys = document.get("ui"), document.get("keys")
    theme = ui.get("theme") if isinstance(ui, dict) else None
    if isinstance(theme, str) and (fault := theme_fault(theme)):
        found.append((("ui", "theme"), fault))
    if isinstance(keys, dict) and keys:
        from ddtui.ui.keymap import KeymapError, read_keymap

        try:
            read_keymap(keys)
        except KeymapError as error:
            # Each begins with `keys.ACTION: `.
            parts = (text.partition(": ") for text in error.problems)
            found += [(("keys", name.removeprefix("keys.")), what) for name, _, what in parts]
    return [placed(where, message, file, lines) for where, message in found]
