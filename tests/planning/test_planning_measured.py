"""Plans against the verbs themselves, called on rows drawn one by one."""

import numpy as np
import pandas as pd
import pytest

import dpmodels as dp

BOOK = dp.codebook(wage=(0, 80), age=(18, 80), sex=["F", "M"])
SLOW = [
    ("ttest", "wage ~ sex", 4.0, 1_000, 0.3),
    ("lm", "wage ~ age + sex", {"age": 0.1}, 10_000, 1.0),
    ("mean", "wage ~ sex", 2.0, 1_000, 0.3),
]


@pytest.mark.slow
@pytest.mark.parametrize(("verb", "formula", "effect", "n", "eps"), SLOW)
def test_plans_are_what_the_verb_then_does(verb, formula, effect, n, eps):
    """Rows of a public sample, drawn one by one, and the verb called on each table."""
    runs = 300
    rng = np.random.default_rng(7)
    sample = pd.DataFrame({"age": rng.uniform(20, 70, 2_000), "sex": ["F", "M"] * 1_000})
    slope = 0.1 if verb == "lm" else 0.0
    sample["wage"] = np.clip(30 + slope * sample["age"] + rng.gamma(4, 3, 2_000), 0, 80)
    sample["wage"] += 4.0 * (sample["sex"] == "F") * (verb == "ttest")
    inputs = effect if verb == "mean" else "sample"
    plan = dp.power(
        formula, verb=verb, codebook=BOOK, shape=sample, n=n, eps=eps, effect=inputs
    ).table.iloc[-1]
    errors, rejected = [], []
    for run in range(runs):
        rows = sample.iloc[rng.integers(0, 2_000, n)].reset_index(drop=True)
        with dp.simulation(seed=run):
            fit = getattr(dp, f"dp_{verb}")(formula, rows, codebook=BOOK, eps=eps)
        errors.append(np.ravel(fit.bse)[-1])
        if verb == "mean":
            null = sample["wage"][sample["sex"] == "M"].mean() - effect
            low, high = fit.conf_int().loc["M"]
            rejected.append(not low <= null <= high)
        else:
            rejected.append(np.ravel(fit.pvalue if verb == "ttest" else fit.pvalues)[-1] < 0.05)
    assert plan["std_error"] == pytest.approx(np.median(errors), rel=0.1)
    # Five standard errors of the measured share, beside what the plan leaves open.
    assert plan["power"] == pytest.approx(np.mean(rejected), abs=0.03 + 5 * 0.5 / np.sqrt(runs))
