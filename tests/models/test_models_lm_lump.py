"""dp_lm(lump=): levels of few rows are merged into "Other", by noisy numbers of rows."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp
from dpmodels.errors import ArgumentError, FrameError
from dpmodels.models.release import result_of, specified

SHARES = [0.35, 0.25, 0.2, 0.15, 0.02, 0.015, 0.01, 0.005]
BOOK = dp.codebook(x=(0, 10), job=list("abcdwxyz"), sex=["f", "m"], y=(0, 40))
WORDS = {"codebook": BOOK, "eps": 2.0, "delta": 1e-6}
MERGED = (("job", ("w", "x", "y", "z")),)


def table(rows=5_000, seed=1):
    rng = np.random.default_rng(seed)
    job, x = rng.choice(8, rows, p=SHARES), rng.uniform(0, 10, rows)
    y = 5 + x + np.array([0, 1, 2, -1, 3, 3, 3, 3])[job] + rng.normal(0, 2, rows)
    sex = np.array(["f", "m"])[rng.integers(0, 2, rows)]
    return pd.DataFrame(
        {"x": x, "job": np.array(list("abcdwxyz"))[job], "sex": sex, "y": y.clip(0, 40)}
    )


def fitted(formula="y ~ x + job + sex", seed=1, **words):
    with dp.simulation(seed=seed):
        return dp.dp_lm(formula, table(), **{**WORDS, "lump": 200, **words})


@pytest.mark.parametrize("mechanism", ["scores", "moments", "ellipsoid", "adassp"])
def test_rare_levels_are_one_coefficient(mechanism, tmp_path):
    fit = fitted(mechanism=mechanism)
    assert fit.release.lumped == MERGED
    assert [name for name in fit.params.index if "job" in name] == [
        *(f"job[T.{level}]" for level in "bcd"),
        "job[T.Other]",
    ]
    rows = pd.DataFrame({"x": [5.0] * 3, "job": ["w", "z", "a"], "sex": ["f"] * 3})
    pooled, same, first = fit.predict(rows)
    assert pooled == same == pytest.approx(first + fit.params["job[T.Other]"])
    fit.save(tmp_path / "fit.nc")
    assert str(dp.load(tmp_path / "fit.nc").summary()) == str(fit.summary())
    assert 'merged into "Other" (job: 4 levels; noise sd' in " ".join(str(fit.summary()).split())


@pytest.mark.parametrize("vcov", ["iid", "HC"])
def test_a_large_budget_gives_least_squares_of_the_merged_levels(vcov):
    fit = fitted("y ~ x*job + sex", eps=1e9, mechanism="moments", vcov=vcov)
    rows = table()
    job = rows["job"].where(~rows["job"].isin(list("wxyz")), "Other")
    dummies = np.column_stack([job == level for level in ("b", "c", "d", "Other")]).astype(float)
    x, sex = rows["x"].to_numpy()[:, None], (rows[["sex"]] == "m").to_numpy(float)
    design = np.hstack([np.ones_like(x), dummies, sex, x, x * dummies])
    slopes = np.linalg.lstsq(design, rows["y"].to_numpy(), rcond=None)[0]
    assert (np.abs(fit.params - slopes) / fit.bse).max() < 0.05


def test_the_budget_of_the_counts_is_charged_and_part_of_the_whole():
    plain = fitted(lump=None)
    fit = fitted()
    assert len(fit.release.events) == len(plain.release.events) + 1
    assert plain.release.lumped is None
    ledger = dp.Ledger(eps=2.0, delta=1e-6)
    dp.dp_lm("y ~ x + job", table(), **WORDS, lump=200, ledger=ledger)
    with pytest.raises(dp.errors.LedgerError):
        dp.dp_mean("~ x", table(), codebook=BOOK, eps=0.1, ledger=ledger)


def test_factors_without_two_small_levels_stay():
    fit = fitted(lump=2)
    assert fit.release.lumped == ()
    assert len(fit.params) == 1 + 7 + 1 + 1
    assert "none merged" in " ".join(str(fit.summary()).split())


def test_of_small_levels_alone_the_most_frequent_stays():
    fit = fitted(lump=1e6)
    ((name, levels),) = fit.release.lumped
    assert (name, len(levels)) == ("job", 7)
    assert "job[T.Other]" in fit.params.index


@pytest.mark.guarding
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"lump": 0}, "lump"),
        ({"lump": "few"}, "lump"),
        ({"delta": 0.0, "mechanism": "moments"}, "write delta"),
        ({"weights": "x"}, "weights"),
        ({"formula": "y ~ x + sex"}, "three levels"),
        ({"formula": "y ~ x + (job == 'z')"}, "three levels"),
    ],
)
def test_what_cannot_be_merged_is_refused_before_the_charge(words, message):
    ledger = dp.Ledger(eps=10.0, delta=1e-5)
    formula = words.pop("formula", "y ~ x + job")
    with pytest.raises(ArgumentError, match=message):
        dp.dp_lm(formula, table(100), **{**WORDS, "lump": 20, **words}, ledger=ledger)
    assert ledger.charges == 0


def test_a_file_may_not_merge_what_the_formula_lacks():
    fit = fitted(mechanism="moments")
    for strange in ((("job", ("w",)),), (("sex", ("f", "m")),), (("job", ("w", "nobody")),)):
        release = replace(fit.release, lumped=strange)
        with pytest.raises(FrameError, match=r"release\.lumped"):
            result_of(fit.request, specified(fit.request, release), release, "", "")
