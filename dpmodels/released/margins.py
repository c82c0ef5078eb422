"""Released margins of one table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from dpmodels.outside import Amount, Bounded, one_of
from dpmodels.released.terms import Released


@dataclass(frozen=True, kw_only=True)
class MarginsRelease(Released):
    """Released components of margins: see :mod:`dpmodels.postprocess.residuals`.

    Attributes
    ----------
    values : ndarray, shape (component cells,)
        In rows: one component after another, the smaller first; that of no variable is the number
        of rows, exact where it is public.
    law : {"laplace", "gaussian"}
        Of the noise.
    noise_sds : tuple of float
        In rows: where the noise is Gaussian, of a cell of each component that has noise, before it
        was centred; else of a count of each margin that is in no other, to which all were fitted.
    """

    later = Released.later | {"shared"}

    values: Annotated[Bounded, "residual"]
    law: Annotated[str, one_of("laplace", "gaussian")]
    noise_sds: tuple[Amount, ...]
