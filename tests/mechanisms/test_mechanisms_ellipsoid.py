"""Centre, axes and radius first: what it costs, what steers it, and what it is good for."""

from itertools import combinations

import numpy as np
import pytest
from moment_cases import fraction_spent
from scipy.stats import chi2

import dpmodels as dp
from dpmodels.codebook import Codebook
from dpmodels.design import Scaling
from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.mechanisms import Ellipsoid, Facts
from dpmodels.mechanisms.add_noise import (
    SMALLEST_SCALE,
    UNITS,
    NoisyMoments,
    gaussian_count,
    noise_of,
)
from dpmodels.mechanisms.regression import ellipsoid
from dpmodels.noise import seeded
from dpmodels.privacy import ZCDP, ApproxDP, PureDP, adjacency
from dpmodels.statistics import Statistic
from dpmodels.statistics.moments import row_sums
from dpmodels.statistics.passes import column_counts, turned_counts
from tests.private_rows import private_regression

RELATIONS = ("replace", "add-remove")
GUARANTEES = [ZCDP(0.1), ZCDP(1e-12), ApproxDP(1.0, 1e-6), ApproxDP(1e9, 1e-6)]
NAMES = ["x1", "x2", "y"]
FORMULA = "y ~ x1 + x2"


def facts(columns=3, relation="replace"):
    return Facts(columns, adjacency(relation), centred=True)


def box(names=NAMES, wide=1.0):
    return Codebook.uniform(names, (-wide, wide))


def measured(rows, plan, names=NAMES, wide=1.0):
    table = dict(zip(names, rows.T, strict=True))
    formula = f"{names[-1]} ~ {' + '.join(names[:-1])}"
    return Ellipsoid().measure(private_regression(formula, table, box(names, wide)), plan)


def alike(rows, seed=1, wide=1.0):
    """Two terms with a correlation of .95 and a response, bounds `wide` times 4 from 0."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 2)) @ np.array([[1, 0.95], [0, 0.31]])
    y = x @ [0.5, -0.3] + 0.5 * rng.normal(size=rows)
    table = dict(zip(NAMES, np.clip(np.column_stack([x, y]), -4, 4).T, strict=True))
    design = np.column_stack([np.ones(rows), table["x1"], table["x2"]])
    return table, box(wide=4 * wide), np.linalg.lstsq(design, table["y"], rcond=None)[0]


@pytest.mark.parametrize("guarantee", GUARANTEES, ids=str)
def test_the_rounds_compose_to_the_guarantee_and_use_it_up(guarantee):
    for relation in RELATIONS:
        plan = Ellipsoid().plan(facts(4, relation), guarantee)
        assert len(plan.events) == len(ellipsoid.SHARES)
        assert 1 - 1e-6 < fraction_spent(plan.events, guarantee) <= 1


def test_an_ellipsoid_needs_a_gaussian_guarantee():
    with pytest.raises(BudgetError):
        Ellipsoid().plan(facts(), PureDP(1.0))


def test_noise_of_every_round_has_the_steps_that_its_law_needs():
    for guarantee in GUARANTEES[:3]:
        plan = Ellipsoid().plan(facts(5), guarantee)
        assert plan.steps.off >= SMALLEST_SCALE
        rougher = plan.scales["rough moments"]
        assert rougher > 1
        assert 40 * rougher * max(plan.steps.count, plan.steps.mean, plan.steps.diagonal) < 2**63
        for name, scale in plan.scales.items():
            units = plan.lattice.radius if "sum" in name else UNITS
            assert max(scale * units, SMALLEST_SCALE) * 40 < 2**63


def rounds_of(passes, plan, limits):
    """Each round's answer for some rows, in units of its noise."""
    size, unit, steps = plan.facts.columns, plan.lattice.radius, plan.steps
    weight = gaussian_count(plan.facts, 1.0)
    turn = np.array([[1.0, 0.4, 0.0], [-0.7, 2.0, 0.1], [0.0, -3.0, 0.5]])
    scale = plan.scales["sum 2"]
    total = passes.measured(row_sums).cross()[0].astype(float) / unit
    total[0] *= weight.total / weight.rows
    products = passes.within(turn).cross()[0].astype(float)
    parts = [
        products[:1, 0] / steps.count,
        products[0, 1:] / steps.mean,
        np.diagonal(products)[1:] / steps.diagonal,
        products[1:, 1:][np.triu_indices(size, 1)] / steps.off,
    ]
    by_column = passes.measured(column_counts, 6).cross()[0].astype(float).ravel()
    by_length = passes.measured(turned_counts, turn, limits).cross()[0].astype(float)
    return {
        "sum 2": total / scale,
        "columns 2": by_column / plan.scales["columns 2"],
        "lengths": by_length / plan.scales["lengths"],
        "moments": np.concatenate(parts),
        "rough moments": np.concatenate(parts) / plan.scales["rough moments"],
    }


