"""Mechanisms of moments that users write: what they have to have, and how verbs run them.

Theorem
    Let ``σ = min(diagonal, √2 off)``. Independent Gaussian noise of the planned standard deviations
    on the moments of rows ``(1, x)``, x in the unit ball, has the multiplier
    ``σ / moment_sensitivity`` at the weights ``σ/count`` and ``σ/mean``; Laplace noise of scales
    ``sd/√2`` likewise, with ``absolute_sensitivity`` and the smaller of the two scales. A plan
    with a smaller multiplier than the guarantee needs is refused, and what is charged is the
    event of the guarantee.
Numerics
    Never stated as exact: the noise is added in floating point, by code that the package has not
    seen.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace
from inspect import signature
from keyword import iskeyword
from typing import Any, ClassVar, Final, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from dpmodels.design import PrivateDesign
from dpmodels.errors import ArgumentError, DPModelsError, MechanismError, said
from dpmodels.mechanisms.add_noise import (
    GAUSSIAN,
    LAPLACE,
    ROOM,
    Law,
    NoisyMoments,
    hand_over,
    in_steps,
    laplace_multipliers,
    noise_of,
)
from dpmodels.mechanisms.protocol import Facts, MomentMechanism, Plan
from dpmodels.mechanisms.retired import refuse_retired
from dpmodels.noise import Entropy
from dpmodels.noise.lattice import choose_lattice
from dpmodels.privacy import GaussianEvent, Guarantee, LaplaceEvent, gaussian_multiplier
from dpmodels.released import Card, MomentNoise, MomentsRelease
from dpmodels.statistics import MomentWeights, Statistic, moment_sensitivity, moments
from dpmodels.statistics.moments import absolute_sensitivity
from dpmodels.typing import Floats

CHECKED: Final = "user-supplied mechanism, checked"
NOT_CHECKED: Final = "user-supplied mechanism, not checked"
LAWS: Final[Mapping[str, Law]] = {"gaussian": GAUSSIAN, "laplace": LAPLACE}
# The scale of the integer noise that is divided to make floating-point noise: a choice.
_FINE: Final = 2.0**40
# A plan may fall short by so much, as products are rounded; the noise is drawn larger by as much.
_ROUNDING: Final = 1e-9


class NoiseSource:
    """Noise of a mechanism's law, from the package's random bits.

    It is made by the package and handed to ``release``.
    """

    __slots__ = ("_entropy", "_law")

    def __init__(self, law: str, entropy: Entropy | None) -> None:
        self._law, self._entropy = LAWS[law], entropy

    def draw(self, sd: ArrayLike) -> Floats:
        """Draw independent noise.

        Parameters
        ----------
        sd : array_like
            Standard deviations.

        Returns
        -------
        ndarray
            Of the shape of `sd`.
        """
        sds = np.asarray(sd, dtype=np.float64)
        if self._entropy is None:  # The part of a release that is not noise is checked by itself
            return np.zeros(sds.shape)
        units = self._law.draw(_FINE, sds.size, self._entropy).astype(np.float64)
        drawn: Floats = units.reshape(sds.shape) * (sds * (1 + _ROUNDING) / (_FINE * self._law.sd))
        return drawn

    def matrix(self, noise: MomentNoise, columns: int) -> Floats:
        """Draw independent noise for all moments.

        Parameters
        ----------
        noise : MomentNoise
            The planned standard deviations.
        columns : int
            Number of coded columns.

        Returns
        -------
        ndarray, shape (columns + 1, columns + 1)
            Symmetric.
        """
        drawn = np.triu(self.draw(np.nan_to_num(sd_matrix(noise, columns))))
        return np.asarray(drawn + np.triu(drawn, 1).T)


def sd_matrix(noise: MomentNoise, columns: int) -> Floats:
    """Return the standard deviation of each moment, shape (columns + 1, columns + 1)."""
    sds = np.full((columns + 1, columns + 1), noise.off)
    np.fill_diagonal(sds, noise.diagonal)
    sds[0, :] = sds[:, 0] = noise.mean
    sds[0, 0] = noise.count
    return sds


Kind = TypeVar("Kind", bound=type)
_REGISTERED: Final[dict[str, type[Any]]] = {}
# What was checked of a class; it is no longer checked once one of these is replaced.
_PASSED: Final[dict[type[Any], tuple[Any, ...]]] = {}
_PARAMETERS: Final = {"plan": ("facts", "guarantee"), "release": ("moments", "noise", "source")}


def register(mechanism: Kind) -> Kind:
    """Make a mechanism of moments known, so that verbs take it by name.

    Parameters
    ----------
    mechanism : type
        A class as :class:`MomentMechanism` describes: ``name``, ``law``,
        ``plan(facts, guarantee)`` and ``release(moments, noise, source)``.

    Returns
    -------
    type
        The class, so that this can be a decorator.

    Raises
    ------
    ArgumentError
        If something is missing or does not fit, or if the name is taken.

    Notes
    -----
    Afterwards the name, the class and its instances are accepted as ``mechanism=`` by
    :func:`dp_pca`, :func:`dp_cov`, :func:`dp_moments`, :func:`dp_cca`, :func:`dp_lm`,
    :func:`power` and :func:`compare_mechanisms`. ``"auto"`` never chooses it.

    The class runs your code on exact moments of private rows. The package checks before
    the charge that the planned noise suffices for the guarantee, and reports an
    exception of your code with a fixed text that quotes no value. It cannot check that
    ``release`` adds that noise and keeps nothing:
    :func:`dpmodels.mechanisms.check` tests it, on made-up rows. Tables print
    "user-supplied mechanism, checked" or "not checked".

    A class of the same module and name replaces the one registered before.

    Examples
    --------
    >>> import math
    >>> import dpmodels as dp
    >>> from dpmodels.privacy import gaussian_multiplier
    >>> class Spherical:
    ...     name, law = "spherical", "gaussian"
    ...
    ...     def plan(self, facts, guarantee):
    ...         # Replacing a row moves the sum of z z' by at most √8 in Frobenius norm.
    ...         sd = gaussian_multiplier(guarantee) * math.sqrt(8)
    ...         off = sd / math.sqrt(2)
    ...         return dp.mechanisms.MomentNoise(count=sd, mean=off, diagonal=sd, off=off)
    ...
    ...     def release(self, moments, noise, source):
    ...         return moments + source.matrix(noise, len(moments) - 1)
    >>> Spherical = dp.mechanisms.register(Spherical)
    >>> cb = dp.codebook(a=(0, 1), b=(0, 1))
    >>> rows = {"a": [0.2, 0.7] * 500, "b": [0.1, 0.9] * 500}
    >>> fit = dp.dp_cov("~ a + b", rows, codebook=cb, eps=1, delta=1e-6, mechanism="spherical")
    >>> fit.release.card.numerics
    'user-supplied mechanism, not checked'
    """
    require_mechanism(mechanism)
    name: str = mechanism.name  # type: ignore[attr-defined]
    if name == "auto" or name in _package_names():
        raise ArgumentError(f"name={name!r} is the name of a mechanism of the package; use another")
    refuse_retired("name=", name)
    known = _REGISTERED.get(name)
    if known is not None and _place(known) != _place(mechanism):
        raise ArgumentError(
            f"name={name!r} is taken by the registered class {known.__qualname__}; use another"
        )
    _REGISTERED[name] = mechanism
    return mechanism


def require_mechanism(mechanism: object) -> Any:
    """Return an instance of a class that is a mechanism of moments; ArgumentError for another."""
    if not isinstance(mechanism, type):
        raise ArgumentError(
            f"mechanism= is of type {type(mechanism).__name__}; expected a class, such as Mine"
        )
    own: Any = mechanism
    name, law = getattr(own, "name", None), getattr(own, "law", None)
    if not isinstance(name, str) or not name.isidentifier() or iskeyword(name):
        raise ArgumentError(
            f"name={said(name)} of {own.__name__}: expected an identifier, such as name = 'mine'"
        )
    if not isinstance(law, str) or law not in LAWS:
        raise ArgumentError(
            f"law={said(law)} of {own.__name__}: expected the law of its noise, 'gaussian' or "
            "'laplace'"
        )
    for claim in ("numerics", "card", "claim"):
        if hasattr(own, claim):
            raise ArgumentError(
                f"{own.__name__}.{claim}: a user-supplied mechanism cannot state its own "
                f"guarantee or numerics, such as 'exact'; leave out {claim}"
            )
    for method, parameters in _PARAMETERS.items():
        try:
            signature(getattr(own, method)).bind(None, *parameters)
        except (AttributeError, TypeError, ValueError):
            raise ArgumentError(
                f"{own.__name__} needs a method {method}(self, {', '.join(parameters)})"
            ) from None
    try:
        return own()
    except Exception as error:
        raise ArgumentError(
            f"{own.__name__}() raised {type(error).__name__}: give all its arguments defaults"
        ) from None


def _place(mechanism: type[Any]) -> tuple[str, str]:
    return mechanism.__module__, mechanism.__qualname__


def _package_names() -> set[str]:
    """Return the names in the package's tables of mechanisms."""
    tables = vars(sys.modules["dpmodels.mechanisms"]).items()
    return {key for name, own in tables if name.isupper() and isinstance(own, dict) for key in own}


