"""The options: their types, ranges, defaults and meaning.

The descriptions here are the only ones: error messages, the file that `ddtui config init` writes
and the operating guide (held to it by a test) take them from this module.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from ddtui.core.log_buffer import CAPACITY

LOCAL = "local"
DEMO = "demo"
BUILT_IN_HOSTS = (LOCAL, DEMO)

Seconds = Annotated[float, Meta(ge=0.1, le=60)]
Port = Annotated[int, Meta(ge=1, le=65535)]
Text = Annotated[str, Meta(min_length=1, max_length=4096, pattern=r"^[^\x00-\x1f\x7f]+\Z")]
_OTHER_TYPES = "socket|timer|target|mount|automount|path|slice|scope|device|swap"
# Letters that systemd allows; a service or no type at all; not a template without its instance.
UNIT_PATTERN = rf"^(?!-)(?!.*\.(?:{_OTHER_TYPES})\Z)(?!.*@(?:\.service)?\Z)[A-Za-z0-9:_.\\@-]+\Z"
UnitName = Annotated[str, Meta(max_length=255, pattern=UNIT_PATTERN)]
# No leading '-' (ssh would take it for an option) and nothing that a shell would read.
SSH_PATTERN = r"^(?!-)[A-Za-z0-9_.@:%\[\]+/-]+\Z"
SshTarget = Annotated[str, Meta(max_length=255, pattern=SSH_PATTERN)]
VariableName = Annotated[str, Meta(max_length=255, pattern=r"^[A-Za-z_][A-Za-z0-9_]*\Z")]


class UiOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[ui]`: how the screens look."""

    theme: Annotated[
        Annotated[str, Meta(max_length=100, pattern=r"^[^\x00-\x1f\x7f]*\Z")],
        Meta(description="name of a theme; empty for the built-in default"),
    ] = ""
    paint_interval: Annotated[
        Seconds, Meta(description="seconds between two paints of live figures, 0.1 to 60")
    ] = 1.0
    mouse: Annotated[bool, Meta(description="true or false: take the mouse's clicks and wheel")] = (
        True
    )
    ascii: Annotated[
        bool, Meta(description="true or false: draw with plain ASCII, for fonts without braille")
    ] = False
    log_lines: Annotated[
        Annotated[int, Meta(ge=100, le=1_000_000)],
        Meta(description="log lines kept in memory, 100 to 1000000"),
    ] = CAPACITY


class HostOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`[hosts.NAME]`: how to reach a host and what runs there."""

    ssh: Annotated[
        SshTarget | None,
        Meta(description="alias of your ssh_config, or user@host; the section's name if left out"),
    ] = None
    ssh_config: Annotated[
        Text | None, Meta(description="path of another ssh_config, as with ssh -F")
    ] = None
    unit: Annotated[
        UnitName | None,
        Meta(description="systemd service that runs the engine, such as llm.service"),
    ] = None
    user_unit: Annotated[
        bool, Meta(description="true or false: the unit belongs to the user's own service manager")
    ] = False
    engine: Annotated[Literal["sglang"], Meta(description='the inference server: "sglang"')] = (
        "sglang"
    )
    port: Annotated[
        Port | None,
        Meta(description="the engine's HTTP port, 1 to 65535; from its command line if left out"),
    ] = None
    bind_host: Annotated[
        Text | None,
        Meta(description="address to reach the engine at, on the host; from its command line"),
    ] = None
    api_key_env: Annotated[
        VariableName | None,
        Meta(description="name of the environment variable here that holds the engine's API key"),
    ] = None
    api_key_command: Annotated[
        Annotated[tuple[Text, ...], Meta(min_length=1)] | None,
        Meta(description='program and arguments that print the API key, such as ["pass", "llm"]'),
    ] = None
    nvidia_smi: Annotated[
        Text | None, Meta(description="path of nvidia-smi on the host, if not on its PATH")
    ] = None
    gpu_interval: Annotated[
        Seconds, Meta(description="seconds between two readings of the GPUs, 0.1 to 60")
    ] = 1.0
    system_interval: Annotated[
        Seconds,
        Meta(description="seconds between two readings of CPU, memory and disks, 0.1 to 60"),
    ] = 1.0
    hub_cache: Annotated[
        Text | None,
        Meta(
            description="the unit's Hugging Face hub cache on the host, if not in its user's home"
        ),
    ] = None

    knobs: Annotated[
        dict[str, str] | None,
        Meta(
            description="flags of knobs that this host's server names in its own way,"
            ' such as { budget = "speculative-ddtree-budget" }; "env:NAME" for a variable'
        ),
    ] = None


Keys = dict[str, str | tuple[str, ...]]


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    ui: UiOptions = UiOptions()
    keys: Keys = msgspec.field(default_factory=dict)
    """Action id to the key or keys that start it. Ids are checked where the actions are known."""
    hosts: Mapping[str, HostOptions] = msgspec.field(default_factory=dict)
    presets: Mapping[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    """Tables as written; `ddtui.config.presets` reads them."""
    sweeps: Mapping[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    """Tables as written; `ddtui.config.sweeps` reads them."""
    bench: Mapping[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    """Tables as written; `ddtui.config.bench_plans` reads them."""

    def key_map(self) -> dict[str, tuple[str, ...]]:
        """Action ids with their keys, as tuples."""
        return {
            action: (keys,) if isinstance(keys, str) else keys for action, keys in self.keys.items()
        }

    def key_table(self) -> dict[str, object]:
        """The `[keys]` table as the key map reads it."""
        return {action: list(keys) for action, keys in self.key_map().items()}


def option_fields(table: type[msgspec.Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    """The options of a table by name, in their order."""
    return {field.encode_name: field for field in msgspec.structs.fields(table)}


def description(field: msgspec.structs.FieldInfo) -> str:
    """What an option means and takes."""
    metas: tuple[Any, ...] = typing.get_args(field.type)[1:]
    return next((str(m.description) for m in metas if isinstance(m, Meta) and m.description), "")


def is_unit_name(name: str) -> bool:
    """Whether `name` can name a service; `.service` may be left out."""
    return len(name) <= 255 and re.match(UNIT_PATTERN, name) is not None


def is_host_name(name: str) -> bool:
    """Whether `name` can name a host: what ssh takes for a destination, and no option of it."""
    return len(name) <= 255 and re.match(SSH_PATTERN, name) is not None
