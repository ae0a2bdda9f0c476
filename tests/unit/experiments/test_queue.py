"""What operators may do to a queue, against the real store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ddtui.core.bench_plan import BenchPlan
from ddtui.core.experiment import Experiment, ExperimentState, Match, Place
from ddtui.core.launch import Request
from ddtui.experiments.naming import redacted, retitled, shown, title_of
from ddtui.experiments.queue import NoSuchExperiment, Queue, QueueProblem
from ddtui.store import Store

State = ExperimentState
SECRET = Request("fast", {"budget": 4}, {"api-key": "hush"}, {"HF_TOKEN": "hush"})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.open(tmp_path / "s.db")
    yield opened
    opened.close()


@pytest.fixture
def queue(store: Store) -> Queue:
    return Queue(store, "ct200", False, "ada@desk", clock=lambda: 100.0)


def added(queue: Queue, *budgets: int, **fields: object) -> list[Experiment]:
    drafts = [queue.draft(Request(knobs={"budget": each}), **fields) for each in budgets]  # type: ignore[arg-type]
    return queue.add(drafts)


def budgets(queue: Queue) -> list[object]:
    return [each.request.knobs["budget"] for each in queue.listed()]


def run(store: Store, state: State = State.DONE) -> Experiment:
    """Take up the next one and end it."""
    mine = store.experiments.claim("ct200", simulated=False, who="runner", at=200.0)
    assert mine is not None
    ended = msgspec.structs.replace(mine, state=state, configuration="key", measurement="m")
    return store.experiments.end(ended, who="runner", at=300.0)


# ---- adding and finding -------------------------------------------------------------------------


def test_what_is_added_says_who_and_when_and_is_named_after_its_request(queue: Queue) -> None:
    (new,) = added(queue, 8, hypothesis="  wide\tenough\x1b[31m ", sweep="s")
    assert (new.title, new.by, new.created, new.host) == ("budget 8", "ada@desk", 100.0, "ct200")
    assert (new.hypothesis, new.sweep, new.state) == ("wide  enough", "s", State.PENDING)
    assert queue.find(new.id) == new
    assert new.plan == BenchPlan()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"host": "other"}, "does not belong"),
        ({"simulated": True}, "does not belong"),
        ({"state": State.RUNNING}, "cannot be running"),
        ({"title": " \t"}, "needs a title"),
        ({"title": "x" * 201}, "title is too long: 201"),
        ({"note": "x" * 4001}, "note is too long: 4001 characters, at most 4000"),
        ({"request": Request(flags={"x": "\udcff"})}, "no text in UTF-8"),
    ],
)
def test_what_cannot_be_added(queue: Queue, change: dict, said: str) -> None:
    draft = queue.draft(Request(knobs={"budget": 1}))
    with pytest.raises(QueueProblem, match=said) as caught:
        queue.add([draft, msgspec.structs.replace(draft, id="other", **change)])
    assert caught.value.remedy
    assert queue.listed() == []


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("none.jsonl", None, r"none\.jsonl' cannot be read: No such file"),
        ("empty.txt", b"\n", r"empty\.txt has no prompts"),
        ("latin.txt", b"one\n\ncaf\xe9", r"latin\.txt:3: is not UTF-8 text"),
        ("cut.jsonl", b'{"prompt": "one"}\n{"prompt": ', r"cut\.jsonl:2: is no prompt"),
        ("bytes.jsonl", b'{"prompt": "caf\xe9"}', r"bytes\.jsonl:1: is no prompt"),
        ("other.jsonl", b'\n{"text": "one"}', r"other\.jsonl:2: is no prompt"),
    ],
)
def test_prompts_that_cannot_be_read_are_not_queued(
    queue: Queue, tmp_path: Path, name: str, content: bytes | None, said: str
) -> None:
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    plan = BenchPlan(prompts=str(file))
    one = queue.draft(Request(knobs={"budget": 1}))
    with pytest.raises(QueueProblem, match=said) as caught:
        queue.add([one, queue.draft(Request(knobs={"budget": 2}), plan)])
    assert caught.value.remedy
    assert queue.listed() == []
    queue.add([one])
    with pytest.raises(QueueProblem, match=said):
        queue.edit("1", plan=plan)
    queue.add([queue.draft(Request(), msgspec.structs.replace(plan, command=("bench",)))])


def test_experiments_are_found_by_place_and_by_the_beginning_of_their_id(queue: Queue) -> None:
    first = msgspec.structs.replace(queue.draft(Request(knobs={"budget": 1})), id="abcd1111")
    second = msgspec.structs.replace(queue.draft(Request(knobs={"budget": 2})), id="abcd2222")
    queue.add([first, second])
    for word in ("abcd1111", "ABCD1", "#1", "1", " 1 "):
        assert queue.find(word).id == "abcd1111"
    for word, said in (
        ("abcd", "2 experiments have ids"),
        ("abc", "is meant by"),
        ("#3", "has no place #3: 2 wait or run"),
        ("0", "no place"),
        ("²", "is meant by"),
        ("%%%%", "is meant by"),
        ("____", "is meant by"),
        ("", "is meant by"),
        ("9" * 5000, "is meant by"),
        ("#" + "9" * 5000, "no place"),
    ):
        with pytest.raises(NoSuchExperiment, match=said):
            queue.find(word)
    with pytest.raises(NoSuchExperiment) as refused:
        queue.find("9000")  # it would be an id's beginning
    assert refused.value.remedy.endswith("or a place ('#9000')")
    queue.cancel("1")
    assert queue.find("1").id == "abcd2222"
    assert queue.find("abcd1").state is State.CANCELLED


def test_one_like_another_one(queue: Queue, store: Store) -> None:
    match = Match("nodes", "f", "budget", 4, "block size 8")
    (old,) = added(
        queue, 4, match=match, hypothesis="h", sweep="s", note="n", title="four: budget 4"
    )
    run(store)
    like = queue.draft_like(old.id, Request(knobs={"topk": 2}))
    assert like.request.knobs == {"budget": 4, "topk": 2}
    assert (like.title, like.match, like.like) == ("four: budget 4 topk 2", match, old.id)
    assert (like.hypothesis, like.sweep, like.note) == ("h", "s", "")
    other = queue.draft_like(old.id, Request(knobs={"budget": 5}), hypothesis="new")
    assert (other.title, other.match, other.hypothesis) == ("four: budget 5", None, "new")
    (again,) = queue.add([queue.draft_like(old.id)], Place("first"))
    assert (again.state, again.attempts, again.request) == (State.PENDING, 0, old.request)


# ---- changing -----------------------------------------------------------------------------------


def test_an_edit_gives_up_what_was_measured_of_another_configuration(queue: Queue) -> None:
    known = {"configuration": "key", "measurement": "m", "reused": True}
    (one,) = added(queue, 8, **known)
    renamed = queue.edit(one.id, title="the same", hypothesis="no change")
    assert (renamed.configuration, renamed.measurement, renamed.reused) == ("key", "m", True)
    same = queue.edit(one.id, Request(knobs={"budget": 8}))
    assert same.reused
    other = queue.edit(one.id, Request(knobs={"budget": 16}))
    assert (other.configuration, other.measurement, other.reused) == ("", "", False)
    (two,) = added(queue, 8, **known)
    assert not queue.edit(two.id, plan=BenchPlan(repeats=9)).reused


def test_edits_keep_title_and_match_true(queue: Queue) -> None:
    match = Match("nodes", "f", "budget", 4, "block size 8")
    (old,) = added(queue, 4, match=match)
    new = queue.edit(old.id, Request(knobs={"topk": 2}), note="n")
    assert (new.title, new.match, new.note) == ("budget 4 topk 2", match, "n")
    new = queue.edit(old.id, Request(flags={"x": "1"}), BenchPlan(name="p"), without=["budget"])
    assert (new.title, new.match, new.plan.name) == ("topk 2 --x 1", None, "p")
    assert queue.edit(old.id, title="mine", hypothesis="h").title == "mine"
    assert queue.edit(old.id, Request(knobs={"topk": 3})).title == "mine topk 3"
    with pytest.raises(QueueProblem, match=r"does not ask for budget.*It asks for topk, x"):
        queue.edit(old.id, without=["budget"])
    assert [(each.what, each.detail) for each in queue.log(old.id)][1:] == [
        ("edited", "topk"),
        ("edited", "x, without budget, plan"),
        ("edited", "title"),
        ("edited", "topk"),
    ]


def test_moving_among_those_that_wait(queue: Queue, store: Store) -> None:
    added(queue, 1, 2, 3, 4)
    queue.move("#4", Place("before", "#2"))
    assert budgets(queue) == [1, 4, 2, 3]
    queue.add([queue.draft(Request(knobs={"budget": 9}))], Place("after", "1"))
    assert budgets(queue) == [1, 9, 4, 2, 3]
    ended = run(store)
    with pytest.raises(QueueProblem, match=r"cannot move .* it is done"):
        queue.move("1", Place("after", ended.id))
    with pytest.raises(QueueProblem, match="it is done"):
        queue.move(ended.id, Place("first"))


def test_what_runs_can_only_be_annotated_and_cancelled(queue: Queue, store: Store) -> None:
    added(queue, 1)
    store.experiments.claim("ct200", simulated=False, who="runner", at=1.0)
    for refused in (
        lambda: queue.edit("1", Request(knobs={"budget": 2})),
        lambda: queue.move("1", Place("first")),
        lambda: queue.hold("1"),
        lambda: queue.retry("1"),
        lambda: queue.clear(["1"]),
    ):
        with pytest.raises(QueueProblem, match=r"it is running. Cancel it, or wait"):
            refused()
    assert queue.annotate("1", note="look", hypothesis="h").note == "look"
    wish = queue.cancel("1")
    assert (wish.state, wish.cancel) == (State.RUNNING, True)


def test_holding_and_cancelling(queue: Queue, store: Store) -> None:
    added(queue, 1, 2)
    assert queue.hold("1").state is State.HELD
    assert queue.hold("1").state is State.HELD
    assert run(store).request.knobs["budget"] == 2
    assert queue.release("1").state is State.PENDING
    gone = queue.cancel("1")
    assert (gone.state, gone.ended) == (State.CANCELLED, 100.0)
    with pytest.raises(QueueProblem, match=r"it is cancelled. Retry it"):
        queue.cancel(gone.id)


def test_what_failed_is_retried_as_itself(queue: Queue, store: Store) -> None:
    added(queue, 1, 2)
    failed = run(store, State.FAILED)
    queue.clear([failed.id])
    again = queue.retry(failed.id, Place("first"))
    assert (again.state, again.attempts, again.cleared) == (State.PENDING, 1, False)
    assert (again.measurement, again.began) == ("", None)
    assert again.configuration == failed.configuration  # so that another one is told by now
    assert budgets(queue) == [1, 2]
    done = run(store)
    assert done.attempts == 2
    with pytest.raises(QueueProblem, match=r"it is done. Add one like it"):
        queue.retry(done.id)


def test_clearing_takes_only_what_ended(queue: Queue, store: Store) -> None:
    added(queue, 1, 2, 3)
    first, second = run(store), run(store, State.FAILED)
    assert [each.id for each in queue.clear([second.id])] == [second.id]
    assert [each.id for each in queue.clear()] == [first.id]
    assert queue.clear() == []
    assert budgets(queue) == [3]
    assert len(queue.listed(cleared=True)) == 3
    assert queue.find(first.id).cleared
    assert queue.log(first.id)[-1].what == "cleared"


def test_the_queue_as_a_whole(queue: Queue, store: Store) -> None:
    added(queue, 1)
    before = queue.version()
    assert queue.pause().paused
    assert queue.leave("baseline").paused
    assert store.experiments.claim("ct200", simulated=False, who="r", at=1.0) is None
    assert not queue.resume().paused
    assert queue.settings().leave == "baseline"
    assert queue.version() == before + 3


# ---- names --------------------------------------------------------------------------------------


def test_nothing_that_is_shown_has_a_secret(queue: Queue) -> None:
    plan = BenchPlan(command=("bench", "--api-key", "hush"))
    (new,) = queue.add([queue.draft(SECRET, plan, note="password=hush")])
    assert new.request == SECRET
    assert "hush" not in new.title
    assert b"hush" not in msgspec.json.encode(shown(new))
    assert redacted(SECRET).knobs == {"budget": 4}


@pytest.mark.parametrize(
    ("request_", "title"),
    [
        (Request(), "as it is"),
        (Request("p"), "p"),
        (Request("p", {"topk": 2, "budget": 4, "window": None}), "p budget 4 topk 2 window none"),
        (Request("", {}, {"a": True, "b": None}, {"C": None}), "--a --b none C=none"),
    ],
)
def test_titles(request_: Request, title: str) -> None:
    assert title_of(request_) == title


def test_a_title_of_ones_own_is_corrected_where_it_would_lie() -> None:
    before, after = Request(knobs={"budget": 1, "topk": 2}), Request(knobs={"budget": 11})
    assert retitled("wide: budget 1 x", before, after) == "wide: budget 11 x"
    assert retitled("budget 1 topk 2", before, after) == "budget 11"
    assert retitled("budget 12", before, after) == "budget 12 budget 11"
    assert retitled("mine", before, before) == "mine"
