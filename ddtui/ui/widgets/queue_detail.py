"""The highlighted experiment in full, beside the queue's table."""

from __future__ import annotations

from ddtui.ui.copying import UNBROKEN, plain
from ddtui.ui.ink import Ink, Row
from ddtui.ui.queue_detail_rows import QueueDetail, detail_rows
from ddtui.ui.queue_source import QueueView
from ddtui.ui.shown import Shown
from ddtui.ui.widgets.scrolled import ScrolledPanel


class QueueDetailPanel(ScrolledPanel):
    """Another experiment begins at its first line."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002  (Textual's own name for it)
        super().__init__(id=id)
        self._detail = QueueDetail()

    def tell(self, detail: QueueDetail) -> None:
        """Show another detail."""
        before, after = self._detail.experiment, detail.experiment
        self._detail = detail
        self.renew(from_top=(before.id if before else "") != (after.id if after else ""))

    def title(self) -> Row:
        """The experiment's."""
        each = self._detail.experiment
        return Row(each.title if each is not None else "No experiment", Ink.TITLE)

    def rows(self, shown: Shown, width: int) -> list[Row]:
        """All that is told, for a width in cells."""
        info = shown.snapshot.server_info
        report = info.arguments if info is not None else None
        view = shown.queue or QueueView()
        return detail_rows(self._detail, view, width, shown.glyphs, report)

    def text(self) -> str:
        """All that is told, each line whole."""
        return "" if self._shown is None else plain(self.rows(self._shown, UNBROKEN))
