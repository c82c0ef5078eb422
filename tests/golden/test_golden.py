"""Seeded releases and printed numbers and words are those of the stored list.

What changes on purpose is recorded again by `record.py`, in a commit that says why.
Sums and noise are exact integers; what is computed from them in floating point may differ in its
last digits between processors.
"""

import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from folded import each
from golden_cases import DELICATE, cases, fit_of, unit_cases
from released_numbers import like_the_recorded, numbers_of, public_numbers, tidy_numbers

import dpmodels as dp

HERE = Path(__file__).parent
RELEASES = np.load(HERE / "releases.npz")
ESTIMATES = np.load(HERE / "estimates.npz")


def stored_reports(name: str) -> dict[str, str]:
    """The texts of a file, by the keys above them."""
    parts = (part.partition("\n") for part in (HERE / name).read_text("utf-8").split("#### "))
    return {key: text for key, _, text in parts if key}


REPORTS = stored_reports("reports.txt")
# Of the first result of a class and a kind of release, with all notes and a reading.
FULL_REPORTS = stored_reports("full_reports.txt")
UNIT_REPORTS = stored_reports("unit_reports.txt")
CASES, UNIT_CASES = cases(), unit_cases()
FIRST = [key for key in RELEASES.files if key.endswith("#1")]
# Their tables of estimates are all compared in the ordinary run, of other verbs those of the first
# result of a class and a kind of release.
COEFFICIENTS = ("dp_lm", "dp_glm")
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


def require_report(text: str, stored: str) -> None:
    """Compare the numbers in the tables of a report and all its words."""
    results, expected = printed_numbers(text), printed_numbers(stored)
    assert len(results) == len(expected)
    # The last printed digit may be rounded the other way.
    np.testing.assert_allclose(results, expected, rtol=2e-3, atol=2e-3)
    assert words_of(text).split() == words_of(stored).split()


def require_stored(key: str, *, with_estimates: bool) -> Any:
    """Compare a release and what is estimated from it with the stored numbers."""
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
    if key in FULL_REPORTS:
        require_report(fit.summary(notes="all", reading=True).as_text(), FULL_REPORTS[key])
    return fit


@like_the_recorded
@pytest.mark.kernels
@pytest.mark.expensive
@each("key", [key for key in FIRST if key not in DELICATE])
def test_every_call_has_the_stored_release_under_the_first_seed(key):
    is_model = key.partition(" ")[0] in COEFFICIENTS
    require_stored(key, with_estimates=is_model or len(METHODS[key]) > 1)


@like_the_recorded
@pytest.mark.kernels
@pytest.mark.expensive
@each("key", UNIT_REPORTS)
def test_every_verb_has_its_stored_report_where_persons_or_several_rows_are_protected(key):
    text = fit_of(*UNIT_CASES[key]).summary(notes="all", reading=True).as_text()
    require_report(text, UNIT_REPORTS[key])


@pytest.mark.product
@pytest.mark.parametrize("key", [key for key in RELEASES.files if key in DELICATE])
def test_a_release_in_open_axes_has_as_many_numbers_as_the_stored_one(key):
    fit = fit_of(*CASES[key])
    assert len(list(numbers_of(fit.release))) == len(RELEASES[key])
    if key in REPORTS:
        assert len(printed_numbers(fit.summary().as_text())) == len(printed_numbers(REPORTS[key]))


@pytest.mark.product
@pytest.mark.parametrize("key", [key for key in RELEASES.files if key not in DELICATE])
def test_a_seeded_release_is_the_stored_one(key):
    fit = require_stored(key, with_estimates=True)
    if key in REPORTS:
        require_report(fit.summary().as_text(), REPORTS[key])


@pytest.mark.product
def test_noise_is_seeded_where_the_list_was_recorded():
    with dp.simulation(seed=1):
        assert dp.dp_mean("~ x", {"x": [1.0, 2.0]}, codebook={"x": (0, 4)}, eps=1.0).simulated
