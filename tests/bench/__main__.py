"""`python -m tests.bench [NAME...]`: runs the benchmarks and prints one JSON object.

Every module `bench_NAME.py` here has a `run()` that returns its figures. Nothing is asserted: these
are measurements, and machines differ.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
from pathlib import Path

NAMES = sorted(
    path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py")
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    wanted = parser.parse_args().names or NAMES
    if unknown := sorted(set(wanted) - set(NAMES)):
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(NAMES)}")
    results: dict[str, object] = {
        "machine": {"cores": os.cpu_count(), "python": platform.python_version()}
    }
    for name in wanted:
        print(f"{name} ...", file=sys.stderr)
        results[name] = importlib.import_module(f"tests.bench.bench_{name}").run()
    print(json.dumps(results, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
