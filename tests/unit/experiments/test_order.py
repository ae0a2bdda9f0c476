"""The order of experiments: as few loads as can be, and what has its place keeps it."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from ddtui.experiments.order import Item, loads_for, ordered, reloads


def items(text: str) -> list[Item]:
    """`a b* c! d~ e>`: keys; * baseline, ! fixed, ~ held, > running, ? unknown, - reused."""
    return [
        Item(
            id=f"{at}{word}",
            key=word[0].replace("?", ""),
            baseline="*" in word,
            fixed="!" in word,
            held="~" in word,
            running=">" in word,
            loads="-" not in word,
        )
        for at, word in enumerate(text.split())
    ]


def keys(found: Sequence[Item]) -> str:
    return " ".join(each.id[1:] for each in found)


def test_experiments_of_one_configuration_share_a_load() -> None:
    mixed = items("a b a c b a")
    assert keys(ordered(mixed)) == "a a a b b c"
    assert (reloads(mixed), reloads(ordered(mixed))) == (6, 3)


def test_it_begins_with_what_is_in_force_then_the_baseline() -> None:
    found = ordered(items("a b c* b a"), "b")
    assert keys(found) == "b b c* a a"
    assert reloads(found, "b") == 2
    assert loads_for(found, "b") == [False, False, True, True, False]


def test_what_runs_comes_first_and_its_configuration_goes_on() -> None:
    assert keys(ordered(items("a b c> a c"), "c")) == "c> c a a b"


def test_what_is_held_stays_and_costs_nothing() -> None:
    found = ordered(items("a b~ a b a"))
    assert keys(found) == "a b~ a a b"
    assert reloads(found) == 2


def test_what_was_moved_stays_and_its_group_goes_before_it() -> None:
    found = ordered(items("a b a b! a"))
    assert keys(found) == "a a a b! b"
    assert reloads(found) == 2
    assert keys(ordered(items("b c a a b! c"))) == "c c a a b! b"
    # No group but its own fits before it.
    assert keys(ordered(items("b a! b"), "b")) == "b a! b"


def test_a_baseline_that_is_measured_again_stays_last() -> None:
    found = ordered(items("a* b c b a!"))
    assert keys(found) == "a* b b c a!"
    assert reloads(found, "a") == 3


def test_an_unknown_configuration_is_like_no_other() -> None:
    assert reloads(ordered(items("? ? ?"))) == 3


def test_a_reused_measurement_needs_no_load() -> None:
    assert reloads(items("a b- a c"), "a") == 1


ITEMS = st.lists(
    st.builds(
        lambda key, mark: key + mark,
        st.sampled_from("abcd?"),
        st.sampled_from(["", "", "", "", "*", "!", "~", "-", ">"]),
    ),
    max_size=9,
).map(lambda words: items(" ".join(words)))
FREE = st.lists(st.sampled_from("abcde"), max_size=9).map(lambda words: items(" ".join(words)))


@given(queue=ITEMS, in_force=st.sampled_from(["", "a", "b", "z"]))
def test_it_is_a_permutation_that_never_loads_more(queue: list[Item], in_force: str) -> None:
    found = ordered(queue, in_force)
    assert sorted(each.id for each in found) == sorted(each.id for each in queue)
    naive = sorted(queue, key=lambda each: not each.running)
    assert reloads(found, in_force) <= reloads(naive, in_force)
    for before, after in zip(naive, found, strict=True):
        assert not before.kept or before is after
    assert ordered(found, in_force) == found or reloads(ordered(found, in_force), in_force) <= (
        reloads(found, in_force)
    )


@given(queue=FREE, in_force=st.sampled_from(["", "a", "z"]))
def test_without_fixed_places_nothing_can_be_better(queue: list[Item], in_force: str) -> None:
    needed = {each.key for each in queue} - {in_force}
    assert reloads(ordered(queue, in_force), in_force) == len(needed)


@given(queue=ITEMS)
def test_the_order_within_a_configuration_is_kept(queue: list[Item]) -> None:
    for key in "abcd":
        given_order = [each for each in queue if each.key == key and not each.kept and each.loads]
        wanted = sorted(given_order, key=lambda each: not each.baseline)
        found = [each for each in ordered(queue) if each in given_order]
        assert found in (wanted, given_order)
