"""Adds an experiment like another one: what to change is typed, what matches it is chosen."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Static

from ddtui.core.experiment import Experiment
from ddtui.experiments.matching import Matched
from ddtui.ui.glyphs import glyphs_of
from ddtui.ui.ink import Ink, Row, rows_text, wrapped
from ddtui.ui.queue_source import LikeView, QueueSource
from ddtui.ui.screens.built import built
from ddtui.ui.screens.modal import Modal
from ddtui.ui.sweep_rows import policy_row

_SIDES = 6
Chosen = tuple[str, str]
"""What was typed, and the policy; an empty one for none."""


class LikeScreen(Modal[Chosen | None]):
    """Shows every policy's budget while a new block size is typed; arrows choose one."""

    AUTO_FOCUS = "Input"
    BINDINGS = [
        Binding("escape", "back", show=False),
        Binding("down", "choose(1)", show=False, priority=True),
        Binding("up", "choose(-1)", show=False, priority=True),
        Binding("tab,shift+tab", "stay", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    LikeScreen { align: center middle; }
    LikeScreen > Vertical {
        width: 116; max-width: 96%; height: auto; max-height: 96%;
        background: $surface; border: round $primary; padding: 0 1;
    }
    LikeScreen Input { border: none; height: 1; padding: 0; background: $panel; }
    LikeScreen VerticalScroll { height: auto; margin-top: 1; scrollbar-size-vertical: 1; }
    """

    def __init__(self, queue: QueueSource, experiment: Experiment) -> None:
        """`experiment` is the one to be like."""
        super().__init__()
        self._queue = queue
        self._like = experiment
        self._view = LikeView()
        self._at = 0
        """The policy chosen; the row after the last one matches nothing."""

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            title = f" The same as {Row(self._like.title).cut(60).text}, but with "
            box.border_title = Content(title)
            box.border_subtitle = Content(" ⏎ adds it  ↑↓ chooses what matches  esc closes ")
            yield Input(compact=True, select_on_focus=False, placeholder="block_size=16 control")
            with VerticalScroll(can_focus=False):
                yield Static(id="body")

    def on_mount(self) -> None:
        self._preview("")

    def on_resize(self) -> None:
        self._fill()

    def action_back(self) -> None:
        """Add nothing."""
        self.dismiss(None)

    def action_stay(self) -> None:
        """Keep the focus in the line."""

    def action_choose(self, step: int) -> None:
        """Choose another way to match."""
        if self._view.choices:
            self._at = max(0, min(self._at + step, len(self._view.choices)))
            self._fill()

    @on(Input.Changed)
    def _changed(self, event: Input.Changed) -> None:
        self._preview(event.value)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        if self._view.fault or not event.value.strip():
            return  # two keys, m and enter, are not to add anything
        chosen = self._chosen
        if chosen is not None and chosen.value is None:
            return  # why is told in its row
        self.dismiss((event.value, "" if chosen is None else chosen.policy))

    @property
    def _chosen(self) -> Matched | None:
        choices = self._view.choices
        return choices[self._at] if self._at < len(choices) else None

    def _preview(self, text: str) -> None:
        before = len(self._view.choices)
        self._view = self._queue.like(self._like.id, text)
        if len(self._view.choices) != before:
            self._at = 0
        self._fill()

    def _fill(self) -> None:
        if not built(self):
            return
        width = max(20, min(116, int(self.size.width * 0.96)) - _SIDES)
        room = max(3, int(self.size.height * 0.96) - 5)
        self.query_one(VerticalScroll).styles.max_height = room
        rows = like_rows(self._view, self._at, width, glyphs_of(self.app).running)
        self.query_one("#body", Static).update(rows_text(rows, self.app.theme_variables))


def like_rows(view: LikeView, at: int, width: int, pointer: str) -> list[Row]:
    """What would be added, and every way to match."""
    if view.fault:
        return [row for line in view.fault.splitlines() for row in wrapped(line, width, Ink.BAD)]
    title = view.titles[at] if at < len(view.titles) else view.title
    rows = [Row("adds: ", Ink.LABEL).add(title, Ink.STRONG).cut(width)]
    if view.note:
        return rows + wrapped(view.note, width, Ink.WARN)
    if not view.choices or view.reference is None:
        words = (
            "block_size=16 shows the budgets that match it; `control` adds the unmatched one too"
        )
        return rows + wrapped(words, width, Ink.LABEL)
    reference = f"block size {view.reference.block_size}, budget {view.reference.budget}"
    rows += [
        Row(),
        Row(f"Budgets for block size {view.block_size} to match {reference}", Ink.TITLE),
    ]
    for number, each in enumerate(view.choices):
        chosen = number == at
        mark = Row(f"{pointer} " if chosen else "  ", Ink.BUSY)
        rows.append(mark.extend(policy_row(each, number + 1, width - 2)))
        if chosen and rows[-1].text.endswith("…"):
            rows += wrapped(each.formula, width, indent=5)
        for warning in each.warnings if chosen else ():
            rows += wrapped(f"! {warning}", width, Ink.WARN, indent=5)
        for error in each.errors if chosen else ():
            rows += wrapped(f"no budget: {error}", width, Ink.BAD, indent=5)
    nothing = Row(f"{pointer} " if at >= len(view.choices) else "  ", Ink.BUSY)
    rows.append(nothing.add("   ").put("nothing", 10, Ink.STRONG).add("       budget as it is"))
    if view.control:
        words = "and the control: the same budget at the new block size, which tells the effect of"
        rows += [Row(), *wrapped(f"{words} the block from that of the budget", width, Ink.LABEL)]
    return rows
