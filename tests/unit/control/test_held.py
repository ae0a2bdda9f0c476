"""What is still held after a stop, and by whom."""

from __future__ import annotations

from ddtui.control.held import MIB, Remaining, baseline, parse_held, remaining
from ddtui.engines.sglang import SGLANG

GROUP = "/system.slice/llm.service"
BEFORE = f"""@unit 10
@unit 11
@socket 998 5
@listens 10 5
@gpu GPU-a, 0, 90000
@gpu GPU-b, 1, 90500
@app 11, GPU-a, 89000, python
@app 11, GPU-b, 88000, python
@app 50, GPU-b, 2000, Xorg
@process 10 100 998 {GROUP} python python\\ -m\\ sglang.launch_server
@process 11 101 998 {GROUP} sglang::schedul sglang::scheduler
@process 50 1 0 /system.slice/x.service Xorg Xorg
@end
"""


def left(text: str) -> Remaining:
    before = baseline(parse_held(BEFORE, "/llm.service"))
    return remaining(before, parse_held(text, "/llm.service"), 30000, SGLANG.is_command)


def test_the_level_to_come_back_to_is_that_of_others() -> None:
    before = baseline(parse_held(BEFORE, "/llm.service"))
    assert before.outsiders == (50,)
    assert [each.pid for each in before.processes] == [10, 11]
    assert {gpu: size // MIB for gpu, size in before.level.items()} == {
        "GPU-a": 1000 + 512,
        "GPU-b": 2500 + 512,
    }


def test_all_given_back() -> None:
    text = "@gpu GPU-a, 0, 900\n@gpu GPU-b, 1, 2400\n@app 50, GPU-b, 2000, Xorg\n@end\n"
    assert left(text).nothing


def test_memory_that_is_late_is_named() -> None:
    text = "@gpu GPU-a, 0, 900\n@gpu GPU-b, 1, 80000\n@app 50, GPU-b, 2000, Xorg\n@end\n"
    assert left(text).text == "GPU 1: 75.2 GiB not given back"


def test_an_orphan_is_told_from_a_newcomer_of_the_same_number() -> None:
    process = "@process 11 {} 998 /user.slice/s.scope sglang::schedul sglang::scheduler\n@end\n"
    orphan = left(process.format(101))
    assert [each.pid for each in orphan.orphans] == [11]
    assert "left over from the last invocation: 11 (sglang::schedul)" in orphan.text
    assert left(process.format(999)).nothing


def test_processes_left_in_the_unit_and_the_port() -> None:
    text = (
        "@socket 998 9\n@listens 70 9\n"
        f"@process 10 100 998 {GROUP} python python\n"
        "@process 70 7 0 /system.slice/other.service nginx nginx\n@end\n"
    )
    found = left(text)
    assert [each.pid for each in found.processes] == [10]
    assert found.port == "port 30000 is held by 70 (nginx)"


def test_memory_of_another_service_that_came_since_is_its_own() -> None:
    text = (
        "@gpu GPU-a, 0, 41000\n@app 90, GPU-a, 40000, python\n"
        "@process 90 900 0 /system.slice/train.service python python\\ train.py\n@end\n"
    )
    assert left(text).nothing


def test_a_process_that_had_escaped_before_the_stop_is_of_the_invocation_it_was_born_in() -> None:
    process = (
        "@process 60 5 998 /user.slice/s.scope python python\\ worker {}\n"
        "@app 60, GPU-a, 30000, python\n@gpu GPU-a, 0, {}\n@end\n"
    )
    looked = parse_held(BEFORE.replace("@end\n", process.format("cafe", 120_000)), "/llm.service")
    before = baseline(looked, {"cafe"})
    assert before.outsiders == (50,)
    later = parse_held(process.format("cafe", 31_000), "/llm.service")
    found = remaining(before, later, 30000, SGLANG.is_command)
    assert [each.pid for each in found.orphans] == [60]
    assert found.gpus == ("GPU 0: 28.8 GiB not given back, held by 60 (python)",)
    # Of another service, or of nobody that is known: it counts as it did.
    assert baseline(looked, {"beef", ""}).outsiders == (50, 60)
