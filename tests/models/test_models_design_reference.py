"""Stored values of R's survey package, and R itself where it is installed."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

FOLDER = Path(__file__).parent / "design_reference"
ROWS = pd.read_csv(FOLDER / "table.csv")
STORED = json.loads((FOLDER / "survey.json").read_text())


def leaves(values: object, path: str = "") -> Iterator[tuple[str, np.ndarray]]:
    """Return the numbers of nested values by their path."""
    if isinstance(values, dict):
        for name, value in values.items():
            yield from leaves(value, f"{path}/{name}")
    else:
        yield path, np.atleast_1d(np.asarray(values, dtype=float))


@pytest.mark.product
def test_that_r_returns_the_stored_values() -> None:
    if shutil.which("Rscript") is None:
        pytest.skip("Rscript is not installed")
    has_survey = subprocess.run(["Rscript", "-e", "library(survey)"], capture_output=True)
    if has_survey.returncode:
        pytest.skip("R's survey package is not installed")
    script = ["Rscript", str(FOLDER / "survey.R")]
    output = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    computed, stored = dict(leaves(json.loads(output))), dict(leaves(STORED))
    assert computed.keys() == stored.keys()
    for path, values in stored.items():
        np.testing.assert_allclose(computed[path], values, rtol=1e-9, atol=1e-12, err_msg=path)


def linearised(scores: np.ndarray, rows: pd.DataFrame, kind: str) -> np.ndarray:
    """Return the covariance of the sum of scores over sampled PSUs, with replacement.

    `scores` has the shape (rows, statistics).
    """
    psu = rows.psu if kind in ("psus", "both", "finite") else rows.index
    stratum = rows.stratum if kind in ("strata", "both", "finite") else rows.w * 0
    table = pd.DataFrame(scores)
    totals = table.groupby([stratum.to_numpy(), np.asarray(psu)]).sum()
    covariance = np.zeros((scores.shape[1],) * 2)
    for level, within in totals.groupby(level=0):
        n = len(within)
        sampled = n / rows.psus[rows.stratum == level].iloc[0] if kind == "finite" else 0.0
        off = (within - within.mean()).to_numpy()
        covariance += (1 - sampled) * n / (n - 1) * off.T @ off
    return covariance


@pytest.mark.parametrize("kind", ["weights", "strata", "psus", "both", "finite"])
def test_that_stored_errors_are_with_replacement_linearisation(kind: str) -> None:
    """Linearised errors of means, ratios and least squares equal R's."""
    w, y, x = (ROWS[name].to_numpy(float) for name in ("w", "y", "x"))
    stored, total = STORED[kind], w.sum()
    scores = (w * np.stack([y - w @ y / total, x - w @ x / total]) / total).T
    np.testing.assert_allclose(
        linearised(scores, ROWS, kind).ravel(), stored["mean"]["covariance"], rtol=1e-9
    )
    ratio = w @ y / (w @ x)
    scores = (w * (y - ratio * x) / (w @ x))[:, None]
    np.testing.assert_allclose(ratio, stored["ratio"]["estimate"], rtol=1e-12)
    np.testing.assert_allclose(
        linearised(scores, ROWS, kind).ravel(), stored["ratio"]["covariance"], rtol=1e-9
    )
    terms = np.stack([np.ones_like(x), x, ROWS.group == "b", ROWS.group == "c"], axis=1)
    bread = np.linalg.inv(terms.T * w @ terms)
    beta = bread @ (terms.T @ (w * y))
    np.testing.assert_allclose(beta, stored["gaussian"]["estimate"], rtol=1e-9)
    scores = terms * (w * (y - terms @ beta))[:, None] @ bread
    np.testing.assert_allclose(
        linearised(scores, ROWS, kind).ravel(), stored["gaussian"]["covariance"], rtol=1e-7
    )
