"""Presets: what each would change of the unit as it is configured now; set, save, apply."""

from __future__ import annotations

import shlex
from collections.abc import Hashable, Sequence
from dataclasses import replace

from rich.cells import cell_len
from textual import on, work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.timer import Timer
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from ddtui.config.assignments import parse_assignments
from ddtui.config.errors import ConfigError
from ddtui.config.preset_tables import NAME
from ddtui.config.presets import merged
from ddtui.core.launch import Request
from ddtui.core.width import clip
from ddtui.ui import format as fmt
from ddtui.ui.actions import Scope, bindings, refused_read_only
from ddtui.ui.control_desk import ControlDesk
from ddtui.ui.copying import copy_text
from ddtui.ui.glyphs import glyphs_of
from ddtui.ui.in_force import in_force
from ddtui.ui.messages import ChangeDismissed
from ddtui.ui.palette import keymap_of
from ddtui.ui.screens.built import built
from ddtui.ui.screens.choice import Choice, ChoiceScreen
from ddtui.ui.screens.live import ListScreen
from ddtui.ui.shown import Shown, plan_facts
from ddtui.ui.source import ControlProblem, PresetView
from ddtui.ui.widgets.header import Header
from ddtui.ui.widgets.key_bar import KeyBar
from ddtui.ui.widgets.options import UnpagedOptions
from ddtui.ui.widgets.preset_detail import Detail, PresetDetail
from ddtui.ui.widgets.prompt import Prompt
from ddtui.ui.widgets.reconfiguration import ReconfigurationPanel, compact_rows, settled

AGAIN = 20.0
"""Seconds after which a plan is made anew though nothing is known to have changed."""
PAUSE = 0.15
"""Seconds that the highlight must rest before a plan is made."""
_NAMELESS = "(no preset)"
_NAME = 22
"""Cells of a preset's name, at most, where there is room for its description."""
_NO_PRESET = PresetView("", "only what is set here, with e", "", Request())


