"""The command `ddtui`: one module a verb.

Verbs import what they need when they run: `ddtui --help` loads no UI, no transport and no database.
"""

from __future__ import annotations


def main() -> None:
    """Run the command line and exit.

    Ctrl+C may come while the modules are still being loaded. What is printed past the verbs (the
    help) may not be writable either.
    """
    try:
        from ddtui.cli import streams

        streams.complete()  # before any file is opened
        from ddtui.cli.output import written
        from ddtui.cli.root import app

        with written():
            app()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
