"""Every mechanism by family and name, for lists of mechanisms; all families are imported."""

from collections.abc import Mapping
from typing import Any, Final

from dpmodels import mechanisms

_FAMILIES: Final = (
    *("CHAINS", "BOUNDS", "COUNTS", "LEVELS", "MEASURED", "ORDERED", "PLANE", "RESPONSES"),
    *("GRAPHS", "MARGINS", "COEFFICIENTS", "RATES", "REGRESSION", "SAMPLED", "MEANS"),
    *("QUANTILES", "SCREENING", "SELECTION", "COVARIANCE", "SUBSPACE"),
)
TABLES: Final[Mapping[str, Mapping[str, type[Any]]]] = {
    family: getattr(mechanisms, family) for family in _FAMILIES
}
