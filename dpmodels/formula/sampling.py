"""The sampling weight and the stratum of each row, as integers, by public declarations alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dpmodels.codebook import Codebook
from dpmodels.errors import CodebookError, FormulaError, quoted
from dpmodels.formula.expression import as_category, compile_factor
from dpmodels.formula.values import Category, Columns
from dpmodels.survey_design import SurveyDesign
from dpmodels.typing import Integers
from dpmodels.variables import Numeric, Variable

# The largest declared weight in steps of the lattice: sums over 2**33 rows are exact.
STEPS: Final = 2**30


@dataclass(frozen=True)
class Sampling:
    """A design with the public facts that its columns need.

    A weight w is the integer ``w/upper`` in steps of 2**-30, rounded; the row does not count where
    the weight is missing or outside its bounds, or the stratum is missing.
    """

    design: SurveyDesign
    lower: float  # the smallest and the largest weight
    upper: float
    strata: Category | None
    codebook: Codebook  # of the columns that are read, without the sampling units

    @property
    def facts(self) -> dict[str, str]:
        """Public facts, as comparable texts."""
        return {"design": self.design.describe(), "weights": f"{self.lower!r} to {self.upper!r}"}

    def weights(self, columns: Columns, n_rows: int) -> Integers:
        """Return the weights of rows as integers up to 2**30, 0 for rows that do not count."""
        weights = np.full(n_rows, STEPS, dtype=np.int64)
        if self.design.weights is not None:
            values = np.asarray(columns[self.design.weights], dtype=np.float64)
            counted = (values >= self.lower) & (values <= self.upper)
            scaled = np.where(counted, values, 0.0) / self.upper
            weights = np.rint(scaled * STEPS).astype(np.int64)
        if self.strata is not None:
            weights[self.stratum(columns, n_rows) < 0] = 0
        return weights

    def stratum(self, columns: Columns, n_rows: int) -> NDArray[np.intp]:
        """Return the stratum of each row, -1 where it is missing; 0 without strata."""
        if self.strata is None:
            return np.zeros(n_rows, dtype=np.intp)
        codes = np.asarray(self.strata.evaluate(columns))
        return np.where(np.isnan(codes), -1.0, codes).astype(np.intp)


def sampling_of(codebook: Codebook) -> Sampling | None:
    """Return the sampling of a codebook's design; CodebookError where a declaration lacks."""
    design = codebook.design
    if design is None:
        return None
    lower, upper, read = 1.0, 1.0, dict[str, Variable]()
    if design.weights is not None:
        lower, upper = _bounds(design, codebook)
        variable = codebook.get(design.weights)
        read[design.weights] = variable if isinstance(variable, Numeric) else Numeric(lower, upper)
    strata = None
    if design.strata is not None:
        if design.strata not in codebook:
            raise CodebookError(
                f"strata={quoted(design.strata)} is not in the codebook: declare its levels, "
                f'dp.codebook({design.strata}=["north", "south"], ...)'
            )
        read[design.strata] = codebook[design.strata]
        try:
            strata = as_category(compile_factor(design.strata, codebook), design.strata)
        except FormulaError:
            raise CodebookError(
                f"strata={quoted(design.strata)} is declared as a number: declare its levels"
            ) from None
    return Sampling(design, lower, upper, strata, Codebook(read))


def _bounds(design: SurveyDesign, codebook: Codebook) -> tuple[float, float]:
    """Return the bounds of the weights: those of the design, else of their variable."""
    if design.bounds is not None:
        return design.bounds
    variable = codebook.get(design.weights or "")
    if not isinstance(variable, Numeric) or not 0 < variable.lower <= variable.upper:
        raise CodebookError(
            f"the weights {quoted(design.weights)} have no bounds: write the smallest and largest "
            "weight, dp.design(weights=..., bounds=(1, 50), ...), from public facts"
        )
    return float(variable.lower), float(variable.upper)
