"""The monitor as an operator reads it: words on the screen, in every state and size."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from rich.cells import cell_len
from rich.segment import Segment
from textual.app import App
from textual.geometry import Region

from ddtui.core.events import Phase
from ddtui.core.samples import Collector, LinkState, SourceStatus
from ddtui.core.snapshot import (
    Alert,
    EngineView,
    PhaseStatus,
    PhaseView,
    ReadinessState,
    Severity,
    Snapshot,
)
from ddtui.ui.app import DdtuiApp
from ddtui.ui.shown import Shown
from ddtui.ui.source import UiSettings
from ddtui.ui.widgets.canvas import Canvas
from ddtui.ui.widgets.load import phase_row
from tests.ui import scenes
from tests.ui.scenes import NOW, SCENES, SceneSource

SIZES = [(60, 16), (80, 24), (100, 30), (120, 40), (200, 60)]


def text_of(app: App[object]) -> str:
    """Every line on the screen."""
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


async def shown(scene: str | Callable[[float], Snapshot], size: tuple[int, int] = (120, 40)) -> str:
    app = DdtuiApp(SceneSource(scene), clock=lambda: NOW)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        return text_of(app)


@pytest.mark.parametrize("size", SIZES[::2])
@pytest.mark.parametrize("scene", sorted(SCENES))
async def test_every_scene_fits_every_size(scene: str, size: tuple[int, int]) -> None:
    lines = (await shown(scene, size)).splitlines()
    assert {cell_len(line) for line in lines} == {size[0]}
    assert not any("too small" in line for line in lines)
    assert "q Quit" in lines[-1]


@pytest.mark.parametrize("size", SIZES)
async def test_the_present_in_short(size: tuple[int, int]) -> None:
    text = await shown("live", size)
    for word in ("ct200", "✓ live", "✓ READY", "5 of 5 proved", "block size 8", "88G", "accept"):
        if word == "88G" and size[0] >= 80:
            word = "88.1/95.6"  # noqa: PLW2901
        assert word in text, word


async def test_unknown_figures_are_dashes_in_their_places() -> None:
    lines = (await shown("lost-gpu")).splitlines()
    known = next(line for line in lines if line.startswith("│  7 "))
    unknown = next(line for line in lines if line.startswith("│  6 "))
    assert "0.0" not in unknown
    for unit in ("GiB", " W ", "°C", "MHz"):
        assert known.index(unit) == unknown.index(unit)


async def test_gpu_marks_lost_ecc_mig_throttle_and_strangers() -> None:
    text = await shown("lost-gpu", (200, 60))
    for words in ("✗ LOST", "ECC 3", "MIG", "power cap", "jupyter-lab 9191", "outside the unit"):
        assert words in text, words


async def test_a_host_without_nvidia_smi_says_so_and_shows_the_rest() -> None:
    text = await shown("no-nvidia-smi", (80, 24))
    assert "there is no nvidia-smi on this host" in text
    assert "tok/s" in text


async def test_clock_skew_is_said() -> None:
    assert "host's clock 7 s behind" in await shown("lost-gpu", (80, 24))


async def test_load_tells_phase_fraction_source_and_end() -> None:
    text = await shown("loading", (200, 60))
    for words in (
        "LOADING TARGET", "63 %", "2 m 40 s of ~4 m 14 s", "GPU memory", "345 of 548 GB",
        "ready in 3 m 14 s", "3 loads of this model", "TP3 is clearly behind",
    ):  # fmt: skip
        assert words in text, words
    assert "ready in 3 m 14 s" in await shown("loading", (80, 24))


async def test_a_warning_of_the_load_is_said_once() -> None:
    assert (await shown("loading")).count("is clearly behind") == 1

    def unalarmed(now: float) -> Snapshot:
        return replace(scenes.loading(now), alerts=())

    assert (await shown(unalarmed)).count("TP3 is behind the others") == 1


async def test_a_load_that_is_over_is_one_line() -> None:
    text = await shown("live")
    assert "✓ loaded in 6 m 12 s, 2 h 13 m ago" in text
    assert "capturing graphs" not in text


async def test_ready_without_a_log_shows_no_load() -> None:
    def attached(now: float) -> Snapshot:
        load = scenes.loading(now).load
        assert load is not None
        load = replace(load, stalled_for=600.0)
        return replace(scenes.live(now), load=load)

    assert "capturing graphs" not in await shown(attached)


async def test_weights_that_are_nearly_loaded_are_no_engine_that_is_nearly_ready() -> None:
    def first_load(now: float) -> Snapshot:
        load = scenes.loading(now).load
        assert load is not None
        load = replace(load, fraction=None, eta_of=Phase.TARGET, eta_source="present rate")
        return replace(scenes.loading(now), load=load)

    text = await shown(first_load)
    assert "weights loaded in 3 m 14 s, the rest is not known" in text
    assert "ready in" not in text


async def test_without_an_estimate_it_says_why() -> None:
    def standing(now: float) -> Snapshot:
        load = scenes.loading(now).load
        assert load is not None
        load = replace(load, eta_seconds=None, eta_source="no progress for 23 s")
        return replace(scenes.loading(now), load=load)

    assert "no estimate: no progress for 23 s" in await shown(standing)


async def test_a_failed_load_says_where_and_why() -> None:
    text = await shown("failed", (80, 24))
    for words in ("✗ FAILED", "CUDA out of memory", "✗ capturing graphs", "failed after"):
        assert words in text, words


async def test_idle_is_said_and_old_figures_are_not_stale_for_it() -> None:
    text = await shown("idle")
    assert "idle: no requests" in text
    assert "SIMULATED" in text
    assert "stale" not in text.lower()


async def test_stale_sources_say_so_each_for_itself() -> None:
    text = await shown("stale", (200, 60))
    assert "STALE 34 s" in text
    assert "stale 34 s, /metrics counter" in text
    assert "✓ live" in text
    assert "DISCONNECTED" not in text


@pytest.mark.parametrize("size", SIZES)
async def test_disconnected_says_since_when_why_and_what_next(size: tuple[int, int]) -> None:
    text = " ".join((await shown("disconnected", size)).split())
    assert "✗ DISCONNECTED" in text
    assert "READY?" in text
    for words in ("last data 1 m ago", "no answer to keepalives", "^r", "is the host up?"):
        assert words in text, words
    assert "of 5 proved" not in text


async def test_nothing_that_is_out_of_date_keeps_its_colours() -> None:
    async def inks(scene: str) -> set[str]:
        app = DdtuiApp(SceneSource(scene), clock=lambda: NOW)
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.pause()
            panel = app.screen.query_one("#gpus", Canvas)
            return {
                str(segment.style.color.name)
                for y in range(1, 5)
                for segment in panel.render_line(y)
                if segment.style is not None and segment.style.color is not None
            }

    fresh, old = await inks("live"), await inks("disconnected")
    assert len(old) < len(fresh)


async def test_too_small_says_what_is_needed_and_still_how_the_host_stands() -> None:
    text = await shown("disconnected", (50, 12))
    assert "needs 60x16, has 50x12" in text
    assert "DISCONNECTED" in text
    assert "no answer to keepalives" in text


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (10, 5), (59, 15)])
async def test_tiny_terminals_do_no_harm(size: tuple[int, int]) -> None:
    for scene in ("live", "hostile", "loading"):
        await shown(scene, size)


async def test_alerts_are_never_cut_short() -> None:
    words = "GPU memory is held outside the unit by a process that nobody knows " * 3

    def alarmed(now: float) -> Snapshot:
        alert = Alert("x", Severity.WARNING, words + "and this is the end", now)
        return replace(scenes.live(now), alerts=(alert,))

    for size in SIZES:
        text = " ".join((await shown(alarmed, size)).split())
        assert "and this is the end" in text


async def test_alerts_beyond_the_room_are_counted() -> None:
    def alarmed(now: float) -> Snapshot:
        alerts = [Alert(f"a{n}", Severity.CRITICAL, f"alert {n}", now) for n in range(40)]
        return replace(scenes.live(now), alerts=alerts)

    text = await shown(alarmed, (80, 24))
    told = text.count("✗ alert ")
    assert told >= 3
    assert f"and {40 - told} more" in text


# ---- hostile text ---------------------------------------------------------------------------


def segments_of(app: App[object]) -> list[Segment]:
    return [segment for strip in app.screen._compositor.render_strips() for segment in strip]


@pytest.mark.parametrize("size", SIZES)
async def test_hostile_text_is_only_text(size: tuple[int, int]) -> None:
    app = DdtuiApp(SceneSource("hostile"), clock=lambda: NOW)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        panels = [canvas for canvas in app.screen.query(Canvas) if canvas.display]
        for panel in panels:
            for y in range(panel.size.height):
                for segment in panel.render_line(y):
                    assert segment.control is None
                    assert segment.text.isprintable(), repr(segment.text)
                    meta = segment.style.meta if segment.style is not None else {}
                    assert "@click" not in meta
        text = text_of(app)
        assert "[@click=app.quit]" in text
        for character in "\x1b\x07\x9b\u202e\u200b":
            assert character not in text
        for x, y in [(x, y) for y in range(0, size[1] - 1, 3) for x in range(0, size[0], 9)]:
            await pilot.click(offset=(x, y))
        assert app.is_running


async def test_hostile_text_restyles_nothing() -> None:
    async def styles(scene: str) -> set[str]:
        app = DdtuiApp(SceneSource(scene), clock=lambda: NOW)
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.pause()
            return {str(segment.style) for segment in segments_of(app)}

    known = set[str]()
    for scene in ("live", "loading", "failed", "lost-gpu", "stale"):
        known |= await styles(scene)

    def degraded(now: float) -> Snapshot:
        ready = replace(scenes.live(now).readiness, state=ReadinessState.DEGRADED)
        return replace(scenes.live(now), readiness=ready)

    app = DdtuiApp(SceneSource(degraded), clock=lambda: NOW)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        known |= {str(segment.style) for segment in segments_of(app)}
    assert await styles("hostile") <= known


# ---- what is painted, and when ---------------------------------------------------------------


async def test_only_what_changed_is_painted_again() -> None:
    source = SceneSource("live")
    app = DdtuiApp(source, settings=UiSettings(paint_interval=1e6), clock=lambda: NOW)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        app.paint()
        await pilot.pause()
        painted: dict[str, list[tuple[Region, ...]]] = {}
        for canvas in app.screen.query(Canvas):
            name, refresh = canvas.id or "", canvas.refresh

            def noted(*regions, name=name, refresh=refresh, **keywords):  # type: ignore[no-untyped-def]
                painted.setdefault(name, []).append(regions)
                return refresh(*regions, **keywords)

            canvas.refresh = noted  # type: ignore[method-assign]
        app.paint()
        assert painted == {}
        snap = scenes.live()
        view = snap.gpus[3]
        changed = replace(view, gpu=replace(view.gpu, temperature=40.0))
        source.show(replace(snap, gpus=(*snap.gpus[:3], changed, *snap.gpus[4:])))
        app.paint()
        assert list(painted) == ["gpus"]
        ((region,),) = painted["gpus"]
        assert (region.y, region.height) == (4, 1)
        assert region.width <= 2


async def test_a_change_of_state_is_painted_at_once() -> None:
    source = SceneSource("live")
    app = DdtuiApp(source, settings=UiSettings(paint_interval=1e6), clock=lambda: NOW)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        source.show(scenes.disconnected())
        app._check()
        await pilot.pause()
        assert "DISCONNECTED" in text_of(app)


async def test_pause_freezes_figures_but_not_the_link() -> None:
    source = SceneSource("live")
    app = DdtuiApp(source, clock=lambda: NOW)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("p")
        source.show(scenes.disconnected())
        app.paint()
        await pilot.pause()
        text = text_of(app)
        assert "PAUSED at 14:13:20" in text
        assert "DISCONNECTED" in text  # the badge tells the link as it is
        assert "STALE" not in text  # the rest is as it was
        await pilot.press("p")
        await pilot.pause()
        text = text_of(app)
        assert "PAUSED" not in text
        assert "STALE" in text


async def test_panels_appear_and_go_with_the_size() -> None:
    app = DdtuiApp(SceneSource("live"), clock=lambda: NOW)
    async with app.run_test(size=(200, 60)) as pilot:
        await pilot.pause()
        assert "network out" in text_of(app)
        await pilot.resize_terminal(50, 10)
        await pilot.pause()
        assert "too small" in text_of(app)
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        text = text_of(app)
        assert "too small" not in text
        assert "88.1/95.6" in text


async def test_a_live_link_that_is_silent_says_so() -> None:
    def silent(now: float) -> Snapshot:
        return replace(scenes.live(now), last_heard=now - 8)

    text = await shown(silent)
    assert "live, silent 8 s" in text
    assert scenes.live().link.state is LinkState.LIVE


@pytest.mark.parametrize("width", [74, 98, 120])
def test_how_far_a_phase_is_goes_before_by_what_it_is_known(width: int) -> None:
    phase = PhaseView(
        Phase.TARGET,
        PhaseStatus.RUNNING,
        began=NOW - 126,
        fraction=0.94,
        source="GPU memory",
        detail="518.3 of 548.0 GiB",
        expected_seconds=130.0,
    )
    shown = Shown(SCENES["loading"](NOW), NOW, SCENES["loading"](NOW).link, None)
    text = phase_row(phase, shown, width).text
    assert "518.3 of 548.0 GiB" in text
    assert len(text) <= width
    assert ("GPU memory" in text) == (width == 120)


async def test_a_stopped_engine_has_no_load_that_went_well() -> None:
    def stopped(now: float) -> Snapshot:
        live = scenes.live(now)
        there = replace(live.readiness, state=ReadinessState.STOPPED)
        engine = replace(live.engine, acceptance_length=None, acceptance_lifetime=None)
        return replace(live, readiness=there, engine=engine)

    text = await shown(stopped)
    assert "loaded in" not in text
    assert "no figure now" in text  # there were some: the chart has them


async def test_why_there_are_no_figures_is_not_cut_short() -> None:
    def unknown_port(now: float) -> Snapshot:
        live = scenes.live(now)
        words = f"{'the port is not known yet, and ' * 4}that is all"
        source = replace(live.sources[Collector.ENGINE], status=SourceStatus.WAITING, detail=words)
        sources = {**live.sources, Collector.ENGINE: source}
        return replace(live, sources=sources, engine=EngineView())

    assert "that is all" in await shown(unknown_port, size=(80, 40))
