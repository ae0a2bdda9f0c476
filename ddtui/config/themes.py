"""Which themes there are: TOML files, each named for its theme. What is in them, the screens read.

So that a theme's name can be checked without loading what draws with it.
"""

from __future__ import annotations

from pathlib import Path

from ddtui.config.errors import did_you_mean
from ddtui.config.paths import config_folder


def packaged_folder() -> Path:
    """The folder of the themes that come with ddtui."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "themes"
    # In a source tree the folder lies beside the package; a wheel carries it inside.
    return installed if installed.is_dir() else package.parent / "themes"


def user_folder() -> Path:
    """The folder where users put their own themes."""
    return config_folder() / "themes"


def theme_names() -> list[str]:
    """The names of all themes, packaged and the user's own."""
    folders = (packaged_folder(), user_folder())
    return sorted({path.stem for folder in folders for path in folder.glob("*.toml")})


def theme_fault(name: str) -> str:
    """What is wrong with a theme's name; an empty string when there is such a theme."""
    names = theme_names()
    if not name or name in names:
        return ""
    known = ", ".join(names)
    return f"there is no theme {name[:80]!r}{did_you_mean(name, names)} (themes: {known})"
