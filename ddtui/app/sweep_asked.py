"""What `ddtui sweep` is asked for: a sweep by its file, its name, or as a grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ddtui.config.errors import ConfigError, did_you_mean
from ddtui.config.grid_text import parse_grid
from ddtui.config.load import Loaded
from ddtui.config.preset_tables import NAME
from ddtui.config.sweeps import NamedSweep, load_sweeps, read_sweep_file
from ddtui.core.sweep import POLICIES, Matching, Sweep, policy_name


def sweep_asked(loaded: Loaded, words: Sequence[str]) -> Sweep:
    """The sweep that words mean: a file (FILE or FILE:NAME), a configured name, or a grid.

    Raises ConfigError.
    """
    if len(words) == 1:
        word = words[0]
        if (named := _of_file(word)) is not None:
            return named.sweep
        if NAME.fullmatch(word):
            return _configured(loaded, word)
    return parse_grid(" ".join(words))


def _of_file(word: str) -> NamedSweep | None:
    """The sweep of a file; None where the word names none."""
    path, _, name = word.rpartition(":")
    if path and NAME.fullmatch(name) and path.endswith(".toml"):
        return read_sweep_file(Path(path).expanduser(), name)
    if word.endswith(".toml"):
        return read_sweep_file(Path(word).expanduser())
    return None


def _configured(loaded: Loaded, name: str) -> Sweep:
    sweeps: Mapping[str, NamedSweep] = load_sweeps(loaded)
    if name in sweeps:
        return sweeps[name].sweep
    known = f" (sweeps: {', '.join(sweeps)})" if sweeps else ""
    hint = did_you_mean(name, sweeps) or known
    raise ConfigError.of(
        f"there is no sweep {name!r}{hint}; a file ends in .toml, a grid is budget=4,8"
    )


class SweepOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line sets beside a sweep."""

    policy: str | None = None
    """With the block size that the budgets are for behind a colon."""
    control: bool = False
    again: bool = False
    name: str | None = None
    plan: str | None = None


def with_options(sweep: Sweep, over: SweepOptions) -> Sweep:
    """A sweep with what the command line sets beside it. Raises ConfigError."""
    match = sweep.match
    if over.policy is not None:
        match = _matching(match or Matching(), over.policy)
    if over.control:
        if match is None:
            raise ConfigError.of("needs a sweep that matches: add --match", where="--control")
        match = msgspec.structs.replace(match, control=True)
    if over.name is not None and not NAME.fullmatch(over.name):
        expected = "expected letters, digits and . _ + -, 64 at most"
        raise ConfigError.of(f"got {over.name[:80]!r}; {expected}", where="--name")
    return msgspec.structs.replace(
        sweep,
        match=match,
        again=sweep.again or over.again,
        name=over.name or sweep.name,
        plan=over.plan or sweep.plan,
    )


def _matching(match: Matching, text: str) -> Matching:
    plain, colon, size = text.partition(":")
    policy = policy_name(plain)
    if policy is None:
        hint = did_you_mean(plain, POLICIES) or f" (policies: {', '.join(POLICIES)})"
        raise ConfigError.of(f"there is no policy {plain[:80]!r}{hint}", where="--match")
    if not colon:
        return msgspec.structs.replace(match, policy=policy)
    if not (size.isdecimal() and 2 <= int(size) <= 4096):
        expected = "expected the block size that the budgets are for, such as nodes:8"
        raise ConfigError.of(f"got {size[:80]!r}; {expected}", where="--match")
    return msgspec.structs.replace(match, policy=policy, block_size=int(size))
