"""What runs inside the sandbox: calls the code under test, and tells what it returned.

It is never imported by ddtui: its source is given to the interpreter in the sandbox, which may be
an older one (3.9). It reads one JSON object from standard input:

    code, entry     the source, and the name of the function or class to call
    calls           a list of argument lists; for a class [constructor's arguments, [[method,
                    argument, ...], ...]]
    is_class
    limits          resource limits by name, as resource.RLIMIT_... without the prefix
    filter          a seccomp program in hexadecimal, to be installed here; or null
    readable        by paths of files and folders, all that may be read from then on, whether more
                    of a folder than the names in it; or null
    parent          the process to die with; or null

and writes to what was its standard output: `ready` once it is confined, and a line of JSON for each
call, {"value": ...} or {"raised": [names], "text": ...}; or one in place of them all, {"load":
[names], "text": ...}. Values that JSON lacks are tagged: {"tuple": [...]}, {"set": [...]},
{"dict": [[key, value], ...]}, {"other": type}. What it writes is the code's own claim: the judge
knows what is right, this does not.
"""

from __future__ import annotations

import json
import os
import resource
import stat
import sys
import types
from typing import Any

_DEEPEST = 50


def _encode(value: Any, depth: int = 0) -> Any:
    """A value of exactly these types, in JSON's terms: an instance of a subclass may lie."""
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if depth > _DEEPEST:
        return {"other": "something nested too deeply"}
    if kind is list:
        return [_encode(each, depth + 1) for each in value]
    if kind is tuple:
        return {"tuple": [_encode(each, depth + 1) for each in value]}
    if kind in (set, frozenset):
        return {"set": [_encode(each, depth + 1) for each in value]}
    if kind is dict:
        items = list(value.items())
        return {"dict": [[_encode(k, depth + 1), _encode(v, depth + 1)] for k, v in items]}
    return {"other": str(type.__dict__["__name__"].__get__(kind))}


def _failure(error: BaseException) -> dict[str, Any]:
    names = [each.__name__ for each in type(error).__mro__ if each is not object]
    try:
        text = str(error)[:300]
    except BaseException:
        text = ""
    return {"raised": names, "text": text}


def _install_filter(program: bytes) -> None:
    """Install a seccomp program in this process, as prctl(2) says."""
    import ctypes  # noqa: PLC0415 - not every interpreter has it, and only this needs it

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]

    no_new_privileges, set_filter, by_filter = 38, 22, 2
    call = ctypes.CDLL(None, use_errno=True).prctl
    given = Program(len(program) // 8, program)
    if call(no_new_privileges, 1, 0, 0, 0) or call(
        set_filter, by_filter, ctypes.byref(given), 0, 0
    ):
        raise OSError(ctypes.get_errno(), "the filter of system calls cannot be installed")


def _read_only(paths: dict[str, bool]) -> None:
    """Give up all files but what may be read of these paths: see landlock(7)."""
    import ctypes  # noqa: PLC0415

    class Rules(ctypes.Structure):
        _fields_ = [("files", ctypes.c_uint64)]

    class Beneath(ctypes.Structure):
        _pack_ = 1
        _fields_ = [("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32)]

    library = ctypes.CDLL(None, use_errno=True)
    create, add, restrict, path_beneath, no_new_privileges = 444, 445, 446, 1, 38
    read_file, read_folder = 1 << 2, 1 << 3

    def call(number: int, *arguments: Any) -> int:
        found: int = library.syscall(ctypes.c_long(number), *arguments)
        if found < 0:
            raise OSError(ctypes.get_errno(), "files cannot be given up: the kernel's Landlock")
        return found

    version = call(create, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    # What each version can restrict: of the first one 13 rights, then three more.
    known = 13 + (version >= 2) + (version >= 3) + (version >= 5)
    handled = Rules((1 << known) - 1)
    rules = call(create, ctypes.byref(handled), ctypes.c_size_t(8), ctypes.c_uint32(0))
    for path, whole in paths.items():
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue  # what is missing needs no right
        folder = stat.S_ISDIR(os.fstat(place).st_mode)
        beneath = Beneath(read_file * whole | read_folder * folder, place)
        call(add, rules, path_beneath, ctypes.byref(beneath), ctypes.c_uint32(0))
        os.close(place)
    if library.prctl(no_new_privileges, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "privileges cannot be given up")
    call(restrict, rules, ctypes.c_uint32(0))
    os.close(rules)


def _die_with(parent: int) -> None:
    """Be killed when the process that started this one ends."""
    import ctypes  # noqa: PLC0415

    on_parents_death = 1
    ctypes.CDLL(None).prctl(on_parents_death, 9, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(9)


def _confine(asked: dict[str, Any]) -> None:
    if asked["parent"] is not None:
        _die_with(asked["parent"])
    for name, value in asked["limits"].items():
        resource.setrlimit(getattr(resource, "RLIMIT_" + name), (value, value))
    if asked["readable"] is not None:
        _read_only(asked["readable"])
    if asked["filter"] is not None:
        _install_filter(bytes.fromhex(asked["filter"]))


def _call(entry: Any, arguments: list[Any], is_class: bool) -> Any:
    if not is_class:
        return _encode(entry(*arguments))
    made, steps = entry(*arguments[0]), []
    for name, *given in arguments[1]:
        try:
            steps.append(_encode(getattr(made, name)(*given)))
        except Exception as error:
            steps.append(_failure(error))
    return steps


def _run() -> None:
    asked = json.loads(sys.stdin.buffer.read())
    # What the code prints goes where errors go: nowhere.
    results = os.dup(1)
    os.dup2(2, 1)
    _confine(asked)
    write, dumps = os.write, json.JSONEncoder(allow_nan=True).encode
    write(results, b"ready\n")

    def tell(said: dict[str, Any]) -> None:
        line = dumps(said).encode() + b"\n"
        while line:
            line = line[write(results, line) :]

    module = types.ModuleType("answer")
    sys.modules["answer"] = module
    try:
        exec(compile(asked["code"], "answer.py", "exec"), module.__dict__)  # noqa: S102 - its job
        entry = module.__dict__[asked["entry"]]
    except BaseException as error:
        failure = _failure(error)
        tell({"load": failure["raised"], "text": failure["text"]})
        return
    for arguments in asked["calls"]:
        try:
            tell({"value": _call(entry, arguments, asked["is_class"])})
        except BaseException as error:
            tell(_failure(error))


_run()
