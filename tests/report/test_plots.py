"""Marks, labels, axes, colors, and what plots say to those who do not see them."""

from __future__ import annotations

import itertools
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ec2_env.bench.statistics import Estimate
from ec2_env.report.heatmap import Heat, Tile, heatmap
from ec2_env.report.marks import marks
from ec2_env.report.palette import DARK, LIGHT, shade
from ec2_env.report.placement import Box, Spot, place
from ec2_env.report.scatter import Axis, Dot, scatter
from ec2_env.report.svg import number, standalone, width_of

FRAME = Box(0, 0, 700, 400)
PERCENT = Axis(title="share, %", form=lambda value: f"{100 * value:.4g}", more_is_better=True, most=1.0)
DOLLARS = Axis(title="USD", form=lambda value: f"{value:.4g}", more_is_better=False)


def dot(name: str, x: float | None, y: float | None, about: float = 0.02) -> Dot:
    ends = [None if value is None else (value, max(value - about, 0.0), value + about) for value in (x, y)]
    estimates = [Estimate(None) if one is None else Estimate(*one) for one in ends]
    return Dot(strategy=name, words=name, radius=5.0, x=estimates[0], y=estimates[1], about=f"{name} here")


def drawn(dots: list[Dot], axes: tuple[Axis, Axis] = (PERCENT, PERCENT)) -> str:
    return scatter("plot", "A plot", dots, axes, marks([one.strategy for one in dots]), [("edge small", 5.0)])


@given(
    st.lists(
        st.builds(
            Spot,
            st.floats(0, 700),
            st.floats(0, 400),
            st.floats(3, 10),
            st.sampled_from(["random", "step_routing:redacted", "中文"]),
        ),
        max_size=18,
    )
)
def test_labels_lie_on_no_label_no_point_and_within_the_frame(spots: list[Spot]) -> None:
    boxes = [box for box in place(spots, FRAME, 12) if box is not None]
    points = [Box(s.x - s.radius, s.y - s.radius, s.x + s.radius, s.y + s.radius) for s in spots]
    assert not any(one.meets(other) for one, other in itertools.combinations(boxes, 2))
    assert not any(box.meets(point) for box in boxes for point in points)
    assert all(box.inside(FRAME) for box in boxes)


def test_points_at_one_place_all_get_their_labels() -> None:
    assert None not in place([Spot(350, 200, 5, f"strategy_{n}") for n in range(18)], FRAME, 12)


def test_width_of_chinese_is_that_of_squares() -> None:
    assert width_of("中文", 12) == 24
    assert width_of("iii", 12) < width_of("nnn", 12) < width_of("mmm", 12)


def test_variants_share_a_color_and_every_strategy_has_its_own_look() -> None:
    names = ["a", "a:redacted", "a:x=1", "b", "c", "d", "e", "f", "g", "h"]
    found = marks(names)
    assert len(set(found.values())) == len(names)
    assert len({found[name].color for name in names[:3]}) == 1
    assert (found["a"].filled, found["a:redacted"].filled) == (True, False)


def test_front_goes_over_the_points_that_no_other_beats() -> None:
    svg = drawn([dot("low", 0.2, 0.9), dot("beaten", 0.15, 0.5), dot("high", 0.8, 0.6)])
    assert "On the front, as (x, y): low (20, 90), high (80, 60)." in svg
    steps = re.findall(r'<path d="([^"]+)"', svg)
    assert len(steps) == 1 and steps[0].count("H") == 1


def test_where_less_is_better_the_front_goes_the_other_way() -> None:
    svg = drawn([dot("dear", 0.8, 0.9), dot("cheap", 0.1, 0.5), dot("beaten", 0.9, 0.4)], (DOLLARS, PERCENT))
    assert "On the front, as (x, y): cheap (0.1, 50), dear (0.8, 90)." in svg


