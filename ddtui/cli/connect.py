"""`ddtui connect HOST`: the live monitor."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from ddtui.cli.arguments import HostArgument, UnitOption, UserUnitOption
from ddtui.cli.context import Options, VerbFailed, host_of, tell_failure, told
from ddtui.cli.logs import set_up_log
from ddtui.cli.output import say
from ddtui.cli.screen_options import load_for_screens
from ddtui.config.errors import ConfigError
from ddtui.config.hosts import HostTarget, Reach, find_host, known_hosts
from ddtui.config.load import Loaded
from ddtui.config.themes import theme_fault
from ddtui.core.garbage import set_apart
from ddtui.demo.scenarios import SCENARIOS

if TYPE_CHECKING:
    from ddtui.app.live import Watched
    from ddtui.app.reaching import Overrides
    from ddtui.ui.source import UiSettings


class Left(msgspec.Struct, frozen=True):
    """How the screens of a host were left."""

    following: str | None
    """The host to show next; None for none."""
    code: int
    handed_over: bool
    """Whether a runner without a terminal is to go on with the queue."""


class Choices(msgspec.Struct, frozen=True):
    """Options of the screen that the command line sets."""

    theme: str | None
    read_only: bool
    no_mouse: bool
    fail: bool


# The verb's options are its parameters.
def connect(  # noqa: PLR0913, PLR0917
    context: typer.Context,
    host: HostArgument,
    unit: UnitOption = None,
    user_unit: UserUnitOption = None,
    theme: Annotated[
        str | None, typer.Option("--theme", metavar="THEME", help="Theme to begin with.")
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Offer nothing that changes the host.")
    ] = False,
    no_mouse: Annotated[
        bool, typer.Option("--no-mouse", help="Leave the mouse to the terminal.")
    ] = False,
    fail: Annotated[
        bool, typer.Option("--fail", help="End if the host cannot be reached at the start.")
    ] = False,
    scenario: Annotated[
        str | None,
        typer.Option(
            "--scenario",
            metavar="NAME",
            help=f"What the simulated host goes through: {', '.join(SCENARIOS)}.",
        ),
    ] = None,
) -> None:
    """Show a host live.

    A host that cannot be reached is tried again and again, with the screen open. Unknown host keys
    are asked about before the screen opens.
    """
    with told(context) as options:
        from ddtui.app.reaching import Overrides, checked_scenario

        overrides = Overrides(unit, user_unit, checked_scenario(scenario, host))
        if theme is not None and (fault := theme_fault(theme)):
            raise ConfigError.of(f"--theme: {fault}")
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise ConfigError.of(
                "`connect` needs a terminal; `ddtui status` prints the same figures as text or JSON"
            )
        loaded = load_for_screens(options)
        target = host_of(loaded, host)
        set_up_log(debug=options.debug)
        choices = Choices(theme, read_only, no_mouse, fail)
        code = asyncio.run(_hosts_in_turn(options, loaded, target, overrides, choices))
        if code:
            raise typer.Exit(code)


async def _hosts_in_turn(
    options: Options, loaded: Loaded, target: HostTarget, overrides: Overrides, choices: Choices
) -> int:
    """One host after another, as the operator switches between them."""
    from ddtui.app.live import watched
    from ddtui.app.reaching import Overrides

    while True:
        source = await watched(target, overrides, log_lines=loaded.config.ui.log_lines)
        try:
            left = await _screen(source, loaded, choices)
        finally:
            await source.close()
        if left.handed_over:
            code = await _hand_over(options, target.name, overrides)
            if left.following is None:
                return code or left.code
        if left.following is None:
            return left.code
        target, overrides = host_of(loaded, left.following), Overrides()


async def _hand_over(options: Options, host: str, overrides: Overrides) -> int:
    """Start a runner without a terminal, which goes on with the host's queue."""
    from ddtui.cli.run_detached import detached

    try:  # it asks the host in a loop of its own
        return await asyncio.to_thread(
            detached, options, host, overrides, once=False, limited=False, as_json=False
        )
    except VerbFailed as error:  # the screens may go on with another host
        if not error.heard:
            tell_failure(error)
        return error.code


async def _screen(source: Watched, loaded: Loaded, choices: Choices) -> Left:
    """Reach a host and show it until the operator leaves."""
    from ddtui.cli.first_contact import reach
    from ddtui.hosts.base import LinkDown

    if source.target.reach is Reach.SSH:
        say(f"connecting to {source.name} ...")
    # What collects begins, and the screen's code is loaded, while the host is being reached.
    await source.start()
    loading = asyncio.create_task(asyncio.to_thread(_load_ui))
    try:
        reached = await reach(source.host)
    finally:
        await loading
    link = source.host.link
    if not reached and choices.fail:
        raise LinkDown(link.detail or f"{source.name} cannot be reached", link.remedy)
    return await _run_app(source, loaded, choices)


def _load_ui() -> None:
    import ddtui.app.queue_source
    import ddtui.ui.app  # noqa: F401

    set_apart()  # modules stay for good


async def _run_app(source: Watched, loaded: Loaded, choices: Choices) -> Left:
    from ddtui.app.control_source import screen_control
    from ddtui.app.queue_asked import plans_to_name
    from ddtui.app.queue_source import screen_queue
    from ddtui.app.results_source import screen_results
    from ddtui.ui.app import DdtuiApp
    from ddtui.ui.screens.hosts import SwitchHost

    settings = _ui_settings(loaded, choices)
    hosts = [find_host(loaded.config, name) for name in known_hosts(loaded.config)]
    simulated = source.target.reach is Reach.DEMO
    async with (
        screen_control(source, loaded) as control,
        screen_results(source.name, simulated=simulated, plans=plans_to_name(loaded)) as results,
        screen_queue(source, control, loaded) as queue,
    ):
        app = DdtuiApp(
            source,
            settings=settings,
            read_only=choices.read_only,
            hosts=hosts,
            control=control,
            results=results,
            queue=queue,
        )
        following = await app.run_async(mouse=settings.mouse)
    name = following.name if isinstance(following, SwitchHost) else None
    handed_over = app.queue_desk is not None and app.queue_desk.handed_over
    # Textual leaves no status where it ends without being asked to.
    return Left(name, 1 if app.return_code is None else app.return_code, handed_over)


def _ui_settings(loaded: Loaded, choices: Choices) -> UiSettings:
    from ddtui.ui.source import UiSettings

    options = loaded.config.ui
    return UiSettings(
        theme=options.theme if choices.theme is None else choices.theme,
        keys=loaded.config.key_table(),
        paint_interval=options.paint_interval,
        mouse=options.mouse and not choices.no_mouse,
        ascii=options.ascii,
    )