def supplied(mechanism: object, table: Mapping[str, Any]) -> UserSupplied | None:
    """Return the strategy of a registered mechanism where a table is of moments, else None."""
    if isinstance(mechanism, str):
        kind = _REGISTERED.get(mechanism)
    else:
        kind = mechanism if isinstance(mechanism, type) else type(mechanism)
    if not table.keys() & {"gauss", "adassp"} or kind is None:
        return None
    if isinstance(mechanism, UserSupplied):
        return mechanism
    if kind in _REGISTERED.values():
        own: Any = kind() if isinstance(mechanism, str | type) else mechanism
        return UserSupplied(own)
    if hasattr(kind, "plan") and hasattr(kind, "release") and not hasattr(kind, "measure"):
        raise ArgumentError(
            f"mechanism= is the class {kind.__name__}, which is not registered: write "
            f"dp.mechanisms.register({kind.__name__}) first"
        )
    return None


def registered_card(name: str) -> Card | None:
    """Return the card of a registered mechanism; None where no class has the name."""
    return UserSupplied(_REGISTERED[name]()).card if name in _REGISTERED else None


def stated_card(strategy: Any, card: Card) -> Card:
    """Return the card as it is printed: a strategy from outside states no numerics of its own."""
    kind = type(getattr(strategy, "base", strategy))
    if kind.__module__.startswith("dpmodels."):
        return card
    return replace(card, numerics=NOT_CHECKED)


