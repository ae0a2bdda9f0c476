"""Reading the configuration: what is accepted, and what each mistake is told as."""

from pathlib import Path

import pytest

from ddtui.config.errors import ConfigError
from ddtui.config.load import key_lines, load, parse
from ddtui.config.model import UNIT_PATTERN, Config
from ddtui.config.paths import find_config

FILE = Path("config.toml")


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse(text, FILE)
    return [str(problem) for problem in caught.value.problems]


def test_a_whole_file() -> None:
    config = parse(
        """
        [ui]
        theme = "ddtui-light"
        paint_interval = 2
        [keys]
        "app.quit" = "ctrl+q"
        log.follow = ["f", "F"]
        [hosts.ct200]
        unit = "llm"
        api_key_command = ["pass", "show", "llm"]
        [hosts.local]
        gpu_interval = 0.5
        """,
        FILE,
    )
    assert (config.ui.theme, config.ui.paint_interval) == ("ddtui-light", 2.0)
    assert config.key_map() == {"app.quit": ("ctrl+q",), "log.follow": ("f", "F")}
    assert config.hosts["ct200"].api_key_command == ("pass", "show", "llm")
    assert config.hosts["local"].gpu_interval == 0.5


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[ui]\nthemes = 'x'", "config.toml:2: [ui] themes: unknown key; did you mean 'theme'?"),
        ("[host.ct200]", "config.toml:1: [host]: unknown table; did you mean 'hosts'? (known: "),
        ("ui = 3", "config.toml:1: [ui]: must be a table, got integer; write [ui]"),
        ("[ui]\nmouse = 'yes'", "config.toml:2: [ui] mouse: got 'yes'; expected true or false"),
        ("[ui]\npaint_interval = nan", "got nan; expected seconds between two paints"),
        ("[ui]\npaint_interval = 0.09", "got 0.09; expected seconds"),
        ("[ui]\npaint_interval = 60.1", "0.1 to 60"),
        ("[ui]\nlog_lines = true", "got boolean; expected log lines kept in memory"),
        ("[ui]\nlog_lines = 1979-05-27", "got date or time;"),
        ("[keys]\na = 1", "config.toml:2: [keys] a: got integer; expected a key, such as"),
        ("[keys]\napp.quit = 1", "config.toml:2: [keys] 'app.quit': got integer"),
        ("[keys]\na = ['']", "[keys] a: names no key"),
        ("[keys]\na = []", "[keys] a: names no key"),
        ("[hosts.a]\nport = 0", "config.toml:2: [hosts.a] port: got 0; expected the engine's HTTP"),
        ("hosts.a.prot = 1", "config.toml:1: [hosts.a] prot: unknown key; did you mean 'port'?"),
        ("[hosts.a]\nunit = 'x.socket'", "expected systemd service"),
        ("[hosts.a]\nunit = '-x'", "expected systemd service"),
        ("[hosts.a]\nssh = '-oProxyCommand=id'", "expected alias of your ssh_config"),
        ("[hosts.a]\nssh = '$(id)'", "expected alias of your ssh_config"),
        ('[hosts.a]\nnvidia_smi = "a\\nb"', "expected path of nvidia-smi"),
        ("[hosts.a]\nengine = 'vllm'", "got 'vllm'; expected the inference server"),
        ("[hosts.a]\napi_key_command = 'pass llm'", "expected program and arguments"),
        ("[hosts.a]\napi_key_command = []", "expected program and arguments"),
        (
            "[hosts.a]\napi_key_env='A'\napi_key_command=['b']",
            "[hosts.a] api_key_command: stands beside api_key_env",
        ),
        ("[hosts.demo]", "config.toml:1: [hosts.demo]: the host 'demo' is built in"),
        ("[hosts.local]\nssh = 'x'", "[hosts.local] ssh: the host 'local' is this machine"),
        (
            "[hosts]\nunit = 'x'",
            "config.toml:2: [hosts.unit]: an option of one host; write it under",
        ),
        ("[hosts]\na = 'x'", "must be a table, got string; write [hosts.a]"),
        ('[hosts."a b"]', "[hosts.'a b']: not a host's name"),
        ("[ui\n", "config.toml:1: is not valid TOML: a table's name is not closed; write [table]"),
        ("[ui]\nmouse = yes", ":2: is not valid TOML: what stands after the = is no value; write"),
        ("[ui]\ntheme = 'x", ":2: is not valid TOML: a text has no closing quote"),
        ("[ui]\n[ui]", ":2: is not valid TOML: the table stands there twice"),
        (f"[ui]\nlog_lines = {'9' * 5000}", ":2: is not valid TOML: a number has too many digits"),
        (f"[ui]\nlog_lines = 0x{'f' * 9000}", ":2: [ui] log_lines: is a whole number beyond 64"),
        (
            "x = " + "[" * 5000,
            "config.toml: is not valid TOML: lists or tables are nested too deep",
        ),
        (
            "[presets.a]\nflags = { x = nan }",
            "[presets.a] flags x: got nan; expected a text, a number",
        ),
        (
            "[sweeps.a]\nflags = { x = [inf] }",
            "[sweeps.a] flags x: got inf; expected a text, a numb",
        ),
    ],
)
def test_a_mistake_is_told_with_its_place_and_what_is_expected(text: str, told: str) -> None:
    (problem,) = problems(text)
    assert told in problem


