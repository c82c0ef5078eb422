"""Centre and radius first: what it costs, what steers it, and what it is good for."""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from moment_cases import fraction_spent

import dpmodels as dp
from dpmodels.datasets.papers import zipf_rows
from dpmodels.design import Scaling, private_design
from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.mechanisms import Facts, Rounds, RoundsPure, clipping_shells
from dpmodels.mechanisms.add_noise import (
    FRACTIONS,
    LAPLACE,
    SMALLEST_LAPLACE,
    SMALLEST_SCALE,
    UNITS,
    Lengths,
    faintest,
)
from dpmodels.mechanisms.clipping_shells import BEYOND, FOURTH
from dpmodels.mechanisms.covariance import rounds
from dpmodels.noise import seeded
from dpmodels.noise.lattice import Lattice
from dpmodels.privacy import ZCDP, ApproxDP, GaussianEvent, PureDP, adjacency, total_eps
from dpmodels.statistics import Passes, Statistic, moments
from dpmodels.statistics.moments import norm_counts, row_sums

RELATIONS = ("replace", "add-remove")
GUARANTEES = [ZCDP(0.1), ZCDP(1e-12), ApproxDP(1.0, 1e-6), ApproxDP(1e9, 1e-6)]


def facts(columns, relation="replace", centred=True):
    return Facts(columns, adjacency(relation), centred=centred)


def bound(rows, wide=1.0):
    names = [f"x{at}" for at in range(rows.shape[1])]
    book = dp.codebook.uniform(names, (-wide, wide))
    return private_design("~ .", dict(zip(names, rows.T, strict=True)), book)


def measured(rows, plan, wide=1.0):
    return Rounds().measure(bound(rows, wide), plan)


def named(plan):
    """The events of a plan by the names of their rounds."""
    return dict(zip([name for name in NAMES if name in plan.scales], plan.events, strict=False)) | {
        "moments": plan.events[-1]
    }


NAMES = [f"{what} {turn}" for turn in (1, 2, 3) for what in ("sum", "lengths")]


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=str)
@pytest.mark.parametrize("centred", [True, False])
def test_the_events_compose_to_the_guarantee_and_use_it_up(guarantee, centred):
    for relation in RELATIONS:
        plan = Rounds().plan(facts(4, relation, centred), guarantee)
        assert len(plan.events) == (7 if centred else 2)
        assert 1 - 1e-6 < fraction_spent(plan.events, guarantee) <= 1


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=str)
@pytest.mark.parametrize("relation", RELATIONS)
def test_bought_tails_are_in_the_events(guarantee, relation):
    for columns in (1, 4, 60):
        case_facts = facts(columns, relation)
        plan = Rounds(inference=True).plan(case_facts, guarantee)
        assert len(plan.events) == 9
        assert 1 - 1e-6 < fraction_spent(plan.events, guarantee) <= 1
        moments_alone = Rounds().plan(case_facts, guarantee).events[-1].multiplier
        assert plan.events[-1].multiplier == pytest.approx(moments_alone / math.sqrt(0.68))
        assert plan.scales[FOURTH] >= plan.events[6].multiplier * plan.lattice.radius**2
        assert plan.scales[BEYOND] >= plan.events[7].multiplier


@pytest.mark.parametrize("changes", [{"centred": False}, {"unit": True}], ids=str)
def test_nothing_is_bought_where_there_is_no_use_for_it(changes):
    case_facts = replace(facts(3), **changes)
    plain, with_tails = (
        mechanism.plan(case_facts, ZCDP(0.1)) for mechanism in (Rounds(), Rounds(inference=True))
    )
    assert (plain.events, plain.scales) == (with_tails.events, with_tails.scales)


