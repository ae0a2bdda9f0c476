"""`ddtui config` and `ddtui hosts`, on real files."""

import json
from pathlib import Path

import pytest
import tomli
from typer.testing import Result

from ddtui.cli.exit_codes import ExitCode
from tests.unit.cli.conftest import Run


def ok(result: Result) -> str:
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_path_says_where_and_why(run: Run, folders: Path) -> None:
    result = run("config", "path")
    assert ok(result) == f"{folders / 'config.toml'}\n"
    assert result.stderr == "DDTUI_CONFIG_DIR; there is no such file\n"
    named = run("--config", "/etc/x.toml", "config", "path")
    assert (named.stdout, named.stderr.partition(";")[0]) == ("/etc/x.toml\n", "--config")


def test_init_then_validate_then_print(run: Run, folders: Path) -> None:
    file = folders / "config.toml"
    assert ok(run("config", "init")) == f"{file}\n"
    assert "no mistakes" in ok(run("config", "validate"))
    assert tomli.loads(ok(run("config", "print")))["ui"]["log_lines"] == 20_000
    again = run("config", "init")
    assert again.exit_code == 2
    assert "exists already" in again.stderr
    forced = run("config", "init", "--force")
    assert f"{file}.bak" in forced.stderr
    ok(forced)


def test_validate_tells_every_mistake_on_stdout(run: Run, config_file: Path) -> None:
    config_file.write_text("[uii]\n[hosts.a]\nprot = 1\n")
    result = run("config", "validate")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        f"{config_file}:1: [uii]: unknown table; did you mean 'ui'?"
        " (known: [ui], [keys], [hosts], [presets], [sweeps], [bench])",
        f"{config_file}:3: [hosts.a] prot: unknown key; did you mean 'port'?",
    ]
    assert result.stderr == "2 mistakes\n"


def test_validate_knows_the_actions(run: Run, config_file: Path) -> None:
    config_file.write_text('[keys]\napp.qit = "ctrl+x"\n')
    result = run("config", "validate")
    assert result.exit_code == 1
    assert "app.quit" in result.stdout
    config_file.write_text('[keys]\napp.quit = ["ctrl+x", "Q"]\n')
    ok(run("config", "validate"))


def test_every_verb_refuses_a_wrong_file_in_the_same_words(run: Run, config_file: Path) -> None:
    config_file.write_text("[hosts.a]\nport = 0\n")
    for verb in (["hosts"], ["config", "print"], ["status", "a"]):
        result = run(*verb)
        assert result.exit_code == 2, verb
        assert result.stdout == ""
        assert f"error: {config_file}:2: [hosts.a] port: got 0; expected" in result.stderr


def test_print_shows_origins_and_no_secret(run: Run, config_file: Path) -> None:
    text = ok(run("config", "print"))
    assert "secret" not in text
    assert 'api_key_command = ["pass", "..."]' in text
    lines = {line.partition("#")[0].strip(): line.partition("# ")[2] for line in text.splitlines()}
    assert lines["mouse = false"] == "line 2"
    assert lines["ascii = false"] == "default"
    assert tomli.loads(text)["hosts"]["ct200"]["ssh"] == "ops@ct200.lan"


def test_print_as_json(run: Run, config_file: Path) -> None:
    result = run("config", "print", "--json")
    printed = json.loads(ok(result))
    tables = ["ui", "keys", "hosts", "presets", "sweeps", "bench", "knobs"]
    assert list(printed) == ["file", "origin", "exists", "project_file", *tables, "sources"]
    assert list(printed["sources"]) == tables
    assert printed["project_file"] is None
    assert printed["sources"]["ui"] == {
        **dict.fromkeys(printed["ui"], "default"),
        "mouse": f"{config_file}:2",
    }
    assert printed["hosts"]["mine"]["user_unit"] is True
    assert "secret" not in result.stdout


