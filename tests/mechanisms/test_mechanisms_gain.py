"""Columns by gain: what one row moves in a round, what is paid, forward selection, copies."""

import math
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.design.regression import box_design
from dpmodels.errors import ArgumentError, BudgetError, FormulaError, NotAvailable
from dpmodels.formula.response import two_sided
from dpmodels.mechanisms import association_score, selection_plan
from dpmodels.mechanisms.add_noise import add_noise
from dpmodels.mechanisms.association_score import GainScore
from dpmodels.mechanisms.protocol import Ranked
from dpmodels.mechanisms.selection import Peeling, PermuteAndFlip
from dpmodels.mechanisms.selection_plan import SelectionFacts
from dpmodels.noise import source
from dpmodels.privacy import ZCDP, ApproxDP, PureDP, adjacency, total_eps, total_rho
from dpmodels.statistics.associations import (
    PARTS,
    ReleasedFit,
    residual_change,
    residual_products,
    residual_scatter,
    scatters,
)

BOOK = dp.codebook(y=(-1, 1), a=(-1, 1), b=(-1, 1))
SCORE = GainScore(2)
# Ends of all ranges, beyond them, the middle, and an incomplete row.
ROWS = [*product((-1, 1), repeat=3), (9, -9, 9), (0, 0, 0), (None, 1, 1)]
RELATIONS = ("replace", "add-remove")
FITS = [
    ReleasedFit(0),
    ReleasedFit(-PARTS * SCORE.limit // 3, (1,), (PARTS // 2,)),
    ReleasedFit(PARTS * 5000 + 1, (0, 1), (-3 * PARTS - 1, 17)),
]


def facts_of(relation, n_selected=2, share=0.25, size=2):
    return SelectionFacts(GainScore(size), n_selected, None, share, adjacency(relation))


def measured(rows, relation):
    data = {name: [row[at] for row in rows] for at, name in enumerate("yab")}
    design = box_design(two_sided("y ~ a + b", BOOK)).bind(data)
    return SCORE.measure(design, facts_of(relation)).cross()[0]


def neighbours(relation):
    """Exact integers of neighbours: all rows beside up to five others at the ends of all ranges."""
    bases = [ROWS[:8:3], ROWS[1:8:5]]
    for base in (c for k in (0, 1, 3, 5) for some in bases for c in _some(some, k)):
        answers = [measured([*base, row], relation) for row in ROWS]
        if relation == "add-remove":
            alone = measured(list(base), relation)
            yield from ((answer, alone) for answer in answers)
        else:
            yield from combinations_with_replacement(answers, 2)


def _some(rows, number):
    return list(combinations_with_replacement(rows, number))[:3]


@pytest.mark.product
@pytest.mark.parametrize("relation", RELATIONS)
def test_neighbours_move_a_round_no_further_than_declared_and_one_does(relation):
    """Brute force, given what was released: products, the sums of a coefficient, moments."""
    neighbour_kind, limit = adjacency(relation), SCORE.limit
    farthest, moment = dict.fromkeys(range(3), 0.0), 0.0
    for first, second in neighbours(relation):
        for at, fit in enumerate(FITS):
            change, longest = (
                residual_change(neighbour_kind, limit, fit),
                -(-fit.longest(limit) // PARTS),
            )
            products = [np.abs(residual_products(exact, fit)) for exact in (first, second)]
            farthest[at] = max(farthest[at], np.abs(products[0] - products[1]).max() / change)
            sums = [residual_products(exact, fit) // PARTS for exact in (first, second)]
            places = 2 if neighbour_kind.n_public else 1
            assert np.abs(sums[0] - sums[1]).max() <= places * limit * longest
            assert np.abs(first[0, 1:-1] - second[0, 1:-1]).max() <= places * limit
            squares = [longest * exact.diagonal()[1:-1] // limit for exact in (first, second)]
            assert np.abs(squares[0] - squares[1]).max() <= limit * longest
            shared = [
                [residual_scatter(exact, fit, at) for at in range(2)] for exact in (first, second)
            ]
            moment = max(moment, np.abs(np.subtract(*shared)).max())
    assert all(0.5 < distance <= 1 for distance in farthest.values())
    assert farthest[0] == 1
    assert 0.7 * 4 * limit**2 < moment <= 4 * limit**2


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_scores_of_each_round_have_the_width_of_its_residuals(relation):
    rows = [(1, 1, 1), (-1, 1, 0), (1, 0.5, -1), (0.2, -1, 1)] * 50
    exact, facts = measured(rows, relation), facts_of(relation)
    plan = Peeling().plan(facts, ZCDP(100.0))
    with dp.simulation(seed=1):
        ranked = SCORE.ranked(exact, facts, plan.bought, source())
        for place in (1, 0, None):
            fit = ranked.about.fits[-1]
            assert ranked.width == 2 * residual_change(facts.adjacency, SCORE.limit, fit)
            weights = ranked.about.spread.weights
            assert (weights <= 2**16).all()
            expected = np.abs(residual_products(exact, fit)) * weights // 2**16
            assert ranked.scores.tolist() == expected.tolist()
            assert not ranked.monotone
            ranked = ranked if place is None else ranked.after(place)
    assert ranked.about.fits[-1].places == (1, 0)


@pytest.mark.parametrize(("guarantee", "ones"), [(PureDP(2.0), 3), (ZCDP(0.5), math.sqrt(3))])
@pytest.mark.parametrize("relation", RELATIONS)
def test_a_coefficient_has_the_noise_of_the_longest_residual(
    relation, guarantee, ones, monkeypatch
):
    """What noise is added to, and of which scale, in the second round too."""
    scales = []

    def recorded(exact, scale, entropy, law):
        if exact.size == 3:  # a coefficient's product, sum and square; others are numbers of rows
            scales.append((exact.tolist(), scale))
        return add_noise(exact, scale, entropy, law)

    monkeypatch.setattr(association_score, "add_noise", recorded)
    rows = [(1, 1, 1), (-1, 1, 0), (1, 0.5, -1), (0.2, -1, 1)] * 50
    exact, facts = measured(rows, relation), facts_of(relation)
    plan = Peeling().plan(facts, guarantee)
    multiplier = plan.events[-1].multiplier
    with dp.simulation(seed=1):
        ranked = SCORE.ranked(exact, facts, plan.bought, source())
        for place in (1, 0):
            fit, limit = ranked.about.fits[-1], SCORE.limit
            longest = -(-fit.longest(limit) // PARTS)
            ranked = ranked.after(place)
            sums, scale = scales.pop()
            x, square = exact[0, place + 1], exact[place + 1, place + 1]
            product = residual_products(exact, fit)[place] // PARTS
            assert sums == [product, longest * x, longest * square // limit]
            change = (2 if relation == "replace" else 1) * limit * longest
            assert scale == pytest.approx(multiplier * ones * change, rel=1e-9)
    assert not scales


def test_the_stated_scale_is_the_largest_of_all_draws(monkeypatch):
    rounds, plans, release_of = [], [], selection_plan.drawn

    def ranked(*fields, **options):
        rounds.append(Ranked(*fields, **options))
        return rounds[-1]

    def planned(info, plan, *rest):
        plans.append(plan)
        return release_of(info, plan, *rest)

    monkeypatch.setattr(association_score, "Ranked", ranked)
    monkeypatch.setattr(selection_plan, "drawn", planned)
    words = {"codebook": MANY, "eps": 20.0, "k": 3, "score": "gain"}
    with dp.simulation(seed=1):
        release = dp.dp_select("y ~ .", planted(300, 3), **words).release
    scales = [ranks.width / plans[-1].eps / ranks.unit for ranks in rounds[:3]]
    assert release.scale == pytest.approx(max(scales), rel=1e-9)


@pytest.mark.parametrize("guarantee", [PureDP(1.0), ZCDP(0.1), ApproxDP(1.0, 1e-6)])
@pytest.mark.parametrize("strategy", [Peeling(), PermuteAndFlip()])
def test_prices_add_up_to_the_budget(guarantee, strategy):
    for n_selected, share in ((1, 0.0), (5, 0.25), (40, 0.5)):
        plan = strategy.plan(facts_of("replace", n_selected, share, 40), guarantee)
        draws = next(event for event in plan.events if hasattr(event, "eps"))
        fits = plan.events[-1]
        assert (draws.count, fits.count) == (n_selected, n_selected)
        if isinstance(guarantee, PureDP):
            assert 1 - 1e-9 < total_eps(plan.events, 0.0) <= 1
        elif isinstance(guarantee, ZCDP):
            assert 0.1 * (1 - 1e-9) < total_rho(plan.events) <= 0.1
        else:
            assert 0.5 < total_eps(plan.events, 1e-6) <= 1


def planted(n, seed):
    """Rows of six columns; b is a with some noise, y is of a, c and d."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 6)).clip(-3, 3)
    x[:, 1] = (x[:, 0] + 0.3 * rng.normal(size=n)).clip(-3, 3)
    x[:, 4] = rng.random(n) < 0.3
    x[:, 5] = rng.exponential(size=n).clip(0, 3)
    y = (x @ [1.2, 0.0, 0.6, -0.5, 0.0, 0.0] + rng.normal(size=n)).clip(-6, 6)
    return {"y": y, **dict(zip("abcdef", x.T, strict=True))}


MANY = dp.codebook(y=(-6, 6), e=(0, 1), f=(0, 3)) | dp.codebook.uniform([*"abcd"], (-3, 3))


def pursued(rows, names, k):
    """Matching pursuit by floats: names, shares taken off, coefficients."""
    x = np.array([rows[name] - rows[name].mean() for name in names])
    residual = left = rows["y"] - rows["y"].mean()
    selected, free = [], list(range(len(names)))
    for _ in range(k):
        best = max(free, key=lambda at: (x[at] @ left) ** 2 / (x[at] @ x[at]))
        free.remove(best)
        slope = x[best] @ left / (x[best] @ x[best])
        selected.append(
            (names[best], slope**2 * (x[best] @ x[best]) / (residual @ residual), slope)
        )
        left = left - slope * x[best]
    return selected


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_huge_budget_gives_matching_pursuit(relation):
    rows = planted(3000, 3)
    words = {"codebook": MANY, "eps": 1e9, "adjacency": relation}
    fit = dp.dp_select("y ~ .", rows, k=6, score="gain", **words)
    names, shares, slopes = zip(*pursued(rows, "abcdef", 6), strict=True)
    assert fit.selected == names
    assert fit.values.tolist() == pytest.approx(shares, abs=1e-4)
    widths = np.array([{"e": 0.5, "f": 1.5}.get(name, 3.0) for name in names]) / 6
    assert fit.release.slopes.tolist() == pytest.approx(slopes * widths, abs=1e-3)
    assert fit.cumulative()["r_squared"].tolist() == pytest.approx(np.cumsum(shares), abs=5e-4)


@pytest.mark.product
def test_a_copy_is_not_named_beside_what_it_is_a_copy_of():
    """Correlations name both; of 20 releases by gain none does."""
    rows = planted(40_000, 4)
    words = {"codebook": MANY, "k": 3, "eps": 3.0, "delta": 1e-6}
    with dp.simulation(seed=5):
        alone = [dp.dp_select("y ~ .", rows, score="correlation", **words) for _ in range(5)]
        added = [dp.dp_select("y ~ .", rows, score="gain", **words) for _ in range(20)]
    assert all({"a", "b"} <= set(fit.selected) for fit in alone)
    assert not any({"a", "b"} <= set(fit.selected) for fit in added)
    assert sum({"c", "d"} <= set(fit.selected) for fit in added) >= 18


@pytest.mark.product
def test_gains_of_the_released_fit_are_within_their_intervals():
    """At 95 percent each: of 200 intervals at least 169 hold, but once in a million."""
    rows, covered = planted(3000, 6), []
    x = {name: (rows[name] - rows[name].mean()) / 3 for name in "acd"}
    y = (rows["y"] - rows["y"].mean()) / 6
    with dp.simulation(seed=7):
        for _ in range(100):
            fit = dp.dp_select("y ~ a + c + d", rows, codebook=MANY, k=2, score="gain", eps=8.0)
            left, ends = y, fit.noise_int()
            for name, slope in zip(fit.selected, fit.release.slopes, strict=True):
                after = left - slope * x[name]
                gain = (left @ left - after @ after) / (y @ y)
                covered.append(ends.lower[name] <= gain <= ends.upper[name])
                left = after
    assert sum(covered) >= 169


@pytest.mark.parametrize(
    ("formula", "words", "message"),
    [
        ("y ~ a + b", {"k": 3}, "k="),
        ("~ cut(y, [-1, 0, 1])", {}, "gain"),
        ("y ~ a + b", {"threshold": 0.1}, "write k="),
        ("y ~ a + b", {"mechanism": "sparse_vector"}, "threshold"),
        ("y ~ a + b", {"mechanism": "noisy_counts"}, "levels|counts"),
        ("y ~ a", {}, "two at"),
    ],
)
def test_what_cannot_be_ranked_by_gain_is_refused(formula, words, message):
    with pytest.raises((ArgumentError, FormulaError), match=message):
        dp.dp_select(
            formula, {"y": [1], "a": [0], "b": [1]}, codebook=BOOK, eps=1.0, score="gain", **words
        )


def test_too_many_columns_and_too_small_a_budget_are_refused():
    wide = dp.codebook.uniform([f"x{i}" for i in range(301)], (0, 1)) | dp.codebook(y=(0, 1))
    with pytest.raises(ArgumentError, match="300 columns at most"):
        dp.dp_select("y ~ .", {name: [0] for name in wide}, codebook=wide, eps=1.0, score="gain")
    with pytest.raises(BudgetError, match="larger eps"):
        Peeling().plan(facts_of("replace", 40, 0.25, 40), PureDP(1e-4))


def test_exact_moments_of_what_is_named_are_those_of_the_scatters():
    exact = measured([(1, 1, 1), (-1, 1, 0), (1, 0.5, -1)] * 4, "replace")
    lines = np.stack([exact[0], exact.diagonal(), exact[-1]])
    about_mean = [residual_scatter(exact, ReleasedFit(12345), at) for at in range(2)]
    n = int(exact[0, 0])
    expected = [(n * exact[-1, at] - exact[0, at] * exact[0, -1]) // n for at in (1, 2)]
    assert about_mean == expected
    assert scatters(lines).tolist() == [
        (n * exact[at, at] - exact[0, at] ** 2) // n for at in (1, 2)
    ]


def test_running_sums_are_of_gains_alone():
    rows = planted(3000, 8)
    words = {"codebook": MANY, "k": 2, "eps": 20.0}
    with pytest.raises(NotAvailable, match="score='gain'"):
        dp.dp_select("y ~ .", rows, **words).cumulative()
    with pytest.raises(NotAvailable, match="values=True"):
        dp.dp_select("y ~ .", rows, score="gain", values=False, **words).cumulative()
    fit = dp.dp_select("y ~ .", rows, score="gain", **words)
    text = " ".join(str(fit.summary(notes="all")).split())
    assert "R2 so far" in text
    assert "the residual of the columns selected before" in text
    assert fit.tidy()["r_squared"].tolist() == fit.values.cumsum().tolist()
