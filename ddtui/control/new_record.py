"""The record of a change that is about to be begun: how the unit is before it."""

from __future__ import annotations

import uuid
from typing import Literal

from ddtui.control.carrying_out import Watching
from ddtui.control.differences import not_running_as_written, otherwise_before, safe_launch
from ddtui.control.host_actions import UnitActions
from ddtui.control.proof import deviations
from ddtui.control.simulated import PROCESS
from ddtui.control.unit_command import UnitCommand
from ddtui.core.change_record import Carried, ChangeRecord
from ddtui.core.launch import Request
from ddtui.core.redact import redact_argv
from ddtui.core.snapshot import ReadinessState

Kind = Literal["apply", "rollback", "restart"]


def new_record(
    kind: Kind,
    who: str,
    watching: Watching,
    actions: UnitActions,
    command: UnitCommand,
    own: str,
    change_id: str = "",
    asked_for: Request | None = None,
) -> ChangeRecord:
    """A record by which nothing changes yet; `own` is the text of ddtui's drop-in."""
    snapshot, engine = watching.snapshot(), watching.engine
    before = safe_launch(command.launch)
    # Only what really ran has shown that it gets ready.
    otherwise = not_running_as_written(command.launch, snapshot, engine, command.opaque)
    is_ready = snapshot.readiness.state is ReadinessState.READY
    found = deviations(before, snapshot, engine, (), command.opaque) if is_ready else ()
    return ChangeRecord(
        id=change_id or uuid.uuid4().hex,
        kind=kind,
        host=actions.host.name,
        simulated=actions.host.simulated,
        unit=actions.unit,
        scope=actions.scope,
        who=who,
        began=watching.clock(),
        before_argv=before.argv,
        before_environment=before.environment,
        after_argv=before.argv,
        after_environment=before.environment,
        before_drop_in=own,
        was_ready=is_ready and not otherwise,
        state=Carried(
            process=PROCESS if actions.host.simulated else None,
            expected=before,
            opaque=tuple(sorted(redact_argv(sorted(command.opaque)))),
            deviated=otherwise_before(found, asked_for or Request()),
        ),
    )
