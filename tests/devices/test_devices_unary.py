"""Many levels, a bit for each."""

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, BudgetError, FormulaError, FrameError, NotAvailable
from dpmodels.models.survey import survey_spec
from dpmodels.results.validate import require_release

TOWNS = [f"town{place}" for place in range(30)]
DEVICE = dp.unary_response(TOWNS, eps=1.0)


def law(truth, levels, eps):
    """The probability of each answer by the stated law of bits; -1 is a missing one."""
    rare = 1 / (math.exp(eps) + 1)
    chances = [0.5 if place == truth else rare for place in range(levels)]
    return {
        bits: math.prod(p if bit else 1 - p for bit, p in zip(bits, chances, strict=True))
        for bits in product((0, 1), repeat=levels)
    }


@pytest.mark.parametrize("eps", [0.2, 1.0, 4.0])
def test_neighbours_are_told_apart_by_eps_and_no_more(eps):
    laws = [law(truth, 3, eps) for truth in (-1, 0, 1, 2)]
    ratios = [law[bits] / second[bits] for law, second in product(laws, repeat=2) for bits in law]
    assert max(ratios) == pytest.approx(math.exp(eps))


def test_bits_have_their_law_and_come_under_the_levels_names():
    # Each of 60 frequencies beyond 6 standard deviations: in all 1e-7.
    rows, rare = 20_000, 1 / (math.e + 1)
    with dp.simulation(seed=6):
        bits = DEVICE.randomize(pd.Series(["town3"] * rows, index=range(5, rows + 5)))
        none = DEVICE.randomize([None] * rows)
    assert list(bits) == TOWNS
    assert bits.index[0] == 5
    sd = math.sqrt(0.25 / rows)
    assert abs(bits.town3.mean() - 0.5) < 6 * sd
    assert (abs(bits.drop(columns="town3").mean() - rare) < 6 * sd).all()
    assert (abs(none.mean() - rare) < 6 * sd).all()


@pytest.mark.expensive
def test_a_survey_of_a_bit_has_the_published_variance():
    # The estimate is beyond 6 standard errors at a rate of 2e-9.
    rows = 20_000
    towns = np.array(TOWNS)[np.minimum(np.random.default_rng(3).geometric(0.3, rows), 29)]
    with dp.simulation(seed=6):
        bits = DEVICE.randomize(towns)
    fit = dp.dp_survey("~ town1", bits, device=DEVICE.questions)
    row = fit.tidy().iloc[1]
    assert abs(row.estimate - (towns == "town1").mean()) < 6 * row.noise_sd
    rare = dp.dp_survey("~ town29", bits, device=DEVICE.questions).tidy().iloc[1]
    published = math.sqrt(4 * math.e / rows) / (math.e - 1)
    assert rare.noise_sd == pytest.approx(published, rel=0.02)
    assert fit.eps == 1.0
    one_of_thirty = (math.e + 28) / (math.e - 1) ** 2
    assert one_of_thirty > 4 * math.e / (math.e - 1) ** 2


@pytest.mark.parametrize(
    ("levels", "eps", "kind"),
    [("Ulm", 1.0, ArgumentError), (TOWNS, 0.0, BudgetError), (TOWNS, 21.0, BudgetError)],
)
def test_a_unary_device_that_is_none_is_refused(levels, eps, kind):
    with pytest.raises(kind):
        dp.unary_response(levels, eps=eps)


def test_a_device_says_what_all_its_bits_cost():
    assert "3 levels, eps = 0.5 for all bits" in repr(dp.unary_response(["a", "b", "c"], eps=0.5))


# The table of all levels.

SMALL = dp.unary_response(["Ulm", "Bonn", "Rust"], eps=1.0)
RNG = np.random.default_rng(4)
with dp.simulation(seed=5):
    BITS = SMALL.randomize(RNG.choice(["Ulm", "Bonn", "Rust"], 1_500, p=[0.6, 0.3, 0.1]))
BITS = BITS.assign(w=RNG.uniform(1, 3, 1_500), region=RNG.choice(["n", "s"], 1_500))
BOOK = dp.codebook(w=(0, 5), region=["n", "s"])


def table(answers=BITS, formula="~ town", **words):
    return dp.dp_survey(formula, answers, codebook=BOOK, device={"town": SMALL}, **words)


@pytest.mark.parametrize(
    "words", [{}, {"weights": "w"}, {"weights": "w", "strata": {"region": {"n": 0.3, "s": 0.7}}}]
)
def test_each_line_of_the_table_is_that_of_its_own_column(words):
    lines = table(**words).tidy().set_index("town")
    for town in SMALL.levels:
        alone = dp.dp_survey(
            f"~ {town}", BITS, codebook=BOOK, device=SMALL.questions, **words
        ).tidy()
        for name in ("estimate", "std_error", "noise_sd", "conf_low", "noise_high", "answers"):
            assert lines.loc[town, name] == pytest.approx(alone[name].iloc[1])


def test_the_loss_is_counted_once_and_the_counts_are_of_respondents():
    fit = table()
    assert fit.eps == 1.0
    assert fit.release.guarantee.eps == 1.0
    assert fit.counts.sum() <= fit.ncomplete == 1_500
    assert fit.likeliest.sum().item() == pytest.approx(1.0)
    missing = BITS.astype(object)
    missing.loc[:9, "Ulm"] = [None, 2, "x", np.nan, -1, 0.5, "yes", "", 7, None]
    assert (table(missing).ncomplete, table(missing).nincomplete) == (1_490, 10)


def test_levels_in_another_order_have_the_same_shares():
    book = BOOK | {"town": dp.codebook(town=["Rust", "Ulm", "Bonn"])["town"]}
    turned = dp.dp_survey("~ town", BITS, codebook=book, device={"town": SMALL})
    np.testing.assert_allclose(
        turned.tidy().set_index("town")["estimate"][list(SMALL.levels)], table().tidy()["estimate"]
    )


def test_a_table_of_bits_is_saved_and_a_forged_one_refused(tmp_path):
    fit = table(weights="w")
    fit.save(tmp_path / "fit.nc")
    assert str(dp.load(tmp_path / "fit.nc").summary()) == str(fit.summary())
    spec = survey_spec(fit.request)
    require_release(spec, fit.release)
    for forged in ({"channels": fit.release.channels * 2}, {"unary": None}):
        with pytest.raises(FrameError):
            require_release(spec, replace(fit.release, **forged))


@pytest.mark.parametrize("formula", ["~ town + region", "~ (town == 'Ulm')", "town == 'Ulm' ~ w"])
def test_bits_are_read_as_the_one_question_of_a_table(formula):
    with pytest.raises(FormulaError):
        table(formula=formula)
    with pytest.raises(NotAvailable, match="a bit for each level"):
        table().goodness_of_fit([0.5, 0.3, 0.2])


def test_estimates_of_all_levels_are_unbiased():
    """Each of 30 estimates beyond 6 standard errors: in all 6e-8."""
    shares = np.append(0.3 * 0.7 ** np.arange(29), 0.7**29)
    truths = np.random.default_rng(9).choice(TOWNS, 20_000, p=shares)
    with dp.simulation(seed=10):
        bits = DEVICE.randomize(truths)
    lines = dp.dp_survey("~ town", bits, device={"town": DEVICE}).tidy()
    away = (lines["estimate"] - shares) / lines["std_error"]
    assert np.abs(away).max() < 6
    assert 0.4 < away.std() < 1.8
