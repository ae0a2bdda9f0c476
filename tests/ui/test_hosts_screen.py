from __future__ import annotations

from textual.app import App
from textual.widgets import OptionList

from ddtui.config.hosts import find_host, known_hosts
from ddtui.config.model import Config, HostOptions
from ddtui.ui.actions import Scope, bindings
from ddtui.ui.screens.hosts import HostsScreen, SwitchHost
from ddtui.ui.shown import Shown
from ddtui.ui.themes import install_themes, variable_defaults
from tests.ui.scenes import NOW, SCENES

CONFIG = Config(
    hosts={
        "ct200": HostOptions(unit="sglang-kimi"),
        "h200[b]": HostOptions(ssh="ops@10.0.0.7", unit="llm.service"),
    }
)


class HostsApp(App[object], inherit_bindings=False):
    BINDINGS = bindings(Scope.APP)

    def __init__(self, open_host: str = "ct200") -> None:
        super().__init__()
        self._open = open_host

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return variable_defaults()

    async def on_mount(self) -> None:
        install_themes(self)
        targets = [find_host(CONFIG, name) for name in known_hosts(CONFIG)]
        await self.push_screen(HostsScreen(targets, self._open))
        self.show("live")

    def show(self, scene: str) -> None:
        snapshot = SCENES[scene](NOW)
        assert isinstance(self.screen, HostsScreen)
        self.screen.show(Shown(snapshot=snapshot, now=NOW, link=snapshot.link))


def rows(app: HostsApp) -> list[str]:
    return [str(each.prompt) for each in app.screen.query_one(OptionList).options]


async def test_the_open_host_shows_its_state_and_the_others_how_they_are_reached() -> None:
    app = HostsApp()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        ct200, other, local, demo = rows(app)
        assert ct200.startswith("▸ ct200")
        assert "✓ live · ready (proved)" in ct200
        assert " ".join(other.split()) == (
            "h200[b] llm.service not open · ssh ops@10.0.0.7 · sglang"
        )
        assert "this machine" in local
        assert "simulated" in demo
        app.show("disconnected")
        assert "DISCONNECTED" in rows(app)[0]
        await pilot.resize_terminal(60, 16)
        await pilot.pause()
        assert all(len(row) <= 54 for row in rows(app))
        assert rows(app)[0].endswith("…")


async def test_an_open_host_that_is_not_configured_is_listed() -> None:
    app = HostsApp("gpu7")
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        assert [row.split()[0] for row in rows(app)] == ["▸", "ct200", "h200[b]", "local", "demo"]
        assert rows(app)[0].startswith("▸ gpu7")


async def test_the_name_of_a_host_that_is_not_configured_is_whole() -> None:
    """Its column was as wide as the configured names."""
    app = HostsApp("a-long-alias-of-a-host")
    async with app.run_test(size=(100, 20)) as pilot:
        await pilot.pause()
        assert rows(app)[0].startswith("▸ a-long-alias-of-a-host  ")


async def test_choosing_another_host_ends_the_app_with_its_name() -> None:
    app = HostsApp()
    async with app.run_test() as pilot:
        await pilot.press("j", "o")
    assert app.return_value == SwitchHost("h200[b]")


async def test_enter_chooses_too_and_the_open_host_stays_open() -> None:
    app = HostsApp()
    async with app.run_test(notifications=True) as pilot:
        await pilot.press("enter")
        assert app.is_running
        assert [each.message for each in app._notifications] == ["ct200 is the host that is open"]
        await pilot.press("down", "down", "k", "down", "enter")
    assert app.return_value == SwitchHost("local")
