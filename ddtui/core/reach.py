"""How a host is reached."""

from __future__ import annotations

import enum


class Reach(enum.StrEnum):
    """Over SSH, as this machine, or as the built-in simulated one."""

    SSH = "ssh"
    LOCAL = "local"
    DEMO = "demo"
