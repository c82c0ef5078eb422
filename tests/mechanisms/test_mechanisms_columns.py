"""Columns ranked by a response: what one row moves, sparse vectors by enumeration, reports."""

import math
from dataclasses import replace
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design.regression import box_design
from dpmodels.formula.response import two_sided
from dpmodels.mechanisms.association_score import AssociationScore, BoughtMoments, released_spreads
from dpmodels.mechanisms.clipping_shells import sparse_scales
from dpmodels.mechanisms.selection import auto_selection
from dpmodels.mechanisms.selection_plan import SelectionFacts
from dpmodels.noise import source
from dpmodels.privacy import ApproxDP, LaplaceEvent, PureDP, adjacency
from dpmodels.statistics.associations import FINE, product_change

BOOK = dp.codebook(y=(-1, 1), a=(-1, 1), b=(-1, 1))
SCORE = AssociationScore(2, "correlation")
SILENT = BoughtMoments(*[2.0**-7] * 4, (LaplaceEvent(1.0),), 1.0)
# Ends of all ranges, beyond them, the middle, and an incomplete row.
ROWS = [*product((-1, 1), repeat=3), (9, -9, 9), (0, 0, 0), (None, 1, 1)]


def facts_of(relation, n_selected=2, threshold=None):
    return SelectionFacts(SCORE, n_selected, threshold, 0.5, adjacency(relation))


@pytest.mark.parametrize("reach", [0.25, 1.0])
def test_the_smallest_spread_keeps_the_noise_of_scores_far_below_a_correlation(reach):
    """So that a tenth of a correlation of the smallest spread is as large as the search's noise."""
    rows = [(y, x, 0) for y in (-0.5, 0.5) for x in (-1, 1)] * 50
    data = {name: [row[at] for row in rows] for at, name in enumerate("yab")}
    design = box_design(two_sided("y ~ a + b", BOOK)).bind(data)
    exact, _ = SCORE.measure(design, facts_of("replace")).cross()
    bought = replace(SILENT, reach=reach)
    with dp.simulation(seed=1):
        about = released_spreads(exact, SCORE.limit, facts_of("replace"), bought, source())
    change = product_change(adjacency("replace"), SCORE.limit, about.centre) / FINE
    floor = 10 * reach * change / (len(rows) * SCORE.limit**2 * about.response)
    assert about.floor == pytest.approx(floor, rel=0.05)
    assert about.columns == pytest.approx([1.0, about.floor], rel=0.05)


def crossed(rows, relation):
    """Scores about the exact mean, or nearly, and exact moments of both columns."""
    data = {name: [row[at] for row in rows] for at, name in enumerate("yab")}
    facts = facts_of(relation)
    design = box_design(two_sided("y ~ a + b", BOOK)).bind(data)
    exact, _ = SCORE.measure(design, facts).cross()
    with dp.simulation(seed=1):
        ranked = SCORE.ranked(exact, facts, SILENT, source())
        release = SCORE.valued(exact, ranked, np.arange(2), SILENT, source())
    moments = np.array([*release["values"], *release["scatters"], release["response"]])
    return exact, ranked, np.rint(moments * SCORE.limit**2)


def test_moments_of_every_column_are_about_its_mean():
    """Sums of products, and of squares, about the means of these rows, with noise of 1 step."""
    rows = np.array([(1, 1, -0.5), (-0.5, 1, 0.25), (0.25, -1, 1), (0.5, 0.5, 0.5)] * 5)
    _, _, moments = crossed(rows.tolist(), "replace")
    y, a, b = (rows - rows.mean(axis=0)).T
    expected = np.array([y @ a, y @ b, a @ a, b @ b, y @ y]) * SCORE.limit**2
    # Each coordinate is rounded to a step.
    np.testing.assert_allclose(moments, expected, atol=2 * len(rows) * SCORE.limit)