def record_passed(mechanism: Any) -> None:
    """Record that a mechanism passed its checks."""
    _PASSED[type(mechanism)] = _checked_parts(mechanism)


def _checked_parts(mechanism: Any) -> tuple[Any, ...]:
    kind, options = type(mechanism), sorted(getattr(mechanism, "__dict__", {}).items())
    plain = all(isinstance(value, str | int | float | None) for _, value in options)
    return kind.plan, kind.release, kind.law, kind.name, options if plain else object()


@dataclass(frozen=True)
class UserSupplied:
    """The strategy that runs a user-supplied mechanism."""

    mechanism: MomentMechanism

    passes: ClassVar[str] = "one"

    @property
    def law(self) -> Law:
        """The law of the noise."""
        return LAWS[self.mechanism.law]

    @property
    def card(self) -> Card:
        """What is printed of it, in the package's words."""
        own = self.mechanism
        passed = _PASSED.get(type(own)) == _checked_parts(own)
        return Card(
            name=own.name,
            theorem="noise as planned satisfies the guarantee; that it is added is not proved",
            sensitivity="of the moments of (1, x), as for gauss or laplace",
            noise=f"{own.law}, of standard deviations that the mechanism plans",
            numerics=CHECKED if passed else NOT_CHECKED,
            source="user-supplied",
        )

    def plan(self, facts: Facts, guarantee: Guarantee) -> Plan:
        """Plan the noise; ArgumentError where it is not a plan, or less than is needed."""
        name, law = self.mechanism.name, self.law
        event: GaussianEvent | LaplaceEvent = (
            GaussianEvent(gaussian_multiplier(guarantee))
            if law is GAUSSIAN
            else LaplaceEvent(laplace_multipliers(guarantee)[0])
        )
        try:
            noise = self.mechanism.plan(facts, guarantee)
        except DPModelsError:
            raise
        except Exception as error:
            raise ArgumentError(
                f"mechanism {name!r}: plan() raised {type(error).__name__}; nothing was charged"
            ) from None
        scales = _scales(name, noise, law, centred=facts.centred)
        reached = _multiplier(facts, scales, law)
        if reached * (1 + _ROUNDING) < event.multiplier:
            raise ArgumentError(
                f"mechanism {name!r}: plan() gives too little noise for "
                f"{guarantee.describe()}; multiply it by {event.multiplier / reached:.6g} or more"
            )
        lattice = choose_lattice(facts.columns, ROOM * float(np.nanmax(scales)))
        return Plan(guarantee, (event,), lattice, facts, in_steps(lattice, scales, 0.0))

    def measure(self, design: PrivateDesign, plan: Plan) -> Statistic:
        """Compute the exact augmented moments."""
        return moments(design, plan.lattice, count_public=plan.facts.adjacency.n_public)

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Run the mechanism's release; MechanismError, with a fixed text, where it fails."""
        exact, rows = statistic.cross()
        radius = plan.lattice.radius
        source = NoiseSource(self.mechanism.law, entropy)
        noisy = self.released((exact / radius**2).astype(np.float64), plan, source)
        unit = radius / plan.lattice.steps
        total = None if math.isnan(plan.steps.mean) else noisy[0, 1:] * unit
        parts = NoisyMoments(
            float(noisy[0, 0]), total, noisy[1:, 1:] * unit**2, noise_of(plan, self.law)
        )
        return hand_over(self.card, plan, parts, rows)

    def planned(self, plan: Plan) -> MomentNoise:
        """Return the planned standard deviations, for rows of length 1 at most."""
        unit = self.law.sd / plan.lattice.radius**2
        return MomentNoise(*(step * unit for step in astuple(plan.steps)))

    def released(self, exact: Floats, plan: Plan, source: NoiseSource) -> Floats:
        """Return what the mechanism makes of exact moments, in its own units."""
        exact.setflags(write=False)
        failed = "raised an exception, whose message is not shown because it could quote rows"
        try:
            noisy = np.array(
                self.mechanism.release(exact, self.planned(plan), source), dtype=np.float64
            )
            fits = noisy.shape == exact.shape and bool(np.isfinite(noisy).all())
            failed = "" if fits and (noisy == noisy.T).all() else "returned no symmetric matrix"
        except Exception:
            noisy = exact
        if failed:  # Raised outside of the handler, so that the error has no context
            raise MechanismError(
                f"mechanism {self.mechanism.name!r}: release() {failed}; run "
                "dp.mechanisms.check() on it, with made-up rows"
            )
        return noisy