def test_all_mistakes_are_told_in_the_order_of_the_file() -> None:
    found = problems("[hosts.a]\nx = 1\n[ui]\nmouse = 0\nascii = 1\n")
    assert [line.split(":")[1] for line in found] == ["2", "4", "5"]


def test_a_literal_api_key_is_refused_with_the_reason_and_never_repeated() -> None:
    (problem,) = problems("[hosts.a]\napi_key = 'sk-very-secret'")
    assert "api_key_env" in problem
    assert "backups" in problem
    for option in ("api_key_env", "api_key_command"):
        (problem,) = problems(f"[hosts.a]\n{option} = 'sk-very-secret'")
        assert "secret" not in problem


@pytest.mark.parametrize(
    "name", ["llm", "llm.service", "llm@1.service", r"dev-a\x2db.service", "a:b_c.d"]
)
def test_names_of_services_are_accepted(name: str) -> None:
    assert parse(f"[hosts.a]\nunit = '{name}'", FILE).hosts["a"].unit == name


@pytest.mark.parametrize(
    "name", ["llm@", "llm@.service", "a/b", "a b", "a;b", "", "x.timer", "a\\n"]
)
def test_other_names_are_not(name: str) -> None:
    import re

    assert (re.match(UNIT_PATTERN, name) is None) == (name != "a\\n")
    assert re.match(UNIT_PATTERN, name.replace("\\n", "\n")) is None


def test_lines_are_left_out_where_multi_line_strings_could_mislead() -> None:
    assert key_lines('[ui]\ntheme = """\nmouse = 1\n"""') == {}
    lines = key_lines('[ui]\ntheme = "x" # a = b\n# mouse = 1\n[hosts."a.b"]\nunit = "=="\n')
    assert lines == {
        ("ui",): 1,
        ("ui", "theme"): 2,
        ("hosts", "a.b"): 4,
        ("hosts", "a.b", "unit"): 5,
    }


def test_the_file_is_chosen_by_option_then_environment_then_folder(tmp_path: Path) -> None:
    env = {"DDTUI_CONFIG_FILE": "/a/b.toml", "DDTUI_CONFIG_DIR": "/c"}
    assert find_config(Path("/o.toml"), env).file == Path("/o.toml")
    assert find_config(None, env).file == Path("/a/b.toml")
    assert find_config(None, {"DDTUI_CONFIG_DIR": "/c"}).file == Path("/c/config.toml")
    assert find_config(None, {}).file.name == "config.toml"


def test_no_file_means_the_defaults_unless_it_was_named(tmp_path: Path) -> None:
    loaded = load(None, {"DDTUI_CONFIG_DIR": str(tmp_path)})
    assert (loaded.config, loaded.exists) == (Config(), False)
    with pytest.raises(ConfigError, match=r"no such file .named by DDTUI_CONFIG_FILE.; write one"):
        load(None, {"DDTUI_CONFIG_FILE": str(tmp_path / "gone.toml")})


def test_what_is_no_configuration_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        load(tmp_path, {})
    binary = tmp_path / "b.toml"
    binary.write_bytes(b"[ui]\ntheme = '\xff'")
    with pytest.raises(ConfigError, match=r"b\.toml:2: is not UTF-8"):
        load(binary, {})
    binary.write_bytes(b"#" * 1_000_001)
    with pytest.raises(ConfigError, match="larger than"):
        load(binary, {})
