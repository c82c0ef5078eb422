"""Audits of recipes whose true loss is known: verdicts, bounds, findings, refusals."""

import math

import numpy as np
import pytest
from scipy import stats

import dpmodels as dp
from dpmodels.audit.scores import norm, typical
from dpmodels.audit.verb import _shaved
from dpmodels.errors import ArgumentError, BudgetError, NotAvailable
from dpmodels.privacy import gaussian_multiplier

PAIR = dp.audit.Pair(0.0, 1.0, name="0 against 1")
SURE = 1 - 1e-6
MULTIPLIER = gaussian_multiplier(dp.ApproxDP(1.0, 1e-5))


def gaussian(scale, columns=3, seed=5):
    rng = np.random.default_rng(seed)
    shift = np.ones(columns) / math.sqrt(columns)
    return lambda rows, runs: rows * shift + rng.normal(size=(runs, columns)) * scale


def laplace(scale, seed=5):
    rng = np.random.default_rng(seed)
    return lambda rows, runs: rows + rng.laplace(scale=scale, size=(runs, 1))


def never(rows):
    raise AssertionError("the batch stands for it")


def audited(batch, **words):
    usual = {"eps": 1.0, "numerics": "idealised", "runs": 4_000, "batch": batch}
    return dp.audit(never, PAIR, **(usual | words))


@pytest.mark.parametrize("runs", [200, 10_000])
def test_rates_of_chosen_events_are_raised_to_the_bound_of_binomials(runs):
    """Raised rates are Clopper and Pearson's bounds at 2.5 standard deviations, to a factor 2."""
    count = np.array([0, 1, 3, 10, 50, 100, 150])
    bound = stats.beta.ppf(stats.norm.cdf(2.5), count + 1, runs - count)
    raised = _shaved((count + 0.5) / (runs + 1), runs)
    assert (bound <= raised).all()
    assert (raised < 2 * bound).all()


@pytest.mark.product
def test_correct_noise_is_flagged_no_more_often_than_stated():
    # Exact claims, the hardest. False-alarm rate 1e-6: more than this many of 60 at 5 % each.
    limit = stats.binom.isf(1e-6, 60, 0.05)
    words = {"runs": 800, "tests": ["difference"], "delta": 1e-5}
    batch = gaussian(MULTIPLIER)
    results = [audited(batch, law="gaussian", **words) for _ in range(30)]
    results += [audited(laplace(1.0, seed), runs=800, tests=["difference"]) for seed in range(30)]
    assert sum(result.verdict == "VIOLATION" for result in results) <= limit


def test_every_score_together_flags_no_correct_noise():
    # False alarms: 1e-6 each.
    assert audited(laplace(1.0), confidence=SURE).verdict == "consistent"
    words = {"delta": 1e-5, "law": "gaussian", "confidence": SURE}
    assert audited(gaussian(MULTIPLIER), **words).verdict == "consistent"


@pytest.mark.product
def test_a_missing_root_of_two_is_caught_by_the_curve_and_not_by_eps():
    batch = gaussian(MULTIPLIER / math.sqrt(2), columns=15)
    words = {"runs": 20_000, "delta": 1e-5, "tests": ["difference", "whitened"]}
    audit = audited(batch, law="gaussian", **words)
    assert audit.verdict == "VIOLATION"
    assert audit.mu_lower > 1 / MULTIPLIER
    assert audited(batch, **words).verdict == "consistent"


@pytest.mark.parametrize("runs", [4_000, 40_000])
def test_bounds_come_near_the_truth_and_stay_below(runs):
    # The bound is above the truth with probability 1e-6.
    audit = audited(laplace(0.5), runs=runs, confidence=SURE, tests=["laplace"])
    assert audit.verdict == "VIOLATION"
    assert (1.3 if runs < 10_000 else 1.8) < audit.eps_lower <= 2.0


def test_bounds_by_gaussian_noise():
    words = {"runs": 40_000, "tests": ["difference"]}
    audit = audited(gaussian(MULTIPLIER), delta=1e-5, law="gaussian", **words)
    assert 0.8 / MULTIPLIER < audit.mu_lower < 1.1 / MULTIPLIER
    assert 0.75 < audit.eps_gaussian < 1.1
    with pytest.raises(NotAvailable, match="ZCDP"):
        _ = audit.rho_lower


@pytest.mark.product
def test_claims_of_zcdp_are_held_against_their_curve():
    rho, words = 0.5, {"runs": 10_000, "tests": ["difference"]}
    right = dp.audit(
        never, PAIR, budget=dp.ZCDP(rho), numerics="idealised", batch=gaussian(1.0), **words
    )
    assert right.verdict == "consistent"
    assert 0.4 * rho < right.rho_lower <= rho
    wrong = dp.audit(
        never, PAIR, budget=dp.ZCDP(rho), numerics="idealised", batch=gaussian(0.5), **words
    )
    assert wrong.verdict == "VIOLATION"
    with pytest.raises(NotAvailable, match="gaussian"):
        _ = wrong.mu_lower


