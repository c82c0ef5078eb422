"""Rounds for means of few rows: a look, numbers of rows by cell, and a draw of the range."""

import math
from itertools import product

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.formula.sides import one_measured, parse_sides
from dpmodels.formula.tally import Tally
from dpmodels.mechanisms.count_noise import one_mean
from dpmodels.mechanisms.counts import Rounds
from dpmodels.mechanisms.counts.ranges import (
    LEAST_DRAWN,
    _cell_counts,
    _cells_plan,
    _draw_eps,
    _draw_share,
    _drawn,
    _inner_rows,
    _parts_plan,
    part_without_delta,
    range_shares,
)
from dpmodels.mechanisms.protocol import CountFacts
from dpmodels.noise import source
from dpmodels.postprocess.ranges import CellNoise, Windows, beyond_range, range_cells
from dpmodels.privacy import ZCDP, ApproxDP, PureDP, adjacency, total_eps, total_rho
from dpmodels.privacy.compose import pure_mu
from tests.private_rows import private_cells

BOOK = dp.codebook(y=(-900, 900), g=["u", "v"])
SHARES = (0.048, 0.2, 0.35)
GUARANTEES = (PureDP(0.3), ApproxDP(0.3, 1e-6), ZCDP(0.05))


def measured(rows, guarantee, relation="replace", formula="~ y"):
    sides = parse_sides(formula, BOOK)
    number, factors = one_measured(sides, "dp_mean")
    tally = Tally(factors, number, 2)
    facts = CountFacts(1, tally.size, True, adjacency(relation))
    strategy = Rounds(shares=SHARES)
    plan = strategy.plan(facts, guarantee)
    return strategy.measure(private_cells(formula, rows, sides.codebook, (tally,)), plan), plan


def spent(plan, events):
    rho = isinstance(plan.guarantee, ZCDP)
    return total_rho(events) if rho else total_eps(events, 0.0)


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_no_branch_spends_more_than_is_charged(guarantee, relation):
    facts = CountFacts(1, 4, True, adjacency(relation))
    plan = Rounds(shares=SHARES).plan(facts, guarantee)
    granted = guarantee.rho if isinstance(guarantee, ZCDP) else guarantee.eps
    assert math.isclose(spent(plan, plan.events), granted, rel_tol=1e-9)
    look, count, rest = SHARES
    assert sum(event.count for event in plan.events[len(plan.first.events) :]) == 1
    events = (*plan.first.events, *_parts_plan(facts, guarantee, look).events)
    assert spent(plan, events) <= granted * (1 + 1e-9)
    for width in (1.0, 200.0, 1e9):
        share = _draw_share(plan, width, rest, 2)
        assert LEAST_DRAWN <= share <= rest
        cells, parts = (
            _cells_plan(facts, guarantee, count),
            _parts_plan(facts, guarantee, look + count + share),
        )
        eps = _draw_eps(guarantee, share)
        price = pure_mu(eps / 2) ** 2 / 2 if isinstance(guarantee, ZCDP) else eps
        events = (*plan.first.events, *cells.events, *parts.events)
        assert spent(plan, events) + price <= granted * (1 + 1e-9)


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_draw_costs_a_little_less_than_its_share(guarantee):
    eps, part = _draw_eps(guarantee, 0.2), part_without_delta(guarantee, 0.2)
    is_rho = isinstance(part, ZCDP)
    price, limit = (pure_mu(eps / 2) ** 2 / 2, part.rho) if is_rho else (eps, part.eps)
    assert limit * (1 - 1e-8) < price < limit


def laplace_loss(eps, pieces=1_000):
    """Privacy losses of a number with Laplace noise, and their probabilities."""
    at = (np.arange(pieces) + 0.5) / pieces
    losses = np.concatenate([eps * (1 - 2 * at), [eps, -eps]])
    density = eps / 2 * np.exp(-eps * at) / pieces
    return losses, np.concatenate([density, [0.5, math.exp(-eps) / 2]])


