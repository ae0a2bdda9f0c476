"""Works out and checks a plan: a request, applied to the unit and judged by its server."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ddtui.collect.programs import CHECKPOINT
from ddtui.collect.settings import HostSettings
from ddtui.control.held import parse_held
from ddtui.control.server_help import HelpUnavailable, learn_server_flags
from ddtui.control.unit_command import UnitCommand
from ddtui.control.unit_programs import DISK_ROOM, DROP_IN_SIGHT, HOLDERS
from ddtui.core.bounded import bounded_int
from ddtui.core.launch import Finding, Launch, Level, Plan, Request
from ddtui.core.load_history import LoadHistory, LoadRecord
from ddtui.core.redact import is_secret_name, redact_argv
from ddtui.core.samples import ListenerOwner, ListenerSample
from ddtui.core.snapshot import Snapshot
from ddtui.core.text import clean
from ddtui.engines.sglang.checks import CheckContext, check, limits
from ddtui.engines.sglang.flags import models
from ddtui.engines.sglang.flags import port as port_of
from ddtui.engines.sglang.planning import plan as work_out
from ddtui.engines.sglang.server_flags import ServerFlags, from_server_info, with_types
from ddtui.hosts.base import Host, HostError

log = logging.getLogger(__name__)

_WRITTEN_TO = ("/tmp", "/var/log")  # noqa: S108 - asked for their room, never written to
_CACHES = ("HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME", "TMPDIR")


class Planner:
    """Plans for one host's engine (SGLang and its forks)."""

    def __init__(
        self,
        host: Host,
        settings: HostSettings,
        *,
        cache: Path | None = None,
        knobs: Mapping[str, str] | None = None,
        past: LoadHistory | None = None,
    ) -> None:
        """`knobs` is the host's own mapping of knobs to flags; `past` its earlier loads."""
        self._host = host
        self._settings = settings
        self._cache = cache
        self._knobs = knobs
        self._past = past

    async def server_flags(
        self, before: Launch, snapshot: Snapshot
    ) -> tuple[ServerFlags | None, list[Finding]]:
        """The flags that the installed server knows, and what is to say of how they were had."""
        arguments = snapshot.server_info.arguments if snapshot.server_info is not None else {}
        command = list(before.argv)
        while command and command[0] == "exec":
            del command[0]
        directory = snapshot.unit.working_directory if snapshot.unit is not None else ""
        try:
            flags = await learn_server_flags(
                self._host,
                command,
                working_directory=directory,
                environment=before.environment,
                cache=self._cache,
            )
        except HelpUnavailable as error:
            note = Finding(Level.NOTE, "server-flags", error.what, remedy=error.remedy)
            version = snapshot.engine.version
            return (from_server_info(arguments, version) if arguments else None), [note]
        return with_types(flags, arguments), []

    async def plan(
        self,
        command: UnitCommand,
        request: Request,
        snapshot: Snapshot,
        base: Launch | None = None,
    ) -> Plan:
        """The plan, with everything that speaks against it.

        `base` is what the request is made on, where that is not what the unit is configured as.
        """
        before = command.launch
        server, notes = await self.server_flags(command.started_by_hand, snapshot)
        after, changes, findings = work_out(
            base or before, request, server, overrides=self._knobs, against=before
        )
        info = snapshot.server_info
        context = CheckContext(
            before=before,
            after=after,
            server=server,
            report=info.arguments if info is not None else {},
            report_version=info.version if info is not None else "",
            drafter_config=await self._drafter_config(after.argv, snapshot),
            last_load=self._last_load(after.argv),
            gpus=tuple(view.gpu for view in snapshot.gpus),
            processes=snapshot.processes,
            listener=await self._listener(command.unit, before.argv, after.argv, snapshot),
            disk_free=await self._disk_free(after.environment),
        )
        seen = await self.in_sight(command, after)
        found = (*findings, *check(context), *seen, *notes)
        return Plan(request, before, after, changes, found, limits(context))

    async def in_sight(self, command: UnitCommand, after: Launch) -> tuple[Finding, ...]:
        """Whether the drop-in will show everybody a secret that the unit keeps to itself."""
        changed = set(after.environment.items()) - set(command.base_environment.items())
        masked = zip(after.argv, redact_argv(after.argv), strict=True)
        # A word like $KEY is kept as it is written: its value is elsewhere.
        in_command = any(word != safe and not word.startswith("$") for word, safe in masked)
        if not in_command and not any(is_secret_name(name) for name, _ in changed):
            return ()
        try:
            answer = await self._host.run(DROP_IN_SIGHT, self._settings.scope, command.unit)
        except HostError as error:
            log.info("who may read the drop-in is not known: %s", error.what)
            return ()
        first, *_ = answer.stdout.decode("utf-8", "replace").splitlines() or [""]
        if not first.startswith("@open "):
            return ()
        fragment = clean(first.removeprefix("@open "), 200)
        return (
            Finding(
                Level.WARNING,
                "secret-in-sight",
                "the drop-in holds a secret, and will be readable by everybody on the host",
                f"{fragment} is not, but sudo does not allow to close the drop-in like it",
                "keep the secret in an EnvironmentFile=, or allow chown and chmod of the drop-in",
            ),
        )

    async def _listener(
        self, unit: str, before: Sequence[str], after: Sequence[str], snapshot: Snapshot
    ) -> ListenerSample | None:
        """Who has the port that is asked for: another one than the unit's own is looked at now."""
        port = port_of(after)
        if port == port_of(before):
            return snapshot.listener
        try:
            # A path that is no program: of the GPUs nothing is wanted here.
            answer = await self._host.run(HOLDERS, "/dev/null", "", str(port), "", timeout=40.0)
        except HostError as error:
            log.info("who has port %d is not known: %s", port, error.what)
            return None
        held = parse_held(answer.stdout.decode("utf-8", "replace"), own_group=f"/{unit}")
        if not held.port_open or set(held.port_pids) & set(held.unit_pids):
            return None
        pid = next(iter(held.port_pids), None)
        who = held.processes[pid].text if pid in held.processes else ""
        return ListenerSample(
            snapshot.at, "held", port, ListenerOwner.FOREIGN, pid, detail=clean(who, 200)
        )

    def _last_load(self, argv: Sequence[str]) -> LoadRecord | None:
        """The latest load of the same models that became ready."""
        wanted = models(argv)
        records = self._past.records if self._past is not None else ()
        alike = (
            each
            for each in reversed(records)
            if (each.model, each.drafter) == (wanted.get("target", ""), wanted.get("drafter"))
        )
        return next(alike, None)

    async def _disk_free(self, environment: Mapping[str, str]) -> dict[str, int]:
        """Free bytes of the folders that a server writes to, by folder; empty where not known."""
        caches = (
            value
            for name, value in environment.items()
            if (name in _CACHES or name.endswith("_CACHE_DIR")) and value.startswith("/")
        )
        try:
            answer = await self._host.run(DISK_ROOM, *_WRITTEN_TO, *caches)
        except HostError as error:
            log.info("the room on disks is not known: %s", error.what)
            return {}
        found: dict[str, int] = {}
        for line in answer.stdout.decode("utf-8", "replace").splitlines():
            kind, _, rest = line.partition(" ")
            free, _, folder = rest.partition(" ")
            if kind == "@free" and (room := bounded_int(free)) is not None:
                found[clean(folder, 200)] = room
        return found

    async def _drafter_config(
        self, argv: Sequence[str], snapshot: Snapshot
    ) -> Mapping[str, object] | None:
        """The drafter's config.json, read on the host; None where it cannot be had."""
        path = models(argv).get("drafter")
        if not path:
            return None
        directory = snapshot.unit.working_directory if snapshot.unit is not None else ""
        try:
            answer = await self._host.run(
                CHECKPOINT, path, directory, self._settings.hub_cache or ""
            )
        except HostError as error:
            log.info("the drafter's configuration is not known: %s", error.what)
            return None
        _, found, rest = answer.stdout.partition(b"\n@config\n")
        text, _, _ = rest.rpartition(b"\n@end")
        try:
            return msgspec.json.decode(text, type=dict[str, object]) if found else None
        except msgspec.DecodeError:
            return None