@pytest.mark.product
def test_bought_tails_have_their_noise():
    """Means and variances over releases, each within 6 of their standard errors."""
    rows = np.random.default_rng(3).normal(size=(400, 2))
    strategy = Rounds(inference=True)
    plan = strategy.plan(facts(2), ZCDP(0.5))
    statistic = strategy.measure(bound(rows, 4.0), plan)
    ball = statistic.rescaled(Scaling(np.zeros(2), np.full(2, 4.0), 0.6, 2.0))
    noised_tails, scaling = clipping_shells.noised_tails, statistic.scaling
    draws = [noised_tails(ball, scaling, plan, seeded(seed)) for seed in range(400)]
    clipped = rows / 4.0
    lengths = np.linalg.norm(clipped, axis=1, keepdims=True)
    clipped = clipped * np.minimum(1, 0.6 / lengths) / 0.6
    errors = [(draw.fourth - (clipped**2).T @ clipped**2) / draw.fourth_sd for draw in draws]
    expected = np.where(np.eye(2), 1.0, math.sqrt(0.5))
    assert (np.abs(np.mean(errors, axis=0)) < 6 * expected / 20 + 0.05).all()
    assert (np.abs(np.std(errors, axis=0) / expected - 1) < 6 / math.sqrt(800)).all()
    sums = np.array([draw.beyond for draw in draws])
    assert abs(sums.std() / draws[0].beyond_sd - 1) < 6 / math.sqrt(800)
    assert strategy.release(statistic, plan, seeded(1)).tails is not None


def test_the_words_of_inference():
    with pytest.raises(ArgumentError, match="inference"):
        Rounds(inference=1)


def test_a_pure_guarantee_is_refused():
    with pytest.raises(BudgetError):
        Rounds().plan(facts(3), PureDP(1.0))


def parts(name, cells, plan):
    """What a row adds in each round, in units of that round's noise."""
    if name == "moments":
        steps, upper = plan.steps, np.triu_indices(len(cells) - 1, 1)
        return np.concatenate(
            [
                cells[:1, 0] / steps.count,
                cells[0, 1:] / steps.mean,
                np.diagonal(cells)[1:] / steps.diagonal,
                cells[1:, 1:][upper] / steps.off,
            ]
        )
    if "lengths" in name:
        return cells / plan.scales[name]
    unit = plan.lattice.radius
    rows = cells[:1] / plan.scales[name.replace("sum", "rows")] / unit
    return np.append(rows, cells[1:] / plan.scales[name] / unit)


@pytest.mark.parametrize("mechanism", [Rounds(), RoundsPure()])
@pytest.mark.parametrize("relation", RELATIONS)
def test_neighbours_are_within_the_sensitivity_of_every_round(mechanism, relation):
    rng, size = np.random.default_rng(7), 3
    plan = mechanism.plan(facts(size, relation), ZCDP(0.1))
    norm = 2 if isinstance(plan.events[0], GaussianEvent) else 1
    ends = np.vstack([np.eye(size), -np.eye(size), rng.uniform(-1, 1, (8, size))])
    rows = np.vstack([ends, 0.01 * ends, np.zeros((1, size)), np.full((1, size), np.nan)])
    limits = tuple(int(end) for end in (plan.lattice.radius * np.array([0.01, 0.3, 0.7])) ** 2)
    for radius in (2.0, 0.05):
        scaling = Scaling(np.array([0.3, -0.2, 0.0]), np.ones(size), radius, 9.0)
        statistics = [measured(row[None], plan).rescaled(scaling) for row in rows]
        for name, event in named(plan).items():
            measure, words = {"s": (row_sums, ()), "l": (norm_counts, (limits,))}.get(
                name[0], (moments, ())
            )
            cells = [
                statistic.measured(measure, *words).cross()[0].astype(float)
                for statistic in statistics
            ]
            answers = [parts(name, cell, plan) for cell in cells]
            pairs = (
                combinations(answers, 2)
                if relation == "replace"
                else [(answer, 0) for answer in answers]
            )
            furthest = max(float(np.linalg.norm(left - right, norm)) for left, right in pairs)
            assert 0.4 < furthest * event.multiplier <= 1 + 1e-9, name


def test_noise_has_the_steps_that_its_law_needs():
    for guarantee in GUARANTEES[:3]:
        plan = Rounds().plan(facts(5), guarantee)
        assert plan.steps.off >= SMALLEST_SCALE
        for name, scale in plan.scales.items():
            units = UNITS if "lengths" in name else plan.lattice.radius
            assert max(scale * units, SMALLEST_SCALE) * 40 < 2**63
    plan = RoundsPure().plan(facts(5), PureDP(1.0))
    assert plan.steps.off >= SMALLEST_LAPLACE
    for name, scale in plan.scales.items():
        units = UNITS if "lengths" in name else plan.lattice.radius
        assert SMALLEST_LAPLACE < scale * units < 2**63 / 256


