"""The command `ddtui`: one module a verb.

Verbs import what they need when they run: `ddtui --help` loads no UI, no transport and no database.
"""

from __future__ import annotations


def main() -> None:
    """Run the command line and exit."""
    from ddtui.cli.root import app

    app()
