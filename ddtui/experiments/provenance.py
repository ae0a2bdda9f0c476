"""Under which circumstances a configuration is measured, as the host shows them now."""

from __future__ import annotations

import msgspec

import ddtui
from ddtui.control.host_actions import Facts as UnitFacts
from ddtui.core.launch import Launch
from ddtui.core.measurement import Provenance
from ddtui.core.redact import redact_argv, redact_environment, redact_mapping
from ddtui.core.snapshot import Snapshot, Verdict
from ddtui.core.text import named_values
from ddtui.experiments.witness import Witness


def provenance(
    snapshot: Snapshot, facts: UnitFacts, launch: Launch, prompts_hash: str, engine: str
) -> Provenance:
    """What is known as a measurement begins. `launch` is the configuration that is in force."""
    info, unit = snapshot.server_info, snapshot.unit
    pairs = unit.environment if unit is not None else ()
    wanted = tuple(f"{name}={value}" for name, value in sorted(launch.environment.items()))
    environment = redact_environment(pairs or wanted)
    argv = info.launch_command if info is not None and info.launch_command else launch.argv
    return Provenance(
        ddtui=ddtui.__version__,
        engine=engine,
        engine_version=(info.version if info is not None else "") or snapshot.engine.version,
        driver=next((view.gpu.driver for view in snapshot.gpus if view.gpu.driver), ""),
        gpus=tuple(view.gpu.name for view in snapshot.gpus),
        argv=redact_argv(argv),
        environment=named_values(environment),
        server_args=redact_mapping(info.arguments) if info is not None else {},
        evidence=tuple(
            f"{each.name}: {each.detail}"
            for each in snapshot.readiness.evidence
            if each.verdict in {Verdict.PROVED, Verdict.CONSISTENT}
        ),
        doubts=unit.doubts if unit is not None else (),
        drop_in_hash=facts.drop_in,
        invocation=facts.invocation,
        prompts_hash=prompts_hash,
        load_seconds=load_seconds(snapshot),
    )


def load_seconds(snapshot: Snapshot) -> float | None:
    """How long the present invocation took to become ready; None where its load was not seen."""
    load, unit = snapshot.load, snapshot.unit
    if load is None or unit is None or load.invocation != unit.invocation or load.ended is None:
        return None
    return max(0.0, load.ended - load.began)


def seen_meanwhile(before: Provenance, witness: Witness, foreign: int) -> Provenance:
    """With what was seen while it was measured, on top of what was seen earlier."""
    clocks = [each for each in (before.clocks_mhz, witness.clocks) if each is not None]
    heat = [each for each in (before.temperature_c, witness.hottest) if each is not None]
    return msgspec.structs.replace(
        before,
        clocks_mhz=(min(low for low, _ in clocks), max(high for _, high in clocks))
        if clocks
        else None,
        throttled=tuple(dict.fromkeys((*before.throttled, *witness.reasons))),
        temperature_c=max(heat, default=None),
        foreign_requests=before.foreign_requests + foreign,
    )
