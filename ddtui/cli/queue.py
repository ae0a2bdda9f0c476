"""`ddtui queue HOST ...`: the experiments of a host, while others run. The host is not reached."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from typer.core import TyperGroup

from ddtui.cli.arguments import HostArgument, JsonOption
from ddtui.cli.context import tell_hint, told
from ddtui.cli.output import Paint, clean, emit, emit_json, say, terminal_width
from ddtui.cli.queue_options import (
    AfterOption,
    BeforeOption,
    FirstOption,
    HypothesisOption,
    IdArgument,
    IdsArgument,
    LastOption,
    MatchOption,
    NoteOption,
    PlanOption,
    SetOption,
    TitleOption,
)
from ddtui.config.errors import ConfigError

if TYPE_CHECKING:
    from ddtui.config.hosts import HostTarget
    from ddtui.config.load import Loaded
    from ddtui.core.experiment import Experiment, Leave, QueueSettings
    from ddtui.experiments.queue import Queue
    from ddtui.store import Store


class _Group(TyperGroup):
    """Verbs behind a host; a host without one lists its queue."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read `HOST --json` as `HOST list --json`."""
        listed = len(args) > 1 and not args[0].startswith("-") and args[1] in {"--json", "--all"}
        return super().parse_args(ctx, [args[0], "list", *args[1:]] if listed else args)


