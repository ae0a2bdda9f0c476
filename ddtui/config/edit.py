"""Writing the configuration: a commented first file, and changes that keep all comments."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import tomlkit
from tomlkit.items import Table

from ddtui.config.errors import ConfigError
from ddtui.config.load import parse, read_text
from ddtui.config.model import HostOptions, UiOptions, description, option_fields
from ddtui.config.whole_file import is_replaced, write_whole

Value = str | int | float | bool | list[str]

_HEAD = """\
# Configuration of ddtui. Lines that start with '#' show what may be set; those that assign a value
# show the default. `ddtui config validate` checks this file, `ddtui config print` shows what is in
# force.
"""
_KEYS = """
[keys]
# Action id = "key" or a list of keys. `?` in the screens lists the ids.
# "app.quit" = "ctrl+q"
"""
_HOSTS = """
# One section a host. A host without a section is taken as an alias of your ssh_config: a section is
# needed only for what ssh does not know. `ddtui init HOST` finds the unit and writes the section.
# The hosts 'local' (this machine) and 'demo' (simulated) need none; 'local' may have one.
#
# [hosts.ct200]
"""


_PRESETS = """
# One section a preset: knobs, flags of the server, and variables of the unit. A project's presets
# go into ddtui.toml of the folder that ddtui is started in.
#
# [presets.budget-16]
# description = "a tree of 16 nodes"
# extends = "another preset"
# budget = 16
# window = "none"
# flags = { "mem-fraction-static" = 0.85, "disable-cuda-graph" = true }
# unset = ["chunked-prefill-size"]
# environment = { SGLANG_DDTREE_MAX_TOPK = "8" }
# unset_environment = ["NCCL_DEBUG"]
"""


def default_text() -> str:
    """The file that `ddtui config init` writes: every option, commented out, with its meaning."""
    parts = [_HEAD, "\n[ui]\n", *_option_lines(UiOptions), _KEYS, _HOSTS]
    parts += [*_option_lines(HostOptions), _PRESETS]
    return "".join(parts)


def _option_lines(model: type[msgspec.Struct]) -> list[str]:
    lines = []
    for name, field in option_fields(model).items():
        lines.append(f"# {description(field)}\n")
        if field.default is None:
            lines.append(f"# {name} = {_EXAMPLES[name]}\n")
        else:
            lines.append(f"# {name} = {tomlkit.item(field.default).as_string()}\n")
    return lines


_EXAMPLES = {
    "ssh": '"ct200"',
    "ssh_config": '"~/.ssh/config"',
    "unit": '"llm.service"',
    "port": "30000",
    "bind_host": '"127.0.0.1"',
    "api_key_env": '"LLM_API_KEY"',
    "api_key_command": '["pass", "show", "llm"]',
    "nvidia_smi": '"/usr/bin/nvidia-smi"',
    "hub_cache": '"/data/huggingface/hub"',
    "knobs": '{ budget = "speculative-ddtree-budget" }',
}


def write_default(file: Path, *, force: bool) -> Path | None:
    """Write the commented default file. Returns where an older file was kept, if there was one.

    Raises ConfigError when there is a file already and `force` is not set, or when writing fails.
    """
    if os.path.lexists(file) and not force:
        raise ConfigError.of(
            "exists already and is left as it is; --force replaces it and keeps a .bak", file
        )
    return replace_file(file, default_text())


def add_host(file: Path, name: str, values: Mapping[str, Value], *, force: bool) -> Path | None:
    """Write the section of a host, keeping everything else in the file as it stands.

    With `force`, values of an existing section are changed and its other lines kept. Returns where
    the older file was kept, if there was one. Raises ConfigError, also for a file with mistakes.
    """
    try:
        text = read_text(file)
    except FileNotFoundError:
        text = ""
    parse(text, file)
    document = tomlkit.parse(text)
    hosts = document.get("hosts")
    if hosts is None:
        hosts = document["hosts"] = tomlkit.table(is_super_table=True)
    if name in hosts and not force:
        raise ConfigError.of(
            "stands in the file already; --force changes the values that were found",
            file,
            f"[hosts.{name}]",
        )
    section: Any = hosts.get(name)
    if section is None:
        section = tomlkit.table()
        section.update(values)
        _separate(document, hosts)
        hosts[name] = section
    else:
        for key, value in values.items():
            section[key] = value
    changed = tomlkit.dumps(document)
    parse(changed, file)
    return replace_file(file, changed)


def _separate(document: tomlkit.TOMLDocument, hosts: Any) -> None:
    """See that an empty line stands before what is appended."""
    if document.as_string().strip() and not document.as_string().endswith("\n\n"):
        last = hosts if isinstance(hosts, Table) and len(hosts) else document
        last.add(tomlkit.nl())


def replace_file(file: Path, text: str) -> Path | None:
    """Write a file whole or not at all; an older one is kept as `.bak`."""
    target = Path(os.path.realpath(file))  # a link, as dotfile managers make them, stays a link
    kept = None
    try:
        if not is_replaced(target):
            raise ConfigError.of("is no file: nothing that is written there would be kept", file)
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            kept = target.with_name(target.name + ".bak")
            shutil.copy2(target, kept)
        write_whole(target, text.encode(), private=True)
    except OSError as error:
        where, why = error.filename or str(target), error.strerror or str(error)
        raise ConfigError.of(f"cannot be written: {why} ({where})", file) from error
    return kept