def test_only_released_values_steer_it(monkeypatch):
    """With the same noisy answers, two tables are held in the same balls, round by round."""
    scatters, original = [], Passes.measured
    for seed in (1, 2):
        answers, scalings = np.random.default_rng(5), []
        monkeypatch.setattr(
            "dpmodels.mechanisms.add_noise.noisy_sums",
            lambda parts, *_, draws=answers: [
                draws.uniform(0, 1e9, exact.shape) for exact, _ in parts
            ],
        )

        def scaled(passes, measure, *words, scalings=scalings):
            scalings.append((passes.scaling.centre.tolist(), passes.scaling.row_norm))
            return original(passes, measure, *words)

        with monkeypatch.context() as patch:
            patch.setattr(Passes, "measured", scaled)
            rows = np.random.default_rng(seed).uniform(-1, 1, (20 * seed, 3))
            plan = Rounds().plan(facts(3), ZCDP(0.1))
            Rounds().release(measured(rows, plan), plan, seeded(3))
        scatters.append(scalings)
    assert scatters[0] == scatters[1]
    assert len(scatters[0]) == 7


def test_rows_are_counted_by_their_length():
    rows = np.array([[0.0, 0.0], [0.1, 0.0], [0.6, 0.5], [np.nan, 0.1], [1.0, 1.0]])
    design = bound(rows)
    lattice = Lattice(20, 2)
    limits = tuple(int(end) for end in (lattice.radius * np.array([0.05, 0.5])) ** 2)
    exact, lengths = norm_counts(design, lattice, limits).cross()
    assert exact.tolist() == [1, 1, 2]
    assert lengths == 5
    exact, _ = row_sums(design, lattice).cross()
    assert exact[0] == 4 * 2**20
    assert exact[1:] / lattice.steps * math.sqrt(2) == pytest.approx([1.7, 1.5], abs=1e-5)


@pytest.mark.expensive
@pytest.mark.parametrize("wide", [1.0, 100.0])
def test_wide_bounds_and_rows_at_their_edge_cost_little(wide):
    """Both tables lose most of their components to the noise of one release at the box."""
    rng = np.random.default_rng(3)
    energies = []
    mixed = rng.normal(size=(15_000, 3)) @ rng.normal(size=(3, 30)) * 0.2
    rows = np.clip(np.exp(mixed + 0.3 * rng.normal(size=mixed.shape)) - 1.3, 0, 9)
    book = dp.codebook.uniform([f"x{at}" for at in range(30)], (0, 9 * wide))
    truth = np.cov(rows.T / (4.5 * wide))
    best = np.linalg.eigvalsh(truth)[-3:].sum()
    for mechanism in ("gauss", "rounds"):
        with dp.simulation(seed=4):
            data = dict(zip(book, rows.T, strict=True))
            words = {"eps": 1.0, "delta": 1e-6, "ncomp": 3, "mechanism": mechanism}
            fit = dp.dp_pca("~ .", data, codebook=book, **words)
        loadings = fit.loadings.transpose("variable", "component").values
        energies.append(float(np.einsum("ij,ij->", loadings, truth @ loadings)) / best)
    assert energies[1] > 0.95
    assert energies[1] > energies[0] + 0.02, energies


@pytest.mark.parametrize("mechanism", ["rounds", "rounds_pure"])
def test_a_third_turn_finds_rows_in_a_corner_of_a_box_that_is_far_too_wide(mechanism):
    """Each sum is too noisy to bring the centre from the middle to the rows in two turns.

    The mean error of 30 columns is seven sd of one column's; false alarm below 1e-6.
    """
    rng, size = np.random.default_rng(3), 30
    rows = np.minimum(rng.poisson(1.0, (40_000, size)), 9) * 0.01 / 9 * 2 - 1
    plan_eps = {"rounds": 0.2, "rounds_pure": 2.0}[mechanism]
    strategy = {"rounds": Rounds(), "rounds_pure": RoundsPure()}[mechanism]
    guarantee = ApproxDP(plan_eps, 1e-6) if mechanism == "rounds" else PureDP(plan_eps)
    plan = strategy.plan(facts(size), guarantee)
    release = strategy.release(strategy.measure(bound(rows), plan), plan, seeded(1))
    longest = float(np.linalg.norm(rows - rows.mean(axis=0), axis=1).max())
    assert release.ball.radius < 1.2 * longest


