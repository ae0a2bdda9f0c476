"""Whatever operators and runners do, in whatever order: the queue is what a plain list would be."""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ddtui.core.experiment import ENDED, WAITING, Experiment, ExperimentState, Place
from ddtui.core.launch import Request
from ddtui.experiments.queue import Queue, QueueProblem
from ddtui.store import Store

State = ExperimentState
WHERE = st.sampled_from(["first", "last", "before", "after"])
ANY = st.integers(0, 30)


class QueueMachine(RuleBasedStateMachine):
    """The queue and a model of it: titles in order, and each one's state."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()

    @initialize()
    def begin(self) -> None:
        self.store = Store.open(Path(self.folder.name) / "s.db")
        self.queue = Queue(self.store, "ct200", False, "ada@desk", clock=lambda: float(self.time))
        self.time = 0
        self.waiting: list[str] = []
        self.running: list[str] = []
        self.ended: list[str] = []
        self.cleared: set[str] = set()
        self.states: dict[str, State] = {}
        self.values: dict[str, int] = {}
        self.ids: dict[str, str] = {}
        self.paused = False

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
        self.folder.cleanup()

    def some(self, number: int) -> str | None:
        """Any experiment, whatever its state."""
        names = sorted(self.states)
        return names[number % len(names)] if names else None

    def place(self, where: str, number: int, without: str = "") -> tuple[Place, int] | None:
        """A place and its index among those that wait; None where there is none."""
        others = [each for each in self.waiting if each != without]
        if where in {"first", "last"}:
            return Place(where), 0 if where == "first" else len(others)  # type: ignore[arg-type]
        if not others:
            return None
        other = others[number % len(others)]
        return Place(where, self.ids[other]), others.index(other) + (where == "after")  # type: ignore[arg-type]

    def allowed(self, name: str, states: frozenset[State], result: object) -> bool:
        """Whether it was to be allowed; checks that it was refused otherwise."""
        allowed = self.states[name] in states
        assert allowed == (not isinstance(result, QueueProblem)), (name, self.states[name], result)
        return allowed

    @rule(count=st.integers(1, 3), where=WHERE, number=ANY, held=st.booleans())
    def add(self, count: int, where: str, number: int, held: bool) -> None:
        if (found := self.place(where, number)) is None or len(self.states) > 12:
            return
        place, at = found
        state = State.HELD if held else State.PENDING
        names = [f"e{len(self.states) + n}" for n in range(count)]
        request = Request(knobs={"budget": 0})
        self.time += 1
        drafts = [self.queue.draft(request, title=each, state=state) for each in names]
        for name, new in zip(names, self.queue.add(drafts, place), strict=True):
            self.ids[name], self.states[name], self.values[name] = new.id, state, 0
        self.waiting[at:at] = names

    @rule(which=ANY, where=WHERE, number=ANY)
    def move(self, which: int, where: str, number: int) -> None:
        name = self.some(which)
        if name is None or (found := self.place(where, number, name)) is None:
            return
        place, at = found
        if self.allowed(name, WAITING, self.tried(self.queue.move, name, place)):
            self.waiting.remove(name)
            self.waiting.insert(at, name)

    def tried(self, do: object, name: str, *arguments: object) -> object:
        self.time += 1
        try:
            return do(self.ids[name], *arguments)  # type: ignore[operator]
        except QueueProblem as problem:
            return problem

    @rule(which=ANY, value=st.integers(1, 99))
    def edit(self, which: int, value: int) -> None:
        if (name := self.some(which)) is None:
            return
        over = Request(knobs={"budget": value})
        result = self.tried(lambda word: self.queue.edit(word, over, title=name), name)
        if self.allowed(name, WAITING, result):
            self.values[name] = value

    @rule(which=ANY, hold=st.booleans())
    def hold_or_release(self, which: int, hold: bool) -> None:
        if (name := self.some(which)) is None:
            return
        result = self.tried(self.queue.hold if hold else self.queue.release, name)
        if self.allowed(name, WAITING, result):
            self.states[name] = State.HELD if hold else State.PENDING

    @rule(which=ANY)
    def cancel(self, which: int) -> None:
        if (name := self.some(which)) is None:
            return
        result = self.tried(self.queue.cancel, name)
        if self.allowed(name, WAITING | {State.RUNNING}, result) and name in self.waiting:
            self.waiting.remove(name)
            self.ended.append(name)
            self.states[name] = State.CANCELLED

    @rule(which=ANY, where=WHERE, number=ANY)
    def retry(self, which: int, where: str, number: int) -> None:
        name = self.some(which)
        if name is None or (found := self.place(where, number, name)) is None:
            return
        place, at = found
        result = self.tried(self.queue.retry, name, place)
        if self.allowed(name, frozenset({State.FAILED, State.CANCELLED}), result):
            self.ended.remove(name)
            self.cleared.discard(name)
            self.waiting.insert(at, name)
            self.states[name] = State.PENDING

    @rule()
    def clear(self) -> None:
        gone = {each.title for each in self.queue.clear()}
        assert gone == set(self.ended) - self.cleared
        self.cleared |= gone

    @rule(paused=st.booleans())
    def pause_or_resume(self, paused: bool) -> None:
        assert (self.queue.pause() if paused else self.queue.resume()).paused == paused
        self.paused = paused

    @rule()
    def claim(self) -> None:
        pending = [each for each in self.waiting if self.states[each] is State.PENDING]
        taken = self.store.experiments.claim("ct200", simulated=False, who="r", at=float(self.time))
        if self.paused or not pending:
            assert taken is None
            return
        assert taken is not None
        assert taken.title == pending[0]
        self.waiting.remove(pending[0])
        self.running.append(pending[0])
        self.states[pending[0]] = State.RUNNING

    @rule(which=ANY, state=st.sampled_from(sorted(ENDED)))
    def end(self, which: int, state: State) -> None:
        if not self.running:
            return
        name = self.running.pop(which % len(self.running))
        self.time += 1
        found = self.queue.find(self.ids[name])
        ended = msgspec.structs.replace(found, state=state)
        self.store.experiments.end(ended, who="r", at=float(self.time))
        self.ended.append(name)
        self.states[name] = state

    @invariant()
    def the_queue_is_the_model(self) -> None:
        if not hasattr(self, "store"):
            return
        found: list[Experiment] = self.queue.listed()
        titles = [each.title for each in found]
        assert set(titles[: len(self.running)]) == set(self.running)
        there = [each for each in self.ended if each not in self.cleared]
        assert titles[len(self.running) :] == self.waiting + there
        assert {each.title: each.state for each in self.queue.listed(cleared=True)} == self.states
        assert all(each.request.knobs["budget"] == self.values[each.title] for each in found)


TestQueueIsItsModel = QueueMachine.TestCase
TestQueueIsItsModel.settings = settings(
    max_examples=30,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