@pytest.mark.parametrize(("a", "b"), [(0.1, 0.2), (0.5, 0.5), (0.2, 3.0), (2.0, 2.5)])
def test_two_rounds_tell_no_more_than_one_with_both_budgets(a, b):
    """Hockey-stick divergences, by sums over losses; their error is below 1e-5."""
    (first, p), (two, q) = laplace_loss(a), laplace_loss(b)
    losses, probability = first[:, None] + two, p[:, None] * q
    for t in np.linspace(0, a + b, 21):
        joint_delta = (probability * np.maximum(1 - np.exp(t - losses), 0)).sum()
        assert joint_delta <= 1 - math.exp((t - a - b) / 2) + 1e-5
        if t <= b - a:
            proved = 1 - (1 + a / 2) * math.exp((t - a - b) / 2)
        else:
            c = t - b
            proved = 1 - math.exp((c - a) / 2) * (1 + (a - c) / 4)
        assert joint_delta == pytest.approx(proved, abs=1e-5)


def test_a_release_of_bounded_range_tells_no_more_than_laplace_noise():
    """Of all pairs of coins whose log odds differ by a: Theorem 67, on a grid."""
    for a in (0.01, 0.3, 1.0, 4.0):
        first = np.linspace(0, a, 201)[:, None]
        head = -np.expm1(first - a) / -np.expm1(-a)
        t = np.linspace(-a, a, 101)
        losses = head * np.maximum(1 - np.exp(t - first), 0)
        losses = losses + (1 - head) * np.maximum(1 - np.exp(t - first + a), 0)
        laplace = 1 - np.exp((t - a) / 2)
        assert (losses <= laplace + 1e-12).all()


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_neighbours_are_within_the_range_of_a_draw(guarantee, relation, monkeypatch):
    """Brute force: exact logarithms of the probabilities of all windows."""
    laws = []

    def record(levels, unit, entropy):
        logs = -np.array([float(unit * int(level)) for level in levels - levels.min()])
        laws.append(logs - np.log(np.exp(logs).sum()))
        return 0

    monkeypatch.setattr("dpmodels.mechanisms.counts.ranges.draw_finite", record)
    values = (-1e9, -900, -450, -3, 0, 1e-9, 7, 99, 450, 1e9, None)
    base = [0, 5, -700]
    tables = [[*base, value] for value in values] + ([base] if relation == "add-remove" else [])
    eps = _draw_eps(guarantee, 0.2)
    for rows in tables:
        statistic, _ = measured({"y": rows}, guarantee, relation)
        _drawn(statistic, Windows(-900.0, 900.0, 1, 20.0), eps, source())
    alternatives = laws if relation == "replace" else laws[-1:]
    lengths = [np.ptp(law - two) for law, two in product(laws, alternatives)]
    assert 0.99 * eps <= max(lengths) <= eps * (1 + 1e-9)


@pytest.mark.parametrize("bounds", [(-900.0, 900.0), (0.0, 5.0), (18.0, 95.0), (-3.0, 200.0)])
def test_windows_are_nested_about_the_anchor_and_cost_more_as_they_grow(bounds):
    windows = Windows(*bounds, 2, 40.0)
    lows, highs = windows.bounds.T
    assert (lows[0], highs[0]) == bounds
    assert (np.diff(lows) >= 0).all()
    assert (np.diff(highs) <= 0).all()
    assert (np.diff(windows.costs) < 0).all()
    values = np.random.default_rng(0).uniform(*bounds, 500)
    counts = np.histogram(values, windows.edges)[0].astype(object)
    exact = [((values < low) | (values > high)).sum() for low, high in windows.bounds]
    assert windows.outside(counts).tolist() == exact


