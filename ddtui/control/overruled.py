"""Which files of a unit decide over the variables that ddtui's drop-in sets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

import msgspec

from ddtui.control.exec_start import words
from ddtui.control.unit_text import UnitFile, assignments, listed


class Overruled(msgspec.Struct, frozen=True):
    """Who decides over variables: names to paths."""

    set_later: dict[str, str] = {}
    """Set by a drop-in that systemd reads after ddtui's."""
    emptied_by: str = ""
    """A later drop-in that takes all variables of those before it away."""
    unset: dict[str, str] = {}
    """Taken away by `UnsetEnvironment=`, which goes before all that sets them."""

    def by(self, name: str) -> str:
        """The file over which a variable cannot be set; empty where it can."""
        return self.set_later.get(name) or self.emptied_by or self.unset.get(name, "")


def overruled(files: Sequence[UnitFile], drop_in: str) -> Overruled:
    """What decides over the variables of the drop-in of that name. Raises ExecError.

    `files` are the fragment and its drop-ins in systemd's order.
    """
    later = [each for each in files[1:] if PurePosixPath(each.path).name > drop_in]
    found: dict[str, str] = {}
    emptied = ""
    for each in assignments(later):
        if each.name == "Environment":
            emptied = emptied if each.value else each.path
            names = [token.value.partition("=")[0] for token in words(each.value)]
            found = {**(found if each.value else {}), **dict.fromkeys(names, each.path)}
    others = [each for each in files if PurePosixPath(each.path).name != drop_in]
    unset = {
        token.value: each.path
        for each in listed(others, "UnsetEnvironment")
        for token in words(each.value)
        if "=" not in token.value  # NAME=VALUE takes only that value away
    }
    return Overruled(found, emptied, unset)
