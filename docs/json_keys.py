"""The keys of every JSON document, from docs/json_keys.toml and from the code that makes them.

`document` writes docs/json.md, and `unlike` says where something printed is not as that says.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import typing
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import UnionType
from typing import Any

import msgspec
import tomli

SOURCE = Path(__file__).with_suffix(".toml")
GUIDE = Path(__file__).with_name("json.md")
ANY = "NAME"
"""Stands for any name in a path."""


def _source() -> dict[str, Any]:
    return tomli.loads(SOURCE.read_text(encoding="utf-8"))


def sections() -> dict[str, dict[str, Any]]:
    """Every document by name: `title`, `about`, and `keys` with their meaning by path."""
    found = {name: each for name, each in _source().items() if isinstance(each, dict)}
    for section in found.values():
        if "code" in section:
            module, _, name = section["code"].partition(":")
            section["keys"] = dict(_of_code(getattr(importlib.import_module(module), name), ""))
    return found


def _of_code(kind: type[msgspec.Struct], path: str) -> Iterator[tuple[str, str]]:
    """The keys of a structure and of those in it, with what its fields say of themselves."""
    meanings = _docstrings(kind)
    for field in msgspec.structs.fields(kind):
        here = f"{path}{field.name}"
        yield here, meanings[field.name]
        for inner, below in _inner(field.type):
            yield from _of_code(inner, f"{here}{below}.")


def _inner(kind: Any) -> Iterator[tuple[type[msgspec.Struct], str]]:
    """Structures that a value may hold, and how one gets there."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield kind, ""
        return
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin in {typing.Union, UnionType}:
        for each in inside:
            yield from _inner(each)
    elif origin is tuple:
        yield from ((found, f"[]{below}") for found, below in _inner(inside[0]))
    elif origin is dict:
        yield from ((found, f".{ANY}{below}") for found, below in _inner(inside[1]))


def _docstrings(kind: type) -> dict[str, str]:
    """What stands beneath each field of a class. Raises KeyError where one has nothing."""
    module = ast.parse(inspect.getsource(inspect.getmodule(kind)))  # type: ignore[arg-type]
    (body,) = (
        each.body
        for each in module.body
        if isinstance(each, ast.ClassDef) and each.name == kind.__name__
    )
    found = {}
    for field, text in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
            found[ast.unparse(field.target)] = _cell(str(ast.literal_eval(text.value)))
    return found


def _cell(text: str) -> str:
    """A docstring as the other cells are: it begins in lower case, and ends without a stop."""
    words = " ".join(text.split())
    plain = words if words.endswith("...") else words.removesuffix(".")
    return plain[:1].lower() + plain[1:] if plain.partition(" ")[0].istitle() else plain


def document() -> str:
    """The page."""
    parts = [_source()["head"]]
    for section in sections().values():
        parts.append(f"## {section['title']}\n")
        if about := section.get("about", "").strip():
            parts.append(f"{about}\n")
        rows = [f"| `{key}` | {meaning} |" for key, meaning in section["keys"].items()]
        parts.append("\n".join(["| key | meaning |", "| --- | --- |", *rows]) + "\n")
    return "\n".join(parts)


def unlike(
    name: str, printed: Any, *, more: Sequence[str] = (), less: Sequence[str] = ()
) -> list[str]:
    """Where a document has a key that the section lacks, or lacks one that it has.

    `more` are keys that only others of its kind have, `less` those that this one may lack.
    """
    known = sections()[name]["keys"]
    return list(_unlike(printed, "", [*known, *more], set(less)))


def _unlike(value: Any, path: str, known: Sequence[str], optional: set[str]) -> Iterator[str]:
    if isinstance(value, list):
        for each in value:
            yield from _unlike(each, f"{path}[]" if path else "", known, optional)
        return
    below = f"{path}." if path else ""
    here = {_first(each, below) for each in known if each.startswith(below)}
    if not isinstance(value, Mapping) or not here:
        return
    for name, each in value.items():
        if ANY not in here and name not in here:
            yield f"{below}{name} is not told"
        else:
            yield from _unlike(each, f"{below}{ANY if ANY in here else name}", known, optional)
    for name in here - {ANY} - set(value):
        if f"{below}{name}" not in optional:
            yield f"{below}{name} is told and not there"


def _first(path: str, below: str) -> str:
    """The name of a path right below another one."""
    return path.removeprefix(below).partition(".")[0].partition("[")[0]