@pytest.mark.parametrize("power", [1, 2])
def test_a_draw_hardly_ever_takes_a_much_longer_window_or_misses_a_tenth(power):
    """Exact expectations of squared errors, in those of the smallest window with all rows."""
    rows, eps = 200, 0.15
    windows = Windows(0.0, 100.0, power, eps * rows)
    highs = windows.bounds[:, 1]
    logs = -eps * rows * (highs < 1) - windows.costs
    chances = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    assert chances[highs < 1].sum() < 1e-3
    assert (chances * (highs >= 1) * highs ** (2 * power)).sum() < 100


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_neighbours_are_no_farther_than_charged_in_the_look_and_the_search(
    guarantee, relation, monkeypatch
):
    """Brute force, in units of the noise of each round."""
    values = (-900, -100, -3, 0, 99, 101, 1e9, None)
    sums = []

    def kept(plan, exact, entropy):
        sums.append(exact.astype(float))
        return exact.astype(float), "laplace"

    monkeypatch.setattr("dpmodels.mechanisms.counts.ranges.noised_units", kept)
    base = [0, 5, 700]

    def exact(rows):
        statistic, plan = measured({"y": rows}, guarantee, relation)
        sums.clear()
        _inner_rows(statistic, plan, source())
        _cell_counts(statistic, plan, 0.2, source())
        return list(sums), plan

    answers = [exact([*base, value]) for value in values]
    alternatives = answers if relation == "replace" else [exact(base)]
    plan = answers[0][1]
    power = 2 if isinstance(guarantee, ZCDP) else 1
    cells = _cells_plan(plan.facts, guarantee, 0.2)
    for at, edges in enumerate((plan.first, cells)):
        gaps = [a[at] - b[at] for (a, _), (b, _) in product(answers, alternatives)]
        furthest = (
            max(np.linalg.norm(gap, power) for gap in gaps) * edges.units_per_row / edges.scale
        )
        events = edges.events
        declared = sum(event.count / event.multiplier**power for event in events) ** (1 / power)
        assert furthest <= declared * (1 + 1e-9), "farther than charged"
        assert furthest >= 0.99 * declared, "nowhere near"


def test_auto_searches_by_the_number_of_rows_and_the_budget_alone():
    facts = CountFacts(1, 4, True, adjacency("replace"))
    assert range_shares(facts, PureDP(1.0), 20_000) == (0.15,)
    assert range_shares(facts, PureDP(0.3), 2_000)[0] == 0.048
    assert range_shares(facts, PureDP(0.1), 500) is None
    assert range_shares(facts, PureDP(0.3), 0) is None
    rng = np.random.default_rng(0)
    book = dp.codebook(y=(0, 100))
    for y in (np.zeros(2_000), rng.uniform(0, 100, 2_000)):
        fit = dp.dp_mean("~ y", {"y": y}, codebook=book, eps=0.3)
        assert fit.release.info.name == "rounds"
        assert "up to" in fit.call.reason


# Names, rows and tight bounds.
COLUMNS = {
    "normal": (lambda rng: np.clip(rng.normal(size=2_000), -4, 4), (-4, 4)),
    "skewed": (lambda rng: np.minimum(rng.lognormal(0, 0.8, 2_000), 25), (0, 25)),
    "halves": (lambda rng: rng.integers(0, 2, 2_000).astype(float), (0, 1)),
    "heaps": (lambda rng: 3.0 * rng.choice([-1, 1], 2_000) + rng.normal(0, 0.5, 2_000), (-5, 5)),
    "zeros": (lambda rng: np.where(rng.random(2_000) < 0.8, 0, rng.integers(1, 3, 2_000)), (0, 2)),
}


# An error above five times that with tight bounds came in none to 4 of 100 fits, by column; that
# in all of four it is larger has a probability below 3e-6 times five.
@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("times", [10, 100])
def test_bounds_that_are_too_wide_cost_little_at_few_rows(name, times):
    draw, bounds = COLUMNS[name]
    width = bounds[1] - bounds[0]
    book = dp.codebook(y=tuple(times * end for end in bounds))
    errors = []
    with dp.simulation(seed=6):
        for turn in range(4):
            rows = draw(np.random.default_rng(turn))
            fit = dp.dp_mean("~ y", {"y": rows}, codebook=book, eps=0.3)
            errors.append(abs(fit.params.item() - rows.mean()))
    assert min(errors) < 5 * math.sqrt(2) / (0.3 * 2_000) * width


