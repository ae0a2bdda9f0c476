"""The queue of one host as operators use it: what they may do to an experiment, and when.

The rules are here, the order and the transactions in `ddtui.store.experiments`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Unpack

import msgspec

from ddtui.config.presets import merged
from ddtui.core.bench_plan import BenchPlan
from ddtui.core.clock import Clock, system_clock
from ddtui.core.experiment import (
    ENDED,
    WAITING,
    DraftFields,
    Experiment,
    ExperimentState,
    InForce,
    Leave,
    Match,
    Place,
    QueueEvent,
    QueueSettings,
    SettingsFields,
)
from ddtui.core.launch import Request
from ddtui.core.text import clean
from ddtui.experiments.naming import retitled, title_of
from ddtui.experiments.queue_rules import (
    NoSuchExperiment,
    QueueProblem,
    check_plans,
    checked_request,
    checked_texts,
    less,
    match_after,
    names_of,
    refused,
)
from ddtui.store import Stale, Store

SHORTEST_PREFIX = 4
"""Characters of an id that are enough where they are unique."""

__all__ = ["NoSuchExperiment", "Queue", "QueueProblem"]

_State = ExperimentState
_RUNNING = frozenset({_State.RUNNING})
_LAST = Place()


class Queue:
    """The queue of one host. Methods block: call them in a thread.

    Wherever an experiment is named, that is a word: its id, the beginning of its id (4 characters
    at least), or its place in the queue (`#3`, `3`). All that change something raise QueueProblem
    and StoreError, and return experiments as they are then.
    """

    def __init__(
        self, store: Store, host: str, simulated: bool, who: str, clock: Clock = system_clock
    ) -> None:
        """Take the queue of `host`.

        Args:
            store: Where it is kept.
            host: The host's name, as configured.
            simulated: Whether that is the simulated host.
            who: user@machine, for the log.
            clock: Unix seconds.
        """
        self._store = store.experiments
        self.host, self.simulated, self.who = host, simulated, who
        self._clock = clock

    # ---- reading --------------------------------------------------------------------------------

    def version(self) -> int:
        """Grows with every change of the queue, its settings and the host's measurements."""
        return self._store.version(self.host, simulated=self.simulated)

    def listed(self, *, cleared: bool = False) -> list[Experiment]:
        """What runs, then what waits in its order, then what ended; `cleared` ones on request."""
        return self._store.queue(self.host, simulated=self.simulated, cleared=cleared)

    def settings(self) -> QueueSettings:
        """What holds for the whole queue."""
        return self._store.settings(self.host, simulated=self.simulated)

    def find(self, word: str) -> Experiment:
        """The experiment that a word means. Raises NoSuchExperiment."""
        plain = word.strip().lower()
        if len(plain) >= SHORTEST_PREFIX and not plain.startswith("#"):
            found = self._store.beginning(plain, self.host, simulated=self.simulated)
            if len(found) == 1:
                return found[0]
            if found:
                ids = ", ".join(each.id[:12] for each in found[:5])
                what = f"{len(found)} experiments have ids that begin with {clean(word, 40)}"
                raise NoSuchExperiment(f"{what} ({ids})", "Write more of the id")
        elif (number := plain.removeprefix("#")).isascii() and number.isdigit():
            there = [each for each in self.listed() if each.state not in ENDED]
            if 1 <= int(number[:9]) <= len(there):
                return there[int(number) - 1]
            count = f"{len(there)} wait or run" if there else "nothing waits or runs"
            raise NoSuchExperiment(
                f"the queue of {self.host} has no place {clean(word, 40)}: {count}",
                f"`ddtui queue {self.host}` lists what is there",
            )
        remedy = f"Give an id of `list`, its first {SHORTEST_PREFIX} or more characters, or a place"
        if plain.isascii() and plain.isdigit():  # it may be an id's beginning
            remedy += f" ('#{clean(plain, 40)}')"
        what = f"no experiment of {self.host} is meant by {clean(word, 40)!r}"
        raise NoSuchExperiment(what, remedy)

    def log(self, word: str) -> list[QueueEvent]:
        """What was done to an experiment and which steps were begun, the oldest first."""
        return self._store.log(self.find(word).id)

    # ---- adding ---------------------------------------------------------------------------------

    def draft(
        self,
        request: Request,
        plan: BenchPlan | None = None,
        *,
        title: str = "",
        match: Match | None = None,
        **fields: Unpack[DraftFields],
    ) -> Experiment:
        """A new experiment of this queue, not added yet.

        Args:
            request: What is loaded for it.
            plan: What is measured; the default plan for None.
            title: The configuration in short; made of the request where it is empty.
            match: How a value of the request was matched to another configuration's.
            **fields: Further fields.
        """
        return Experiment(
            id=uuid.uuid4().hex,
            host=self.host,
            simulated=self.simulated,
            title=title or title_of(request),
            request=request,
            plan=BenchPlan() if plan is None else plan,
            match=match,
            by=self.who,
            created=self._clock(),
            **fields,
        )

    def draft_like(
        self,
        word: str,
        over: Request | None = None,
        plan: BenchPlan | None = None,
        *,
        title: str = "",
        match: Match | None = None,
        **fields: Unpack[DraftFields],
    ) -> Experiment:
        """A new experiment like another one, with `over` on top of its request; not added yet.

        Its sweep is kept, so that it is compared with the same ones; note and result are not.
        """
        old = self.find(word)
        request = old.request if over is None else merged(old.request, over)
        kept: DraftFields = {"sweep": old.sweep, "hypothesis": old.hypothesis, "like": old.id}
        return self.draft(
            request,
            old.plan if plan is None else plan,
            title=title or retitled(old.title, old.request, request),
            match=match or match_after(old.match, over),
            **(kept | fields),
        )

    def add(self, new: Sequence[Experiment], place: Place | None = None) -> list[Experiment]:
        """Add drafts in their order, all or none; at the end, or at a place.

        `place.of` is a word like any other.
        """
        checked = [self._checked(each) for each in new]
        check_plans(each.plan for each in checked if not each.reused)
        where = self._place(place)
        try:
            return self._store.put(checked, where)
        except Stale as stale:
            raise refused(stale, "add something beside") from stale

    def _checked(self, draft: Experiment) -> Experiment:
        if (draft.host, draft.simulated) != (self.host, self.simulated):
            raise QueueProblem(
                f"an experiment of {draft.host} does not belong in the queue of {self.host}",
                "Add it to its own host's queue",
            )
        if draft.state not in WAITING:
            raise QueueProblem(f"a new experiment cannot be {draft.state}", "Add it pending")
        texts = checked_texts(draft.title, draft.hypothesis, draft.note)
        return msgspec.structs.replace(draft, request=checked_request(draft.request), **texts)

    # ---- changing -------------------------------------------------------------------------------

    def edit(
        self,
        word: str,
        over: Request | None = None,
        plan: BenchPlan | None = None,
        *,
        without: Collection[str] = (),
        title: str | None = None,
        hypothesis: str | None = None,
        note: str | None = None,
        match: Match | None = None,
    ) -> Experiment:
        """Change an experiment that waits; None leaves something as it is.

        Args:
            word: The experiment.
            over: Knobs, flags and variables to set beside those that it has.
            plan: The plan to measure by.
            without: Names of knobs, flags and variables that it asks for no more.
            title: The configuration in short; follows the request by itself.
            hypothesis: What is expected.
            note: Whatever is to be remembered.
            match: What a value of `over` was computed to match.
        """
        if plan is not None:
            check_plans([plan])

        def edited(now: Experiment) -> Experiment:
            request = now.request if over is None else merged(now.request, over)
            request = checked_request(less(request, without))
            name = retitled(now.title, now.request, request) if title is None else title
            texts = checked_texts(
                name,
                now.hypothesis if hypothesis is None else hypothesis,
                now.note if note is None else note,
            )
            measured_by = now.plan if plan is None else plan
            # What was worked out for it, or measured earlier, is another one's by now.
            same = request == now.request and measured_by == now.plan
            stale: dict[str, Any] = {"configuration": "", "measurement": "", "reused": False}
            stale["knobs"] = {}
            return msgspec.structs.replace(
                now,
                request=request,
                plan=measured_by,
                match=match or match_after(now.match, over, without),
                **texts,
                **({} if same else stale),
            )

        names = [*names_of(over), *(f"without {each}" for each in without)]
        names += ["plan"] * (plan is not None) + ["title"] * (title is not None)
        return self._revised(word, WAITING, edited, "edit", "edited", ", ".join(names))

    def annotate(
        self, word: str, *, hypothesis: str | None = None, note: str | None = None
    ) -> Experiment:
        """Set an experiment's hypothesis or note, whatever its state."""

        def annotated(now: Experiment) -> Experiment:
            texts = checked_texts(
                now.title,
                now.hypothesis if hypothesis is None else hypothesis,
                now.note if note is None else note,
            )
            return msgspec.structs.replace(now, **texts)

        return self._revised(word, ExperimentState, annotated, "annotate", "annotated")

    def move(self, word: str, place: Place) -> Experiment:
        """Put an experiment that waits to another place; `place.of` is a word."""
        where = self._place(place)
        return self._revised(word, WAITING, lambda now: now, "move", "moved", place=where)

    def hold(self, word: str) -> Experiment:
        """Have an experiment passed over until it is released."""
        return self._set(word, WAITING, "hold", "held", state=_State.HELD)

    def release(self, word: str) -> Experiment:
        """Have a held experiment taken up again in its turn."""
        return self._set(word, WAITING, "release", "released", state=_State.PENDING)

    def cancel(self, word: str) -> Experiment:
        """End an experiment; for one that runs, tell its runner to end it (`cancel` is set)."""
        at = self._clock()

        def cancelled(now: Experiment) -> Experiment:
            if now.state is _State.RUNNING:
                return msgspec.structs.replace(now, cancel=True)
            return msgspec.structs.replace(now, state=_State.CANCELLED, ended=at)

        return self._revised(word, WAITING | _RUNNING, cancelled, "cancel", "cancel")

    def retry(self, word: str, place: Place | None = None) -> Experiment:
        """Have a failed or cancelled experiment done once more; at the end, or at a place.

        It stays the same experiment, and its attempts go on counting. What is left of its last
        measurement stays in the results; it gets a new one. The configuration that it was stays
        known, so that one made on something else by now is told.
        """
        fresh: dict[str, Any] = {
            "state": _State.PENDING,
            **dict.fromkeys(("step", "change", "measurement", "runner"), ""),
            **dict.fromkeys(("reused", "reloaded", "cancel", "cleared"), False),
            **dict.fromkeys(("began", "ended", "cause"), None),
        }
        states = {_State.FAILED, _State.CANCELLED}
        where = self._place(place)
        return self._set(word, states, "retry", "retried", place=where, **fresh)

    def clear(self, words: Iterable[str] | None = None) -> list[Experiment]:
        """Take ended experiments off the list: all of them, or those named.

        Their measurements and logs are kept.
        """
        only = None
        if words is not None:
            found = [self.find(word) for word in words]
            for each in found:
                if each.state not in ENDED:
                    raise refused(Stale(each.id, each), "clear")
            only = {each.id for each in found}
        return self._store.clear(
            self.host, simulated=self.simulated, who=self.who, at=self._clock(), only=only
        )

    # ---- the queue as a whole -------------------------------------------------------------------

    def pause(self) -> QueueSettings:
        """Have nothing more taken up; what runs goes on."""
        return self._settings(paused=True)

    def resume(self) -> QueueSettings:
        """Have experiments taken up again."""
        return self._settings(paused=False)

    def leave(self, which: Leave) -> QueueSettings:
        """Say in which configuration the unit is left once all is done."""
        return self._settings(leave=which)

    def know(self, in_force: InForce) -> QueueSettings:
        """Keep what experiments are made on, so that matching can do without the host."""
        return self._settings(in_force=in_force)

    def _settings(self, **to: Unpack[SettingsFields]) -> QueueSettings:
        return self._store.change_settings(self.host, simulated=self.simulated, **to)

    # ---- inside ---------------------------------------------------------------------------------

    def _place(self, place: Place | None) -> Place:
        if place is None:
            return _LAST
        return Place(place.where, self.find(place.of).id) if place.of else place

    def _set(
        self,
        word: str,
        states: Iterable[ExperimentState],
        verb: str,
        what: str,
        place: Place | None = None,
        **to: Any,
    ) -> Experiment:
        def changed(now: Experiment) -> Experiment:
            return msgspec.structs.replace(now, **to)

        return self._revised(word, states, changed, verb, what, place=place)

    def _revised(
        self,
        word: str,
        states: Iterable[ExperimentState],
        how: Callable[[Experiment], Experiment],
        verb: str,
        what: str,
        detail: str = "",
        place: Place | None = None,
    ) -> Experiment:
        found = self.find(word)
        event = QueueEvent(found.id, self._clock(), self.who, what, detail)
        try:
            return self._store.revise(found.id, states, how, event, place)
        except Stale as stale:
            raise refused(stale, verb) from stale
