"""The noise of single entries of a released matrix and of released means."""

from __future__ import annotations

import numpy as np

from dpmodels.postprocess import Covariance
from dpmodels.typing import Floats


def entry_sd(cov: Covariance) -> Floats:
    """Return the noise sd of each entry of a released matrix, to first order.

    Parameters
    ----------
    cov : Covariance
        A covariance, second moment or correlation and its noise scales.

    Returns
    -------
    ndarray, shape (columns, columns)
        nan where the noise has no known law; 0 on the diagonal of a
        correlation matrix, but for weak columns.

    Notes
    -----
    In units of D⁻¹, with ``g`` the noise in the second moment, ``ε`` that of
    the mean ``μ`` and ``r`` the relative one of the number of rows, the entry
    ``R_ij`` has the noise ``g_ij - μ_i ε_j - μ_j ε_i + r(μ_i μ_j - R_ij)``, less
    ``½R_ij`` times the same of ``R_ii`` and of ``R_jj`` where their released
    roots were divided by: the delta method. Columns without any variance and
    noise have divisors near 0, whose squares may leave the range of numbers;
    that is not told.
    """
    with np.errstate(all="ignore"):
        return _entry_sd(cov)


def _entry_sd(cov: Covariance) -> Floats:
    shared = np.where(cov.standardised & ~cov.weak, 1.0, 0.0)
    unit = np.outer(cov.divisor, cov.divisor)
    taken, halved = cov.mean / cov.divisor, cov.matrix / 2
    mean = cov.noise.mean / cov.divisor
    diagonal = shared * cov.noise.diagonal / cov.divisor**2
    own = mean[:, None] * (2 * halved * (shared * taken)[:, None] - taken[None, :])
    spread = halved * diagonal[:, None]
    by_rows = (halved * (shared * (1 - taken**2))[:, None]) * cov.noise.count
    by_count = (np.outer(taken, taken) - cov.matrix) * cov.noise.count
    variance = (cov.noise.off / unit) ** 2 + own**2 + own.T**2 + spread**2 + spread.T**2
    sd = np.sqrt(variance + (by_count + by_rows + by_rows.T) ** 2)
    alone = np.sqrt(cov.variance_sd**2 / np.diagonal(unit) ** 2 + np.diagonal(by_count) ** 2)
    np.fill_diagonal(sd, np.where(shared == 1, 0.0, alone))
    return sd


def mean_sd(cov: Covariance) -> Floats:
    """Return the noise sd of each released mean, to first order, shape (columns,).

    An error of the relative size ``r`` in the number of rows adds ``-rm`` to
    the mean ``m``.
    """
    return np.hypot(cov.noise.mean, cov.mean * cov.noise.count)
