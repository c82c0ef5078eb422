"""A line first, then moments about it, with Laplace noise: what it costs and what it reports."""

import warnings
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from moment_cases import fraction_spent
from scipy.stats import binom
from test_mechanisms_scores import RELATIONS, ROUGH, facts, least_squares, measured, survey

import dpmodels as dp
from dpmodels.errors import BudgetWarning
from dpmodels.mechanisms.add_noise import GAUSSIAN, LAPLACE
from dpmodels.mechanisms.regression import ScoresPure, scores
from dpmodels.mechanisms.regression.column_location import column_ranges, powers_noise
from dpmodels.noise.lattice import choose_lattice
from dpmodels.postprocess.ellipsoid import Cells
from dpmodels.postprocess.score_rounds import LENGTHS
from dpmodels.privacy import ZCDP, ApproxDP, PureDP, adjacency
from dpmodels.statistics.passes import column_counts
from dpmodels.statistics.score_moments import power_sums, score_lengths, score_moments

CORNERS = np.array(list(product([-1.0, 1.0], repeat=3)))


@pytest.mark.parametrize(
    "guarantee", [PureDP(0.1), PureDP(1e3), ZCDP(0.1), ZCDP(1e-12), ApproxDP(1.0, 1e-6)], ids=str
)
def test_the_rounds_compose_to_the_guarantee_and_use_it_up(guarantee):
    spent = PureDP(guarantee.eps) if isinstance(guarantee, ApproxDP) else guarantee
    for relation in RELATIONS:
        plan = ScoresPure().plan(facts(4, relation), guarantee)
        assert len(plan.events) == len(scores.SHARES_PURE)
        assert 1 - 1e-6 < fraction_spent(plan.events, spent) <= 1


def rounds_of(passes, plan):
    """Each round's answer for some rows, in scales of its noise."""
    size, scales = plan.facts.columns, plan.scales
    ranges = column_ranges(passes.blocks, passes.scaling)
    noise = powers_noise(plan, "powers", ranges, LAPLACE)
    lattice = choose_lattice(len(ranges.column), LAPLACE.room * noise.total)
    sums = passes.measured(power_sums, ranges.powers, lattice).cross()[0].astype(float)
    sums /= np.append(noise.rows, np.full(len(sums) - 1, noise.total)) * lattice.radius
    finer = choose_lattice(size + 1, LAPLACE.room * scales["final"])
    exact = passes.measured(score_moments, ROUGH, finer).cross()[0].astype(float)
    upper = exact[np.triu_indices(size + 1)] / (finer.radius + np.sqrt(size)) ** 2
    limits = (0.3, 1.0, 4.0), (0.5, 2.0)
    lengths = passes.measured(score_lengths, ROUGH, *limits).cross()[0].astype(float)
    columns = passes.measured(column_counts, 20).cross()[0].astype(float)
    return {
        "powers": sums,
        "columns": columns.ravel() / scales["columns"],
        "lengths": lengths / scales["lengths"],
        "final": upper / scales["final"],
    }


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("weights", [None, "w"])
@pytest.mark.parametrize("eps", [1.0, 3e-10])
def test_neighbours_are_within_the_sensitivity_of_each_round(relation, weights, eps):
    """All pairs of corners, small, odd and weighted rows, on a fine and on a coarse lattice."""
    plan = ScoresPure().plan(facts(3, relation), PureDP(eps))
    multipliers = dict(zip(scores.SHARES_PURE, plan.events, strict=True))
    rng = np.random.default_rng(7)
    edges = [[np.nan, 1, 1], [np.inf, -np.inf, 1e308], [0, 0, 0], [5e-324, 1e-9, -0.3]]
    rows = np.vstack([CORNERS, 0.01 * CORNERS, rng.uniform(-1, 1, (6, 3)), edges])
    if weights:
        levels = [0.0, 1e-9, 0.3, 2.0, np.nan]
        rows = np.array([[*row, w] for row in np.vstack([CORNERS, edges[1:]]) for w in levels])
    answers = [rounds_of(measured(row[None], plan, weights=weights), plan) for row in rows]
    for name, event in multipliers.items():
        if name not in answers[0]:
            continue
        values = np.array([answer[name] for answer in answers])
        differences = values[:, None] - values if relation == "replace" else values
        furthest = float(np.abs(differences).sum(axis=-1).max()) * event.multiplier
        assert 0.6 < furthest <= 1 + 1e-9, (name, furthest)


