"""Numbers of rows and of levels in reports: never more rows than there are, and which are one."""

import re

import numpy as np
import pytest

import dpmodels as dp
from dpmodels.reports.header import complete_rows, complete_text

BOOK = dp.codebook(sex=["F", "M"], g=["a", "b", "c", "d"], x=(0, 1))


def flat(fit):
    return re.sub(r"\s+", " ", str(fit.summary()))


def test_no_more_rows_are_complete_than_there_are():
    assert complete_rows(9_828.0, 8.0, 9_822) == "9,822 rows (noise sd 8.0; released 9,828)"
    assert complete_rows(9_812.0, 8.0, 9_822) == "9,812 rows (noise sd 8.0)"
    assert complete_rows(9_828.0, 8.0) == "9,828 rows (noise sd 8.0)"
    assert complete_text(9_828.0, 8.0, 9_822) == complete_rows(9_828.0, 8.0, 9_822)


@pytest.mark.parametrize("verb", [dp.dp_mean, dp.dp_var, dp.dp_quantile])
def test_no_table_prints_more_rows_than_the_public_number(verb):
    # Half of the releases have more complete rows than rows: false alarm of none 2 ** -20.
    rows, over = {"x": np.linspace(0, 1, 400)}, 0
    formula = "~ x" if verb is dp.dp_quantile else "x ~ 1"
    with dp.simulation(seed=2):
        for _ in range(20):
            fit = verb(formula, rows, codebook=BOOK, eps=2.0)
            over += float(fit.counts.sum()) > 400.5
            shown = flat(fit)
            complete = int(re.search(r"Complete: (\d+) rows", shown)[1])
            assert complete <= 400
            assert ("released" in shown) == (round(float(fit.counts.sum())) > 400)
            if verb is not dp.dp_quantile:
                assert int(re.search(r"\(all\) (\d+)", shown)[1]) <= 400
    assert over >= 1


def test_pooled_levels_are_named():
    rng = np.random.default_rng(1)
    rows = {"sex": rng.choice(["F", "M"], 3_000), "g": rng.choice(["a", "b"], 3_000)}
    with dp.simulation(seed=3):
        fit = dp.dp_table("~ sex + g", rows, codebook=BOOK, eps=0.5)
    test = fit.chi2_test()
    assert test.pooled[0] == ()
    assert set(test.pooled[1]) > {2, 3}
    assert test.df == 1
    assert np.isfinite(test.pvalue)
    named = ", ".join("abcd"[i] for i in test.pooled[1])
    assert f"Test: levels {named} of g pooled, too few rows for the noise." in flat(fit)
