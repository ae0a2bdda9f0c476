"""The engine's API key: from the environment or from a program, never from a file of ours."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

from ddtui.config.model import HostOptions

TIMEOUT = 10.0
"""Seconds that a program may take to print the key."""
MAX_LENGTH = 4096


class ApiKeyError(Exception):
    """There should be a key and there is none. The message holds no part of it."""


def api_key(options: HostOptions, env: Mapping[str, str] = os.environ) -> str | None:
    """The key that the options ask for; None where they ask for none. Blocks up to `TIMEOUT`.

    Raises ApiKeyError.
    """
    if options.api_key_env is not None:
        value = env.get(options.api_key_env, "").strip()
        if not value:
            raise ApiKeyError(
                f"the environment variable {options.api_key_env} (api_key_env) is not set;"
                " export it"
            )
        return _checked(value, f"the environment variable {options.api_key_env}")
    if options.api_key_command is not None:
        return _from_command(options.api_key_command)
    return None


def _from_command(argv: tuple[str, ...]) -> str:
    # Only the program is named in messages: its arguments may hold what must not be shown.
    program = f"{argv[0]} (api_key_command)"
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ApiKeyError(
            f"{program} printed no key within {TIMEOUT:.0f} s; it must not ask for anything:"
            " unlock the key store first"
        ) from error
    except OSError as error:
        raise ApiKeyError(f"{program} cannot be run: {error.strerror}") from error
    if done.returncode != 0:
        raise ApiKeyError(
            f"{program} failed with status {done.returncode}; run it by hand to see why"
        )
    value = done.stdout.decode("utf-8", errors="replace").strip()
    if not value:
        raise ApiKeyError(f"{program} printed nothing")
    return _checked(value, program)


def _checked(value: str, origin: str) -> str:
    if len(value) > MAX_LENGTH or not value.isascii() or not value.isprintable():
        raise ApiKeyError(
            f"what {origin} gives is no API key: one line of printable ASCII is expected"
        )
    return value