def test_point_without_a_mean_is_left_out() -> None:
    svg = drawn([dot("there", 0.5, 0.5), dot("not_there", None, 0.5)])
    assert "not_there" not in svg and "there here" in svg


@pytest.mark.parametrize("dots", [[dot("one", 0.5, 0.5, 0)], [dot("zero", 0.0, 0.0, 0)], [dot("all", 1.0, 1.0, 0)], []])
def test_few_or_equal_points_make_a_plot(dots: list[Dot]) -> None:
    root = ElementTree.fromstring(drawn(dots))
    values = [float(end.get(key, 0)) for end in root.iter() for key in ("x", "x1", "x2", "cx") if end.get(key)]
    assert len(values) > 4 and all(0 <= value <= 840 for value in values)


def test_intervals_are_drawn_where_they_are() -> None:
    with_ends = drawn([dot("a", 0.5, 0.5)])
    without = drawn([Dot(strategy="a", words="a", radius=5.0, x=Estimate(0.5), y=Estimate(0.5), about="a")])
    assert with_ends.count('opacity="0.5"') == 2 and without.count('opacity="0.5"') == 0


def test_file_of_a_plot_has_plain_colors_and_is_well_formed() -> None:
    svg = standalone(drawn([dot("<script>", 0.5, 0.5), dot("中文", 0.6, 0.4)]))
    root = ElementTree.fromstring(svg)
    assert "var(" not in svg and LIGHT["s0"] in svg
    assert root.get("role") == "img"
    assert {child.tag.rpartition("}")[2] for child in list(root)[:3]} == {"title", "desc", "rect"}
    assert "<script>" not in svg and "中文" in svg


def test_heat_map_says_its_extremes_and_shows_every_value() -> None:
    rows = [("one", [Tile(0.25, "a"), Tile(None, "b")]), ("two", [Tile(0.8, "c"), Tile(0.5, "d")])]
    svg = heatmap("heat", "Heat", Heat(columns=["left\n3 episodes", "right"], sections=[("models", rows)], unit="share, %"))
    assert "Lowest: 25 for one, models, left 3 episodes; highest: 80 for two, models, left 3 episodes." in svg
    shown = [element.text for element in ElementTree.fromstring(svg).iter() if element.tag.endswith("}text")]
    assert [words for words in shown if words in ("25", "80", "50", "-")][:4] == ["25", "-", "80", "50"]


@pytest.mark.parametrize("values", [[0.0, 0.0], [1.0, 1.0], [None, None], [0.42, 0.42]])
def test_heat_map_of_equal_values_has_a_scale(values: list[float | None]) -> None:
    tiles = [Tile(value, "about") for value in values]
    assert ElementTree.fromstring(heatmap("h", "H", Heat(columns=["a", "b"], sections=[("", [("row", tiles)])], unit="%")))


def contrast(one: str, other: str) -> float:
    """Returns the contrast of two colors as WCAG 2.2 defines it."""

    def luminance(color: str) -> float:
        parts = [int(color[n : n + 2], 16) / 255 for n in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_numbers_can_be_read_on_every_shade() -> None:
    assert min(contrast(*shade(step / 200)) for step in range(201)) >= 4.5


@pytest.mark.parametrize("colors", [LIGHT, DARK], ids=["light", "dark"])
def test_texts_and_marks_stand_out_from_the_paper(colors: dict[str, str]) -> None:
    assert min(contrast(colors[name], colors["paper"]) for name in ("ink", "soft", "accent", "warn")) >= 4.5
    assert min(contrast(colors[name], colors["band"]) for name in ("ink", "soft")) >= 4.5
    assert min(contrast(color, colors["paper"]) for name, color in colors.items() if re.fullmatch(r"s\d", name)) >= 3


@pytest.mark.parametrize(("value", "words"), [(1.0, "1"), (1.25, "1.2"), (-0.04, "-0"), (10.06, "10.1")])
def test_coordinates_are_short(value: float, words: str) -> None:
    assert number(value) == words