app = typer.Typer(
    cls=_Group,
    help="Add, edit, reorder and annotate experiments of a host.",
    epilog="ID is the beginning of an id (4 characters or more), or a place in the queue (3).",
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class _Named(msgspec.Struct, frozen=True):
    """The host that stands before the verb of the queue."""

    host: str


class _Opened(msgspec.Struct, frozen=True):
    """A queue that is open, with what verbs ask beside it."""

    target: HostTarget
    queue: Queue
    store: Store
    loaded: Loaded


class Changed(msgspec.Struct, frozen=True):
    """An experiment that a verb was about."""

    what: str
    """What was done with it, as its log says: `added`, `moved`, ...; or `unchanged`."""
    experiment: Experiment
    """As it is now."""


@app.callback(invoke_without_command=True)
def queue(context: typer.Context, host: HostArgument) -> None:
    """Add, edit, reorder and annotate experiments of a host."""
    context.obj = _Named(host)
    if context.invoked_subcommand is None:
        _list(context, everything=False, as_json=False)


@contextmanager
def _opened(context: typer.Context, *, acts: bool = True, hints: bool = True) -> Iterator[_Opened]:
    """The queue of the host that was named; failures are told as every verb does.

    Without `hints` the caller prints the hint for a misspelt host.
    """
    with told(context, acts=acts) as options:
        from ddtui.config.hosts import Reach, find_host
        from ddtui.control.controller import operator
        from ddtui.experiments.queue import Queue
        from ddtui.store import Store

        named = context.find_object(_Named)
        loaded = options.load()
        target = find_host(loaded.config, named.host if named is not None else "")
        if hints:
            tell_hint(target)
        store = Store.open()
        try:
            simulated = target.reach is Reach.DEMO
            yield _Opened(target, Queue(store, target.name, simulated, operator()), store, loaded)
        finally:
            store.close()


@app.command("list")
def list_(
    context: typer.Context,
    everything: Annotated[
        bool, typer.Option("--all", help="Those too that were cleared from the list.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show what runs, what waits in its order, and what ended."""
    _list(context, everything=everything, as_json=as_json)


def _list(context: typer.Context, *, everything: bool, as_json: bool) -> None:
    with _opened(context, acts=False, hints=False) as opened:
        from ddtui.cli.nothing_stored import refuse_unknown
        from ddtui.cli.queue_beside import beside
        from ddtui.cli.queue_report import queue_lines, queue_report

        # The version first: what changes in between makes it look old, never new.
        version, settings = opened.queue.version(), opened.queue.settings()
        found = opened.queue.listed(cleared=everything)
        target = opened.target
        if found:
            tell_hint(target)
        else:
            nothing = f"nothing is queued on {target.name}"
            refuse_unknown(nothing, target, opened.loaded.config, opened.store)
        more = beside(opened.queue, opened.store, found)
        if as_json:
            emit_json(queue_report(found, settings, version, more))
        else:
            emit("\n".join(queue_lines(found, settings, more, Paint(), terminal_width())))


# The verb's options are its parameters.
@app.command()
def add(  # noqa: PLR0913, PLR0917
    context: typer.Context,
    preset: Annotated[
        str | None, typer.Argument(metavar="PRESET", help="A preset, as `ddtui presets` lists.")
    ] = None,
    assignments: SetOption = None,
    like: Annotated[
        str | None,
        typer.Option("--like", metavar="ID", help="Like this one, with what is --set on top."),
    ] = None,
    match: MatchOption = None,
    plan: PlanOption = None,
    title: TitleOption = None,
    hypothesis: HypothesisOption = None,
    note: NoteOption = None,
    baseline: Annotated[
        bool, typer.Option("--baseline", help="The others are compared with it.")
    ] = False,
    held: Annotated[bool, typer.Option("--held", help="Add it held.")] = False,
    first: FirstOption = False,
    before: BeforeOption = None,
    after: AfterOption = None,
    as_json: JsonOption = False,
) -> None:
    """Queue an experiment: a preset, values, or one like another."""
    with _opened(context) as opened:
        from ddtui.app.queue_asked import known_of, place_of, plan_named, request_of, with_match
        from ddtui.core.experiment import ExperimentState

        if preset is None and not assignments and like is None:
            raise ConfigError.of("name a preset, what to --set, or an experiment to be --like")
        place = place_of(first=first, before=before, after=after)
        request = request_of(opened.loaded, opened.queue.host, preset, assignments or [])
        old = None if like is None else opened.queue.find(like)
        said: list[str] = []
        fields: dict[str, Any] = {"title": title or ""}
        if match is not None:
            known = known_of(opened.store, opened.queue, old)
            request, fields["match"], said = with_match(match, request, old, *known)
        if held:
            fields["state"] = ExperimentState.HELD
        texts = {"hypothesis": hypothesis, "note": note, "baseline": baseline or None}
        fields |= {name: value for name, value in texts.items() if value is not None}
        measure_by = plan_named(opened.loaded, plan)
        if old is None:
            draft = opened.queue.draft(request, measure_by, **fields)
        else:
            draft = opened.queue.draft_like(old.id, request, measure_by, **fields)
        added = opened.queue.add([draft], place)
        _tell(opened, [Changed("added", each) for each in added], said, as_json=as_json)


# The verb's options are its parameters.
@app.command()
def edit(  # noqa: PLR0913, PLR0917
    context: typer.Context,
    word: IdArgument,
    assignments: SetOption = None,
    unset: Annotated[
        list[str] | None,
        typer.Option(
            "--unset", metavar="NAME", help="Ask for it no more: a knob, flag or variable."
        ),
    ] = None,
    match: MatchOption = None,
    plan: PlanOption = None,
    title: TitleOption = None,
    hypothesis: HypothesisOption = None,
    note: NoteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change an experiment that waits."""
    with _opened(context) as opened:
        from ddtui.app.queue_asked import (
            known_of,
            names_to_unset,
            plan_named,
            request_of,
            with_match,
        )

        given = (unset, assignments, match, plan, title, hypothesis, note)
        if all(each is None for each in given):
            raise ConfigError.of("say what to change: --set, --unset, --plan, --title, ...")
        over = request_of(opened.loaded, opened.queue.host, None, assignments or [])
        found, said = None, list[str]()
        if match is not None:
            old = opened.queue.find(word)
            over, found, said = with_match(
                match, over, old, *known_of(opened.store, opened.queue, old)
            )
        new = opened.queue.edit(
            word,
            over,
            plan_named(opened.loaded, plan),
            without=names_to_unset(unset or ()),
            title=title,
            hypothesis=hypothesis,
            note=note,
            match=found,
        )
        _tell(opened, [Changed("edited", new)], said, as_json=as_json)


@app.command()
def move(
    context: typer.Context,
    word: IdArgument,
    first: FirstOption = False,
    last: LastOption = False,
    before: BeforeOption = None,
    after: AfterOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put an experiment that waits to another place of the queue."""
    with _opened(context) as opened:
        from ddtui.app.queue_asked import place_of

        place = place_of(first=first, last=last, before=before, after=after)
        if place is None:
            raise ConfigError.of("say where: --first, --last, --before ID or --after ID")
        _tell(opened, [Changed("moved", opened.queue.move(word, place))], as_json=as_json)


@app.command()
def hold(context: typer.Context, words: IdsArgument, as_json: JsonOption = False) -> None:
    """Have experiments passed over until they are released."""
    _each(context, words, "held", lambda queue, word: queue.hold(word), as_json=as_json)


@app.command()
def release(context: typer.Context, words: IdsArgument, as_json: JsonOption = False) -> None:
    """Have held experiments taken up again in their turn."""
    _each(context, words, "released", lambda queue, word: queue.release(word), as_json=as_json)


@app.command()
def cancel(context: typer.Context, words: IdsArgument, as_json: JsonOption = False) -> None:
    """End experiments; the runner ends one that runs at its next step."""
    _each(context, words, "cancelled", lambda queue, word: queue.cancel(word), as_json=as_json)


@app.command()
def retry(
    context: typer.Context,
    words: IdsArgument,
    first: FirstOption = False,
    as_json: JsonOption = False,
) -> None:
    """Have failed or cancelled experiments done once more."""
    from ddtui.app.queue_asked import place_of

    place = place_of(first=first)
    _each(context, words, "retried", lambda queue, word: queue.retry(word, place), as_json=as_json)


@app.command()
def clear(
    context: typer.Context,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="ID", help="Only these; all by default.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Take ended ones off the list; measurements are kept."""
    with _opened(context) as opened:
        cleared = opened.queue.clear(words or None)
        _tell(opened, [Changed("cleared", each) for each in cleared], as_json=as_json)


@app.command()
def note(
    context: typer.Context,
    word: IdArgument,
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="The note; an empty one takes it away.")
    ] = None,
    hypothesis: HypothesisOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set the note or the hypothesis of an experiment."""
    with _opened(context) as opened:
        if text is None and hypothesis is None:
            raise ConfigError.of("give the note's text, or a --hypothesis")
        new = opened.queue.annotate(word, hypothesis=hypothesis, note=text)
        _tell(opened, [Changed("annotated", new)], as_json=as_json)


@app.command()
def show(context: typer.Context, word: IdArgument, as_json: JsonOption = False) -> None:
    """Show an experiment with its log."""
    with _opened(context, acts=False) as opened:
        from ddtui.cli.queue_beside import beside
        from ddtui.cli.queue_report import detail_lines, event_report, experiment_report, places

        found = opened.queue.find(word)
        log = opened.queue.log(found.id)
        place = places(opened.queue.listed()).get(found.id)
        more = beside(opened.queue, opened.store, [found])
        if as_json:
            report = experiment_report(found, place, more)
            emit_json({**report, "log": [event_report(each) for each in log]})
        else:
            emit("\n".join(detail_lines(found, place, log, more, Paint())))


@app.command()
def pause(context: typer.Context, as_json: JsonOption = False) -> None:
    """Have nothing more taken up; what runs goes on."""
    _settings(context, lambda queue: queue.pause(), as_json=as_json)


@app.command()
def resume(context: typer.Context, as_json: JsonOption = False) -> None:
    """Have experiments taken up again."""
    _settings(context, lambda queue: queue.resume(), as_json=as_json)


@app.command()
def leave(
    context: typer.Context,
    which: Annotated[str, typer.Argument(metavar="WHICH", help="`baseline`, `best` or `last`.")],
    as_json: JsonOption = False,
) -> None:
    """Say in which configuration the unit is left once all is done."""
    choices: dict[str, Leave] = {"baseline": "baseline", "best": "best", "last": "last"}

    def change(queue: Queue) -> QueueSettings:
        if which not in choices:
            expected = f"expected one of: {', '.join(choices)}"
            raise ConfigError.of(f"got {which[:80]!r}; {expected}", where="leave")
        return queue.leave(choices[which])

    _settings(context, change, as_json=as_json)


def _each(
    context: typer.Context,
    words: Sequence[str],
    what: str,
    do: Callable[[Queue, str], Experiment],
    *,
    as_json: bool,
) -> None:
    """Do something to several experiments. All are found before the first one is changed."""
    with _opened(context) as opened:
        found = {each.id: each for each in map(opened.queue.find, words)}
        done: list[Changed] = []
        try:
            for each, before in found.items():
                new = do(opened.queue, each)
                done.append(Changed("unchanged" if new == before else what, new))
        finally:
            if done:
                _tell(opened, done, as_json=as_json)


def _settings(
    context: typer.Context, change: Callable[[Queue], QueueSettings], *, as_json: bool
) -> None:
    with _opened(context) as opened:
        from ddtui.cli.queue_report import settings_line, settings_report

        new = change(opened.queue)
        if as_json:
            emit_json(settings_report(new))
        else:
            emit(f"{new.host}: {settings_line(new)}")


def _tell(
    opened: _Opened, changed: Sequence[Changed], said: Sequence[str] = (), *, as_json: bool
) -> None:
    """What was changed on standard output, and what to look out for beside it."""
    from ddtui.cli.queue_beside import beside
    from ddtui.cli.queue_report import changed_lines, experiment_reports

    experiments = [each.experiment for each in changed]
    there, more = opened.queue.listed(), beside(opened.queue, opened.store, experiments)
    if as_json:
        emit_json(experiment_reports(experiments, there, more))
    elif changed:
        emit("\n".join(changed_lines(changed, there, more)))
    else:
        say(f"nothing of {clean(opened.target.name)} has ended that could be cleared")
    for each in said:
        say(f"warning: {clean(each)}")
