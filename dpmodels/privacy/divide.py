"""A budget divided between stages that are charged to one account.

*Pure and concentrated budgets* add up: a stage's share is one of eps or of rho.
*Budgets of eps and delta*: all stages have the whole delta. Stages of Gaussian
noise share ``1/m**2`` of their common multiplier m, which is their exact
composition; stages of other noise have their share of eps, and what is left of
it is that of the Gaussian ones together. A ledger that keeps the former for pure
releases (``pure=``) takes all of them, one by one, as long as the eps of a
stage's own releases add up to its share.

References
----------
.. [1] Dong, J., Roth, A. and Su, W. (2022). "Gaussian Differential Privacy."
   Journal of the Royal Statistical Society B 84(1), 3-37.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from dpmodels.errors import BudgetError
from dpmodels.privacy.budget import ZCDP, ApproxDP, Guarantee, PureDP, positive_number
from dpmodels.privacy.calibrate import gaussian_eps, gaussian_multiplier
from dpmodels.privacy.compose import split_gaussian

# The shares of a division are printed decimals: their sum may be off by rounding.
_TOLERANCE: Final = 1e-9


def divide(
    total: Guarantee, shares: Sequence[float], gaussian: Sequence[bool]
) -> tuple[Guarantee, ...]:
    """Return the guarantees of stages that together satisfy one.

    Parameters
    ----------
    total : PureDP, ApproxDP or ZCDP
        What all stages together satisfy.
    shares : sequence of float
        Each above zero; their sum is 1.
    gaussian : sequence of bool
        Of each stage, whether all its noise is Gaussian. Only together with
        delta does it make a difference.

    Returns
    -------
    tuple of Guarantee
        One for each stage, of the kind of `total`.

    Raises
    ------
    BudgetError
        If the shares are not such.

    Examples
    --------
    >>> divide(PureDP(1.0), (0.25, 0.75), (False, False))
    (PureDP(eps=0.25), PureDP(eps=0.75))
    >>> halves = divide(ApproxDP(1.0, 1e-6), (0.5, 0.5), (True, True))
    >>> [round(half.eps, 3) for half in halves]
    [0.689, 0.689]
    """
    parts = [positive_number("shares", share, "write shares=(0.3, 0.7)") for share in shares]
    if abs(math.fsum(parts) - 1) > _TOLERANCE:
        raise BudgetError(f"shares add up to {math.fsum(parts):g}: write shares=(0.3, 0.7).")
    match total:
        case PureDP(eps):
            return tuple(PureDP(eps * part) for part in parts)
        case ZCDP(rho):
            return tuple(ZCDP(rho * part) for part in parts)
        case _:
            return _mixed(total, parts, gaussian)


def _mixed(total: ApproxDP, parts: list[float], gaussian: Sequence[bool]) -> tuple[Guarantee, ...]:
    own = [part for part, normal in zip(parts, gaussian, strict=True) if normal]
    levels = [total.eps * part for part in parts]
    if len(own) > 1:
        # Without another stage the sum is 1 but for rounding.
        together = total.eps * (1.0 if len(own) == len(parts) else math.fsum(own))
        whole = gaussian_multiplier(replace(total, eps=together))
        normal_levels = [gaussian_eps(total.delta, m) for m in split_gaussian(whole, own)]
        places = [place for place, normal in enumerate(gaussian) if normal]
        for place, level in zip(places, normal_levels, strict=True):
            levels[place] = level
    return tuple(ApproxDP(level, total.delta) for level in levels)
