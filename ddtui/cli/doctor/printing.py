"""How the doctor's findings are printed: each as soon as it is known, or all as JSON at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ddtui.cli.doctor.check import Check, Verdict
from ddtui.cli.output import Paint, clean, emit, emit_json, folded, say, terminal_width

_STYLES = {
    Verdict.OK: "green",
    Verdict.WARN: "yellow",
    Verdict.FAIL: "red",
    Verdict.SKIP: "dim",
}
_NAME_WIDTH = 20


class Printer:
    """Takes findings, prints them, and counts."""

    def __init__(self, host: str, *, as_json: bool) -> None:
        self._host = host
        self._as_json = as_json
        self._paint = Paint()
        self._found: list[dict[str, str]] = []
        self._counts: Counter[Verdict] = Counter()

    @property
    def failed(self) -> bool:
        """Whether anything failed."""
        return self._counts[Verdict.FAIL] > 0

    def heading(self, text: str) -> None:
        """What the next findings are about."""
        self._place = text
        if not self._as_json:
            emit(self._paint(text, "bold"))

    _place = ""

    def show(self, checks: Iterable[Check]) -> None:
        """Print findings."""
        for check in checks:
            self._counts[check.verdict] += 1
            self._found.append(
                {
                    "where": self._place,
                    "name": check.name,
                    "verdict": check.verdict.value,
                    "detail": clean(check.detail),
                    "remedy": "\n".join(map(clean, check.remedy.splitlines())),
                }
            )
            if not self._as_json:
                self._print(check)

    def _print(self, check: Check) -> None:
        verdict = self._paint(f"{check.verdict.value:<4}", _STYLES[check.verdict])
        line = f"  {verdict}  {check.name:<{_NAME_WIDTH}}  {clean(check.detail)}".rstrip()
        emit("\n".join(folded(line, terminal_width(), _NAME_WIDTH + 10)))
        for n, line in enumerate(check.remedy.splitlines()):
            mark = "->" if n == 0 else "  "
            emit(f"{'':{_NAME_WIDTH + 10}}{mark} {clean(line)}")

    def finish(self) -> None:
        """Print the JSON, or a count of what was found."""
        if self._as_json:
            emit_json({"host": self._host, "failed": self.failed, "checks": self._found})
            return
        words = [f"{self._counts[verdict]} {verdict.value}" for verdict in Verdict]
        say(", ".join(words))
