"""Where the engine's HTTP side stands, as its polls know it together."""

from __future__ import annotations

from ddtui.collect.base import Report
from ddtui.collect.engine_client import Answer, NoAnswer, TooLong
from ddtui.collect.observed import PORT_UNKNOWN, Observed
from ddtui.core.samples import SourceStatus

HEALTH = "/health"
INFO = ("/server_info", "/get_server_info")
"""The name since 0.5.8, and the one before."""


class Standing:
    """What the three loops know of the engine together; says it as one source."""

    def __init__(self, observed: Observed, report: Report) -> None:
        self.observed = observed
        self._report = report
        self.open: bool | None = None
        """Whether somebody listens on the port; None before the first try."""
        self.health: int | None = None
        """The last status of /health."""
        self.ready_for = ""
        """The invocation that answered 200 last."""
        self.key_needed = False
        self.reports = False
        """Whether the endpoint of the report gave one last."""
        self.refused_with = 401
        """The status by which the endpoint of the report refused, where it did."""
        self.metrics: bool | None = None
        self.figures = ""
        """Where the figures come from now."""
        self.trouble = ""
        self.too_long: TooLong | None = None
        """An endpoint whose answer is thrown away."""

    @property
    def reachable(self) -> bool:
        """Whether it is worth asking: somebody listens on a port that is known."""
        return bool(self.open) and self.observed.port_known

    @property
    def ready(self) -> bool:
        """Whether the present invocation has answered 200 and not gone since."""
        return bool(self.open) and self.ready_for == (self.observed.invocation or "?")

    @property
    def only_health(self) -> bool:
        """Whether no endpoint tells of the engine but /health: no figures, and no report."""
        return not self.figures and not self.reports

    def answered(self, answer: Answer, path: str) -> None:
        """An endpoint answered, whatever it said."""
        opens = not self.open
        self.open = True
        self.trouble = ""
        if self.too_long is not None and self.too_long.endpoint == path.partition("?")[0]:
            self.too_long = None
        if path == HEALTH:
            self.health = answer.status
            ok = answer.status == 200
            self.ready_for = (self.observed.invocation or "?") if ok else ""
        elif path in INFO:
            self.key_needed = answer.status in {401, 403}
            self.reports = answer.status == 200
            self.refused_with = answer.status or 401
        if opens:
            self.observed.notify()

    def silent(self, error: NoAnswer) -> None:
        """An endpoint did not answer, or with too much."""
        if isinstance(error, TooLong):
            self.open, self.too_long = True, error
            return
        self.open = not error.closed
        if error.closed:
            self.ready_for = ""
            self.health = None
            self.metrics = None
            self.figures = ""
            self.too_long = None
        self.trouble = error.error

    def say(self) -> None:
        """Emit where the engine's HTTP side stands, if that has changed."""
        port = self.observed.port
        if not self.observed.port_known:
            self._report(
                SourceStatus.WAITING,
                PORT_UNKNOWN,
                "it is read off the unit's command line; `port` in the host's section sets it",
            )
        elif self.open is None:
            return
        elif not self.open:
            why = "no unit is known that names the port; " if self.observed.port_is_guessed else ""
            self._report(SourceStatus.WAITING, f"{why}port {port} is closed")
        elif self.key_needed:
            self._report(
                SourceStatus.FAILED,
                f"API key needed ({self.refused_with})",
                "set `api_key_env` or `api_key_command` in the host's section",
            )
        elif self.trouble:
            self._report(SourceStatus.FAILED, f"port {port}: {self.trouble}")
        elif self.health not in {None, 200, 503}:
            self._report(
                SourceStatus.FAILED,
                f"port {port} answers {HEALTH} with {self.health}, as no engine does",
                "another program may have the port: see who owns it",
            )
        elif self.too_long is not None:
            self._report(
                SourceStatus.FAILED,
                f"port {port}: {self.too_long.error}{self._source()}",
                "no engine says so much: another program, or a proxy, may have the port",
            )
        elif self.metrics is False:
            self._report(
                SourceStatus.LIVE,
                f"--enable-metrics is off{self._source()}",
                "start the engine with --enable-metrics for live figures",
            )
        elif self.metrics is not None:  # else there is no word of the figures yet
            self._report.live()

    def _source(self) -> str:
        return f"; figures from {self.figures}" if self.figures else ""