def test_rows_that_fill_their_bounds_lose_the_look_alone():
    """False alarms: the look is wrong if Laplace noise of scale 208 exceeds 3,500: 1e-7."""
    rng = np.random.default_rng(1)
    rows = {"y": rng.uniform(-900, 900, 2_000)}
    with dp.simulation(seed=2):
        fit = dp.dp_mean("~ y", rows, codebook=BOOK, eps=0.3)
        plain = dp.dp_mean("~ y", rows, codebook=BOOK, eps=0.3, mechanism="paired")
    assert fit.release.held is None
    ratio = fit.release.noise_sd / plain.release.noise_sd
    assert ratio == pytest.approx(1 / 0.952, rel=1e-6)


def test_bounds_far_from_zero_are_searched_or_stay():
    rows, book = {"y": np.full(2_000, 1e12)}, dp.codebook(y=(1e12, 1e12 + 1))
    with dp.simulation(seed=3):
        for _ in range(4):
            fit = dp.dp_var("~ y", rows, codebook=book, eps=0.3)
            assert np.isfinite(fit.params.item())
            assert fit.release.held is None or fit.release.held.lower < fit.release.held.upper


@pytest.mark.product
def test_a_release_has_the_noise_that_it_states():
    """False alarms: mean squares of 400 Laplace variables, 6 sds, below 1e-7 by their moments."""
    exact = measured({"y": [0.0] * 2_000}, PureDP(0.3))
    releases = [Rounds(shares=SHARES).release(*exact, source()) for _ in range(400)]
    assert one_mean(exact[1].facts)
    noise = np.array([fit.values[-1] / fit.noise_sd for fit in releases])
    # By whether the noise in the look makes the search go on.
    assert len({fit.noise_sd for fit in releases}) <= 2
    assert abs((noise**2).mean() - 1) < 6 * math.sqrt(5 / 400)


@pytest.mark.parametrize(("law", "bound"), [("pareto", 1_000.0), ("normal", 100.0)])
def test_a_regular_tail_is_within_its_bounds(law, bound):
    """Bounds are 97.5 % quantiles of a flat prior; 12 misses of 40 have a probability of 1e-6."""
    rng = np.random.default_rng(3)
    misses = 0
    for _ in range(40):
        x = rng.pareto(2.2, 4_000) + 1 if law == "pareto" else np.abs(rng.normal(size=4_000))
        x = np.minimum(x, bound)
        edges, end = range_cells(0.0, bound), np.quantile(x, 0.99)
        counts = np.histogram(x, edges)[0] + rng.laplace(0, 15, len(edges) - 1)
        noise = CellNoise("laplace", 15 * math.sqrt(2))
        below, above, below_square, above_square = beyond_range(edges, counts, noise, 0.0, end)
        assert below == below_square == 0.0
        beyond = np.maximum(x - end, 0)
        misses += not (beyond.mean() <= above and (beyond**2).mean() <= above_square)
    assert misses < 12


@pytest.mark.product
def test_intervals_hold_the_rows_that_were_clipped():
    """False alarms: of 40 intervals of 99.9 %, 12 misses have a probability below 1e-6."""
    rng = np.random.default_rng(9)
    book, misses = dp.codebook(y=(0, 10_000)), np.zeros(2)
    with dp.simulation(seed=4):
        for _ in range(40):
            y = np.minimum(rng.pareto(2.2, 5_000) + 1, 10_000)
            for at, (verb, expected) in enumerate(
                ((dp.dp_mean, y.mean()), (dp.dp_var, y.var(ddof=1)))
            ):
                fit = verb("~ y", {"y": y}, codebook=book, eps=0.3)
                low, high = fit.noise_int(0.999).to_numpy()[0]
                misses[at] += not low <= expected <= high
                assert low >= 0
    assert (misses < 12).all()