def _scales(name: str, noise: object, law: Law, *, centred: bool) -> tuple[float, ...]:
    """Return the scales of planned noise; no sum of the rows is released unless it is wanted."""
    if not isinstance(noise, MomentNoise):
        raise ArgumentError(
            f"mechanism {name!r}: plan() returned {type(noise).__name__}; expected "
            "dp.mechanisms.MomentNoise(count, mean, diagonal, off)"
        )
    count, mean, diagonal, off = astuple(noise)
    sds = (count, mean if centred else math.nan, diagonal, off)
    for part, sd in zip(("count", "mean", "diagonal", "off"), sds, strict=True):
        number = isinstance(sd, float | int | np.number)
        if not (number and 0 < sd < math.inf) and (centred or part != "mean"):
            raise ArgumentError(
                f"mechanism {name!r}: plan() gives {part}={said(sd)}; expected a positive number"
            )
    return tuple(float(sd) / law.sd for sd in sds)


def _multiplier(facts: Facts, scales: tuple[float, ...], law: Law) -> float:
    """Return the noise of the moments over their sensitivity."""
    count, mean, diagonal, off = scales
    scale = min(diagonal, off * (math.sqrt(2) if law is GAUSSIAN else 1.0))
    weights = MomentWeights(scale / count, 0.0 if math.isnan(mean) else scale / mean)
    if law is GAUSSIAN:
        return scale / moment_sensitivity(facts.adjacency, weights)
    return scale / absolute_sensitivity(facts.adjacency, facts.columns, weights)
