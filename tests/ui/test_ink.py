from __future__ import annotations

from rich.cells import cell_len
from textual.theme import BUILTIN_THEMES

from ddtui.core.width import clip
from ddtui.ui.ink import Ink, Row, flow, grid, ink_styles
from ddtui.ui.themes import load_themes, variable_defaults

VARIABLES = {**BUILTIN_THEMES["textual-dark"].to_color_system().generate(), **variable_defaults()}


def test_a_row_counts_cells_not_characters() -> None:
    row = Row("日本").add("ab").add("e\u0301")
    assert row.width == 7
    assert row.cut(4).text == "日…"
    assert row.cut(4).width <= 4


def test_a_cut_row_says_that_something_is_missing() -> None:
    row = Row("running ", Ink.LABEL).add("12345", Ink.STRONG)
    assert row.cut(13) is row
    assert row.cut(10).text == "running 1…"
    assert row.cut(10).spans[-1][1] is Ink.STRONG
    assert Row("abc").add("def").cut(3).text == "ab…"
    assert Row("abc").cut(0).text == ""


def test_control_characters_never_get_into_a_row() -> None:
    row = Row("a\x1b[31mb\x07\n\u202ec\u200bd")
    assert row.text == "ab cd"


def test_a_very_long_text_is_not_measured_whole() -> None:
    assert Row("x" * 90_000).width <= 2_001


def test_right_side_has_precedence() -> None:
    assert Row("a long text").with_right(Row("READY"), 12).text == "a lon… READY"
    assert Row("a").with_right(Row("READY"), 4).text == "REA…"
    assert Row("a").with_right(Row(), 5).text == "a    "


def test_fields_have_their_width_whatever_is_in_them() -> None:
    for text in ("", "1", "日本語", "far too long"):
        assert cell_len(Row().put(text, 6).text) == 6
        assert cell_len(Row().put(text, 6, right=True).text) == 6


def test_flow_and_grid_stay_within_their_width() -> None:
    pieces = [Row(word) for word in ("running 12", "queued 3", "x" * 50, "kv 3 %")]
    assert [row.text for row in flow(pieces, 22)] == [
        "running 12   queued 3", "x" * 21 + "…", "kv 3 %"]  # fmt: skip
    lines = grid(pieces, 24, 2)
    assert [line.text.split() for line in lines[:1]] == [["running", "12", "queued", "3"]]
    assert all(line.width <= 24 for line in lines)


def test_clip_to_nothing() -> None:
    assert clip("abc", 0) == ""
    assert clip("abc", 1) == "…"
    assert clip("日本", 2) == "…"


def test_strips_are_exactly_as_wide_as_asked() -> None:
    styles = ink_styles(VARIABLES, faded=False)
    for width in (1, 3, 8, 40):
        strip = Row("日本語 text", Ink.GOOD).add(" BADGE ", Ink.BADGE).strip(width, styles)
        assert sum(cell_len(segment.text) for segment in strip) <= width
        assert strip.cell_length == width


def test_blanks_cost_no_style_of_their_own() -> None:
    row = Row("12", Ink.STRONG).add("   ").add("GiB", Ink.LABEL)
    assert [ink for _, ink in row.spans] == [Ink.STRONG, Ink.LABEL]
    badge = Row(" SIMULATED ", Ink.BADGE).add("  ")
    assert [ink for _, ink in badge.spans] == [Ink.BADGE, Ink.TEXT]


def test_every_ink_has_a_style_in_every_theme() -> None:
    for theme in load_themes().themes.values():
        variables = {**theme.to_color_system().generate(), **theme.variables}
        for faded in (False, True):
            assert set(ink_styles(variables, faded=faded)) == set(Ink)


def test_faded_values_look_alike_but_warnings_stay() -> None:
    fresh, faded = ink_styles(VARIABLES, faded=False), ink_styles(VARIABLES, faded=True)
    assert faded[Ink.GOOD] == faded[Ink.TEXT] == faded[Ink.THROUGHPUT] != fresh[Ink.TEXT]
    assert faded[Ink.WARN] == fresh[Ink.WARN]
