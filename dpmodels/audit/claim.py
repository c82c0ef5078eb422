"""What is claimed, as the lines that no event's error rates may lie under.

A guarantee is a privacy profile ``delta(eps)``: error rates ``(a, b)`` of any
event satisfy ``b + e^eps a >= 1 - delta(eps)`` for every eps, and the same
with a and b exchanged, which is the line of slope ``e^-eps``.

* (eps, delta), the pure guarantee with it: ``delta`` at eps.
* mu-Gaussian: ``Phi(mu/2 - e/mu) - e^e Phi(-mu/2 - e/mu)`` at every e, a
  guarantee over the whole curve that Gaussian noise of multiplier ``1/mu``
  keeps exactly; (eps, delta) is one point of it.
* rho-zCDP: what all orders together imply for one event,
  :func:`dpmodels.privacy.concentrated.zcdp_profile`.

The curves themselves stand in :mod:`dpmodels.privacy.trade_off`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from scipy.special import ndtri

from dpmodels.audit.p_value import Boundary
from dpmodels.errors import ArgumentError, said
from dpmodels.privacy import ApproxDP, Guarantee, PureDP, gaussian_eps, gaussian_multiplier
from dpmodels.privacy.calibrate import hockey_stick
from dpmodels.privacy.compose import zcdp_to_approx
from dpmodels.privacy.concentrated import least_rho, zcdp_misses, zcdp_profile
from dpmodels.privacy.trade_off import approx_misses, gaussian_misses
from dpmodels.typing import Floats

Unit = Literal["eps", "mu", "rho"]

# For zCDP, which has no delta of its own, eps is told at this one.
DELTA: Final = 1e-5
_STEEPEST: Final = 30.0  # in logarithms; rarer events than e^-30 are not counted
_SLOPES: Final = np.linspace(-14, 14, 141)  # a choice: logarithms


@dataclass(frozen=True)
class Claim:
    """One number of one family of trade-off curves.

    For the family "eps" delta belongs to the claim; elsewhere it is where eps is told.
    """

    unit: Unit
    value: float
    delta: float

    def of(self, value: float) -> Claim:
        """Return the same family at another number."""
        return replace(self, value=value)

    def boundary(self, alarms: float, misses: float) -> Boundary:
        """Return the line that rates are held against, by a guess of them in (0, 1)."""
        log_slope = float(self.log_slopes(np.asarray(alarms), np.asarray(misses)))
        return Boundary(math.exp(log_slope), float(self.levels(np.asarray(log_slope))))

    def log_slopes(self, alarms: Floats, misses: Floats) -> Floats:
        """Return the logarithms of the slopes of the lines that rates are held against."""
        if self.unit == "eps":
            return np.where(alarms <= misses, self.value, -self.value)
        if self.unit == "mu":  # the tangent at the false-positive rate
            tangents = self.value * (-ndtri(alarms) - self.value / 2)
            return np.asarray(np.clip(tangents, -_STEEPEST, _STEEPEST))
        steep = np.exp(_SLOPES)
        alarms, misses = alarms[..., None], misses[..., None]
        noise = misses * (1 - misses) + steep**2 * alarms * (1 - alarms)
        gaps = self.levels(_SLOPES) - steep * alarms - misses
        return np.asarray(_SLOPES[(gaps / np.sqrt(noise)).argmax(axis=-1)])

    def least(self, alarms: Floats, misses: Floats) -> Floats:
        """Return the smallest number of the family that allows events of these rates."""
        if self.unit == "mu":
            return np.asarray(-ndtri(alarms) - ndtri(misses))
        if self.unit == "rho":
            return np.where(alarms + misses < 1, least_rho(1 - misses, alarms), 0.0)
        rooms = [(1 - self.delta - misses) / alarms, (1 - self.delta - alarms) / misses]
        return np.asarray(np.log(np.maximum(*rooms).clip(1e-12)))

    def levels(self, log_slopes: Floats) -> Floats:
        """Return the levels of the closest lines to the curve that have these slopes."""
        level = 1 - self.profile(np.abs(log_slopes))
        return np.where(log_slopes >= 0, level, np.exp(log_slopes) * level)

    def profile(self, eps: Floats) -> Floats:
        """Return the delta that is claimed at each eps of zero or above."""
        if self.unit == "mu":
            return np.asarray(hockey_stick(eps, 1 / self.value))
        if self.unit == "rho":
            return zcdp_profile(eps, self.value)
        near = 1 - (1 - self.delta) * (1 + np.exp(eps)) / (1 + math.exp(self.value))
        return np.where(eps >= self.value, self.delta, near)

    def misses(self, alarms: Floats) -> Floats:
        """Return the trade-off curve: the least false-negative rate at each false-positive rate."""
        if self.unit == "mu":
            return gaussian_misses(alarms, self.value)
        if self.unit == "rho":
            return zcdp_misses(alarms, self.value)
        return approx_misses(alarms, self.value, self.delta)

    @property
    def eps(self) -> float:
        """The eps that is claimed at `delta`; infinite where the number is."""
        if math.isinf(self.value):
            return math.inf
        if self.unit == "mu":
            return gaussian_eps(self.delta, 1 / self.value)
        if self.unit == "rho":
            return zcdp_to_approx(self.value, self.delta)
        return self.value

    def describe(self) -> str:
        """Return the claim in a few words."""
        delta = f", delta = {self.delta:g}" if self.delta else ""
        told = {
            "eps": f"eps = {self.value:g}{delta}",
            "mu": f"eps = {self.eps:.6g}{delta} by Gaussian noise, mu = {self.value:.3g}",
            "rho": f"rho = {self.value:g} (zCDP)",
        }
        return told[self.unit]


def claim(guarantee: Guarantee, law: str | None) -> Claim:
    """Return the curve of a guarantee, under a law of the noise or any.

    ``law="gaussian"``: by Gaussian noise that is calibrated exactly, so that the whole curve is
    claimed. ArgumentError or BudgetError for another law, or Gaussian of a pure guarantee.
    """
    delta = guarantee.delta if isinstance(guarantee, ApproxDP) else DELTA
    if law == "gaussian":
        return Claim("mu", 1 / gaussian_multiplier(guarantee), delta)
    if law is not None:
        raise ArgumentError(f'law={said(law)}: expected "gaussian", or None for any law')
    if isinstance(guarantee, PureDP):
        return Claim("eps", guarantee.eps, 0.0)
    if isinstance(guarantee, ApproxDP):
        return Claim("eps", guarantee.eps, guarantee.delta)
    return Claim("rho", guarantee.rho, delta)
