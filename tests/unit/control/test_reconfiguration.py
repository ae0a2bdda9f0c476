"""What comes next in a reconfiguration: every state of the unit, at every point of the way."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from ddtui.control.host_actions import Facts
from ddtui.control.reconfiguration import MOST_TRIES, Action, Decision, Run, decide

OLD, NEW, OTHER = "a" * 32, "b" * 32, "c" * 32
RUN = Run("target", "original", OLD)
UP = Facts("loaded", "active", "running", "success", OLD, 0, 7, drop_in="target")
DOWN = msgspec.structs.replace(UP, active="inactive", sub="dead", main_pid=0)
DUE = msgspec.structs.replace(RUN, reload_due=False)
STARTED = msgspec.structs.replace(DUE, started=True, starts=1)
OURS = msgspec.structs.replace(STARTED, invocation=NEW)


def facts(base: Facts = UP, **changes: object) -> Facts:
    return msgspec.structs.replace(base, **changes)


@pytest.mark.parametrize(
    ("run", "now", "released", "action"),
    [
        (RUN, facts(drop_in="original"), False, Action.WRITE),
        (RUN, facts(drop_in="somebody's"), False, Action.FAIL),
        (RUN, facts(drop_in="unreadable"), False, Action.FAIL),
        (STARTED, facts(drop_in="original"), False, Action.FAIL),
        (RUN, UP, False, Action.RELOAD),
        (DUE, facts(needs_reload=True), False, Action.RELOAD),
        (DUE, UP, False, Action.STOP),
        (DUE, facts(invocation=OTHER), False, Action.STOP),  # restarted by itself meanwhile
        (DUE, facts(active="activating", sub="auto-restart"), False, Action.STOP),
        (OURS, facts(invocation=NEW, active="activating", sub="auto-restart"), True, Action.FAIL),
        (OURS, facts(invocation=NEW, sub="auto-restart-queued"), True, Action.FAIL),
        (DUE, facts(active="deactivating"), False, Action.AWAIT_STOP),
        (DUE, DOWN, False, Action.RELEASE),
        (DUE, DOWN, True, Action.START),
        (DUE, facts(DOWN, active="failed"), True, Action.START),
        (STARTED, facts(DOWN), True, Action.START),  # the order was lost
        (STARTED, facts(invocation=OLD), True, Action.STOP),  # it still runs as before
        (STARTED, facts(invocation=NEW), True, Action.FOLLOW),
        (STARTED, facts(DOWN, invocation=NEW), True, Action.FAIL),
        (STARTED, facts(invocation=NEW, restarts=1), True, Action.FAIL),
        (OURS, facts(invocation=NEW), True, Action.FOLLOW),
        (OURS, facts(invocation=NEW, needs_reload=True), True, Action.FOLLOW),
        (OURS, facts(invocation=OTHER, restarts=1), True, Action.FAIL),
        (OURS, facts(invocation=OTHER), True, Action.FOLLOW),  # by another hand: proved anew
        (OURS, facts(invocation=NEW, active="failed"), True, Action.FAIL),
        (OURS, facts(invocation=NEW, active="deactivating"), True, Action.AWAIT_STOP),
        (OURS, facts(load_state="masked"), True, Action.FAIL),
    ],
)
def test_the_next_action(run: Run, now: Facts, released: bool, action: Action) -> None:
    assert decide(run, now, released=released).action is action


def test_a_restart_by_another_hand_is_adopted_as_ours() -> None:
    decision = decide(OURS, facts(invocation=OTHER))
    assert decision.run.invocation == OTHER
    assert "somebody else" in decision.why


ALL = [
    Facts(load, active, sub, "success", invocation, restarts, 1, reload, "", drop)
    for load, (active, sub), invocation, restarts, reload, drop in itertools.product(
        ("loaded", "not-found"),
        (
            *(("active", "running"), ("inactive", "dead"), ("failed", "failed")),
            *(("deactivating", "stop"), ("activating", "auto-restart"), ("activating", "start")),
        ),
        ("", OLD, NEW, OTHER),
        (0, 1),
        (True, False),
        ("", "original", "target", "other"),
    )
]
RUNS = [RUN, DUE, STARTED, OURS]


@pytest.mark.parametrize("run", RUNS)
def test_it_never_starts_what_runs_nor_follows_what_is_not_ours(run: Run) -> None:
    for now, released in itertools.product(ALL, (True, False)):
        decision = decide(run, now, released=released)
        if decision.action in {Action.START, Action.RELEASE}:
            assert now.active in {"inactive", "failed"}
        if decision.action is Action.START:
            assert released
            assert now.drop_in == run.target
        if decision.action is Action.STOP:
            assert now.active in {"active", "activating"}
            assert not decision.run.started
        if decision.action is Action.FOLLOW:
            assert run.started
            assert now.drop_in == run.target
            assert now.active in {"active", "activating"}
            assert decision.run.invocation == now.invocation != OLD
            assert now.restarts <= run.restarts or run.invocation == now.invocation == ""
        if decision.action is Action.FAIL:
            assert decision.why


@pytest.mark.parametrize("run", RUNS)
def test_asking_again_in_the_same_place_changes_nothing(run: Run) -> None:
    """Killed between a decision and its action: the same is decided again, a few times at most."""
    for now in ALL:
        first = decide(run, now, released=True)
        again = decide(first.run, now, released=True)
        if first.action is Action.START:
            assert again.action is Action.START
        elif first.action is Action.STOP:
            assert again.action in {Action.STOP, Action.RELOAD}
        elif first.action not in {Action.RELOAD, Action.FAIL}:
            assert again.action is first.action


def test_tries_are_bounded() -> None:
    run, actions = RUN, []
    for _ in range(10):
        decision: Decision = decide(run, facts(DOWN, needs_reload=True), released=True)
        run = decision.run
        actions.append(decision.action)
    assert actions.count(Action.RELOAD) == MOST_TRIES
    assert actions[-1] is Action.FAIL


def test_a_boot_of_the_host_is_told_as_one() -> None:
    """What was started went with it: that says nothing against what was asked for."""
    started = decide(DUE, facts(DOWN, boot="one"), released=True).run
    assert started.boot == "one"
    ours = msgspec.structs.replace(started, invocation=NEW)
    now = facts(DOWN, invocation="", boot="two")
    assert decide(ours, now).why == "the host was booted anew, and the unit was not started"
    assert decide(ours, facts(DOWN, invocation="", boot="one")).why == "it has ended (stopped)"
    again = decide(ours, facts(invocation=OTHER, boot="two"))
    assert (again.action, again.why) == (Action.FOLLOW, "the unit was restarted with the host")