def test_a_score_of_the_auditor_is_used():
    rng = np.random.default_rng(3)

    def parity(rows, runs):
        draws = rng.integers(0, 1000, size=(runs, 1)) * 2
        return draws + (rng.uniform(size=(runs, 1)) < 0.05 + 0.9 * rows)

    audit = audited(parity, score=lambda values: values[:, 0] % 2, tests=["difference"])
    assert audit.verdict == "VIOLATION"
    assert audit.events[0].score == "score"
    assert 2.0 < audit.eps_lower < math.log(19)


def test_what_floating_point_gives_away_counts_where_the_claim_is_exact():
    audit = audited(laplace(1.0), numerics="exact", confidence=SURE)
    assert audit.verdict == "VIOLATION"
    assert audit.events[0].score == "low bits"
    assert "numerics" in str(audit.summary(notes="all"))


def test_confidence_is_shared_by_all_tests():
    audit = audited(gaussian(MULTIPLIER), delta=1e-5, law="gaussian", confidence=0.9, runs=400)
    assert sum(event.error for event in audit.events) == pytest.approx(0.1)
    assert [event.claim.unit for event in audit.events] == ["mu", "eps"]


def test_five_eighths_of_the_runs_are_counted():
    audit = audited(laplace(1.0), runs=1_000)
    assert audit.counted == 625
    assert audit.events[0].counts.rows_runs == audit.events[0].counts.neighbour_runs == 625


def test_the_summary_says_it_all():
    audit = audited(laplace(0.4), runs=4_000)
    text = str(audit.summary())
    for word in ("VIOLATION", "eps = 1", "0 against 1", "4,000 a side", "95%", "laplace"):
        assert word in text or (word == "laplace" and audit.events[0].score in text)
    assert max(map(len, text.splitlines())) <= 100
    assert audit.summary().as_latex().startswith("%")
    assert "<table" in audit.summary().as_html()
    assert audit.summary().as_markdown().startswith("#")
    assert audit.glance().loc[0, "verdict"] == "VIOLATION"
    assert audit.tidy().loc[0, "lower"] == audit.eps_lower
    assert "VIOLATION" in repr(audit)


@pytest.mark.expensive
def test_the_picture_has_the_claim_and_the_points():
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    audit = audited(laplace(0.4), tests=["laplace"])
    ax = audit.plot(Figure().subplots())
    assert (ax.get_xlim(), ax.get_ylim()) == ((0.0, 1.0), (0.0, 1.0))
    assert len(ax.patches) == len(audit.points) > 3
    assert "VIOLATION" in ax.get_title()


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ({"runs": 0}, "runs"),
        ({"runs": 2.5}, "runs"),
        ({"runs": True}, "runs"),
        ({"confidence": 1.0}, "confidence"),
        ({"confidence": "95%"}, "confidence"),
        ({"tests": "linear"}, "tests"),
        ({"tests": ["linear"]}, "tests"),
        ({"law": "laplace"}, "law"),
        ({"numerics": "fast"}, "numerics"),
        ({"batch": lambda rows, runs: np.zeros((runs + 1, 2))}, "batch"),
    ],
)
def test_arguments_are_refused_by_name(words, name):
    with pytest.raises(ArgumentError, match=name):
        audited(**({"batch": laplace(1.0)} | words))


def test_what_is_no_recipe_or_no_pair_is_refused():
    with pytest.raises(ArgumentError, match="recipe"):
        dp.audit(3.0, PAIR, eps=1.0)
    with pytest.raises(ArgumentError, match="pair"):
        dp.audit(abs, (0.0, 1.0), eps=1.0)
    with pytest.raises(ArgumentError, match="pair"):
        dp.audit(abs, eps=1.0)
    with pytest.raises(BudgetError):
        dp.audit(abs, PAIR)
    with pytest.raises(ArgumentError, match="adjacency"):
        dp.audit.Pair(0.0, 1.0, adjacency="swap")


def test_a_typical_size_is_the_mean_deviation_of_both_tables():
    middle, size = typical(np.array([[0.0, 3.0], [1.0, 3.0]]), np.array([[2.0, 3.0], [7.0, 3.0]]))
    assert (middle.tolist(), size.tolist()) == ([1.5, 3.0], [2.0, 1.0])


def test_distances_are_in_mean_deviations_of_each_coordinate():
    rows, neighbour = np.array([[4.0, -50.0], [6.0, 50.0]]), np.array([[2.0, 0.0], [8.0, 0.0]])
    values = np.array([[2.0, 0.0], [0.0, 100.0], [6.0, 100.0]])
    middle, deviations = np.array([5.0, 0.0]), np.array([2.0, 25.0])
    expected = np.linalg.norm((values - middle) / deviations, axis=1)
    assert np.abs(norm(rows, neighbour)(values)) == pytest.approx(expected)
