"""Where the configuration lies, and where ddtui keeps its own files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec
import platformdirs

APP = "ddtui"
FILE_NAME = "config.toml"
FILE_VARIABLE = "DDTUI_CONFIG_FILE"
FOLDER_VARIABLE = "DDTUI_CONFIG_DIR"


class ConfigPath(msgspec.Struct, frozen=True):
    """The configuration file in use."""

    file: Path
    origin: str
    """Why this one, in words: `--config`, an environment variable, or the default."""
    required: bool = False
    """True where the operator named this very file, so that its absence is an error."""


def config_folder(env: Mapping[str, str] = os.environ) -> Path:
    """The user's folder for the configuration and themes."""
    if named := env.get(FOLDER_VARIABLE):
        return Path(named).expanduser()
    return platformdirs.user_config_path(APP, appauthor=False)


def find_config(option: Path | None = None, env: Mapping[str, str] = os.environ) -> ConfigPath:
    """The file to use: the `--config` option, then the environment, then the user's own folder."""
    if option is not None:
        return ConfigPath(option.expanduser(), "--config", required=True)
    if named := env.get(FILE_VARIABLE):
        return ConfigPath(Path(named).expanduser(), FILE_VARIABLE, required=True)
    origin = FOLDER_VARIABLE if env.get(FOLDER_VARIABLE) else "default"
    return ConfigPath(config_folder(env) / FILE_NAME, origin)


def log_folder() -> Path:
    """Where ddtui writes its own log."""
    return platformdirs.user_log_path(APP, appauthor=False)


def cache_folder() -> Path:
    """Where what can be learned again is kept."""
    return platformdirs.user_cache_path(APP, appauthor=False)
