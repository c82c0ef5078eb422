"""Huge budget, exact answer: the release is numpy's to the lattice's resolution."""

import numpy as np
from contract_cases import BOOK, FORMULA, HUGE, Case, table

from dpmodels.noise.lattice import MAX_BITS

ROWS = 400
SCALES = ("range", "sd", None)


def coded(data):
    """The complete rows as numbers, coded apart from the package."""
    known = ~np.isnan(data["age"])
    columns = [
        data["sex"] == "M",
        data["region"] == "e",
        data["region"] == "s",
        data["age"],
        data["wage"],
    ]
    return np.column_stack(columns).astype(float)[known]


def second_moment(rows, centred):
    return np.cov(rows, rowvar=False) if centred else rows.T @ rows / len(rows)


def a_huge_budget_gives_the_exact_answer(case: Case) -> None:
    data = table(ROWS)
    rows = coded(data)
    for scale in SCALES:
        fit = case.fit(FORMULA, data, BOOK, budget=HUGE[case.kind], scale=scale)
        divisor = np.ones(5) if scale is None else np.array([0.5, 0.5, 0.5, 50, 25])
        expected = second_moment(rows / divisor, case.centred)
        # Rounding moves a coordinate by half a step: three steps cover x xᵀ and m mᵀ.
        # The noise left over goes beyond eight of its sd with probability 1e-15.
        noise = 8 * max(fit.release.noise.count, fit.release.noise.diagonal) / len(rows)
        slack = (3 / (2.0**MAX_BITS - 2) + 3 * noise) * fit.call.row_norm**2
        if scale == "sd":
            variances = np.diagonal(expected)
            expected = expected / np.sqrt(np.outer(variances, variances))
            slack = 2 * slack / variances.min()
        vectors = fit.loadings.to_numpy()
        released = vectors @ np.diag(fit.eigenvals.to_numpy()) @ vectors.T
        assert fit.loadings["variable"].values.tolist() == [
            "sex[T.M]",
            "region[T.e]",
            "region[T.s]",
            "age",
            "wage",
        ]
        np.testing.assert_allclose(released, expected, rtol=0, atol=slack)
        assert abs(fit.ncomplete - len(rows)) <= 8 * fit.release.noise.count
        if case.centred:
            slack = fit.call.row_norm * (1 / 2.0**MAX_BITS + 2 * noise)
            away = np.abs(fit.center.to_numpy() - rows.mean(axis=0)) / fit.call.divisor
            assert (away <= slack).all()
        else:
            assert fit.center is None
    assert np.isnan(data["age"]).any(), "no incomplete row was tried"
