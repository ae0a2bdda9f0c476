"""Snapshots of a host in every state that the screens must show, made with a frozen clock."""

from __future__ import annotations

from collections.abc import Callable

from ddtui.core.engine import Engine
from ddtui.core.snapshot import Snapshot
from ddtui.engines.sglang import SGLANG
from tests.ui.scene_parts import INVOCATION, NOW
from tests.ui.scenes_of_health import (
    failed,
    idle,
    live,
    loading,
    many_gpus,
)
from tests.ui.scenes_of_trouble import (
    HOSTILE,
    disconnected,
    empty,
    hostile,
    lost_gpu,
    no_nvidia_smi,
    refused,
    stale,
)

__all__ = [
    "HOSTILE",
    "INVOCATION",
    "NOW",
    "SCENES",
    "SceneSource",
    "disconnected",
    "live",
    "loading",
]

SCENES: dict[str, Callable[[float], Snapshot]] = {
    "live": live,
    "loading": loading,
    "failed": failed,
    "stale": stale,
    "disconnected": disconnected,
    "refused": refused,
    "empty": empty,
    "idle": idle,
    "no-nvidia-smi": no_nvidia_smi,
    "16-gpus": many_gpus,
    "64-gpus": lambda now: many_gpus(now, 64),
    "lost-gpu": lost_gpu,
    "hostile": hostile,
}


class SceneSource:
    """A source that always shows one scene: frozen, or moving with the clock."""

    def __init__(self, scene: str | Callable[[float], Snapshot], *, frozen: bool = True) -> None:
        self._make = SCENES[scene] if isinstance(scene, str) else scene
        self._frozen = frozen
        self._made = self._make(NOW)
        self.name = "ct200"  # the operator's word for it, not the host's
        self.engine: Engine = SGLANG
        self.started = self.closed = False
        self.retries = 0

    def show(self, snapshot: Snapshot) -> None:
        """Give this snapshot from now on."""
        self._made = snapshot

    def snapshot(self, now: float) -> Snapshot:
        if not self._frozen:
            if int(now * 4) != int(self._made.at * 4):
                self._made = self._make(now)
            return self._made
        return self._made

    async def start(self) -> None:
        self.started = True

    async def close(self) -> None:
        self.closed = True

    def retry_now(self) -> None:
        self.retries += 1
