"""Results of released numbers that no table is made for: they give numbers, or say why not."""

import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from shown import NO_NUMBER, parts
from verbs import forms

import dpmodels as dp
from dpmodels.errors import NotAvailable
from dpmodels.released import (
    CoefficientsRelease,
    CountsRelease,
    GraphRelease,
    MarginsRelease,
    MomentNoise,
    MomentsRelease,
    QuantilesRelease,
    SubspaceRelease,
)

pytestmark = pytest.mark.kernels

ROWS = 500
BOOK = dp.codebook(
    age=(-1, 1),
    wage=(0, 5),
    height=(0, 10),
    sex=["F", "M"],
    region=["u", "v", "w"],
    week=(0, 9),
)
ASKED = forms("hostile")


@cache
def fitted(name, adjacency):
    rng = np.random.default_rng(0)
    data = {
        column: rng.uniform(*ends, ROWS) for column, ends in (("age", (-1, 1)), ("wage", (0, 5)))
    }
    data |= {"sex": rng.choice(["F", "M"], ROWS), "region": rng.choice(["u", "v", "w"], ROWS)}
    data["height"] = np.clip(5 + 2 * data["age"] - data["wage"] + rng.normal(size=ROWS), 0, 10)
    with dp.simulation(seed=3):
        return ASKED[name].ask(data, codebook=BOOK, adjacency=adjacency, eps=1.0)


def scaled(noise, factor):
    entries = (noise.count, noise.mean, noise.diagonal, noise.off)
    return MomentNoise(*(factor * sd for sd in entries))


def matrices(matrix) -> Iterator[np.ndarray]:
    """Zero, negative, tiny, huge, of rank one, of equal eigenvalues, with columns equal or void."""
    size = len(matrix)
    ones = np.ones((size, size))
    yield from (0 * matrix, -matrix, matrix * 1e-200, matrix * 1e14, ones, ROWS * np.eye(size))
    yield ROWS * (np.eye(size) + 1e-13 * ones)
    equal = matrix.copy()
    equal[0], equal[:, 0] = equal[-1], equal[:, -1]
    equal[0, 0] = equal[-1, -1]
    nearly_equal = equal.copy()
    nearly_equal[0, 0] *= 1 + 1e-15
    void = matrix.copy()
    void[0] = void[:, 0] = 0
    below = matrix.copy()
    below[0, 0] *= -1
    yield from (equal, nearly_equal, void, below)


def of_moments(release) -> Iterator[Any]:
    for factor in FACTORS:
        louder = replace(release, noise=scaled(release.noise, factor))
        for matrix in matrices(release.second):
            damaged_release = (
                louder if release.estimate is None else replace(louder, estimate=matrix)
            )
            yield from (
                replace(damaged_release, second=matrix, count=count)
                for count in (0.0, release.count)
            )
        yield from (replace(louder, count=count) for count in (-1e9, 1.0, 1e15))
        if release.total is not None:
            yield from (replace(louder, total=release.total * by) for by in (0.0, 1e14, 1e-200))


def of_coefficients(release) -> Iterator[Any]:
    for by in (0.0, -1e14, 1e-200):
        yield replace(release, coefficients=release.coefficients * by)
    curvature = release.curvature
    for factor in FACTORS if curvature is not None else ():
        noise = scaled(curvature.bread_noise, factor), scaled(curvature.meat_noise, factor)
        louder = replace(curvature, bread_noise=noise[0], meat_noise=noise[1])
        for matrix in matrices(curvature.bread):
            for damage in ({"bread": matrix}, {"meat": matrix}, {"bread": matrix, "meat": matrix}):
                yield replace(release, curvature=replace(louder, **damage))


def of_counts(release) -> Iterator[Any]:
    values = release.values
    signs, alone = np.resize([1.0, -1.0], len(values)), np.eye(len(values)) * ROWS
    vectors = (0 * values, -values, values * 1e14, values * 1e-200, signs, signs * 1e9)
    for factor in FACTORS:
        louder = replace(release, noise_sd=release.noise_sd * factor, step=release.step * factor)
        for vector in (*vectors, alone[0], alone[-1], np.full(len(values), ROWS / len(values))):
            yield replace(louder, values=vector)


def of_margins(release) -> Iterator[Any]:
    values = release.values
    signs = np.resize([1.0, -1.0], len(values))
    for factor in FACTORS:
        sds = tuple(sd * factor for sd in release.noise_sds)
        for vector in (0 * values, -values, values * 1e14, values * 1e-200, signs, signs * 1e9):
            yield replace(release, values=vector, noise_sds=sds)


def of_quantiles(release) -> Iterator[Any]:
    values = release.values
    for values_damaged in (0 * values, 0 * values + 1, values * np.nan, values[:, ::-1]):
        for count in (-1e9, 0.0, 1e15):
            yield replace(release, values=values_damaged, counts=0 * release.counts + count)


def of_directions(release) -> Iterator[Any]:
    for by in (0.0, -1.0, 1e14, 1e-200):
        for count in (-1e9, 0.0, 1e15):
            yield replace(release, variances=release.variances * by, count=count)


FACTORS = (1e-14, 1.0, 1e14)
# The same release with numbers that noise could have made, and some that it could not.
HOSTILE = {
    MomentsRelease: of_moments,
    CoefficientsRelease: of_coefficients,
    CountsRelease: of_counts,
    MarginsRelease: of_margins,
    GraphRelease: of_margins,
    QuantilesRelease: of_quantiles,
    SubspaceRelease: of_directions,
}


def say_everything(fit):
    for _ in parts(fit):
        pass
    for text in (fit.summary().as_text(), fit.summary().as_html()):
        assert not NO_NUMBER.search(text)
    # Of coefficients without standard errors there are no tests; moments always have some.
    with suppress(*() if isinstance(fit.release, MomentsRelease) else (NotAvailable,)):
        if hasattr(fit, "t_test"):
            single, joint = "age = 0", "age = wage, age + wage = 1"
            fit.t_test(joint if "wage" in fit.params else single)
            fit.wald_test(np.eye(len(fit.params)))
            fit.anova()
    for name in ("get_prediction", "predict", "decision_function", "transform"):
        if hasattr(fit, name):
            with suppress(NotAvailable):
                getattr(fit, name)({"age": [0.1], "wage": [1.0], "height": [3.0]})
    plt.close("all")


def tried(name, adjacency, every):
    fit, n_refused = fitted(name, adjacency), 0
    for place, release in enumerate(HOSTILE[type(fit.release)](fit.release)):
        if place % every:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            say_everything(replace(fit, release=release))
        n_refused += 1
    assert n_refused


@pytest.mark.expensive
@pytest.mark.parametrize("name", ASKED)
def test_hostile_numbers_make_no_error_and_no_warning(name):
    tried(name, "replace", 13)


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ["replace", "add-remove"])
@pytest.mark.parametrize("name", ASKED)
def test_all_hostile_numbers_make_no_error_and_no_warning(name, adjacency, reduced):
    tried(name, adjacency, 5 if reduced else 1)
