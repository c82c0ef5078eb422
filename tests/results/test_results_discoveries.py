"""False discovery rates of results that have p-values, and their pictures."""

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

import dpmodels as dp
from dpmodels.errors import ArgumentError
from dpmodels.results.discoveries import discoveries

RNG = np.random.default_rng(1)
X = RNG.uniform(-1, 1, (4_000, 4))
Y = np.clip(X[:, 0] + 0.5 * X[:, 1] + RNG.normal(0, 0.3, 4_000), -3, 3)
ROWS = {"y": Y, "k": np.where(Y > 0, "b", "a"), **dict(zip("stuv", X.T, strict=True))}
BOOK = dp.codebook.uniform(["s", "t", "u", "v"], (-1, 1)) | dp.codebook(y=(-3, 3), k=["a", "b"])
WORDS = {"codebook": BOOK, "eps": 2.0, "delta": 1e-6}


@pytest.fixture(scope="module")
def fit():
    with dp.simulation(seed=1):
        return dp.dp_lm("y ~ s + t + u + v", ROWS, **WORDS)


@pytest.mark.parametrize("method", ["bh", "by"])
def test_slopes_are_hypotheses_and_the_intercept_is_none(fit, method):
    discovered = fit.fdr(0.05, method)
    expected = multipletests(fit.pvalues[1:], 0.05, f"fdr_{method}")
    table = discovered.tidy().set_index("hypothesis").loc[list("stuv")]
    assert table["rejected"].tolist() == expected[0].tolist()
    np.testing.assert_allclose(table["p_adjusted"], expected[1])
    assert set(discovered.rejected) >= {"s", "t"}
    assert (discovered.hypotheses, discovered.names) == (4, ("s", "t", "u", "v"))
    text = str(discovered.summary())
    assert "intercept is not tested" in " ".join(text.split())
    assert "Intercept" not in text


def test_other_results_have_them_too():
    with dp.simulation(seed=1):
        glm = dp.dp_glm("k ~ s + t + u", ROWS, **{**WORDS, "eps": 20.0})
        test = dp.dp_ttest("s ~ k", ROWS, **WORDS)
        overview = dp.dp_summary("s + t + u ~ k", ROWS, **WORDS)
        joint = dp.dp_moments("~ y + s + t + u", ROWS, **WORDS)
    assert "s" in glm.fdr().rejected
    assert test.fdr().rejected == ["a - b"]
    assert set(overview.fdr(0.05).names) == {"s", "t", "u"}
    assert "s" in joint.lm("y ~ .").fdr(q=0.1).rejected


def test_what_has_no_p_value_counts_and_is_not_rejected(fit):
    lost = fit.pvalues.copy()
    lost["u"] = np.nan
    discovered = discoveries(fit, lost, 0.1, "bh")
    assert discovered.hypotheses == 4
    assert "u" not in discovered.rejected
    assert "1 without a p-value" in " ".join(str(discovered.summary()).split())


@pytest.mark.guarding
@pytest.mark.parametrize("words", [{"q": 0.0}, {"q": 1}, {"q": "a"}, {"method": "holm"}])
def test_other_levels_and_methods_are_refused(fit, words):
    with pytest.raises(ArgumentError, match=next(iter(words))):
        fit.fdr(**words)


def test_the_picture_has_sorted_p_values_and_the_line(fit):
    discovered = fit.fdr(0.05)
    ax = discovered.plot()
    p_values = sorted(np.concatenate([line.get_ydata() for line in ax.lines[:-1]]))[::-1]
    expected = -np.log10(np.maximum(np.sort(fit.pvalues[1:]), 1e-16))
    np.testing.assert_allclose(p_values, expected)
    np.testing.assert_allclose(ax.lines[-1].get_ydata(), -np.log10(0.05 * np.arange(1, 5) / 4))
    assert ax.texts, "a simulation is stamped"
