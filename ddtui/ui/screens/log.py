"""The log: the unit's journal, followed, searched, filtered, copied and saved."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from textual import on, work
from textual.app import ComposeResult

from ddtui.core.clock import Clock, system_clock
from ddtui.core.engine import Engine
from ddtui.core.events import Phase
from ddtui.ui.actions import Scope, bindings
from ddtui.ui.copying import copy_text
from ddtui.ui.log_files import suggest_file, write_new
from ddtui.ui.log_filter import BadPattern, Bars, Level, LogFilter, Starts, compile_search
from ddtui.ui.log_lines import LogLines
from ddtui.ui.palette import keymap_of
from ddtui.ui.screens.built import built
from ddtui.ui.screens.choice import ChoiceScreen
from ddtui.ui.screens.live import LiveScreen
from ddtui.ui.screens.log_choices import ALL, phase_choices, rank_choices
from ddtui.ui.shown import Shown
from ddtui.ui.widgets.alerts import Alerts, alert_rows
from ddtui.ui.widgets.header import Header
from ddtui.ui.widgets.key_bar import KeyBar
from ddtui.ui.widgets.log_status import LogStatus
from ddtui.ui.widgets.log_view import LogView
from ddtui.ui.widgets.prompt import Prompt

PAINT_INTERVAL = 0.25
"""Seconds between two paints of new lines."""
SLICE = 0.012
"""Seconds of reading, filtering or searching between two looks for keys."""
_T = TypeVar("_T")


class LogScreen(LiveScreen):
    """Shows the log of the host's unit. Keep one instance: it remembers filters and place."""

    BINDINGS = bindings(Scope.LOG)
    DEFAULT_CSS = """
    LogScreen { layout: vertical; overflow: hidden; background: $background; }
    LogScreen > Alerts { display: none; }
    """

    def __init__(self, engine: Engine, *, clock: Clock = system_clock) -> None:
        """Prepare the screen.

        Args:
            engine: Labels lines with rank, severity and phase.
            clock: For the names of saved files.
        """
        super().__init__(id="log")
        self.lines = LogLines(engine)
        self.view = LogView(self.lines)
        self._status = LogStatus(self.lines, self.view)
        self._prompt = Prompt()
        self._keys = KeyBar()
        self._clock = clock
        self._regex = False
        self._shown: Shown | None = None
        self._working = False
        self._synced = 0.0
        self._status_height = 1
        self._searched = ""
        self._text = ""

    def compose(self) -> ComposeResult:
        yield Header()
        yield Alerts()
        yield self.view
        yield self._prompt
        yield self._status
        yield self._keys

    def on_mount(self) -> None:
        self.view.focus()
        self.set_interval(PAINT_INTERVAL, self._tick)

    def on_resize(self) -> None:
        self._place()

    # ---- what arrives -----------------------------------------------------------------------

    def show(self, shown: Shown) -> None:
        self._shown = shown
        if not built(self):
            return
        self.view.ascii = shown.glyphs.ascii
        unit = shown.snapshot.unit
        self.lines.attach(shown.snapshot.log, unit.invocation if unit is not None else "")
        self._place()
        self.query_one(Header).show(shown)
        self.query_one(Alerts).show(shown)
        keys = keymap_of(self)
        self._status.hints = {each: keys.shown(each) for each in ("log.noise",)}
        self._work()

    def _place(self) -> None:
        """Give alerts and status the lines that they need."""
        if self._shown is None:
            return
        width, height = self.size
        alerts = self.query_one(Alerts)
        needed = len(alert_rows(self._shown, width, max(1, height // 5)))
        alerts.display = needed > 0
        alerts.styles.height = needed
        self._tell()

    def _tick(self) -> None:
        if self.is_current and self.lines.busy:
            self._work()

    def _work(self) -> None:
        """Work for a slice; paint when all is done, or long enough after the last time."""
        self._working = False
        self.lines.step(SLICE)
        now = time.monotonic()
        if not self.lines.busy or now - self._synced >= PAINT_INTERVAL:
            self._synced = now
            self.view.sync()
            self._tell()
        if self.lines.busy and self.is_current:
            self._work_soon()

    def _work_soon(self) -> None:
        if not self._working:
            self._working = True
            # A timer, not a call in the queue: keys that came meanwhile are handled first.
            self.set_timer(0.001, self._work)

    @on(LogView.Moved)
    def _tell(self) -> None:
        if self._shown is not None:
            needed = self._status.lines_needed(self._shown, self.size)
            if self._status_height != needed:
                self._status_height = self._status.styles.height = needed
            self._status.show(self._shown)

    # ---- moving -----------------------------------------------------------------------------

    def action_follow(self) -> None:
        """Follow new lines, or stay."""
        self.view.follow(not self.view.following)

    def action_down(self) -> None:
        """One line down."""
        self.view.move(1)

    def action_up(self) -> None:
        """One line up."""
        self.view.move(-1)

    def action_page_down(self) -> None:
        """One page down."""
        self.view.page(1)

    def action_page_up(self) -> None:
        """One page up."""
        self.view.page(-1)

    def action_top(self) -> None:
        """To the oldest line."""
        self.view.to_top()

    def action_end(self) -> None:
        """To the newest line, and follow."""
        self.view.follow(True)

    def action_left(self) -> None:
        """Scroll long lines to the left."""
        self.view.side(-1)

    def action_right(self) -> None:
        """Scroll long lines to the right."""
        self.view.side(1)

    # ---- searching --------------------------------------------------------------------------

    def action_search(self) -> None:
        """Ask what to search."""
        self._ask("search", self._label("search"), self._searched)

    def action_text(self) -> None:
        """Ask for the text filter."""
        self._ask("text", self._label("text"), self._text)

    def action_regex(self) -> None:
        """Read search and text filter as regular expressions, or as plain text."""
        self._regex = not self._regex
        if self._prompt.purpose in {"search", "text"}:
            self._prompt.relabel(self._label(self._prompt.purpose))
            self._try(self._prompt.purpose, self._prompt.value)
        else:
            self._try("search", self._searched)
            self.notify(f"Search reads {'regular expressions' if self._regex else 'plain text'}")

    def action_next(self) -> None:
        """To the next match."""
        self._to_match(1)

    def action_previous(self) -> None:
        """To the previous match."""
        self._to_match(-1)

    def action_cancel(self) -> None:
        """Close the prompt, or drop the selection, or drop the search."""
        if self._prompt.purpose:
            self._close_prompt()
        elif self.view.mark is not None:
            self.view.toggle_selection()
        else:
            self._try("search", "")

    @on(Prompt.Changed)
    def _typed(self, event: Prompt.Changed) -> None:
        if event.purpose in {"search", "text"}:
            self._try(event.purpose, event.value)

    @on(Prompt.Entered)
    def _entered(self, event: Prompt.Entered) -> None:
        if event.purpose == "save":
            self._save(Path(event.value).expanduser())
        elif self._try(event.purpose, event.value):
            self._close_prompt()
            if event.purpose == "search" and event.value:
                self._to_nearest_match()

    def _label(self, purpose: str) -> str:
        words = {"search": "Search", "text": "Only lines with (! without)"}[purpose]
        return f"{words}, {'regex' if self._regex else 'plain'}:"

    def _try(self, purpose: str, value: str) -> bool:
        """Put a search or a text filter in force; tell what is wrong with it beside the prompt."""
        without = purpose == "text" and value.startswith("!")
        words = value[1:] if without else value
        try:
            pattern = compile_search(words, regex=self._regex) if words else None
        except BadPattern as error:
            self._prompt.fault(str(error))
            return False
        self._prompt.fault("")
        if purpose == "search":
            self._searched = self._status.search_words = value
            self.lines.set_search(pattern)
        else:
            self._text = self._status.text_words = value
            self.lines.set_filter(replace(self.lines.filter, text=pattern, without=without))
        self._work()
        return True

    def _to_match(self, step: int) -> None:
        number = self.lines.match_after(self.view.cursor, step)
        if number is not None:
            self.view.go_to(number)
        elif self.lines.search is None:
            self.notify("Nothing is searched yet", severity="warning")

    def _to_nearest_match(self) -> None:
        """To the last match up to the cursor: what happened latest matters most."""
        self.lines.step(0.2)  # of a very long log, what was searched by then counts
        if self.lines.match_position(self.view.cursor) is None:
            self._to_match(-1)
        else:
            self.view.go_to(self.view.cursor)

    def _ask(self, purpose: str, label: str, value: str) -> None:
        self._prompt.ask(purpose, label, value, anew=purpose != "save")
        keymap = keymap_of(self)
        hints = [("⏎", purpose, ""), (keymap.shown("log.cancel"), "close", "screen.cancel")]
        if purpose != "save":
            hints.append((keymap.shown("log.regex"), "regex or plain", "screen.regex"))
        self._keys.instead(hints)

    def _close_prompt(self) -> None:
        self._prompt.close()
        self._keys.instead(())
        self.view.focus()

    # ---- filtering --------------------------------------------------------------------------

    def action_level(self) -> None:
        """The next lowest level shown."""
        levels = (Level.DEBUG, Level.INFO, Level.WARNING, Level.ERROR)
        self._narrow(least=levels[(levels.index(self.lines.filter.least) + 1) % len(levels)])

    def action_invocation(self) -> None:
        """All starts, this one, or earlier ones."""
        self._narrow(starts=_after(list(Starts), self.lines.filter.starts))

    def action_bars(self) -> None:
        """The latest state of each progress bar, all states, or none."""
        self._narrow(bars=_after(list(Bars), self.lines.filter.bars))

    def action_noise(self) -> None:
        """Show or hide lines that only tell of a poll."""
        self._narrow(noise=not self.lines.filter.noise)

    def action_reset(self) -> None:
        """Remove every filter."""
        self._text = self._status.text_words = ""
        self.lines.set_filter(LogFilter(noise=True))
        self._work()

    def action_rank(self) -> None:
        """Choose the rank shown."""
        choices = rank_choices(self.lines.ranks)
        rank = self.lines.filter.rank

        def chosen(choice: str | None) -> None:
            if choice is not None:
                self._narrow(rank=None if choice == ALL else choice[1:])

        self.app.push_screen(
            ChoiceScreen("Rank", choices, ALL if rank is None else f"={rank}"), chosen
        )

    def action_phase(self) -> None:
        """Choose the phase shown."""
        choices = phase_choices(self.lines.phases)

        def chosen(choice: str | None) -> None:
            if choice is not None:
                self._narrow(phase=None if choice == ALL else Phase(choice))

        self.app.push_screen(ChoiceScreen("Phase", choices, self.lines.filter.phase or ALL), chosen)

    def _narrow(self, **changes: object) -> None:
        self.lines.set_filter(replace(self.lines.filter, **changes))  # type: ignore[arg-type]
        self._work()

    # ---- showing, copying, saving -----------------------------------------------------------

    def action_wrap(self) -> None:
        """Wrap long lines, or scroll them."""
        self.view.toggle_wrap()
        self._tell()

    def action_stamps(self) -> None:
        """Show or hide the host's time."""
        self.view.toggle_stamps()

    def action_select(self) -> None:
        """Begin a selection at the cursor, or drop it."""
        self.view.toggle_selection()

    def action_copy(self) -> None:
        """Copy the selection, or the line under the cursor."""
        lines = self.view.selected()
        if not lines:
            self.notify("There is no line to copy", severity="warning")
            return
        text = "\n".join(line.text for line in lines)
        copy_text(self.app, text, "1 line" if len(lines) == 1 else f"{len(lines):,} lines")
        if self.view.mark is not None:
            self.view.toggle_selection()

    def action_save(self) -> None:
        """Ask where to save the lines shown."""
        shot = self._shown.snapshot if self._shown is not None else None
        unit = shot.unit.name if shot is not None and shot.unit is not None else ""
        path = suggest_file(shot.host if shot is not None else "", unit, self._clock)
        self._ask("save", f"Save {self.lines.count:,} lines to:", str(path))

    @work(exit_on_error=False)
    async def _save(self, path: Path) -> None:
        lines = list(self.lines.shown)
        try:
            count = await asyncio.to_thread(write_new, path, lines)
        except FileExistsError:
            self._prompt.fault("it exists, and nothing is overwritten: choose another name")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            self._prompt.fault(f"cannot be written: {reason}")
        else:
            self._close_prompt()
            self.notify(f"Saved {count:,} lines to {path}", markup=False)


def _after(values: list[_T], value: _T) -> _T:
    return values[(values.index(value) + 1) % len(values)]
