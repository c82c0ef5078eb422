"""Seeded releases and printed numbers and words are those of the stored list.

What changes on purpose is recorded again by `record.py`, in a commit that says why.
Sums and noise are exact integers; what is computed from them in floating point may differ in its
last digits between processors.
"""

import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from folded import each
from golden_cases import cases, fit_of
from released_numbers import numbers_of, public_numbers, tidy_numbers

import dpmodels as dp

HERE = Path(__file__).parent
RELEASES = np.load(HERE / "releases.npz")
ESTIMATES = np.load(HERE / "estimates.npz")
REPORTS = {
    key: text
    for key, _, text in (
        part.partition("\n") for part in (HERE / "reports.txt").read_text("utf-8").split("#### ")
    )
    if key
}
CASES = cases()
FIRST = [key for key in RELEASES.files if key.endswith("#1")]
# A table of their estimates takes 50 to 130 ms, those of others less than 10.
MANY_ESTIMATES = ("dp_margins", "dp_summary")
METHODS = defaultdict(list)
for _key, _, _method in (file.rpartition(" ") for file in ESTIMATES.files):
    METHODS[_key].append(_method)
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]\d+)?(?![\w.])")


def printed_numbers(text: str) -> list[float]:
    """List the numbers of a report's tables, which end with its last rule."""
    tables, _, _ = text.rpartition("\n=====")
    return [float(number) for number in NUMBER.findall(tables)]


def test_the_list_is_long_enough():
    assert len(RELEASES.files) >= 400
    assert len(REPORTS) >= 50
    assert {key.rpartition(" ")[0] for key in ESTIMATES.files} == set(FIRST)
    assert len(ESTIMATES.files) >= 650


def words_of(text: str) -> str:
    """The words of a report, without its numbers and how they are aligned."""
    return re.sub(r"[-=\s]+", " ", NUMBER.sub("#", text))


def require_stored(key, *, with_estimates=True):
    """Compare a release, what is estimated from it and its report with the stored ones."""
    form, seed = CASES[key]
    fit = fit_of(form, seed)
    numbers = np.array(list(numbers_of(fit.release)))
    np.testing.assert_allclose(numbers, RELEASES[key], rtol=1e-9, atol=1e-12)
    if with_estimates and key in METHODS:
        stored = METHODS[key]
        results = public_numbers(fit) if len(stored) > 1 else {"tidy": tidy_numbers(fit)}
        for method in stored:
            # Optimisers and quantiles end within their tolerances.
            numbers = ESTIMATES[f"{key} {method}"]
            np.testing.assert_allclose(results[method], numbers, 1e-5, 1e-8, err_msg=method)
    if key in REPORTS:
        text = fit.summary().as_text()
        result, stored = printed_numbers(text), printed_numbers(REPORTS[key])
        assert len(result) == len(stored)
        # The last printed digit may be rounded the other way.
        np.testing.assert_allclose(result, stored, rtol=2e-3, atol=2e-3)
        assert words_of(text).split() == words_of(REPORTS[key]).split()


@pytest.mark.expensive
@each("key", FIRST)
def test_every_call_has_the_stored_release_under_the_first_seed(key):
    """Estimates of some verbs are compared for their first call alone."""
    verb = key.partition(" ")[0]
    first = next(other for other in FIRST if other.startswith(f"{verb} "))
    require_stored(key, with_estimates=verb not in MANY_ESTIMATES or key == first)


@pytest.mark.product
@pytest.mark.parametrize("key", RELEASES.files)
def test_a_seeded_release_is_the_stored_one(key):
    require_stored(key)


@pytest.mark.product
def test_noise_is_seeded_where_the_list_was_recorded():
    with dp.simulation(seed=1):
        assert dp.dp_mean("~ x", {"x": [1.0, 2.0]}, codebook={"x": (0, 4)}, eps=1.0).simulated