@pytest.mark.parametrize("law", [rounds.GAUSSIAN, LAPLACE])
def test_rows_are_told_from_noise_in_few_cells_or_in_many(law):
    """False alarm 1e-3 a set of counts by the bound: 40 sets of noise alone, none told but two.

    The chance that more than two are is below C(40, 3) 1e-9 = 1e-5 at the bound, and the union
    bound over cells and widths is loose by more than ten.
    """
    rng, cells = np.random.default_rng(1), FRACTIONS.size
    scale = 10.0
    draws = rng.normal if law is rounds.GAUSSIAN else rng.laplace
    faint, sd = faintest(law, scale), law.sd * scale
    alone = [Lengths(FRACTIONS, draws(0, scale, cells), sd, faint).last for _ in range(40)]
    assert sum(last >= 0 for last in alone) <= 2
    together, spread = np.zeros(cells), np.zeros(cells)
    together[30] = 1.2 * faint
    spread[28:36] = 0.5 * faint
    assert Lengths(FRACTIONS, together, sd, faint).last == 30
    assert 35 <= Lengths(FRACTIONS, spread, sd, faint).last <= 38
    assert Lengths(FRACTIONS, together, sd, faint).detected.sum() == pytest.approx(1.2 * faint)


def test_what_is_told_is_never_negative_nor_more_than_the_tail():
    counts = np.array([-3.0, 40.0, -5.0, 20.0, 300.0, -50.0, 2.0])
    lengths = Lengths(FRACTIONS[-7:], counts, 1.0, 10.0)
    assert lengths.last == 4
    assert (lengths.detected >= 0).all()
    assert lengths.detected.sum() == pytest.approx(counts[:5][1:].sum())
    assert lengths.detected[5:].sum() == 0


@pytest.mark.expensive
def test_rows_whose_lengths_differ_widely_are_released_in_increments():
    """About a public origin; the error of one release in the ball is three times as large."""
    rows = zipf_rows(10)
    book = dp.codebook.uniform([f"x{at}" for at in range(10)], (-1, 1))
    words = {"codebook": book, "budget": dp.ZCDP(0.01), "center": False, "scale": None}
    truth, errors = rows.T @ rows / len(rows), {}
    for mechanism in ("gauss", "rounds"):
        with dp.simulation(seed=4):
            data = dict(zip(book, rows.T, strict=True))
            fit = dp.dp_cov("~ .", data, mechanism=mechanism, row_norm=1.0, **words)
        errors[mechanism] = float(np.linalg.norm(fit.cov.to_numpy() - truth))
    assert fit.release.estimate is not None
    assert math.isfinite(fit.release.noise.off)
    assert errors["rounds"] < 0.6 * errors["gauss"]
    assert "increments between radii" in str(fit.summary(notes="all"))


@pytest.mark.expensive
def test_the_pure_twin_is_pure_and_better_than_one_release():
    rng = np.random.default_rng(3)
    rows = np.minimum(rng.poisson(0.8, (20_000, 20)), 9.0)
    book = dp.codebook.uniform([f"x{at}" for at in range(20)], (0, 9))
    truth, errors = np.cov(rows.T), {}
    for mechanism in ("laplace", "rounds_pure", "auto"):
        with dp.simulation(seed=4):
            data = dict(zip(book, rows.T, strict=True))
            fit = dp.dp_cov("~ .", data, codebook=book, eps=1.0, mechanism=mechanism)
        assert total_eps(fit.release.events, 0.0) == pytest.approx(1.0)
        errors[mechanism] = float(np.linalg.norm(fit.cov.to_numpy() - truth))
    assert errors["rounds_pure"] < 0.5 * errors["laplace"]
    assert fit.release.info.name == "rounds_pure"


def test_what_is_lost_in_noise_stays_in_the_ball_of_the_codebook():
    rows = np.random.default_rng(1).uniform(-1, 1, (2, 3))
    for relation in RELATIONS:
        plan = Rounds().plan(facts(3, relation), ApproxDP(1e-3, 1e-6))
        release = Rounds().release(measured(rows, plan), plan, seeded(1))
        assert release.ball is None
        assert np.isfinite(release.second).all()


def corner(size):
    return np.full((3_000, size), -1.0)


