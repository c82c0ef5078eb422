"""Every mechanism by family and name, for lists of mechanisms; all families are imported."""

from collections.abc import Mapping
from typing import Any, Final

from dpmodels.mechanisms.chains import CHAINS
from dpmodels.mechanisms.counts import BOUNDS, COUNTS, LEVELS, MEASURED, ORDERED, PLANE, RESPONSES
from dpmodels.mechanisms.covariance import COVARIANCE
from dpmodels.mechanisms.margins import GRAPHS, MARGINS
from dpmodels.mechanisms.regression import COEFFICIENTS, RATES, REGRESSION
from dpmodels.mechanisms.sampled import SAMPLED
from dpmodels.mechanisms.scalar import MEANS, QUANTILES
from dpmodels.mechanisms.screening import SCREENING
from dpmodels.mechanisms.selection import SELECTION
from dpmodels.mechanisms.subspace import SUBSPACE

TABLES: Final[Mapping[str, Mapping[str, type[Any]]]] = {
    "CHAINS": CHAINS,
    "BOUNDS": BOUNDS,
    "COUNTS": COUNTS,
    "LEVELS": LEVELS,
    "MEASURED": MEASURED,
    "ORDERED": ORDERED,
    "PLANE": PLANE,
    "RESPONSES": RESPONSES,
    "GRAPHS": GRAPHS,
    "MARGINS": MARGINS,
    "COEFFICIENTS": COEFFICIENTS,
    "RATES": RATES,
    "REGRESSION": REGRESSION,
    "SAMPLED": SAMPLED,
    "MEANS": MEANS,
    "QUANTILES": QUANTILES,
    "SCREENING": SCREENING,
    "SELECTION": SELECTION,
    "COVARIANCE": COVARIANCE,
    "SUBSPACE": SUBSPACE,
}
