"""Into zero-concentrated privacy and out of it.

References
----------
.. [1] Bun, M. and Steinke, T. (2016). "Concentrated Differential Privacy:
   Simplifications, Extensions, and Lower Bounds." TCC 2016-B.
.. [2] Cesar, M. and Rogers, R. (2021). "Bounding, Concentrating, and
   Truncating: Unifying Privacy Loss Composition for Data Analytics." ALT 2021.
.. [3] Canonne, C., Kamath, G. and Steinke, T. (2020). "The Discrete Gaussian
   for Differential Privacy." NeurIPS 2020.
"""

import math

from scipy.optimize import minimize_scalar

from dpmodels.errors import BudgetError
from dpmodels.privacy.budget import finite_number, positive_number, unit_number


def pure_to_zcdp(eps: float) -> float:
    """Return the rho of zCDP that every eps-differentially private release satisfies.

    Parameters
    ----------
    eps : float
        Above zero.

    Returns
    -------
    float
        ``eps**2 / 2`` (Bun and Steinke 2016, Proposition 1.4).

    Raises
    ------
    BudgetError
        If `eps` is not a finite number above zero.

    Examples
    --------
    >>> pure_to_zcdp(1.0)
    0.5
    """
    eps = positive_number("eps", eps, "write eps=1.0")
    return eps * eps / 2


def bounded_range_to_zcdp(eps: float) -> float:
    """Return the rho of zCDP that every eps-bounded-range release satisfies.

    Parameters
    ----------
    eps : float
        Length of the interval of privacy losses, above zero.

    Returns
    -------
    float
        ``eps**2 / 8`` (Cesar and Rogers 2021).

    Raises
    ------
    BudgetError
        If `eps` is not a finite number above zero.

    Examples
    --------
    >>> bounded_range_to_zcdp(1.0)
    0.125
    """
    return pure_to_zcdp(eps) / 4


def zcdp_to_approx(rho: float, delta: float) -> float:
    """Return an eps at which every rho-zCDP release is (eps, delta)-private.

    Parameters
    ----------
    rho : float
        Above zero.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        The minimum over ``alpha > 1`` of ``alpha*rho + log(1 - 1/alpha) -
        log(alpha*delta)/(alpha - 1)`` (Canonne, Kamath and Steinke 2020,
        Section 2.3), zero at least. Gaussian releases alone cost less:
        `total_eps` prices them exactly.

    Raises
    ------
    BudgetError
        If either argument lies outside its range.

    Examples
    --------
    >>> round(zcdp_to_approx(0.1, delta=1e-6), 3)
    2.142
    """
    rho = finite_number("rho", rho, "write rho=0.1")
    delta = unit_number("delta", delta, "write delta=1e-6")
    if rho <= 0 or delta == 0:
        raise BudgetError(
            f"rho={rho!r}, delta={delta!r} have to be above zero: write rho=0.1, delta=1e-6."
        )

    def bound(log_excess: float) -> float:
        excess = math.exp(log_excess)  # alpha - 1
        log_order = math.log1p(excess)
        return (1 + excess) * rho + log_excess - log_order - (math.log(delta) + log_order) / excess

    centre = (math.log(1 - math.log(delta)) - math.log(rho)) / 2
    found = minimize_scalar(bound, bounds=(centre - 20, centre + 20), method="bounded")
    return max(float(found.fun), 0.0) * (1 + 1e-10)