@pytest.mark.parametrize("relation", RELATIONS)
def test_neighbours_are_within_the_sensitivity_of_each_turned_round(relation):
    rng = np.random.default_rng(7)
    plan = Ellipsoid().plan(facts(3, relation), ZCDP(0.1))
    events = dict(zip(ellipsoid.SHARES, plan.events, strict=True))
    ends = np.vstack([np.eye(3), -np.eye(3), rng.uniform(-1, 1, (6, 3))])
    rows = np.vstack([ends, 0.01 * ends, np.zeros((1, 3)), np.full((1, 3), np.nan)])
    limits = tuple(int(end) for end in (plan.lattice.radius * np.array([0.01, 0.3, 0.7])) ** 2)
    furthest = dict.fromkeys(events, 0.0)
    for radius in (2.0, 0.05):
        scaling = Scaling(np.array([0.3, -0.2, 0.0]), np.array([1.0, 2.0, 0.3]), radius, 9.0)
        answers = [
            rounds_of(measured(row[None], plan).rescaled(scaling), plan, limits) for row in rows
        ]
        for name in answers[0]:
            parts = [parts[name] for parts in answers]
            pairs = (
                combinations(parts, 2) if relation == "replace" else [(part, 0) for part in parts]
            )
            largest = max(float(np.linalg.norm(first - second)) for first, second in pairs)
            furthest[name] = max(furthest[name], largest * events[name].multiplier)
    assert all(distance <= 1 + 1e-9 for distance in furthest.values()), furthest
    assert all(distance > 0.5 for name, distance in furthest.items() if "1" not in name), furthest


def test_only_released_values_steer_the_ellipsoid(monkeypatch):
    """With the same noisy answers two tables are held in the same ellipsoids, round by round."""
    scatters, original, within = [], ellipsoid.Passes.measured, ellipsoid.Passes.within
    for seed in (1, 2):
        answers, steps = np.random.default_rng(5), []

        def noisy(parts, *_, draws=answers):
            return [draws.uniform(0, 1e9, exact.shape) for exact, _ in parts]

        def scaled(passes, measure, *words, steps=steps):
            arrays = [argument.tolist() for argument in words if isinstance(argument, np.ndarray)]
            steps.append((passes.scaling.centre.tolist(), passes.scaling.row_norm, arrays))
            return original(passes, measure, *words)

        def turned(passes, transform, steps=steps):
            steps.append(
                (passes.scaling.scale.tolist(), passes.scaling.row_norm, transform.tolist())
            )
            return within(passes, transform)

        def rough(exact, plan, entropy, draws=answers):
            size = len(exact) - 1
            spread = np.diag(draws.uniform(0.5, 1, size)) * 1e4
            return NoisyMoments(1e4, draws.uniform(0, 1, size), spread, noise_of(plan))

        with monkeypatch.context() as patch:
            patch.setattr("dpmodels.mechanisms.add_noise.noisy_sums", noisy)
            patch.setattr(ellipsoid, "noised_moments", rough)
            patch.setattr(ellipsoid.Passes, "measured", scaled)
            patch.setattr(ellipsoid.Passes, "within", turned)
            patch.setattr(ellipsoid, "GAIN", 1e9)
            rows = np.random.default_rng(seed).uniform(-1, 1, (20 * seed, 3))
            plan = Ellipsoid().plan(facts(), ZCDP(0.1))
            Ellipsoid().release(measured(rows, plan), plan, seeded(3))
        scatters.append(steps)
    assert scatters[0] == scatters[1]
    assert len(scatters[0]) == 7


@pytest.mark.parametrize("wide", [1.0, 100.0])
def test_wide_bounds_and_terms_that_are_alike_cost_little(wide):
    """By one release the slopes' noise sds are .05 at tight bounds; at wide ones they have none."""
    table, book, plain = alike(20_000, wide=wide)
    with dp.simulation(seed=1):
        fit = dp.dp_lm(FORMULA, table, codebook=book, eps=1.0, delta=1e-6, mechanism="ellipsoid")
    assert fit.release.info.name == "ellipsoid"
    assert fit.bse_noise[["x1", "x2"]].max() < 0.02
    # Each within 6 sds of its noise, exceeded with probability 6e-9.
    assert (np.abs(fit.params.to_numpy() - plain) < 6 * fit.bse_noise.to_numpy()).all()
    assert "Rows outside an ellipsoid" in str(fit.summary())


def test_a_level_without_rows_leaves_the_rows_in_the_ball_of_the_codebook():
    """The other slope is lost by chance about once in twenty releases, the level in nearly all."""
    table, book, _ = alike(20_000)
    table["g"] = np.full(20_000, "F")
    identified = []
    for seed in range(3):
        with dp.simulation(seed=seed):
            words = {
                "codebook": book | {"g": ["F", "M"]},
                "eps": 2.0,
                "delta": 1e-6,
                "mechanism": "ellipsoid",
            }
            fit = dp.dp_lm("y ~ x1 + g", table, **words)
        assert fit.release.info.name == "ellipsoid"
        assert fit.release.ball is None
        identified.append(fit.identified)
    assert sum(is_identified["x1"] for is_identified in identified) >= 2
    assert not any(is_identified["g[T.M]"] for is_identified in identified)


