"""Rows of one person may be alike: errors of every verb allow for it, and the tables say so."""

import math

import numpy as np
import pandas as pd
import pytest
from verbs import forms

import dpmodels as dp
from dpmodels.inference.means import GroupMoments, difference
from dpmodels.inference.proportions import Noise

BOOK = dp.codebook(wage=(-4, 4), age=(-4, 4), sex=["u", "v"], region=["a", "b", "c"])
# Noise of no size that shows: what intervals are long by is sampling.
SURE = {"eps": 1e7, "delta": 1e-6}
ALIKE = forms("alike")


def rows(n=2000, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n).clip(-4, 4)
    y = (0.5 * x + rng.normal(size=n)).clip(-4, 4)
    g = np.where(y + rng.normal(size=n) > 0, "v", "u")
    return pd.DataFrame({"age": x, "wage": y, "sex": g, "region": rng.choice(["a", "b", "c"], n)})


def lengths(fit):
    ends = fit.conf_int()
    return (ends["upper"] - ends["lower"]).to_numpy()


@pytest.mark.parametrize("name", ALIKE)
def test_any_four_rows_make_intervals_twice_as_long(name):
    """Cauchy and Schwarz: of m rows that are one, a sum varies m times as much."""
    # Squares of scores have a noise of 3 % at any budget where rows are read about a line.
    words = SURE | ({"mechanism": "moments"} if name == "lm HC" else {})
    alone, four = (
        lengths(ALIKE[name].ask(rows(), codebook=BOOK, rows=any_rows, **words))
        for any_rows in (None, 4)
    )
    # Wilson's and Fieller's ends, cells of quantiles and eigenvalues near others are not linear.
    tolerance = 0.4 if name.startswith("pca") else 0.15
    assert four / alone == pytest.approx(2.0, rel=tolerance)


def test_tests_of_independence_take_rows_of_one_for_one():
    options = {"codebook": BOOK, "eps": 1e7}
    data = rows()
    data["region"] = np.where(
        np.random.default_rng(2).random(2000) < 0.1, data["sex"], data["region"]
    )
    data["region"] = data["region"].replace({"u": "a", "v": "b"})
    alone, four = (dp.dp_table("~ sex + region", data, rows=rows, **options) for rows in (None, 4))
    ratio = alone.chi2_test().statistic / four.chi2_test().statistic
    assert ratio == pytest.approx(4, rel=1e-3)


def test_persons_in_both_groups_do_not_shorten_a_difference():
    """Exact without noise: the variance that persons give the difference, and its bound."""
    rng = np.random.default_rng(3)
    shares = rng.uniform(size=500)
    # Whoever is high in one group is low in the other: differences vary more than apart.
    first, second = rng.uniform(0.3, 1, 500), np.zeros(500)
    second = np.clip(1 - first + rng.normal(0, 0.05, 500), 0, 1)
    parts, scores, sums = [], [], []
    for c, t in ((shares, first), (1 - shares, second)):
        variances = [c * (1 - t) ** 2, 2 * c * t * (1 - t), c * t**2]
        parts.append([(c * part).sum() for part in (*variances, (1 - c) * (1 - t), (1 - c) * t)])
        scores.append((c * t - (c * t).sum() / c.sum() * c) / c.sum())
        sums.append(c.sum())
    exact = math.sqrt(((scores[0] - scores[1]) ** 2).sum())
    standard_error = math.sqrt((scores[0] ** 2).sum() + (scores[1] ** 2).sum())
    moments = GroupMoments(np.array(parts), Noise("laplace", 1e-12, 0), clustered=True)
    change = difference(moments)
    assert standard_error < exact <= change.sampling_sd


def test_persons_in_one_group_each_are_compared_as_rows_are():
    data = rows(400).assign(id=range(400))
    words = {"codebook": BOOK, "eps": 1e8, "mechanism": "geometric"}
    by_row = dp.dp_ttest("wage ~ sex", data, **words)
    by_person = dp.dp_ttest("wage ~ sex", data, person="id", **words)
    assert by_person.bse == pytest.approx(by_row.bse, rel=1e-3)
    assert by_person.pvalue == pytest.approx(by_row.pvalue, rel=1e-2)


def panel():
    data = rows(900).assign(id=lambda value: value.index % 300)
    return data.assign(wage=data.wage.to_numpy()[data.id] * 0.9)


def text(fit):
    return " ".join(fit.summary().as_text().split())


