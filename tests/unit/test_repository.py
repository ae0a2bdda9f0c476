"""Rules for the files of the repository themselves."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60
REASON = "Long because:"

# In parts, so that this file passes its own test.
REGISTRY_HOSTS = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("deb", "debian", "org"),
        ("archive", "ubuntu", "com"),
        ("crates", "io"),
    )
]

# Caches and environments, for a tree that git does not know.
UNTRACKED = {"build", "dist", "__pycache__"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def tracked_files() -> list[Path]:
    """The files that git tracks; in an unpacked archive, all that are no build results."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        inside = (path.relative_to(ROOT) for path in ROOT.rglob("*"))
        names = [
            path for path in inside if not UNTRACKED & {*path.parts} and path.parts[0][0] != "."
        ]
    else:
        names = [Path(name) for name in listed.split("\0") if name]
    return [ROOT / name for name in names if (ROOT / name).is_file()]


def tracked_texts() -> Iterator[tuple[Path, str]]:
    for path in tracked_files():
        try:
            yield path.relative_to(ROOT), path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def package_files(*suffixes: str) -> list[Path]:
    package = ROOT / "ddtui"
    return sorted(path for path in package.rglob("*") if path.suffix in suffixes)


def excused(lines: list[str], function: Function) -> bool:
    """Whether the line above the function (or its first decorator) says why it is long."""
    first = min([function.lineno, *(item.lineno for item in function.decorator_list)])
    above = lines[first - 2].strip() if first > 1 else ""
    return above.startswith(f"# {REASON}")


def long_functions(source: str) -> list[str]:
    lines = source.splitlines()
    return [
        f"{node.lineno}: {node.name}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, Function)
        and (node.end_lineno or node.lineno) - node.lineno + 1 > MAX_FUNCTION_LINES
        and not excused(lines, node)
    ]


def test_files_are_short() -> None:
    too_long = []
    for path in package_files(".py", ".tcss"):
        lines = path.read_text(encoding="utf-8").splitlines()
        if len(lines) > MAX_FILE_LINES and not any(REASON in line for line in lines[:15]):
            too_long.append(f"{path.relative_to(ROOT)}: {len(lines)} lines")
    assert too_long == []


def test_functions_are_short() -> None:
    too_long = [
        f"{path.relative_to(ROOT)}:{found}"
        for path in package_files(".py")
        for found in long_functions(path.read_text(encoding="utf-8"))
    ]
    assert too_long == []


@pytest.mark.parametrize(
    ("above", "found"), [("", ["2: f"]), ("# Long because: it is a table.", [])]
)
def test_a_long_function_is_found_unless_it_says_why(above: str, found: list[str]) -> None:
    source = f"{above}\ndef f():\n" + "    pass\n" * MAX_FUNCTION_LINES
    assert long_functions(source) == found


def test_no_file_names_a_package_registry() -> None:
    found = [
        f"{path}: {host}"
        for path, text in tracked_texts()
        for host in REGISTRY_HOSTS
        if host in text
    ]
    assert found == []


def test_no_file_holds_a_path_of_a_developers_machine() -> None:
    here = [str(path) for path in (ROOT, Path.home()) if len(path.parts) > 2]
    private = re.compile("|".join([*map(re.escape, here), r"/Users/\w", r"\b[A-Z]:\\Users\\"]))
    found = [
        f"{path}: {match.group()}"
        for path, text in tracked_texts()
        if (match := private.search(text))
    ]
    assert found == []


def test_lock_files_pin_by_hash_and_name_no_source() -> None:
    pins = {}
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert "://" not in text
        assert not re.search(r"^\s*(-|--)(i|f|index|extra|find)", text, re.MULTILINE)
        entries = re.split(r"\n(?=\S)", text.strip())
        assert all("==" in entry and "--hash=sha256:" in entry for entry in entries)
        pins[name] = {entry.partition(" ")[0] for entry in entries}
    assert pins["requirements.lock"] <= pins["requirements-dev.lock"]