@pytest.mark.product
def test_the_noise_of_the_coefficients_has_the_stated_law():
    """Squares of 60 independent errors over their sds: bounds of a false alarm of 1e-6."""
    table, book, plain = alike(6_000)
    squares = []
    for _ in range(60):
        words = {"codebook": book, "eps": 4.0, "delta": 1e-6, "mechanism": "ellipsoid"}
        fit = dp.dp_lm(FORMULA, table, **words)
        squares.append(((fit.params.to_numpy() - plain) / fit.bse_noise.to_numpy()) ** 2)
    low, high = chi2.ppf([0.17e-6, 1 - 0.17e-6], 60)
    total = np.sum(squares, axis=0)
    assert ((total > low) & (total < high)).all(), total


def test_a_model_without_intercept_is_of_the_same_rows():
    table, book, _ = alike(20_000)
    x = np.column_stack([table["x1"] + 0.5, table["x2"]])
    shifted = {"x1": x[:, 0], "x2": x[:, 1], "y": table["y"]}
    book = dp.codebook(x1=(-4, 5), x2=(-4, 4), y=(-4, 4))
    plain = np.linalg.lstsq(x, table["y"], rcond=None)[0]
    with dp.simulation(seed=2):
        fit = dp.dp_lm(
            "y ~ 0 + x1 + x2", shifted, codebook=book, eps=1.0, delta=1e-6, mechanism="ellipsoid"
        )
    assert fit.release.ball is not None
    # Each within 6 sds of its noise, exceeded with probability 4e-9.
    assert (np.abs(fit.params.to_numpy() - plain) < 6 * fit.bse_noise.to_numpy()).all()
    left = table["y"] - x @ plain
    assert fit.scale == pytest.approx(left @ left / len(left), rel=0.1)


@pytest.mark.parametrize("eps", [1e-3, 1.0, 1e9])
def test_odd_rows_leave_everything_finite(eps):
    plan = Ellipsoid().plan(facts(), ApproxDP(eps, 1e-6))
    odd = {
        "two": np.random.default_rng(1).uniform(-1, 1, (2, 3)),
        "equal": np.full((3_000, 3), 0.25),
        "a column of one value": np.random.default_rng(2).uniform(-1, 1, (3_000, 3)) * [1, 0, 1],
        "a constant response": np.random.default_rng(2).uniform(-1, 1, (3_000, 3)) * [1, 1, 0],
        "terms that are one": np.random.default_rng(3).uniform(-1, 1, (3_000, 1)) * [1, 1, 0.5],
        "incomplete": np.full((50, 3), np.nan),
    }
    for rows in odd.values():
        release = Ellipsoid().release(measured(rows, plan), plan, seeded(1))
        assert np.isfinite(release.second).all()
        if eps < 0.1:
            assert release.ball is None
        if release.ball is not None:
            assert np.isfinite(release.ball.axes).all()
            assert np.linalg.matrix_rank(release.ball.axes) == 3


def test_many_columns_lost_in_noise_stay_in_the_ball_of_the_codebook():
    names = [f"x{at}" for at in range(100)]
    plan = Ellipsoid().plan(facts(100), ApproxDP(0.1, 1e-6))
    rows = np.random.default_rng(1).uniform(-1, 1, (300, 100))
    release = Ellipsoid().release(measured(rows, plan, names), plan, seeded(1))
    assert release.ball is None
    assert np.isfinite(release.second).all()


def test_a_fit_is_saved_with_its_axes(tmp_path):
    table, book, _ = alike(20_000)
    fit = dp.dp_lm(FORMULA, table, codebook=book, eps=1.0, delta=1e-6, mechanism="ellipsoid")
    fit.save(tmp_path / "a.nc")
    again = dp.load(tmp_path / "a.nc")
    assert str(again.summary()) == str(fit.summary())
    assert (again.release.ball.axes == fit.release.ball.axes).all()


def test_weights_and_moments_alone_are_refused():
    table, book, _ = alike(50)
    rows = {**table, "w": np.ones(50)}
    words = {"eps": 1.0, "delta": 1e-6, "mechanism": "ellipsoid", "weights": "w"}
    with pytest.raises(ArgumentError, match="weights="):
        dp.dp_lm(FORMULA, rows, codebook=book | {"w": (0, 1)}, **words)
    plan = Ellipsoid().plan(facts(2), ZCDP(0.1))
    with pytest.raises(ArgumentError, match="measure"):
        Ellipsoid().release(Statistic("moments", np.zeros((3, 3), object), 0), plan, seeded(1))
