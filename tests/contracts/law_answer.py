"""Huge budget, exact answer: the release is numpy's to the lattice's resolution."""

from dataclasses import replace

import numpy as np
import verbs_models
from contract_cases import BOOK, FORMULA, HUGE, Case, table

import dpmodels as dp

ROWS = 400
COMPONENTS = 2
# Laplace noise goes beyond so many of its sds with probability 1e-12.
FAR = 20
NAMES = ["sex[T.M]", "region[T.e]", "region[T.s]", "age", "wage"]


def coded(data):
    """The complete rows as numbers, coded apart from the package."""
    is_complete = ~np.isnan(data["age"])
    columns = [
        data["sex"] == "M",
        data["region"] == "e",
        data["region"] == "s",
        data["age"],
        data["wage"],
    ]
    return np.column_stack(columns).astype(float)[is_complete]


def divisor(scale):
    return np.ones(5) if scale is None else np.array([0.5, 0.5, 0.5, 50, 25])


def second_moment(rows, centred):
    return np.cov(rows, rowvar=False) if centred else rows.T @ rows / len(rows)


def noise_left(release, rows):
    """What noise is left in an entry of the mean square."""
    noise = release.noise
    return FAR * np.nanmax([noise.count, noise.mean, noise.diagonal]) / len(rows)


def step(case):
    """Twice what rounding moves a row by, in units of the ball."""
    return 1 / (2.0 ** case.plan(5, HUGE[case.kind]).lattice.bits - 2)


def turned(case, rows):
    """What directions drawn at a gap g, at angles of variance 1/(2cg), move an entry by.

    Many sds of five of them; no gap exceeds the number of rows.
    """
    if not case.mechanism.directions:
        return 0.0
    slope = case.plan(5, HUGE[case.kind], components=5).scales["concentration"]
    return FAR * np.sqrt(5 / (2 * slope * len(rows)))


def slack(case, fit, rows):
    """Noise, directions, and rounding: three steps cover x xᵀ and m mᵀ."""
    away = 3 * step(case) + 3 * noise_left(fit.release, rows) + turned(case, rows)
    return away * fit.call.row_norm**2


def a_huge_budget_gives_the_exact_answer(case: Case) -> None:
    data = table(ROWS)
    rows = coded(data)
    for scale in ("range", "sd", None):
        fit = case.fit(FORMULA, data, BOOK, budget=HUGE[case.kind], scale=scale)
        expected, tolerance = (
            second_moment(rows / divisor(scale), case.centred),
            slack(case, fit, rows),
        )
        if scale == "sd":
            variances = np.diagonal(expected)
            expected = expected / np.sqrt(np.outer(variances, variances))
            tolerance = 2 * tolerance / variances.min()
        vectors = fit.loadings.to_numpy()
        released = vectors @ np.diag(fit.eigenvals.to_numpy()) @ vectors.T
        assert fit.loadings["variable"].values.tolist() == NAMES
        np.testing.assert_allclose(released, expected, rtol=0, atol=tolerance)
        np.testing.assert_allclose(fit.cov.to_numpy(), expected, rtol=0, atol=tolerance)
        assert abs(fit.ncomplete - len(rows)) <= FAR * fit.release.noise.count
        if case.centred:
            tolerance = fit.call.row_norm * (step(case) + 2 * noise_left(fit.release, rows))
            away = np.abs(fit.center.to_numpy() - rows.mean(axis=0)) / fit.call.divisor
            assert (away <= tolerance).all()
        else:
            assert fit.center is None
    assert np.isnan(data["age"]).any(), "no incomplete row was tried"


def the_unbiased_release_is_exact_too(case: Case) -> None:
    """Of a mechanism that makes an estimate besides, what it was made from."""
    data = table(ROWS)
    rows = coded(data)
    fit = case.fit(FORMULA, data, BOOK, budget=HUGE[case.kind])
    release, centre = fit.release, 0.0
    if release.total is not None:
        centre = np.outer(release.total, release.total) / release.count**2
    covariance = release.second / release.count - centre
    scaled = (rows - fit.call.origin) / fit.call.divisor / fit.call.row_norm
    expected = scaled.T @ scaled / len(rows)
    if release.total is not None:
        expected -= np.outer(scaled.mean(axis=0), scaled.mean(axis=0))
    tolerance = slack(case, fit, rows) / fit.call.row_norm**2
    np.testing.assert_allclose(covariance, expected, rtol=0, atol=tolerance)


def a_huge_budget_gives_the_exact_covariance(case: Case) -> None:
    data = table(ROWS)
    rows = coded(data)
    fit = case.through(verbs_models.COV).fit(FORMULA, data, BOOK, budget=HUGE[case.kind])
    units = np.outer(divisor("range"), divisor("range"))
    away = np.abs(fit.cov.to_numpy() - second_moment(rows, case.centred))
    assert (away <= slack(case, fit, rows) * units).all()


def a_huge_budget_gives_the_exact_space(case: Case) -> None:
    """On rows of two long directions and three short ones, far apart."""
    rng, long = np.random.default_rng(1), np.array([1.0, 0.9, 0.05, 0.05, 0.05])
    turn = np.linalg.qr(rng.normal(size=(5, 5))).Q
    rows = 0.5 * rng.uniform(-1, 1, (ROWS, 5)) * long @ turn + 0.01
    names = [f"x{i}" for i in range(5)]
    book = dp.codebook.uniform(names, (-2, 2))
    words = {"budget": HUGE[case.kind], "scale": None, "ncomp": COMPONENTS}
    fit = case.fit("~ .", dict(zip(names, rows.T, strict=True)), book, **words)
    expected = second_moment(rows, case.centred)
    exact = np.linalg.eigh(expected).eigenvectors[:, -COMPONENTS:]
    loadings = fit.loadings.to_numpy()
    assert fit.loadings["variable"].values.tolist() == names
    np.testing.assert_allclose(loadings.T @ loadings, np.eye(COMPONENTS), atol=1e-12)
    # The budget leaves an angle of some 1e-4; a power method stops at a public count.
    away = np.linalg.norm(loadings @ loadings.T - exact @ exact.T, 2)
    assert away < 1e-3, f"sine of the largest angle: {away}"


def a_huge_budget_gives_the_verbs_answer(case: Case) -> None:
    """That of another package, on rows of which some lie outside their bounds."""
    data = table(ROWS)
    data["wage"][:5] = 1e9
    data["age"][5:9] = -7.0
    mechanism = case.mechanism
    words = (
        {"mechanism": replace(mechanism.make(), **dict(mechanism.given))} if mechanism.given else {}
    )
    with dp.simulation(seed=4):
        fit = case.ask(data, budget=HUGE[case.kind], **words)
    case.verb.answer(mechanism.name)(fit, case.formula, data, BOOK)