@pytest.mark.product
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_neighbours_move_scores_and_moments_no_farther_than_declared(relation):
    """Brute force: all rows beside up to three others at the ends of all ranges."""
    facts, limit = facts_of(relation), SCORE.limit
    farthest = np.zeros(5)
    for base in (c for k in (0, 1, 3) for c in combinations_with_replacement(ROWS[:8:3], k)):
        answers = [crossed([*base, row], relation) for row in ROWS]
        pairs = list(combinations_with_replacement(answers, 2))
        if relation == "add-remove":
            alone = crossed(list(base), relation)
            pairs = [(answer, alone) for answer in answers]
        for first, second in pairs:
            farthest = np.maximum(farthest, np.abs(first[2] - second[2]))
            for centre in (0, -(2**10) * limit // 3):
                change = _about(first[0], centre) - _about(second[0], centre)
                assert np.abs(change).max() <= product_change(facts.adjacency, limit, centre)
    # Noise of the silent moments is 0 but once in e**128.
    assert (farthest <= 4 * limit**2).all()
    assert farthest.max() > 0.7 * 4 * limit**2


def _about(exact, centre):
    return np.abs((2**10 * exact[2, 1:-1] - centre * exact[0, 1:-1]).astype(float))


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_the_range_of_the_scores_is_twice_what_a_row_moves_each(relation):
    rows = [(1, 1, 1), (-1, 1, 0), (1, 0.5, -1)] * 4
    _, ranked, _ = crossed(rows, relation)
    middle = adjacency(relation)
    assert ranked.width == 2 * product_change(middle, SCORE.limit, ranked.about.centre)
    assert ranked.about.centre == pytest.approx(2**10 * SCORE.limit / 3, rel=1e-3)
    assert not ranked.monotone


def laplace(scale, places):
    ratio = math.exp(-1 / scale)
    return (1 - ratio) / (1 + ratio) * ratio ** np.abs(places)


def named(scores, named_above, scales, limit):
    """The probability that of some scores those found are above a threshold of 0, in their order.

    Nothing behind the last that may be found is looked at.
    """
    assert sum(named_above) == limit or len(named_above) == len(scores)
    reach = np.arange(-400, 401)
    above = laplace(scales.number, reach)[::-1].cumsum()[::-1]
    places = np.clip(reach[:, None] - np.array(scores[: len(named_above)]) + 400, 0, 800)
    chances = np.where(named_above, above[places], 1 - above[places])
    return float(laplace(scales.threshold, reach) @ chances.prod(axis=1))


@pytest.mark.parametrize("monotone", [True, False])
@pytest.mark.parametrize("limit", [1, 2])
def test_neighbours_of_a_search_for_several_are_within_eps(monotone, limit):
    """All that one row can do to few scores; with many before those found nearly eps."""
    eps = 1.0
    scales = sparse_scales(eps, monotone=monotone, answers=limit)
    few = [named_above for named_above in product((0, 1), repeat=3) if sum(named_above) <= limit]
    few = [
        named_above[: 3 - named_above[::-1].index(1)] if sum(named_above) == limit else named_above
        for named_above in few
    ]
    for change, named_above in product(product((0, 1) if monotone else (-1, 0, 1), repeat=3), few):
        values = [
            named(np.add((2, -1, 1), step), named_above, scales, limit) for step in (0, change)
        ]
        assert abs(math.log(values[0] / values[1])) <= eps
    numbers, named_above = np.repeat([30, -30], [60, limit]), np.repeat([0, 1], [60, limit])
    change = np.repeat([1, 0 if monotone else -1], [60, limit])
    chances = [named(scores, named_above, scales, limit) for scores in (numbers, numbers + change)]
    assert 0.9 * eps < math.log(chances[0] / chances[1]) <= eps


def test_more_names_take_more_noise_on_each_score():
    single, three = (sparse_scales(1.0, monotone=False, answers=limit) for limit in (1, 3))
    assert three.number > single.number
    # The least variance of the difference: scales as the cube root of the answers each has.
    assert three.number / three.threshold == pytest.approx((2 * 3) ** (1 / 3))


def test_a_search_stops_at_the_most_and_goes_by_the_order_of_the_formula():
    rng = np.random.default_rng(1)
    y = rng.choice([0.0, 1.0], 4000)
    rows = {"y": y, "a": rng.choice([0.0, 1.0], 4000), "b": y, "c": 1 - y, "d": y}
    book = dp.codebook(y=(0, 1), a=(0, 1), b=(0, 1), c=(0, 1), d=(0, 1))
    words = {"codebook": book, "eps": 5.0, "threshold": 0.3}
    fit = dp.dp_select("y ~ .", rows, most=2, score="correlation", **words)
    assert fit.selected == ("b", "c")
    assert fit.values.tolist() == pytest.approx([1, -1], abs=0.1)
    assert "at most the 2 first in the order of the formula" in " ".join(str(fit.summary()).split())


@pytest.mark.product
def test_correlations_are_those_of_these_rows_within_their_intervals():
    """At 95 percent each: of 200 intervals at least 169 hold, but once in a million."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(3000, 2)).clip(-2, 2)
    rows = {"a": x[:, 0], "b": x[:, 1], "y": (x @ [1.0, -0.5]).clip(-3, 3)}
    book = dp.codebook(y=(-3, 3), a=(-2, 2), b=(-2, 2))
    exact = {name: np.corrcoef(rows[name], rows["y"])[0, 1] for name in "ab"}
    covered = []
    with dp.simulation(seed=6):
        for _ in range(100):
            fit = dp.dp_select("y ~ a + b", rows, codebook=book, k=2, eps=4.0, delta=1e-6)
            ends = fit.noise_int()
            covered += [ends.lower[name] <= exact[name] <= ends.upper[name] for name in "ab"]
    assert sum(covered) >= 169
    assert fit.selected == ("a", "b")


def test_many_columns_are_peeled_and_one_is_flipped():
    score = AssociationScore(100, "z")
    few, several = (
        SelectionFacts(score, n_selected, None, 0.5, adjacency("replace")) for n_selected in (1, 20)
    )
    assert auto_selection(few, ApproxDP(1.0, 1e-6))[0] == "permute_and_flip"
    assert auto_selection(several, ApproxDP(1.0, 1e-6))[0] == "peeling"
    assert auto_selection(several, PureDP(1.0))[0] == "permute_and_flip"


def test_a_column_without_spread_has_no_correlation():
    rows = {"y": [0, 1] * 500, "a": [3.0] * 1000, "b": [0, 1] * 500}
    book = dp.codebook(y=(0, 1), a=(0, 9), b=(0, 1))
    fit = dp.dp_select("y ~ a + b", rows, codebook=book, k=2, eps=2.0)
    assert fit.selected[0] == "b"
    assert math.isnan(fit.values["a"])
    assert fit.noise_int().loc["a"].tolist() == [-1, 1]
    assert "declare narrower bounds" in " ".join(str(fit.summary()).split())


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_the_width_of_scores_is_that_of_all_changes_of_a_row(relation):
    """Products x y of ends, by enumeration: from the largest fall to the largest rise."""
    ends = [*product((-1, 1), repeat=2), (0, 0)]
    products = [x * y for x, y in ends]
    without = products if relation == "replace" else [0]
    changes = [after - before for before in products for after in without]
    changes += [-change for change in changes]
    assert SCORE.width(adjacency(relation)) == max(changes) - min(changes)