def test_tables_of_persons_count_persons():
    words = {"codebook": BOOK, "eps": 100.0, "person": "id"}
    printed = text(dp.dp_table("~ region", panel(), **words))
    assert "Observations: 300 persons (public)" in printed
    assert "Persons" in printed
    assert "Complete: 300 persons (noise sd" in printed
    assert "A person counts as one observation" in printed
    assert "clustered by person (id)" in text(dp.dp_mean("wage ~ sex", panel(), **words))


def test_tables_of_some_rows_of_persons_say_how_many_there_are_at_most():
    words = {"codebook": BOOK, "eps": 10.0, "person": "id", "rows": 2}
    fit = dp.dp_table("~ region", panel(), subset="age > 0", **words)
    printed = text(fit)
    assert "Observations: 300 persons (public), at most 2 rows each" in printed
    assert "Subset: age > 0" in printed
    assert "Rows outside the subset count as incomplete: " in printed
    assert "Rows of a person may be dependent: sampling variances are 2 times" in printed
    line = fit.glance().iloc[0]
    assert line["unit"] == "one person (at most 2 rows)"
    # Only the most rows that persons may have is public.
    assert math.isnan(line["nobs"])


def test_tables_of_any_rows_say_what_errors_allow_for():
    printed = text(dp.dp_table("~ region", panel(), codebook=BOOK, eps=10.0, rows=3))
    assert "Observations: 900 (public)" in printed
    assert "Any 3 rows may be dependent: sampling variances are 3 times" in printed


def test_delta_is_held_against_the_number_of_persons():
    words = {"codebook": BOOK, "eps": 10.0, "delta": 2e-4, "mechanism": "gauss"}
    assert "single rows" in text(dp.dp_cov("~ age + wage", panel(), **words))
    assert "single persons" not in text(dp.dp_cov("~ age + wage", panel(), person="id", **words))
    words["delta"] = 1e-3
    assert "single persons" in text(dp.dp_cov("~ age + wage", panel(), person="id", **words))


@pytest.mark.product
def test_found_bounds_and_levels_count_persons(tmp_path):
    words = {"eps": 50.0, "person": "id"}
    data = panel()
    levels = dp.dp_levels("~ region", data, delta=1e-6, **words)
    assert levels.counts.sum() == pytest.approx(300, abs=5)
    assert 1 <= levels.found_with() < 10
    assert "Sampling errors" not in text(levels)
    bounds = dp.dp_bounds("~ wage", data, codebook=dp.codebook(wage=(-400, 400)), **words)
    assert bounds.found["wage"].rows == pytest.approx(300, abs=5)
    assert -6 <= bounds.params.lower.iloc[0] < bounds.params.upper.iloc[0] <= 6
    for fit in (levels, bounds):
        fit.save(tmp_path / "fit.nc", overwrite=True)
        assert text(dp.load(tmp_path / "fit.nc")) == text(fit)


def test_saved_means_of_persons_are_the_same(tmp_path):
    fit = dp.dp_mean("wage ~ sex", panel(), codebook=BOOK, eps=10.0, person="id", rows=2)
    fit.save(tmp_path / "fit.nc")
    assert text(dp.load(tmp_path / "fit.nc")) == text(fit)


def test_persons_in_several_groups_do_not_shorten_tests_and_sums_of_groups():
    """Rows of one person in three groups, all alike: as exact sums over persons have it."""
    rng = np.random.default_rng(4)
    shares, value = rng.dirichlet([1.0] * 3, 600).T, rng.uniform(size=600)
    bernstein = [(1 - value) ** 2, 2 * value * (1 - value), value**2]
    parts = [
        [(c * c * part).sum() for part in bernstein]
        + [(c * (1 - c) * part).sum() for part in (1 - value, value)]
        for c in shares
    ]
    moments = GroupMoments(np.array(parts), Noise("laplace", 1e-12, 0), clustered=True)
    scores = shares * (value - moments.means[:, None])
    for combined in rng.normal(size=(50, 3)):
        exact = ((combined / moments.counts @ scores) ** 2).sum()
        assert exact <= (combined**2 * moments.joint_sampling_sd**2).sum()
    assert moments.together.means[0] == pytest.approx(value.mean())
    assert moments.together.mean_sampling_sd[0] >= value.std() / math.sqrt(600)
    assert moments.together.noise.added == (0, 1, 2, 3, 4) * 3
    weights = shares**2
    alike = (weights * (value - value.mean()) ** 2).sum() / weights.sum()
    assert moments.together.variances[0] == pytest.approx(alike, rel=0.01)