def test_print_has_what_the_project_sets_and_what_it_goes_before(
    run: Run, config_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    project = tmp_path / "ddtui.toml"
    project.write_text(
        "[presets.both]\nbudget = 4\n"
        '[bench.evening]\ncommand = ["x", "--api-key", "hush"]\n'
        '[knobs]\nbudget = "my-budget"\n'
        "[sweeps.s]\nbudget = [4, 8]\n"
    )
    text = config_file.read_text()
    config_file.write_text(text + "[presets.both]\nbudget = 9\n[bench.own]\nrepeats = 2\n")
    result = run("config", "print")
    shown = tomli.loads(ok(result))
    assert shown["presets"] == {"both": {"budget": 4}}
    assert shown["bench"]["own"] == {"repeats": 2}
    assert shown["bench"]["evening"]["command"] == ["x", "--api-key", "<redacted>"]
    assert (shown["knobs"], shown["sweeps"]) == ({"budget": "my-budget"}, {"s": {"budget": [4, 8]}})
    assert f"budget = 4 # {project}:2" in " ".join(result.stdout.split())
    printed = json.loads(ok(run("config", "print", "--json")))
    assert {name: printed[name] for name in ("presets", "bench", "knobs", "sweeps")} == {
        name: shown[name] for name in ("presets", "bench", "knobs", "sweeps")
    }
    assert printed["sources"]["presets"] == {"both": {"budget": f"{project}:2"}}
    assert printed["sources"]["bench"]["own"]["repeats"].startswith(f"{config_file}:")
    project.write_text("[presets.both]\nextends = 'none-such'\n")
    refused = run("config", "print", "--json")
    assert refused.exit_code == 2
    assert "there is no preset 'none-such'" in json.loads(refused.stdout)["error"]["why"]


def test_hosts_lists_configured_and_built_in_ones(run: Run, config_file: Path) -> None:
    lines = ok(run("hosts")).splitlines()
    assert [line.split() for line in lines] == [
        ["HOST", "REACHED", "BY", "UNIT"],
        ["ct200", "ssh", "ops@ct200.lan", "llm.service"],
        ["mine", "ssh", "mine", "sg.service", "(user)"],
        ["local", "this", "machine", "-"],
        ["demo", "simulated", "-"],
    ]
    first, *_ = json.loads(ok(run("hosts", "--json")))
    assert first == {
        "name": "ct200",
        "reach": "ssh",
        "ssh": "ops@ct200.lan",
        "unit": "llm.service",
        "user_unit": False,
        "engine": "sglang",
        "configured": True,
    }


@pytest.mark.parametrize("name", ["-x", "a b", "$(id)", "a\nb"])
def test_what_is_no_host_is_refused(run: Run, name: str) -> None:
    for verb in ("status", "doctor", "init"):
        result = run(verb, "--", name)
        assert result.exit_code == 2
        assert "is not a host's name" in result.stderr


def test_presets_are_printed_without_secrets_and_validated(run: Run, config_file: Path) -> None:
    text = config_file.read_text()
    config_file.write_text(
        text + "[presets.a]\nbudget = 4\nflags = { api-key = 'hush', x = true }\n"
        "[hosts.own.knobs]\nbudget = 'my-budget'\n"
    )
    ok(run("config", "validate"))
    printed = ok(run("config", "print"))
    assert "[presets.a]\nbudget = 4" in printed
    assert 'flags = {api-key = "<redacted>", x = true}' in printed
    assert 'knobs = {budget = "my-budget"}' in printed
    assert "hush" not in printed + ok(run("config", "print", "--json"))
    config_file.write_text("[presets.a]\nextends = 'b'\n")
    result = run("config", "validate")
    assert result.exit_code == 1
    assert "[presets.a] extends: there is no preset 'b'" in result.stdout


def test_mistakes_in_keys_and_theme_are_told_beside_all_others(run: Run, config_file: Path) -> None:
    config_file.write_text(
        '[ui]\ntheme = "ddtui-lihgt"\nmouse = 3\n[keys]\napp.qit = "x"\nlog.search = 7\n'
    )
    result = run("config", "validate")
    assert result.exit_code == ExitCode.FAILED
    told = result.stdout.splitlines()
    assert [line.removeprefix(f"{config_file}:").partition(": ")[0] for line in told] == [
        *("2", "3", "5", "6")
    ]
    assert "[ui] theme: there is no theme 'ddtui-lihgt'; did you mean 'ddtui-light'?" in told[0]
    assert "[keys] 'app.qit': no such action; did you mean 'app.quit'?" in told[2]
    (config_file.parent / "themes").mkdir()
    (config_file.parent / "themes" / "ddtui-lihgt.toml").write_text("")
    config_file.write_text('[ui]\ntheme = "ddtui-lihgt"\n')
    ok(run("config", "validate"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[ui]\nmouse = true\nmouse = false\n", ":3: [ui] mouse is set twice"),
        ("[hosts.a]\nport = 1\n[hosts.a.port]\n", ":3: [hosts.a.port] is set twice"),
        ("[ui]\nmouse = \n", ":2: is not valid TOML"),
    ],
)
def test_a_key_that_stands_twice_is_named(
    run: Run, config_file: Path, text: str, told: str
) -> None:
    config_file.write_text(text)
    result = run("config", "validate")
    assert result.exit_code == ExitCode.FAILED
    assert f"{config_file}{told}" in result.stdout
    assert "1 mistake" in result.stderr
