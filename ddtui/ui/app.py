"""The app: it starts the watched host, and paints what is known of it at a steady pace."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Hashable, Sequence

from textual.app import App

from ddtui.config.hosts import HostTarget
from ddtui.core.clock import Clock, system_clock
from ddtui.core.snapshot import Snapshot
from ddtui.ui import themes
from ddtui.ui.actions import Scope, bindings, refused_read_only
from ddtui.ui.glyphs import ASCII, UNICODE
from ddtui.ui.keymap import read_keymap
from ddtui.ui.palette import PALETTE_CSS, ActionCommands
from ddtui.ui.screens.help import HelpScreen
from ddtui.ui.screens.hosts import HostsScreen
from ddtui.ui.screens.live import LiveScreen
from ddtui.ui.screens.log import LogScreen
from ddtui.ui.screens.monitor import MonitorScreen
from ddtui.ui.shown import Shown, urgent_key
from ddtui.ui.source import LiveSource, UiSettings

CHECK_INTERVAL = 0.25
"""Seconds between two looks for what must be painted at once: a change of state."""
_ENDING = (signal.SIGTERM, signal.SIGHUP)


class DdtuiApp(App[object], inherit_bindings=False):
    """Shows one host. Keys answer whatever the collectors do: nothing here waits for a host.

    Its `return_value` is a `SwitchHost` when the operator chose to watch another host.
    """

    TITLE = "ddtui"
    BINDINGS = bindings(Scope.APP)
    COMMANDS = {ActionCommands}
    CSS = PALETTE_CSS

    def __init__(
        self,
        source: LiveSource,
        *,
        settings: UiSettings | None = None,
        clock: Clock = system_clock,
        read_only: bool = False,
        hosts: Sequence[HostTarget] = (),
    ) -> None:
        """Prepare the app; nothing is started before it runs.

        Args:
            source: the watched host. The app starts and closes it.
            settings: the operator's choices.
            clock: the operator's clock, replaced where time must stand still.
            read_only: hide and refuse every action that changes something on the host.
            hosts: all hosts that can be opened instead.

        Raises:
            KeymapError: the operator's keys cannot be used.
        """
        self.settings = settings or UiSettings()
        self.source = source
        self.clock = clock
        self.read_only = read_only
        self.keymap = read_keymap(self.settings.keys)
        self._hosts = hosts
        self._paused: Snapshot | None = None
        self._paused_at: float | None = None
        self._urgent: Hashable = None
        super().__init__()
        self._hints = {each: self.keymap.shown(each) for each in ("app.reconnect", "app.log")}
        self._glyphs = ASCII if self.settings.ascii else UNICODE

    # ---- start and end ----------------------------------------------------------------------

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return themes.variable_defaults()

    async def on_mount(self) -> None:
        self._restore_terminal_on_signals()
        for problem in themes.install_themes(self, self.settings.theme):
            self.notify(problem, severity="warning", markup=False, timeout=15)
        self.keymap.install(self)
        await self.source.start()
        self.install_screen(LogScreen(self.source.engine, clock=self.clock), "log")
        self.install_screen(HostsScreen(self._hosts, self.source.name), "hosts")
        await self.push_screen(MonitorScreen())
        self.paint()
        self.set_interval(self.settings.paint_interval, self.paint)
        self.set_interval(CHECK_INTERVAL, self._check)

    async def on_unmount(self) -> None:
        loop = asyncio.get_running_loop()
        for number in _ENDING:
            loop.remove_signal_handler(number)
        await self.source.close()

    def _restore_terminal_on_signals(self) -> None:
        """End in good order on SIGTERM and SIGHUP: Textual would leave the terminal as it is."""
        loop = asyncio.get_running_loop()
        for number in _ENDING:
            loop.add_signal_handler(number, self._end_by_signal, number)

    def _end_by_signal(self, number: int) -> None:
        self.exit(return_code=128 + number)

    # ---- painting ---------------------------------------------------------------------------

    def shown(self) -> Shown:
        """What is to be shown now."""
        now = self.clock()
        snapshot = self.source.snapshot(now)
        self._urgent = urgent_key(snapshot)
        paused, paused_at = self._paused, self._paused_at
        return Shown(
            snapshot=paused or snapshot,
            now=now if paused_at is None else paused_at,
            link=snapshot.link,
            paused_at=paused_at,
            glyphs=self._glyphs,
            read_only=self.read_only,
            keys=self._hints,
        )

    def paint(self) -> None:
        """Show what is known, on the topmost screen that shows a host; dialogs may cover it."""
        for screen in reversed(self.screen_stack):
            if isinstance(screen, LiveScreen):
                with self.batch_update():
                    screen.show(self.shown())
                return

    def _check(self) -> None:
        """Paint out of turn when a state has changed."""
        if urgent_key(self.source.snapshot(self.clock())) != self._urgent:
            self.paint()

    def on_pause_toggled(self) -> None:
        """Freeze what is shown, or go on. The host is watched all the same."""
        if self._paused is None:
            self._paused_at = self.clock()
            self._paused = self.source.snapshot(self._paused_at)
        else:
            self._paused = self._paused_at = None
        self.paint()

    # ---- actions ----------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if self.read_only and refused_read_only(Scope.APP, action):
            return False
        return super().check_action(action, parameters)

    def action_reconnect(self) -> None:
        """Try to reach the host now."""
        self.source.retry_now()
        self.paint()

    def action_monitor(self) -> None:
        """Show the monitor, which is always at the bottom."""
        self._go("")

    def action_log(self) -> None:
        """Show the unit's journal."""
        self._go("log")

    def action_hosts(self) -> None:
        """Show all configured hosts."""
        self._go("hosts")

    def _go(self, name: str) -> None:
        if name and self.screen is self.get_screen(name):
            return
        while not isinstance(self.screen, MonitorScreen):
            self.pop_screen()
        if name:
            self.push_screen(name)
        self.call_after_refresh(self.paint)

    def action_help(self) -> None:
        """Explain the screen on top."""
        self.push_screen(HelpScreen(self.screen))
