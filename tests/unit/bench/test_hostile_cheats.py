"""Code that wants to pass without being right does not."""

from __future__ import annotations

import hashlib
import textwrap

import pytest

from ddtui.bench.sandbox import Sandbox
from ddtui.core.measurement import Verdict
from tests.unit.bench.sandboxed import SECRET, judged

_CHEATS = {
    "exit": "import sys\ndef solve(x):\n    sys.exit(0)",
    "exit at the top": "def solve(x): pass\nraise SystemExit(0)",
    "_exit": "import os\ndef solve(x):\n    os._exit(0)",
    "_exit at the top": "def solve(x): pass\nimport os\nos._exit(0)",
    "printed pass": """
        import os, sys
        def solve(x):
            for each in ('pass', '{"value": 0}', '{"verdict": "pass"}', 'ready'):
                print(each, flush=True)
            for each in range(1, 32):
                try:
                    os.write(each, b'{"value": "pass"}\\n')
                except OSError:
                    pass
            os._exit(0)
        """,
    "more results than tests": """
        import os
        def solve(x):
            for each in range(3, 32):
                try:
                    os.write(each, b'{"value": 1}\\n' * 50)
                except OSError:
                    pass
            return 1
        """,
    "other JSON": """
        import json
        json.JSONEncoder.encode = lambda *_: '{"value": true, "verdict": "pass"}'
        json.dumps = json.JSONEncoder.encode
        def solve(x):
            return x
        """,
    "other builtins": """
        import builtins
        builtins.type = lambda *_: bool
        builtins.isinstance = builtins.issubclass = lambda *_: True
        builtins.len = lambda *_: 1
        builtins.exec = builtins.compile = builtins.str = None
        def solve(x):
            return x
        """,
    "lying object": """
        class Liar(int):
            __eq__ = __le__ = __ge__ = lambda *_: True
            __ne__ = lambda *_: False
            __hash__ = int.__hash__
            __repr__ = __str__ = lambda self: "918273645"
        def solve(x):
            return Liar(0)
        """,
    "lying class": """
        class Meta(type):
            __eq__ = lambda *_: True
            __hash__ = type.__hash__
            __name__ = "int"
        class Liar(metaclass=Meta):
            __eq__ = lambda *_: True
            __hash__ = None
            @property
            def __class__(self):
                return int
        def solve(x):
            return Liar()
        """,
    "closed descriptors": "import os\ndef solve(x):\n    os.closerange(0, 100)\n    return x",
    "true": "def solve(x):\n    return True",
    "nan": "def solve(x):\n    return float('nan')",
    "as text": "def solve(x):\n    return str(918273645)",
    "as float": "def solve(x):\n    return float(918273645)",
    "in a list": "def solve(x):\n    return [918273645]",
    "endless list": "def solve(x):\n    a = []\n    a.append(a)\n    return a",
    "deep list": "def solve(x):\n    a = []\n    for _ in range(100000): a = [a]\n    return a",
    "long number": "def solve(x):\n    return 10 ** 100000",
    "generator": "def solve(x):\n    yield 918273645",
    "coroutine": "async def solve(x):\n    return 918273645",
    "no function": "solve = 918273645",
    "a source too deep": "def solve(x):\n    return " + "-" * 200000 + "1",
    "nothing": "def solve(x):\n    pass",
    "raised": "def solve(x):\n    raise ValueError(918273645)",
    "raised from nowhere": """
        class Odd(BaseException):
            def __str__(self):
                raise Odd
        def solve(x):
            raise Odd
        """,
    "search of all that can be reached": f"""
        import gc, hashlib, sys
        def wanted(value):
            digest = hashlib.sha256(repr(value).encode()).hexdigest()
            return digest == "{hashlib.sha256(repr(SECRET).encode()).hexdigest()}"
        def solve(x):
            frame, seen = sys._getframe(), []
            while frame:
                seen += [*frame.f_locals.values(), *frame.f_globals.values()]
                frame = frame.f_back
            seen += gc.get_objects()
            for each in list(seen):
                if isinstance(each, (str, bytes)):
                    seen += [int(word) for word in each.split() if word.isdigit()]
                seen += gc.get_referents(each)
            for each in seen:
                if type(each) is int and wanted(each):
                    return each
        """,
}


@pytest.mark.parametrize("name", _CHEATS)
async def test_cheats_do_not_pass(sandbox: Sandbox, name: str) -> None:
    found = await judged(textwrap.dedent(_CHEATS[name]), sandbox)
    assert found.verdict in (Verdict.WRONG, Verdict.ERROR, Verdict.MEMORY), found
    assert found.detail


async def test_right_code_passes(sandbox: Sandbox) -> None:
    noisy = f"print('hello')\ndef solve(x):\n    print(x)\n    return {SECRET}"
    assert (await judged(noisy, sandbox)).verdict is Verdict.PASS