class PresetsScreen(ListScreen):
    """The presets at the left; at the right what the highlighted one would change."""

    BINDINGS = bindings(Scope.PRESETS)
    DEFAULT_CSS = """
    PresetsScreen { layout: vertical; overflow: hidden; background: $background; }
    PresetsScreen > #both { height: 1fr; }
    PresetsScreen OptionList {
        width: 26; height: 100%; background: $background; padding: 0 1;
        border: round $frame; border-title-color: $primary; scrollbar-size-vertical: 1;
        &:focus { border: round $frame; background: $background; background-tint: $background 0%; }
    }
    PresetsScreen Vertical { width: 1fr; height: 100%; }
    PresetsScreen PresetDetail { height: 1fr; }
    PresetsScreen ReconfigurationPanel { display: none; }
    """

    def __init__(self, desk: ControlDesk) -> None:
        """Prepare the screen; `desk` plans, and applies what is confirmed there."""
        super().__init__(id="presets")
        self._desk = desk
        self._presets: Sequence[PresetView] = ()
        self._listed: list[PresetView] = []
        self._lit: int | None = None
        """The line that is painted as the highlighted one."""
        self._in_force: frozenset[str] = frozenset()
        """Names of presets of which every value is in force."""
        self._own: dict[str, Request] = {}
        """What was set beside each preset."""
        self._detail = Detail()
        self._shown: Shown | None = None
        self._facts: Hashable = None
        self._filter = ""
        self._pause: Timer | None = None
        self._to_save = ("", Request())
        self._judged = ""
        """The text that a fault is told of; word of a change may come after it was entered."""

    def compose(self) -> ComposeResult:
        yield Header()
        with Horizontal(id="both"):
            yield UnpagedOptions(id="list")
            with Vertical():
                yield ReconfigurationPanel(id="change", hide="presets.cancel")
                yield PresetDetail(id="detail")
        yield Prompt()
        yield KeyBar()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if self._desk.read_only and refused_read_only(Scope.PRESETS, action):
            return False
        return super().check_action(action, parameters)

    def on_mount(self) -> None:
        self.query_one(OptionList).focus()
        self._read()
        self.set_interval(AGAIN, self._plan_soon)

    def on_screen_resume(self) -> None:
        self._read()
        self._look()

    @work(group="look", exclusive=True)
    async def _look(self) -> None:
        await self._desk.look()

    # ---- what arrives -----------------------------------------------------------------------

    def show(self, shown: Shown) -> None:
        self._shown = shown
        if not built(self):
            return
        self._place()
        self._mark_in_force(shown)
        self.query_one(Header).show(shown)
        self.query_one(ReconfigurationPanel).show(shown)
        self.query_one(PresetDetail).show(shown)
        facts = plan_facts(shown)
        if facts != self._facts:
            self._facts = facts
            self._plan_soon()

    def _mark_in_force(self, shown: Shown) -> None:
        """Mark the presets that the engine has now."""
        found = frozenset(
            each.name for each in self._presets if in_force(each.request, shown.snapshot)
        )
        if found != self._in_force:
            self._in_force = found
            self._list()

    def on_resize(self) -> None:
        self._list()
        if self._shown is not None:
            self._place()

    def _place(self) -> None:
        """Give a reconfiguration the lines that it needs."""
        shown = self._shown
        panel = self.query_one(ReconfigurationPanel)
        view = shown.reconfiguration if shown is not None else None
        if shown is None or view is None:
            panel.display = False
            return
        room = max(3, (self.size.height - 3) * 2 // 3)
        width = max(8, self.size.width - self._list_width() - 4)
        few = len(compact_rows(view, shown, width)) + 2
        each = few if settled(view, shown.now) else len(view.steps) + 2 + max(0, few - 4)
        panel.display = True
        panel.styles.height = each if each <= room else min(few, room)

    def _list_width(self) -> int:
        return 26 if self.size.width < 100 else 34 if self.size.width < 170 else 60

    # ---- the list ---------------------------------------------------------------------------

    def _read(self) -> None:
        try:
            self._presets, problems = self._desk.control.presets(), ""
        except ControlProblem as problem:
            problems = f"{problem.what} {problem.remedy}".strip()
        self._detail = replace(self._detail, problems=problems)
        self._list()
        self._plan_soon()

    def _list(self) -> None:
        """Fill the list, and keep the highlight on its preset."""
        options = self.query_one(OptionList)
        current = self._detail.preset.name if self._detail.preset is not None else None
        words = self._filter.lower()
        found = [
            each
            for each in self._presets
            if words in each.name.lower() or words in each.description.lower()
        ]
        self._listed = [*found, _NO_PRESET] if not words else found
        self._lit = None
        options.styles.width = self._list_width()
        names = [each.name for each in self._listed]
        with self.prevent(OptionList.OptionHighlighted):
            options.clear_options()
            options.add_options(
                [
                    Option(self._line(each), id=f"preset-{at}")
                    for at, each in enumerate(self._listed)
                ]
            )
            if names:
                options.highlighted = names.index(current) if current in names else 0
        count = f"{len(found)} of {len(self._presets)}" if words else str(len(found))
        marked = any(each.name in self._in_force for each in self._listed)
        words = "in force" if self._list_width() > 30 else "now"
        legend = f"  {glyphs_of(self.app).ok} {words}" if marked else ""
        options.border_title = Content(f"Presets {count}{legend}")
        self._highlight(options.highlighted)

    def _line(self, preset: PresetView, *, lit: bool = False) -> Content:
        """A preset in the list; `lit` on the colour of the highlight, where no other is seen."""
        room = self._list_width() - 6
        name = fmt.clean(preset.name) or _NAMELESS
        mark = f" {glyphs_of(self.app).ok}" if preset.name in self._in_force else ""
        mark = " *" if self._own.get(preset.name, Request()) != Request() else mark
        name = clip(name, max(4, (room if room < 40 else _NAME) - len(mark))) + mark
        if room < 40:
            return Content(name)
        names = (fmt.clean(each.name) or _NAMELESS for each in self._listed)
        column = min(_NAME, max(map(cell_len, names)) + 2)
        line = Content(name + " " * max(0, column - cell_len(name)))
        words = clip(fmt.clean(preset.description), max(1, room - line.cell_length - 2))
        return line.append(f"  {words}" if lit else Content.styled(f"  {words}", "$label"))

    def _light(self, at: int | None) -> None:
        """Paint the highlighted line, and the one that was."""
        options = self.query_one(OptionList)
        for one in {self._lit, at} - {None}:
            if one is not None and one < options.option_count:
                line = self._line(self._listed[one], lit=one == at)
                options.replace_option_prompt_at_index(one, line)
        self._lit = at

    @on(OptionList.OptionHighlighted)
    def _highlighted(self, event: OptionList.OptionHighlighted) -> None:
        self._highlight(event.option_index)

    def _highlight(self, at: int | None) -> None:
        self._light(at)
        preset = self._listed[at] if at is not None and at < len(self._listed) else None
        before = self._detail
        if preset is None:
            self._detail = Detail(problems=before.problems)
        else:
            own = self._own.get(preset.name, Request())
            request = merged(preset.request, own)
            same = before.preset is not None and before.request == request
            kept = before if same else Detail(problems=before.problems)
            self._detail = replace(kept, preset=preset, request=request, own=own)
            if not same:
                self._plan_soon()
        self._tell()

    def _tell(self) -> None:
        if built(self):
            self.query_one(PresetDetail).tell(self._detail)

    # ---- the plan ---------------------------------------------------------------------------

    def _plan_soon(self) -> None:
        if self._pause is not None:
            self._pause.stop()
        self._pause = self.set_timer(PAUSE, self._plan_now)

    def _plan_now(self) -> None:
        connected = self._shown is not None and self._shown.connected
        if connected and self.is_current and self._detail.preset is not None:
            self._plan(self._detail)

    @work(group="plan", exclusive=True)
    async def _plan(self, asked: Detail) -> None:
        self._detail = replace(self._detail, working=True)
        self._tell()
        plan, problem = None, None
        try:
            plan = await self._desk.control.plan(asked.request)
        except ControlProblem as error:
            problem = error
        if self._detail.request != asked.request:
            return
        if plan is not None:
            now = self._shown.now if self._shown is not None else None
            self._detail = replace(self._detail, plan=plan, planned_at=now)
        self._detail = replace(self._detail, problem=problem, working=False)
        self._tell()

    # ---- actions ----------------------------------------------------------------------------

    def action_apply(self) -> None:
        """Show all that would change, and ask."""
        if self._detail.preset is None:
            self.notify("No preset is highlighted", severity="warning")
        else:
            self._desk.apply(self._detail.request)

    @on(OptionList.OptionSelected)
    def _chosen(self) -> None:
        if self.check_action("apply", ()):
            self.action_apply()

    def action_edit(self) -> None:
        """Ask what to set beside the preset."""
        self._ask("edit", "Set:", "")

    def action_clear(self) -> None:
        """Drop what was set beside the preset."""
        preset = self._detail.preset
        if preset is not None and self._own.pop(preset.name, None) is not None:
            self._list()

    def action_save(self) -> None:
        """Ask for a name to save it under."""
        self._ask("save", "Save as preset:", "")

    def action_copy(self) -> None:
        """Copy what is told of the preset, each line whole."""
        copy_text(self.app, self.query_one(PresetDetail).text(), "what is told of the preset")

    def action_filter(self) -> None:
        """Ask which presets to show."""
        self._ask("filter", "Presets with:", self._filter)

    def action_cancel(self) -> None:
        """Close the line, drop the filter, or hide a change that has ended."""
        if self.query_one(Prompt).purpose:
            self._close_prompt()
        elif self._filter:
            self._filter = ""
            self._list()
        else:
            self.post_message(ChangeDismissed())

    def action_reload(self) -> None:
        """Read the presets and plan again."""
        self._read()

    def action_page_down(self) -> None:
        """Scroll what the preset does."""
        self.query_one(PresetDetail).page(1)

    def action_page_up(self) -> None:
        """Scroll it back."""
        self.query_one(PresetDetail).page(-1)

    # ---- typing -----------------------------------------------------------------------------

    def _ask(self, purpose: str, label: str, value: str) -> None:
        self.query_one(Prompt).ask(purpose, label, value)
        self.query_one(Prompt).fault(self._missing(purpose))
        close = keymap_of(self).shown("presets.cancel")
        hints = [("⏎", purpose, ""), (close, "close", "screen.cancel")]
        if purpose == "edit":
            hints.append(("budget=16 flag:NAME=1 env:NAME=1", "none takes away", ""))
        self.query_one(KeyBar).instead(hints)

    def _missing(self, purpose: str) -> str:
        """Why what is asked for can come to nothing; it is asked all the same.

        Without a line to type into, what is typed would reach the keys of the screen.
        """
        if purpose == "filter":
            return ""
        if self._detail.preset is None:
            return "no preset is highlighted"
        if purpose == "save" and self._detail.request == Request():
            return "there is nothing to save: set something first"
        return ""

    def _close_prompt(self) -> None:
        self.query_one(Prompt).close()
        self.query_one(KeyBar).instead(())
        self.query_one(OptionList).focus()

    @on(Prompt.Changed)
    def _typed(self, event: Prompt.Changed) -> None:
        if event.purpose == "filter":
            self._filter = event.value
            self._list()
        elif event.purpose in {"edit", "save"} and event.value != self._judged:
            self.query_one(Prompt).fault(self._missing(event.purpose))

    @on(Prompt.Entered)
    def _entered(self, event: Prompt.Entered) -> None:
        self._judged = event.value
        if missing := self._missing(event.purpose):
            self.query_one(Prompt).fault(missing)
        elif event.purpose == "edit":
            self._set(event.value)
        elif event.purpose == "save":
            self._save_as(event.value.strip())
        else:
            self._close_prompt()

    def _set(self, words: str) -> None:
        preset = self._detail.preset
        try:
            over = parse_assignments(shlex.split(words))
        except ConfigError as error:
            self.query_one(Prompt).fault(fmt.clean(error.problems[0].message))
        except ValueError as error:  # of shlex: a quotation mark that is not closed
            self.query_one(Prompt).fault(str(error))
        else:
            if preset is not None:
                self._own[preset.name] = merged(self._own.get(preset.name, Request()), over)
            self._close_prompt()
            self._list()

    def _save_as(self, name: str) -> None:
        if not NAME.fullmatch(name):
            self.query_one(Prompt).fault("letters, digits and . _ + - only, 64 at most")
            return
        self._close_prompt()
        self._to_save = (name, self._detail.request)
        try:
            places = self._desk.control.save_places()
        except ControlProblem as problem:
            self.notify(problem.what, severity="error", markup=False)
            return
        if len(places) == 1:
            self._save(places[0].id)
        else:
            choices = [Choice(each.id, fmt.clean(each.words)) for each in places]
            self.app.push_screen(ChoiceScreen("Save it in", choices, places[0].id), self._save)

    def _save(self, place: str | None) -> None:
        if place is None:
            return
        name, request = self._to_save
        based = self._detail.preset
        words = based.description if based is not None and based.name else ""
        try:
            where = self._desk.control.save_preset(name, words, request, place)
        except ControlProblem as problem:
            words = f"Not saved: {problem.what} {problem.remedy}"
            self.notify(words, severity="error", markup=False, timeout=15)
        else:
            self.notify(f"Saved {name} in {where}", markup=False)
            self._read()
