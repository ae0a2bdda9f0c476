"""The operating guide says what the code does."""

import importlib.util
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import ddtui
from ddtui.config.load import parse

ROOT = Path(__file__).resolve().parents[3]
GUIDE = ROOT / "docs" / "operating.md"


def test_the_tables_of_the_guide_are_current() -> None:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "make_reference.py")
    assert spec is not None
    assert spec.loader is not None
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    text = GUIDE.read_text(encoding="utf-8")
    assert text == reference.filled(text), "run .venv/bin/python docs/make_reference.py"


@pytest.mark.parametrize("name", ["docs/operating.md", "README.md"])
def test_every_command_in_the_documents_exists(name: str) -> None:
    from ddtui.cli.root import app

    text = (ROOT / name).read_text(encoding="utf-8")
    verbs = set(re.findall(r"\bddtui ((?:config )?[a-z]+)\b(?=[ `\n])", text))
    known = {
        "connect",
        "status",
        "diagnose",
        "doctor",
        "init",
        "hosts",
        "config",
        "presets",
        "knobs",
    }
    found = {verb for verb in verbs if verb.split()[0] in known}
    assert {"connect", "doctor", "init"} <= found
    for verb in found:
        result = CliRunner().invoke(app, [*verb.split(), "--help"])
        assert result.exit_code == 0, verb


def test_every_example_of_the_configuration_can_be_used() -> None:
    text = GUIDE.read_text(encoding="utf-8") + (ROOT / "README.md").read_text(encoding="utf-8")
    examples = re.findall(r"(?s)```toml\n(.*?)```", text)
    assert len(examples) >= 6
    for example in examples:
        without, _, mapping = example.partition("[knobs]")
        parse(without, Path("example.toml"))
        parse(f"[hosts.a.knobs]{mapping}", Path("example.toml"))


def test_the_changes_are_those_of_this_version() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    (version,) = re.findall(r"(?m)^## \[(.+?)\]", changes)
    assert version == ddtui.__version__


@pytest.mark.parametrize("name", ["docs/operating.md", "docs/json.md", "README.md"])
def test_links_within_the_documents_lead_somewhere(name: str) -> None:
    file = ROOT / name
    text = file.read_text(encoding="utf-8")
    for target in re.findall(r"(?<!!)\[[^]]*\]\(([^)]+)\)", text):
        path, _, anchor = target.partition("#")
        there = file.parent / path if path else file
        assert there.exists(), target
        if anchor:
            assert anchor in headings_of(there.read_text(encoding="utf-8")), target


def headings_of(text: str) -> set[str]:
    """The names by which one gets to the headings of a page."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"(?m)^#+ (.+)$", text)
    }
