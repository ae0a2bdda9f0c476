"""The app: it starts the watched host, and paints what is known of it at a steady pace."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Collection, Hashable, Sequence

from rich.console import RenderableType
from textual import events
from textual.app import App
from textual.worker import Worker

from ddtui.config.hosts import HostTarget
from ddtui.core.clock import Clock, system_clock
from ddtui.core.log_buffer import LogBuffer
from ddtui.core.samples import LinkState
from ddtui.core.snapshot import ReadinessState, Snapshot
from ddtui.ui import themes
from ddtui.ui.actions import Scope, bindings, refused_read_only
from ddtui.ui.aftermath import Aftermath
from ddtui.ui.control_desk import LOOK_INTERVAL, ControlDesk
from ddtui.ui.copying import at_home
from ddtui.ui.driver import TerminalDriver
from ddtui.ui.glyphs import ASCII, UNICODE
from ddtui.ui.in_turn import InTurn, Typed
from ddtui.ui.keymap import read_keymap
from ddtui.ui.palette import PALETTE_CSS, ActionCommands, Palette, ThemeCommands
from ddtui.ui.pictures import write_picture
from ddtui.ui.queue_desk import QUEUE_INTERVAL, QueueDesk
from ddtui.ui.queue_source import QueueSource
from ddtui.ui.results_source import ResultsSource
from ddtui.ui.screens.confirm import ConfirmScreen
from ddtui.ui.screens.help import HelpScreen
from ddtui.ui.screens.history import HistoryScreen
from ddtui.ui.screens.hosts import HostsScreen, SwitchHost
from ddtui.ui.screens.live import LiveScreen
from ddtui.ui.screens.log import LogScreen
from ddtui.ui.screens.modal import Modal
from ddtui.ui.screens.monitor import MonitorScreen
from ddtui.ui.screens.presets import PresetsScreen
from ddtui.ui.screens.queue import QueueScreen
from ddtui.ui.screens.results import ResultsScreen
from ddtui.ui.screens.waiting import WaitingScreen
from ddtui.ui.shown import Shown, urgent_change, urgent_key, urgent_queue
from ddtui.ui.source import ControlSource, LiveSource, UiSettings
from ddtui.ui.toasts import PASSING, TOAST_CSS, forget, forget_passing
from ddtui.ui.widgets.log_tail import TAIL

CHECK_INTERVAL = 0.25
"""Seconds between two looks for what must be painted at once: a change of state."""
_SAVED = "Saved the screen in"
_ENDING = (signal.SIGTERM, signal.SIGHUP)
_HINTED = (
    *("app.reconnect", "app.log", "app.decide", "presets.edit"),
    *("monitor.hide", "presets.cancel", "queue.close"),
)
_OF_CONTROL = frozenset({"presets", "history", "rollback", "restart", "decide"})


class DdtuiApp(App[object], inherit_bindings=False):
    """Shows one host. Keys answer whatever the collectors do: nothing here waits for a host.

    Its `return_value` is a `SwitchHost` when the operator chose to watch another host.
    """

    TITLE = "ddtui"
    BINDINGS = bindings(Scope.APP)
    COMMANDS = {ActionCommands}
    CSS = PALETTE_CSS + TOAST_CSS
    NOTIFICATION_TIMEOUT = PASSING

    # What the app is put together from.
    def __init__(  # noqa: PLR0913
        self,
        source: LiveSource,
        *,
        settings: UiSettings | None = None,
        clock: Clock = system_clock,
        read_only: bool = False,
        hosts: Sequence[HostTarget] = (),
        control: ControlSource | None = None,
        results: ResultsSource | None = None,
        queue: QueueSource | None = None,
        key_clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare the app; nothing is started before it runs.

        Args:
            source: the watched host. The app starts and closes it.
            settings: the operator's choices.
            clock: the operator's clock, replaced where time must stand still.
            read_only: hide and refuse every action that changes something on the host.
            hosts: all hosts that can be opened instead.
            control: changes the host; without it nothing can be, and there are no presets.
            results: reads measurements; without it there are no results to show.
            queue: the host's experiments and their runner; without it there is no queue.
            key_clock: the clock that key events carry, replaced where time must stand still.

        Raises:
            KeymapError: the operator's keys cannot be used.
        """
        self.settings = settings or UiSettings()
        self.source = source
        self.clock = clock
        self.read_only = read_only
        self.results = results
        self._key_clock = key_clock
        self.keymap = read_keymap(self.settings.keys)
        self._hosts = hosts
        self._paused: Snapshot | None = None
        self._paused_at: float | None = None
        self._paused_log: LogBuffer | None = None
        self._urgent: Hashable = None
        self._queue_look: Worker[None] | None = None
        self._closing_down = False
        super().__init__(driver_class=TerminalDriver)
        self._in_turn = InTurn(self, self._pass_on)
        self._aftermath = Aftermath()
        self._last_typed = 0.0
        self._hints = {each: self.keymap.shown(each) for each in _HINTED}
        self._glyphs = ASCII if self.settings.ascii else UNICODE
        self.queue_desk = None if queue is None else self._queue_desk(queue)
        self.desk = None if control is None else self._control_desk(control)

    def _queue_desk(self, queue: QueueSource) -> QueueDesk:
        return QueueDesk(
            self,
            queue,
            lambda: self.source.snapshot(self.clock()),
            clock=self.clock,
            read_only=self.read_only,
            key_clock=self._key_clock,
        )

    def _control_desk(self, control: ControlSource) -> ControlDesk:
        return ControlDesk(
            self,
            control,
            lambda: self.source.snapshot(self.clock()),
            clock=self.clock,
            glyphs=self._glyphs,
            read_only=self.read_only,
            key_clock=self._key_clock,
        )

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
        if self.desk is not None:
            self.install_screen(PresetsScreen(self.desk), "presets")
            self.install_screen(HistoryScreen(self.desk), "history")
            self.set_interval(LOOK_INTERVAL, self._look)
        if self.queue_desk is not None:
            if self.desk is not None:
                self.desk.busy = self.queue_desk.busy
                self.desk.other_runner = self.queue_desk.other_runner
            self.install_screen(QueueScreen(self.queue_desk), "queue")
            self.set_interval(QUEUE_INTERVAL, self._look_at_queue)
        if self.results is not None:
            screen = ResultsScreen(self.results, clock=self.clock, key_clock=self._key_clock)
            self.install_screen(screen, "results")
        await self.push_screen(MonitorScreen())
        self.paint()
        self.set_interval(self.settings.paint_interval, self.paint)
        self.set_interval(CHECK_INTERVAL, self._check)

    async def on_unmount(self) -> None:
        loop = asyncio.get_running_loop()
        for number in _ENDING:
            loop.remove_signal_handler(number)
        if self.queue_desk is not None:
            await self.queue_desk.queue.close()  # a run ends cleanly while the host is reached
        await self.source.close()

    def _restore_terminal_on_signals(self) -> None:
        """End in good order on SIGTERM and SIGHUP: Textual would leave the terminal as it is."""
        loop = asyncio.get_running_loop()
        for number in _ENDING:
            loop.add_signal_handler(number, self._end_by_signal, number)

    def _end_by_signal(self, number: int) -> None:
        self.exit(return_code=128 + number)

    @property
    def typing(self) -> bool:
        """Whether a key that has come is not done yet."""
        return self._in_turn.busy

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, Typed) and not event.is_forwarded:
            await self._in_turn.take(event)
        else:
            await super().on_event(event)

    async def _pass_on(self, event: Typed) -> None:
        """Give what was typed to Textual, unless it was meant for a question that has closed."""
        key = event.key if isinstance(event, events.Key) else ""
        screen = self.screen_stack[-1] if self.screen_stack else None
        if isinstance(screen, ConfirmScreen) and not screen.words.action:
            pass  # it only tells something: nothing is typed into it that could be left over
        elif isinstance(screen, ConfirmScreen | WaitingScreen):
            word = isinstance(screen, ConfirmScreen) and bool(screen.words.typed)
            self._aftermath.asked(event.time, word=word)
        elif self._aftermath.swallows(key, event.time):
            if self._aftermath.worth_telling():
                self.notify("Keys typed right after the question were ignored", markup=False)
            return
        self._last_typed = event.time
        if isinstance(screen, Modal) and self._takes_picture(event):
            self.action_save_screen()
        else:
            await super().on_event(event)

    def _takes_picture(self, event: Typed) -> bool:
        """Whether a key saves the screen over a dialog too, which takes all other keys itself."""
        if not isinstance(event, events.Key) or event.is_printable:
            return False  # it is typed into the dialog
        return event.key in self.keymap.of("app.screenshot")

    def on_typing_refused(self) -> None:
        """Keep what was meant for a line that did not come up from acting as keys."""
        self._aftermath.asked(self._last_typed, word=True)

    # ---- painting ---------------------------------------------------------------------------

    def shown(self) -> Shown:
        """What is to be shown now."""
        now = self.clock()
        snapshot = self.source.snapshot(now)
        self._urgent = self._urgent_now(snapshot)
        desk = self.desk
        paused, paused_at = self._paused, self._paused_at
        return Shown(
            snapshot=paused or snapshot,
            now=now if paused_at is None else paused_at,
            link=snapshot.link,
            paused_at=paused_at,
            paused_log=self._paused_log,
            glyphs=self._glyphs,
            read_only=self.read_only,
            keys=self._hints,
            reconfiguration=desk.view if desk is not None else None,
            holder=desk.control.holder if desk is not None else "",
            queue=self.queue_desk.view if self.queue_desk is not None else None,
        )

    async def _shutdown(self) -> None:
        self._closing_down = True  # Textual takes widgets away one by one while timers still run
        await super()._shutdown()

    def paint(self) -> None:
        """Show what is known, on the topmost screen that shows a host; dialogs may cover it."""
        if self._closing_down:
            return
        for screen in reversed(self.screen_stack):
            if isinstance(screen, LiveScreen):
                with self.batch_update():
                    screen.show(self.shown())
                return

    def _urgent_now(self, snapshot: Snapshot) -> Hashable:
        desk = self.desk
        change = (urgent_change(desk.view), desk.control.holder) if desk is not None else None
        queue = urgent_queue(self.queue_desk.view) if self.queue_desk is not None else None
        return (urgent_key(snapshot), change, queue)

    def _check(self) -> None:
        """Paint out of turn when a state has changed."""
        if self._closing_down:
            return
        if self._urgent_now(self.source.snapshot(self.clock())) != self._urgent:
            self.paint()
            self.refresh_bindings()
        if self.desk is not None:
            self.desk.tick()
        if self.queue_desk is not None:
            self.queue_desk.tick()

    def _look_at_queue(self) -> None:
        """Read the queue, unless that goes on still."""
        desk = self.queue_desk
        if desk is not None and (self._queue_look is None or self._queue_look.is_finished):
            self._queue_look = self.run_worker(desk.queue.look, group="queue-look")

    async def _look(self) -> None:
        """Ask who else changes the unit, where that is shown."""
        desk = self.desk
        if desk is None or desk.carrying_on:
            return
        changing = desk.view is not None and not desk.view.ending
        unknown = not desk.looked and self.source.snapshot(self.clock()).unit is not None
        shown = any(isinstance(each, PresetsScreen | HistoryScreen) for each in self.screen_stack)
        if changing or shown or unknown:
            await desk.look()

    def on_change_dismissed(self) -> None:
        """Hide a reconfiguration that has ended."""
        if self.desk is not None:
            self.desk.dismiss()
            self.paint()

    def on_pause_toggled(self) -> None:
        """Freeze what is shown, or go on. The host is watched all the same."""
        if self._paused is None:
            self._paused_at = self.clock()
            self._paused = self.source.snapshot(self._paused_at)
            self._paused_log = LogBuffer(TAIL)
            self._paused_log.extend(self._paused.log.tail(TAIL))
        else:
            self._paused = self._paused_at = self._paused_log = None
        self.paint()

    # ---- actions ----------------------------------------------------------------------------

    @property
    def needed(self) -> Collection[str]:
        """Actions that the footer names only now: what brings back an engine that is down."""
        paused = self.queue_desk is not None and self.queue_desk.view.settings.paused
        return (*self._needed_by_engine(), *(("queue.pause",) if paused else ()))

    def _needed_by_engine(self) -> Collection[str]:
        snapshot, desk = self.source.snapshot(self.clock()), self.desk
        known = snapshot.link.state is LinkState.LIVE and desk is not None
        if not known or desk is None or desk.under_way or desk.busy() is not None:
            return ()
        down = snapshot.readiness.state
        if down in {ReadinessState.FAILED, ReadinessState.CRASH_LOOP}:
            return ("app.restart", "app.rollback")
        return ("app.restart",) if down is ReadinessState.STOPPED else ()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if self.read_only and refused_read_only(Scope.APP, action):
            return False
        if action in _OF_CONTROL and self.desk is None:
            return False
        if action == "results" and self.results is None:
            return False
        if action == "queue" and self.queue_desk is None:
            return False
        if action == "decide":
            return self.desk is not None and self.desk.can_decide
        if action == "command_palette" and isinstance(self.screen, ConfirmScreen | WaitingScreen):
            return False  # a question takes all keys itself
        return super().check_action(action, parameters)

    def exit(
        self,
        result: object | None = None,
        return_code: int = 0,
        message: RenderableType | None = None,
    ) -> None:
        """Leave; in the middle of a reconfiguration only once that is confirmed."""

        def leave() -> None:
            super(DdtuiApp, self).exit(result, return_code, message)

        wished = result is None or isinstance(result, SwitchHost)
        if return_code or not wished:
            leave()
        elif self.queue_desk is not None and self.queue_desk.leave(self.source.name, leave):
            return  # what becomes of the run is asked, and of its reconfiguration with it
        elif self.desk is None:
            leave()
        else:
            self.desk.leave(self.source.name, leave)

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

    def action_command_palette(self) -> None:
        """Search all commands by name."""
        if not Palette.is_open(self):
            self.push_screen(Palette(id="--command-palette"))

    def search_themes(self) -> None:
        """Choose the colours."""
        if not Palette.is_open(self):
            self.push_screen(Palette(providers=[ThemeCommands], placeholder="Search for themes"))

    def action_save_screen(self) -> None:
        """Save a picture of the screen, once what it was asked from has closed."""
        forget(self, _SAVED)  # of an earlier one: it would stand in this one
        self.call_after_refresh(self._save_picture)

    def _save_picture(self) -> None:
        try:
            path = write_picture(self.export_screenshot(), self.source.name, self.clock)
        except OSError as error:
            words = f"Not saved: {error.strerror} ({error.filename})"
            self.notify(words, severity="error", markup=False)
        else:
            self.notify(f"{_SAVED} {at_home(path)}", markup=False, timeout=10)

    def action_presets(self) -> None:
        """Show the presets."""
        self._go("presets")

    def action_history(self) -> None:
        """Show the changes made from this machine."""
        self._go("history")

    def action_queue(self) -> None:
        """Show the experiments of the host."""
        self._go("queue")

    def action_results(self) -> None:
        """Show what was measured."""
        self._go("results")

    def action_rollback(self) -> None:
        """Ask, and bring back what was in force before the last change."""
        if self.desk is not None:
            self.desk.rollback()

    def action_restart(self) -> None:
        """Ask, and restart the engine as it is configured."""
        if self.desk is not None:
            self.desk.restart()

    def action_decide(self) -> None:
        """Answer what a reconfiguration asks, or carry on an interrupted one."""
        if self.desk is not None:
            self.desk.decide()

    def _go(self, name: str) -> None:
        if name and self.screen is self.get_screen(name):
            return
        forget_passing(self)
        while not isinstance(self.screen, MonitorScreen):
            self.pop_screen()
        if name:
            self.push_screen(name)
        self.call_after_refresh(self.paint)

    def action_help(self) -> None:
        """Explain the screen on top."""
        self.push_screen(HelpScreen(self.screen))