@pytest.mark.parametrize("mechanism", [Rounds(), RoundsPure()])
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize(
    "rows",
    [
        corner(3),
        np.zeros((3_000, 2)),
        np.repeat([[0.5, -1.0], [0.5, 1.0]], 1_000, axis=0),
        np.full((2, 3), 0.1),
        np.zeros((0, 2)),
        np.full((5, 2), np.nan),
    ],
    ids=["corner", "middle", "one value", "two rows", "none", "incomplete"],
)
@pytest.mark.filterwarnings("error")
def test_bad_rows_are_finite_and_silent(mechanism, centred, rows):
    book = dp.codebook.uniform([f"x{at}" for at in range(rows.shape[1])], (-1, 1))
    table = dict(zip(book, rows.T, strict=True))
    for relation in RELATIONS:
        words = {"codebook": book, "eps": 1.0, "delta": 1e-6, "adjacency": relation}
        fit = dp.dp_cov("~ .", table, mechanism=mechanism, center=centred, **words)
        assert np.isfinite(fit.cov.to_numpy()).all()
        assert np.isfinite(fit.release.second).all()
        assert "rounds" in str(fit.summary())


@pytest.mark.expensive
def test_many_columns_few_rows_and_next_to_no_budget_are_finite():
    rows = np.random.default_rng(1).uniform(-1, 1, (2, 500))
    plan = Rounds().plan(facts(500), ApproxDP(1e-3, 1e-6))
    release = Rounds().release(measured(rows, plan), plan, seeded(1))
    assert np.isfinite(release.second).all()
    assert release.ball is None


def test_a_fit_says_where_the_first_rounds_bought_nothing():
    rows = {"a": np.linspace(0, 1, 20), "b": np.linspace(1, 0, 20)}
    words = {"codebook": dp.codebook(a=(0, 1), b=(0, 1)), "eps": 0.01, "delta": 1e-6}
    fit = dp.dp_cov("~ a + b", rows, mechanism="rounds", **words)
    assert fit.release.ball is None
    assert "had no effect" in str(fit.summary(notes="all"))


def test_rows_all_equal_are_held_in_a_small_ball():
    rows = np.full((5_000, 3), 0.25)
    plan = Rounds().plan(facts(3), ApproxDP(1.0, 1e-6))
    release = Rounds().release(measured(rows, plan), plan, seeded(1))
    assert release.ball.centre == pytest.approx([0.25] * 3, abs=0.01)
    assert release.ball.radius < 0.05


def test_a_fit_is_saved_with_its_ball_and_prints_what_was_shortened(tmp_path):
    rows = {"a": np.linspace(0, 1, 4_000) ** 3, "b": np.linspace(1, 0, 4_000) ** 2}
    words = {"codebook": dp.codebook(a=(0, 50), b=(0, 50)), "eps": 1.0, "delta": 1e-6}
    fit = dp.dp_cov("~ a + b", rows, mechanism="rounds", **words)
    fit.save(tmp_path / "a.nc")
    again = dp.load(tmp_path / "a.nc")
    assert str(again.summary()) == str(fit.summary())
    assert again.release.ball.radius == fit.release.ball.radius < fit.call.worst_case
    assert "shortened" in str(fit.summary())


def test_least_squares_take_it_but_not_with_weights():
    rng = np.random.default_rng(2)
    x = rng.uniform(0, 1, 5_000)
    rows = {"x": x, "y": 1 + 2 * x + 0.1 * rng.normal(size=x.size), "w": np.ones(x.size)}
    book = dp.codebook(x=(0, 100), y=(0, 300), w=(0, 1))
    words = {"codebook": book, "eps": 1.0, "delta": 1e-6, "mechanism": Rounds()}
    with dp.simulation(seed=1):
        fit = dp.dp_lm("y ~ x", rows, **words)
    # The noise sd of the slope is a hundredth; by one release at the box it is not identified.
    assert fit.params["x"] == pytest.approx(2, abs=0.1)
    with pytest.raises(ArgumentError, match="weights="):
        dp.dp_lm("y ~ x", rows, weights="w", **words)


def test_moments_alone_are_not_what_it_releases_from():
    plan = Rounds().plan(facts(2), ZCDP(0.1))
    with pytest.raises(ArgumentError, match="measure"):
        Rounds().release(Statistic("moments", np.zeros((3, 3), object), 0), plan, seeded(1))


def test_bought_fourth_moments_have_the_noise_of_a_sensitivity_of_the_squared_radius():
    """`square_unit` chooses the unit of squared coordinates so that a row moves them by that."""
    scale = clipping_shells.fourth_scale(3.0, 1e5)
    assert 3e10 <= scale <= 3e10 * (1 + 1e-6)
