"""A log screen on its own, with an engine that labels lines by plain words."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace
from textual.app import App

from ddtui.core.events import AnyEvent, FiredUp, Phase, PhaseBegan
from ddtui.core.log_buffer import LogBuffer
from ddtui.core.samples import JournalLine
from ddtui.core.snapshot import Snapshot
from ddtui.ui.actions import Scope, bindings
from ddtui.ui.keymap import Keymap, default_keymap
from ddtui.ui.palette import PALETTE_CSS, ActionCommands
from ddtui.ui.screens.help import HelpScreen
from ddtui.ui.screens.log import LogScreen
from ddtui.ui.shown import Shown
from ddtui.ui.themes import install_themes, variable_defaults
from tests.ui.scenes import INVOCATION, NOW, SCENES

EARLIER = "0badcafe" * 4


class PlainReader:
    """Phases by the words `begin PHASE`."""

    def read(self, line: JournalLine) -> Iterable[AnyEvent]:
        if "fired up" in line.text:
            yield FiredUp(stamp=line.stamp)
        elif "begin " in line.text:
            word = line.text.partition("begin ")[2]
            yield PhaseBegan(stamp=line.stamp, phase=Phase(word))


class PlainEngine:
    """What the log screen asks of an engine. It is told how many lines it labelled."""

    name = "plain"

    def __init__(self) -> None:
        self.labelled = 0

    def rank(self, text: str) -> str:
        head = text.partition("]")[0]
        return head.rpartition(" ")[2] if text.startswith("[") and " TP" in head else ""

    def severity(self, text: str, priority: int | None) -> str:
        self.labelled += 1
        for word in ("error", "warning", "debug"):
            if word in text.lower():
                return word
        return "error" if priority is not None and priority <= 3 else "info"

    def log_reader(self) -> PlainReader:
        return PlainReader()


def line(text: str, at: float = 0.0, **labels: object) -> JournalLine:
    return JournalLine(
        **{"stamp": NOW + at, "text": text, "invocation": INVOCATION, "pid": 42, **labels}  # type: ignore[arg-type]
    )


def many(count: int, start: int = 0) -> list[JournalLine]:
    """Lines of eight ranks; every 100th is a warning, every 1,000th an error."""
    return [
        line(
            f"[2026-09-21 14:13:12 TP{number % 8}] "
            + ("RuntimeError: out of memory in batch" if number % 1000 == 999 else "")
            + ("warning: slow step in batch" if number % 1000 != 999 and number % 100 == 99 else "")
            + f" line {number} of the decode loop, #running-req: {number % 13}, token usage: 0.34",
            at=number / 500,
        )
        for number in range(start, start + count)
    ]


class LogApp(App[object], inherit_bindings=False):
    """The smallest app around a log screen."""

    BINDINGS = bindings(Scope.APP)
    COMMANDS = {ActionCommands}
    CSS = PALETTE_CSS
    ENABLE_COMMAND_PALETTE = True

    def __init__(self, *lines: JournalLine, theme: str = "", keymap: Keymap | None = None) -> None:
        super().__init__()
        self.keymap = keymap or default_keymap()
        self.buffer = LogBuffer()
        self.buffer.extend(lines)
        self.snapshot: Snapshot = replace(SCENES["live"](NOW), log=self.buffer)
        self.engine = PlainEngine()
        self.log_screen = LogScreen(self.engine, clock=lambda: NOW)  # type: ignore[arg-type]
        self._wanted = theme

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return variable_defaults()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "decide" and super().check_action(action, parameters)

    async def on_mount(self) -> None:
        assert install_themes(self, self._wanted) == []
        self.keymap.install(self)
        await self.push_screen(self.log_screen)
        self.feed()

    def feed(self, *lines: JournalLine) -> None:
        """Let lines arrive, and paint."""
        self.buffer.extend(lines)
        self.log_screen.show(Shown(snapshot=self.snapshot, now=NOW, link=self.snapshot.link))

    def action_help(self) -> None:
        self.push_screen(HelpScreen(self.screen))

    async def action_quit(self) -> None:
        self.exit()