@pytest.mark.parametrize("terms", range(1, 8))
def test_moments_of_scores_differ_by_no_more_than_the_bound(terms):
    """All signs of equal terms, with residuals between their ends, and random rows."""
    signs = np.array(list(product([-1.0, 1.0], repeat=terms)))[: 2 ** (terms - 1)]
    rng = np.random.default_rng(terms)
    directions = rng.normal(size=(100, terms))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    t = np.vstack([signs / np.sqrt(terms), directions, np.zeros(terms)]) * np.sqrt(0.5)
    ends = np.sqrt(0.5) * np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
    rows = np.vstack([np.column_stack([t, np.full(len(t), e)]) for e in ends])
    upper = np.triu_indices(terms + 1)
    squares = np.einsum("ij,ik->ijk", rows, rows)[:, upper[0], upper[1]]
    single = scores.absolute_scores(adjacency("add-remove"), terms)
    assert np.abs(squares).sum(axis=1).max() == pytest.approx(single, rel=1e-9)
    replaced = scores.absolute_scores(adjacency("replace"), terms)
    # The first row, for the symmetry of signs, and the other rows.
    furthest = max(
        float(np.abs(squares - squares[at]).sum(axis=1).max())
        for at in (*range(3), *range(len(squares) - 120, len(squares)))
    )
    assert 0.85 * replaced < max(furthest, single) <= replaced * (1 + 1e-12)


@pytest.mark.parametrize("relation", RELATIONS)
def test_no_round_has_less_noise_than_it_is_charged_for(relation):
    """In fractions, since a product of floats that is rounded down would be charged too little."""
    plan, changed = ScoresPure().plan(facts(4, relation), PureDP(1.0)), 1 + (relation == "replace")
    sensitivities = {
        "columns": Fraction(4 * changed),
        "lengths": Fraction(2 * changed),
        "powers": Fraction(1),
        "narrowed": Fraction(1),
        "final": Fraction(scores.absolute_scores(adjacency(relation), 4)),
    }
    for name, event in zip(scores.SHARES_PURE, plan.events, strict=True):
        if name in sensitivities:
            smallest = sensitivities[name] * Fraction(event.multiplier)
            assert smallest < Fraction(plan.scales[name]) < smallest * Fraction(1 + 1e-9)


def test_laplace_noise_alone_is_seldom_taken_for_rows():
    """In 25 cells with a probability below .5 %, as normal noise at the threshold of its sd."""
    tail = LAPLACE.beyond(scores.FALSE_ALARM) / LAPLACE.sd / GAUSSIAN.beyond(scores.FALSE_ALARM)
    sds = np.linspace(3, 7, 401)
    smallest = min(
        float(sd) for sd in sds if Cells(LENGTHS, np.full(25, sd), 1.0, tail).detected.any()
    )
    assert 25 * np.exp(-np.sqrt(2) * smallest) / 2 < 0.006
    assert smallest < 6


def test_auto_without_delta_is_about_a_line_where_that_is_quieter():
    """Levels and numbers of two values fill their bounds, and a design keeps its moments."""
    table, book = survey(300)
    binary = {"a": [0, 1, 1] * 100, "b": [0, 1] * 150}
    binary_book = dp.codebook(**{name: dp.Numeric(0, 1, step=1) for name in binary})
    weights = {"weights": "children", "bounds": (1, 8), "weights_are": "design"}

    def name(formula, rows, declared, **options):
        with dp.simulation(seed=1):
            fit = dp.dp_lm(formula, rows, codebook=declared, eps=1.0, **options)
        return fit.release.info.name

    assert name("y ~ income + region", table, book) == "scores_pure"
    assert name("b ~ a", binary, binary_book) == "moments"
    declared = book | {"children": (1, 8)}
    assert name("y ~ income", table, declared, design=dp.design(**weights)) == "moments"


def test_a_call_whose_errors_are_mostly_noise_is_warned_of():
    """With what a delta would do; not where noise is less, nor with delta."""
    table, book = survey(4_000)
    words = {"codebook": book, "eps": 1.0}
    expected = "noise will be most of every slope's error .* n = 4,000: delta = 1e-06, or about eps"
    with pytest.warns(BudgetWarning, match=expected):
        dp.dp_lm("y ~ income + children + region", table, **words)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dp.dp_lm("y ~ income + children + region", table, **words, delta=1e-6)
        dp.dp_lm("y ~ income + children + region", table, **words | {"eps": 5.0})


@pytest.mark.product
def test_a_survey_is_identified_without_delta_and_covered():
    """Of 20 fits 100 slopes: fewer than 81 of 95 % cover with a probability below 1e-6."""
    covered, offered, lengths = 0, 0, []
    for seed in range(20):
        table, book = survey(10_000, seed)
        plain = least_squares(table)[1:]
        errors = {}
        for mechanism in ("scores_pure", "moments"):
            with dp.simulation(seed=seed):
                fit = dp.dp_lm(
                    "y ~ region + income + children",
                    *(table,),
                    codebook=book,
                    eps=1.0,
                    mechanism=mechanism,
                )
            errors[mechanism] = np.median(np.nan_to_num(fit.bse.to_numpy()[1:], nan=np.inf))
            if mechanism == "scores_pure":
                ends = fit.noise_int().to_numpy()[1:]
                offered += int(fit.identified.sum())
                covered += int(((ends[:, 0] <= plain) & (plain <= ends[:, 1])).sum())
        lengths.append(errors["scores_pure"] / errors["moments"])
    assert covered >= binom.ppf(1e-6, 120, 0.938)
    assert offered >= 130
    assert np.median(lengths) < 0.7
