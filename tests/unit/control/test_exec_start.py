"""systemd's command lines: split, expanded, rendered. tests/host asks a real systemd."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ddtui.control import exec_start
from ddtui.control.exec_start import ExecError, Unresolved, commands, quoted, words
from ddtui.control.rewriting import pieces
from ddtui.control.unit_text import UnitFile, listed, split_cat
from tests.support.exec_words import argv_of

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
ARGV = st.lists(TEXT, min_size=1, max_size=6)


def values(text: str) -> list[str]:
    return [token.value for token in words(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a  b\tc", ["a", "b", "c"]),
        ("'a b' \"c d\"", ["a b", "c d"]),
        ('a"b c"d', ["ab cd"]),
        (r"a\sb \x41 \101 \u00e4 \t", ["a b", "A", "A", "ä", "\t"]),
        (r"'it\'s' \q", ["it's", r"\q"]),
        ("''", [""]),
        (r"\xc3\xa4", ["ä"]),
    ],
)
def test_words_are_split_as_systemd_does(text: str, expected: list[str]) -> None:
    assert values(text) == expected


@pytest.mark.parametrize("text", ["'a", '"a', "a\\"])
def test_what_systemd_refuses_is_refused(text: str) -> None:
    with pytest.raises(ExecError):
        words(text)


def test_prefixes_and_separators() -> None:
    first, second = commands("-!!/bin/a x ; @/bin/b name \\; y;z")
    assert (first.prefixes, [t.value for t in first.tokens]) == ("-!!", ["/bin/a", "x"])
    assert second.prefixes == "@"
    assert [t.value for t in second.tokens] == ["/bin/b", "name", ";", "y;z"]
    assert second.render() == "@/bin/b name \\; y;z"


@given(ARGV)
@example(["$HOME", "${A}", "%i", "$$", "a;b", ";", "'", '"', "\\", "é\n", "", " ", "\x7f\u2028"])
def test_a_rendered_word_comes_back(argv: list[str]) -> None:
    line = " ".join(map(quoted, argv))
    assert "\n" not in line
    (command,) = commands("/bin/true " + line)
    expand = exec_start.specifiers("llm@x.service")
    assert argv_of(command, expand)[1:] == tuple(argv)


@given(ARGV)
def test_without_expansion_dollars_stay(argv: list[str]) -> None:
    line = " ".join(quoted(word, expands=False) for word in argv)
    (command,) = commands(":/bin/true " + line)
    expand = exec_start.specifiers("a.service")
    assert argv_of(command, expand)[1:] == tuple(argv)


NAME = st.from_regex(r"[A-Z_][A-Z0-9_]{0,5}", fullmatch=True)
PRINTABLE = st.text(
    st.characters(exclude_categories=["Cc", "Cs", "Cn"], include_characters="\t\n"),
    max_size=12,
)


@given(st.dictionaries(NAME, PRINTABLE, max_size=4))
def test_environment_lines_come_back(variables: dict[str, str]) -> None:
    line = " ".join(exec_start.quoted_assignment(*each) for each in variables.items())
    expand = exec_start.specifiers("a.service")
    assert exec_start.environment_of([line], expand) == variables


@pytest.mark.parametrize("value", ["\r", "\x7f", "\uffff", "\udcff"])
def test_a_value_that_systemd_would_drop_is_refused(value: str) -> None:
    with pytest.raises(ExecError):
        exec_start.quoted_assignment("A", value)


@given(st.lists(TEXT, max_size=5))
def test_a_variables_words_come_back(parts: list[str]) -> None:
    assert exec_start.split_variable(exec_start.join_variable(parts)) == parts


def test_variables_and_specifiers() -> None:
    env = {"ARGS": "--a 'b c'", "N": "8"}
    assert exec_start.expand_word("$ARGS", env) == ["--a", "b c"]
    assert exec_start.expand_word("x${N}y$N", env) == ["x8y$N"]
    assert exec_start.expand_word("$$N", env) == ["$N"]
    with pytest.raises(Unresolved):
        exec_start.expand_word("${OTHER}", env)
    expand = exec_start.specifiers(r"llm-big@ki\x2dmi-k2.service")
    assert expand("%n %p %i %I %j %%") == (
        r"llm-big@ki\x2dmi-k2.service llm-big ki\x2dmi-k2 ki-mi/k2 big %"
    )
    with pytest.raises(Unresolved):
        expand("%h")


def test_continued_lines_comments_and_resets() -> None:
    text = (
        "[Unit]\nExecStart=no\n[Service]\n# ExecStart=no\nExecStart=/bin/a \\\n  # comment\n"
        "  --x 1 \\\n\n[Install]\n"
    )
    drop = "[Service]\nExecStart=\nExecStart = /bin/b\n"
    (found,) = listed([UnitFile("f", text)], "ExecStart")
    assert values(found.value) == ["/bin/a", "--x", "1"]
    both = [UnitFile("f", text), UnitFile("d", drop)]
    assert [(a.value, a.path) for a in listed(both, "ExecStart")] == [("/bin/b", "d")]


def test_cat_is_taken_apart() -> None:
    text = "# /etc/a.service\n[Service]\nExecStart=/bin/a\n# /no\n# /etc/a.service.d/x.conf\n[X]\n"
    first, second = split_cat(text, {"/etc/a.service", "/etc/a.service.d/x.conf"})
    assert first == UnitFile("/etc/a.service", "[Service]\nExecStart=/bin/a\n# /no")
    assert second.path == "/etc/a.service.d/x.conf"


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=3), max_size=5), st.data())
def test_rewriting_gives_exactly_the_words_wanted(
    groups: list[list[str]], data: st.DataObject
) -> None:
    wanted = data.draw(st.lists(st.sampled_from("abcd"), max_size=8))
    out: list[str] = []
    for piece in pieces(groups, wanted):
        if piece.words is None:
            assert piece.token is not None
            out.extend(groups[piece.token])
        else:
            out.extend(piece.words)
    assert out == wanted
