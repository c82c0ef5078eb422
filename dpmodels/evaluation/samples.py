"""Rows drawn from public tables, and errors of moments, directions, coefficients and intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np
import pandas as pd

from dpmodels.arguments import option
from dpmodels.codebook import Codebook
from dpmodels.errors import ArgumentError, quoted
from dpmodels.evaluation.histograms import require_names
from dpmodels.evaluation.recipe import Cell, Recipe, Score, recipes
from dpmodels.typing import Floats

LEVEL: Final = 0.95
Truth = Callable[[pd.DataFrame], object]


@dataclass(frozen=True, repr=False, eq=False)
class Samples:
    """Public rows by name, from which tables are drawn with replacement at every scale."""

    frames: Mapping[str, pd.DataFrame]
    scales: tuple[int, ...]
    codebook: Codebook
    exact: Truth
    error: str

    @property
    def about(self) -> str:
        """Description of the error."""
        return MEASURES[self.error].about

    @property
    def baselines(self) -> tuple[Recipe, ...]:
        """An answer that reads no rows, if there is one of the kind."""
        return recipes(blind) if (blind := MEASURES[self.error].blind) else ()

    def settings(self) -> list[Cell]:
        """Return tables and scales."""
        return [
            Cell(name, scale, (), math.nan) for name, scale in product(self.frames, self.scales)
        ]

    def draw(self, cell: Cell, rng: np.random.Generator) -> pd.DataFrame:
        """Draw rows with replacement."""
        frame = self.frames[cell.table]
        return frame.iloc[rng.integers(0, len(frame), size=cell.scale)].reset_index(drop=True)

    def times(self, table: pd.DataFrame, copies: int) -> pd.DataFrame:
        """Return every row `copies` times."""
        return table.iloc[np.tile(np.arange(len(table)), copies)].reset_index(drop=True)

    def truth(self, table: pd.DataFrame) -> Floats:
        """Return the exact answer of the rows."""
        return np.asarray(self.exact(table), dtype=np.float64)

    def score(self, recipe: Recipe, table: pd.DataFrame, eps: float, seed: int) -> Score:
        """Measure the error of an answer relative to the exact one for the same rows."""
        measure, truth = MEASURES[self.error], self.truth(table)
        if recipe.is_verb:
            answer = recipe.of_rows(table, self.codebook, eps, seed)
        else:
            answer = recipe.of_counts(truth, eps, seed)
        if self.error == "coverage" and hasattr(answer, "noise_int"):
            answer = answer.noise_int(LEVEL)
        return measure.score(recipe.array(answer, measure.read), truth)


@dataclass(frozen=True)
class Measure:
    """An error: how an answer is read and compared with the truth."""

    about: str
    read: tuple[str, ...]
    score: Callable[[Floats, Floats], Score]
    blind: Mapping[str, Callable[..., object]]


def _alike(answer: Floats, truth: Floats) -> None:
    if answer.shape != truth.shape:
        raise ArgumentError(
            f"its answer has the shape {answer.shape}, but the truth {truth.shape}: truth= must "
            "return the same numbers in the same order"
        )


def _frobenius(answer: Floats, truth: Floats) -> Score:
    _alike(answer, truth)
    signed = np.ravel(answer - truth)
    return Score(float(np.linalg.norm(signed)), signed, answer)


def _coefficients(answer: Floats, truth: Floats) -> Score:
    _alike(answer, truth)
    signed = np.ravel(answer - truth) / math.sqrt(truth.size)
    return Score(float(np.linalg.norm(signed)), signed, answer)


def _energy(answer: Floats, truth: Floats) -> Score:
    """Measure directions, columns of `answer`, by the second moment matrix `truth`."""
    if answer.ndim != 2 or truth.shape != (len(answer), len(answer)):
        raise ArgumentError(
            f"its answer has the shape {answer.shape}, but the truth {truth.shape}: expected "
            "loadings, variables by components, and truth= the covariance of the variables"
        )
    basis, _ = np.linalg.qr(answer)
    best = np.linalg.eigvalsh(truth)[::-1][: basis.shape[1]].sum()
    return Score(1 - float(np.trace(basis.T @ truth @ basis) / best), answer=answer)


def _coverage(answer: Floats, truth: Floats) -> Score:
    """Measure intervals, rows of `answer`, by their mean width and coverage."""
    _alike(answer, np.stack([truth.ravel()] * 2, axis=1))
    low, high = answer.T
    covered = float(((low <= truth.ravel()) & (truth.ravel() <= high)).mean())
    return Score(float((high - low).mean()), answer=answer.mean(axis=1), coverage=covered)


def _zero(truth: Floats, eps: float) -> Floats:
    return np.zeros_like(truth)


def _random(truth: Floats, eps: float, rng: np.random.Generator) -> Floats:
    return np.linalg.qr(rng.normal(size=(len(truth), 1)))[0]


MEASURES: Final[Mapping[str, Measure]] = {
    "frobenius": Measure(
        "Frobenius norm of the error of a matrix",
        ("cov",),
        _frobenius,
        {"zero": _zero},
    ),
    "energy": Measure(
        "1 - energy that directions capture over the largest possible",
        ("loadings",),
        _energy,
        {"random": _random},
    ),
    "coefficients": Measure(
        "root mean square error of coefficients, relative to the non-private ones",
        ("params",),
        _coefficients,
        {"zero": _zero},
    ),
    "coverage": Measure(
        "mean width of 95% noise intervals, which must contain the non-private values",
        ("values",),
        _coverage,
        {},
    ),
}


def samples(
    tables: object, scales: tuple[int, ...], codebook: object, truth: object, error: object
) -> Samples:
    """Return the task; ArgumentError if a table is not valid."""
    if not isinstance(tables, Mapping) or not tables:
        raise ArgumentError(
            f"tables={quoted(tables)}: expected a mapping from names to public or simulated data "
            "frames"
        )
    require_names(tables)
    for name, table in tables.items():
        if not isinstance(table, pd.DataFrame) or table.empty:
            raise ArgumentError(
                f"tables[{name!r}] is of type {type(table).__name__}: error={error!r} needs "
                "rows, in a pandas DataFrame that is not empty"
            )
    if not isinstance(codebook, Mapping):
        raise ArgumentError(f"codebook={quoted(codebook)}: expected the dp.codebook of the rows")
    if not callable(truth):
        raise ArgumentError(
            f"truth={quoted(truth)}: expected a function from a data frame to the exact answer, "
            "such as lambda rows: numpy.cov(rows.T)"
        )
    book = codebook if isinstance(codebook, Codebook) else Codebook(codebook)
    return Samples(dict(tables), scales, book, truth, option("error", error, MEASURES))
