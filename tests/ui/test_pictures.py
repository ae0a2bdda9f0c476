"""The monitor as pictures, with a frozen clock: each state at each size that matters."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ddtui.ui.app import DdtuiApp
from ddtui.ui.source import UiSettings
from tests.ui.scenes import NOW, SceneSource

SMALL, MIDDLE, LARGE = (80, 24), (120, 40), (200, 60)

SnapCompare = Callable[..., bool]

PICTURES = [
    *(("live", size) for size in (SMALL, MIDDLE, LARGE, (60, 16), (60, 15))),
    *(("loading", size) for size in (SMALL, MIDDLE, LARGE)),
    *(("failed", size) for size in (SMALL, MIDDLE)),
    *(("stale", size) for size in (SMALL, MIDDLE, LARGE)),
    *(("disconnected", size) for size in (SMALL, MIDDLE, LARGE, (60, 15))),
    ("refused", SMALL),
    ("empty", MIDDLE),
    ("idle", MIDDLE),
    *(("no-nvidia-smi", size) for size in (SMALL, MIDDLE)),
    *(("16-gpus", size) for size in (SMALL, MIDDLE, LARGE)),
    *(("64-gpus", size) for size in (SMALL, LARGE)),
    *(("lost-gpu", size) for size in (SMALL, MIDDLE)),
    *(("hostile", size) for size in (SMALL, MIDDLE, LARGE)),
]


def app_of(scene: str, **settings: object) -> DdtuiApp:
    source = SceneSource(scene)
    return DdtuiApp(source, settings=UiSettings(**settings), clock=lambda: NOW)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("scene", "size"), PICTURES, ids=[f"{scene}-{w}x{h}" for scene, (w, h) in PICTURES]
)
def test_monitor(scene: str, size: tuple[int, int], snap_compare: SnapCompare) -> None:
    assert snap_compare(app_of(scene), terminal_size=size)


@pytest.mark.parametrize("theme", ["ddtui-light", "ddtui-contrast"])
def test_themes(theme: str, snap_compare: SnapCompare) -> None:
    assert snap_compare(app_of("lost-gpu", theme=theme), terminal_size=MIDDLE)


def test_ascii(snap_compare: SnapCompare) -> None:
    assert snap_compare(app_of("live", ascii=True), terminal_size=MIDDLE)


def test_paused(snap_compare: SnapCompare) -> None:
    assert snap_compare(app_of("live"), terminal_size=SMALL, press=["p"])
