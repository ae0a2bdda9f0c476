"""Which host a name means."""

import pytest

from ddtui.config.errors import ConfigError
from ddtui.config.hosts import Reach, find_host, full_unit_name
from ddtui.config.model import Config, HostOptions

CONFIG = Config(hosts={"ct200": HostOptions(ssh="ops@ct200.lan", unit="llm")})


def test_a_configured_host_has_its_options() -> None:
    host = find_host(CONFIG, "ct200")
    assert (host.reach, host.ssh, host.unit) == (Reach.SSH, "ops@ct200.lan", "llm.service")
    assert host.configured


def test_any_other_name_is_an_ssh_alias_with_a_hint_at_a_similar_host() -> None:
    host = find_host(CONFIG, "ct20")
    assert (host.ssh, host.unit, host.configured) == ("ct20", "", False)
    assert host.hint == "did you mean 'ct200'?"
    assert find_host(CONFIG, "me@elsewhere.example").hint == ""


def test_built_in_hosts_need_no_section_and_no_ssh() -> None:
    assert (find_host(CONFIG, "local").reach, find_host(CONFIG, "local").ssh) == (Reach.LOCAL, "")
    assert find_host(CONFIG, "demo").reach is Reach.DEMO


@pytest.mark.parametrize("name", ["", "-v", "a b", "a\nb", "$(id)", "x" * 256, "a;b"])
def test_what_ssh_would_misread_is_no_name(name: str) -> None:
    with pytest.raises(ConfigError, match=r"is not a host's name.*configured: ct200, local, demo"):
        find_host(CONFIG, name)


def test_a_unit_has_its_full_name() -> None:
    assert full_unit_name("llm") == full_unit_name("llm.service") == "llm.service"
