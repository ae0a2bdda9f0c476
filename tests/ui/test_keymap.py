from __future__ import annotations

import tomllib

import pytest
from textual.app import App, ComposeResult
from textual.widgets import Static

from ddtui.ui.actions import ACTIONS, Scope, action, bindings
from ddtui.ui.keymap import (
    DISCOURAGED,
    KeymapError,
    canonical,
    default_keymap,
    display,
    read_keymap,
)


def problems(text: str) -> tuple[str, ...]:
    with pytest.raises(KeymapError) as caught:
        read_keymap(tomllib.loads(text)["keys"])
    return caught.value.problems


def test_default_keys_clash_with_nothing_and_reach_the_app() -> None:
    read_keymap({})
    # Each default, given as a user would give it, is accepted.
    for each in ACTIONS:
        keymap = read_keymap({each.id: list(each.keys)})
        assert keymap.keys == default_keymap().keys
        for key in keymap.of(each.id):
            assert key not in DISCOURAGED
            assert not key.startswith(("alt+", "shift+ctrl"))


def test_unquoted_and_quoted_ids_are_the_same() -> None:
    unquoted = tomllib.loads('[keys]\nlog.search = "f3"\nlog.page-down = ["d", "ctrl+d"]')["keys"]
    quoted = tomllib.loads('[keys]\n"log.search" = "f3"\n"log.page-down" = ["d", "ctrl+d"]')["keys"]
    assert read_keymap(unquoted) == read_keymap(quoted)
    assert read_keymap(unquoted).of("log.page-down") == ("d", "ctrl+d")
    assert read_keymap(unquoted).changed == {"log.search", "log.page-down"}


def test_unknown_action_names_the_nearest() -> None:
    assert problems('[keys]\nlog.serch = "x"') == (
        "keys.log.serch: no such action; did you mean 'log.search'?",
    )


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('app.quit = "ctrl+m"', "reaches ddtui as enter"),
        ('app.quit = "ctrl+["', "reaches ddtui as escape"),
        ('app.quit = "tab"', "it moves the focus"),
        ('app.quit = "f99"', "no such key: 'f99'"),
        ('app.quit = "pgdown"', "did you mean 'pagedown'?"),
        ('app.quit = "crtl+t"', "modifiers are ctrl"),
        ('app.quit = ""', "no such key"),
        ('app.quit = ","', "comma"),
        ('app.quit = " "', "write it out"),
        ("app.quit = []", "expected a key or a list of keys, not []"),
        ("app.quit = 3", "expected a key or a list of keys, not 3"),
        ('app.quit = ["Q", 3]', "expected a key or a list of keys"),
    ],
)
def test_a_key_that_cannot_work_is_refused(line: str, says: str) -> None:
    (problem,) = problems(f"[keys]\n{line}")
    assert problem.startswith("keys.app.quit: ")
    assert says in problem


def test_a_clash_names_both_actions_and_a_way_out() -> None:
    (problem,) = problems('[keys]\nlog.follow = "q"')
    assert problem == (
        "keys.log.follow: q is already the key of app.quit (Quit); "
        "give app.quit another key, or choose another here"
    )


def test_screens_may_share_keys_and_keys_may_swap() -> None:
    read_keymap({"hosts.open": "f"})  # f is log.follow's, on another screen
    swapped = read_keymap({"log.wrap": "t", "log.stamps": "w"})
    assert swapped.of("log.wrap") == ("t",)
    with pytest.raises(KeymapError):
        read_keymap({"log.wrap": "t"})


def test_one_string_may_name_several_keys() -> None:
    assert read_keymap({"log.search": "f3,%"}).of("log.search") == ("f3", "percent_sign")


def test_all_mistakes_are_told_at_once() -> None:
    assert len(problems('[keys]\nlog.serch = "x"\napp.quit = "ctrl+i"\nlog.follow = "w"')) == 3


def test_keys_are_written_for_reading() -> None:
    assert display("question_mark") == display("?") == "?"
    assert display("ctrl+t") == "^t"
    assert default_keymap().shown("log.down") == "j ↓"
    assert canonical("?") == "question_mark"


async def test_installed_keys_replace_the_defaults() -> None:
    class Small(App[object], inherit_bindings=False):
        BINDINGS = bindings(Scope.APP)
        seen: list[str] = []

        def compose(self) -> ComposeResult:
            yield Static("x")

        def action_help(self) -> None:
            self.seen.append("help")

        def action_log(self) -> None:
            self.seen.append("log")

    app = Small()
    read_keymap({"app.help": ["f5", "Z"], "app.log": "?"}).install(app)
    async with app.run_test() as pilot:
        await pilot.press("f1", "f5", "Z", "question_mark", "2")
        assert app.seen == ["help", "help", "log"]


def test_registry_ids_are_unique_and_found() -> None:
    ids = [each.id for each in ACTIONS]
    assert len(set(ids)) == len(ids)
    for each in ACTIONS:
        assert action(each.id) is each
        assert each.scope in Scope
        assert each.description
        assert len(each.title) <= 16
        assert each.keys
    with pytest.raises(KeyError):
        action("app.nothing")
