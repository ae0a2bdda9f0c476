"""Writes what the code knows better: tables of docs/operating.md, and docs/json.md as a whole.

Run it after changing one of them (a test fails until then): `python docs/make_reference.py`.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType

import tomlkit

from ddtui.cli.exit_codes import ExitCode
from ddtui.config.model import HostOptions, UiOptions, description, option_fields
from ddtui.core.knobs import KNOBS
from ddtui.demo.scenarios import SCENARIOS
from ddtui.ui.actions import ACTIONS

GUIDE = Path(__file__).with_name("operating.md")
SCOPES = {
    "app": "everywhere",
    "monitor": "Monitor",
    "log": "Log",
    "hosts": "Hosts",
    "presets": "Presets",
    "history": "History",
    "queue": "Queue",
    "results": "Results",
}


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    escaped = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in escaped)


def options(model: type[UiOptions] | type[HostOptions]) -> str:
    """All options of a table of the configuration."""
    rows = []
    for name, field in option_fields(model).items():
        unset = field.default in {None, ""}
        default = "" if unset else f"`{tomlkit.item(field.default).as_string()}`"
        rows.append((f"`{name}`", default, description(field)))
    return table(("option", "default", "meaning"), rows)


def keys() -> str:
    """All actions with their keys."""
    rows = [
        (
            SCOPES.get(action.id.partition(".")[0], action.id.partition(".")[0]),
            " ".join(f"`{key}`" for key in action.keys),
            f"`{action.id}`",
            action.description,
        )
        for action in ACTIONS
    ]
    return table(("where", "keys", "action id", "what it does"), rows)


def exit_codes() -> str:
    """All exit statuses."""
    return table(("status", "meaning"), [(str(int(code)), code.description) for code in ExitCode])


def knobs() -> str:
    """All knobs."""
    rows = [(f"`{knob.name}`", knob.kind.value, knob.meaning) for knob in KNOBS.values()]
    return table(("knob", "value", "meaning"), rows)


def scenarios() -> str:
    """What the simulated host can go through."""
    return table(("scenario", "what it shows"), [(f"`{n}`", text) for n, text in SCENARIOS.items()])


def filled(text: str) -> str:
    """The guide with its tables as the code has them now."""
    parts = {
        "ui options": options(UiOptions),
        "host options": options(HostOptions),
        "keys": keys(),
        "knobs": knobs(),
        "exit statuses": exit_codes(),
        "scenarios": scenarios(),
    }
    for name, part in parts.items():
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        if not pattern.search(text):
            raise ValueError(f"{GUIDE} has no place for {name}")
        before, after = pattern.split(text, maxsplit=1)
        text = f"{before}{begin}\n{part}\n{end}{after}"
    return text


def json_keys() -> ModuleType:
    """The module that has the keys of every JSON document; it lies beside this one."""
    spec = importlib.util.spec_from_file_location(
        "json_keys", Path(__file__).with_name("json_keys.py")
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    json_keys().GUIDE.write_text(json_keys().document(), encoding="utf-8")
    GUIDE.write_text(filled(GUIDE.read_text(encoding="utf-8")), encoding="utf-8")
