"""Size on disk of the models that the unit serves."""

from __future__ import annotations

import re

from ddtui.collect.base import Context, Emit, Report, SourceTrouble, supervise
from ddtui.collect.observed import Observed
from ddtui.collect.programs import CHECKPOINT
from ddtui.collect.settings import HostSettings
from ddtui.core.bounded import bounded_int
from ddtui.core.engine import Engine
from ddtui.core.redact import safe_text
from ddtui.core.samples import CheckpointSample, Collector, UnitStatus
from ddtui.core.text import clean
from ddtui.hosts.base import Host

SOURCE = "folder"
AGAIN = 60.0
"""Seconds after which a model that was not found is looked for again."""
_SHARD = re.compile(r"-\d{4,}-of-\d{4,}\.")
_KINDS = (".safetensors", ".gguf", ".bin", ".pt")
"""The engine loads the first kind that there is."""


def weights(files: list[tuple[str, int]]) -> tuple[int, int]:
    """Bytes and number of the weight files, of `(name, size)`.

    A folder may hold the same weights in several formats, and as one file beside its shards.
    """
    for kind in _KINDS:
        of_kind = [(name, size) for name, size in files if name.endswith(kind)]
        shards = [size for name, size in of_kind if _SHARD.search(name)]
        sizes = shards or [size for _, size in of_kind]
        if sizes:
            return sum(sizes), len(sizes)
    return 0, 0


def parse_checkpoint(text: str, at: float, model: str, role: str) -> CheckpointSample:
    """Read the program's lines."""
    path = disk = ""
    files: list[tuple[str, int]] = []
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "@path":
            path = clean(rest, 400)
        elif word == "@disk":
            disk = clean(rest, 200)
        elif word == "@file":
            size, _, name = rest.partition(" ")
            if (length := bounded_int(size)) is not None:
                files.append((name, length))
        elif word in {"@config", "@end"}:
            break
    size_of_all, count = weights(files)
    return CheckpointSample(
        at, SOURCE, clean(model, 400), role, size_of_all or None, count or None, path, disk
    )


def hub_cache(unit: UnitStatus, configured: str | None) -> str:
    """Where the unit's own environment puts models from the hub; empty: where the user's does."""
    if configured:
        return configured
    values = dict(pair.split("=", 1) for pair in unit.environment if "=" in pair)
    if values.get("HF_HUB_CACHE"):
        return values["HF_HUB_CACHE"]
    return f"{values['HF_HOME']}/hub" if values.get("HF_HOME") else ""


class CheckpointCollector:
    """Measures target and drafter once, and again when the command line names others."""

    def __init__(
        self, settings: HostSettings, engine: Engine, observed: Observed, context: Context
    ) -> None:
        self._settings = settings
        self._engine = engine
        self._observed = observed
        self._context = context
        self._measured: dict[tuple[str, str], CheckpointSample] = {}

    async def run(self, host: Host, emit: Emit) -> None:
        """See SourceCollector."""
        report = Report(Collector.CHECKPOINT, SOURCE, emit, self._context.clock)
        await supervise(
            host, report, lambda: self._work(host, emit, report), self._context.nudge, longest=AGAIN
        )

    async def _work(self, host: Host, emit: Emit, report: Report) -> None:
        said = ""
        while True:
            unit = self._observed.unit
            if unit is not None and unit.command_line and unit.invocation != said:
                models = self._engine.models(unit.command_line)
                for role, model in models.items():
                    await self._measure(host, emit, unit, role, model)
                said = unit.invocation
                report.live()
            await self._observed.wait_change(AGAIN)

    async def _measure(
        self, host: Host, emit: Emit, unit: UnitStatus, role: str, model: str
    ) -> None:
        key = (model, unit.working_directory)
        if key not in self._measured:
            answer = await host.run(
                CHECKPOINT,
                model,
                unit.working_directory,
                hub_cache(unit, self._settings.hub_cache),
                timeout=30.0,
            )
            if answer.status != 0:
                said = safe_text(answer.stderr.decode("utf-8", "replace").strip(), 200)
                raise SourceTrouble(
                    f"the {role}'s size is unknown: {said or f'status {answer.status}'}",
                    "the user that ddtui logs in as may need the right to read the model's folder;"
                    " a hub cache elsewhere is set by `hub_cache`",
                )
            text = answer.stdout.decode("utf-8", "replace")
            self._measured[key] = parse_checkpoint(text, self._context.clock(), model, role)
        known = self._measured[key]
        emit(
            CheckpointSample(
                self._context.clock(), SOURCE, known.model, role, known.size, known.shards,
                known.path, known.disk,
            )
        )  # fmt: skip
