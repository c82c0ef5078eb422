"""Regressions whose reference level is lost in noise say that contrasts compare the others."""

import numpy as np
import pytest

import dpmodels as dp

BOOK = dp.codebook(y=(0, 10), x=(0, 1), job=["a", "b", "c", "d"])
NOTE = 'contrasts("job") compares the others'


def rows(first):
    """Return rows of four jobs, of which the first, the reference, has few or many."""
    rng = np.random.default_rng(4)
    jobs = rng.choice(list("abcd"), 6_000, p=[first, *[(1 - first) / 3] * 3])
    x = rng.uniform(size=6_000)
    y = np.clip(4 + x + (jobs == "d") + rng.normal(size=6_000), 0, 10)
    return {"y": y, "x": x, "job": jobs}


def fitted(first, formula="y ~ x + job", verb=dp.dp_lm, seed=1):
    with dp.simulation(seed=seed):
        return verb(formula, rows(first), codebook=BOOK, eps=1.0, delta=1e-6)


@pytest.mark.parametrize(
    ("verb", "formula"), [(dp.dp_lm, "y ~ x + job"), (dp.dp_glm, "y > 5 ~ x + job")]
)
def test_a_rare_reference_level_is_named_and_contrasts_compare_the_others(verb, formula):
    fit = fitted(0.001, formula, verb)
    assert not fit.identified[["job[T.b]", "job[T.c]", "job[T.d]"]].any()
    assert "The level of job that others are compared with" in " ".join(str(fit).split())
    assert NOTE in " ".join(str(fit).split())
    pairs = fit.contrasts("job").tidy().set_index("contrast")["std_error"]
    assert np.isfinite(pairs[["b - c", "b - d", "c - d"]]).all()
    assert pairs[["a - b", "a - c", "a - d"]].isna().all()


@pytest.mark.parametrize(
    ("verb", "formula"), [(dp.dp_lm, "y ~ x + job"), (dp.dp_glm, "y > 5 ~ x + job")]
)
def test_a_frequent_reference_level_has_no_such_note(verb, formula):
    fit = fitted(0.25, formula, verb)
    assert fit.identified.all()
    assert NOTE not in fit.summary(notes="all").as_text()


def test_numbers_that_are_not_identified_are_no_levels():
    fit = fitted(0.25, "y ~ I(x / 1000) + I((x - 0.5) ** 2 / 1000)")
    assert "compared with is lost" not in fit.summary(notes="all").as_text()
