"""User-supplied mechanisms of moments: their requirements, and how verbs run them.

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
from dataclasses import astuple, dataclass
from inspect import signature
from keyword import iskeyword
from typing import Any, ClassVar, Final, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from dpmodels.arguments import checked_keywords
from dpmodels.errors import ArgumentError, DPModelsError, MechanismError, deferred, quoted
from dpmodels.mechanisms import add_noise
from dpmodels.mechanisms.measures import OfMoments
from dpmodels.mechanisms.protocol import Facts, MomentMechanism, Plan
from dpmodels.noise import Entropy
from dpmodels.noise.lattice import choose_lattice
from dpmodels.privacy import GaussianEvent, Guarantee, LaplaceEvent, gaussian_multiplier
from dpmodels.released import MechanismInfo, MomentsRelease
from dpmodels.released import MomentNoise as MomentNoise
from dpmodels.statistics import MomentWeights, Statistic, moment_sensitivity
from dpmodels.statistics.moments import absolute_sensitivity
from dpmodels.typing import Floats

_WISHART: Final = (
    "its claim of eps-differential privacy is wrong, as Wishart noise leaves matrices that one "
    "neighbour can release and the other cannot (Imtiaz and Sarwate, 2016, retracted in April "
    "2017; the same fault in Jiang, Xie and Zhang, 2016)",
    'write "laplace", or "moments" in dp_lm, which keep a pure guarantee',
)
SUPERSEDED: Final[Mapping[str, tuple[str, str]]] = {
    "wishart": _WISHART,
    "dp_pca_sn": _WISHART,
    "sulq": (
        "SULQ (Blum, Dwork, McSherry and Nissim, 2005) was modified to MOD-SULQ by Chaudhuri, "
        'Sarwate and Sinha (2012), which is "mod_sulq" here',
        'write "gauss", which needs far less noise, or "mod_sulq" to compare',
    ),
    "ag": (
        'Analyze Gauss (Dwork, Talwar, Thakurta and Zhang, 2014) is "analyze_gauss" here; '
        '"gauss" has half its noise variance off the diagonal at the same guarantee',
        'write "gauss", or "analyze_gauss" to compare',
    ),
}


def refuse_superseded(argument: str, name: object) -> None:
    """Refuse the name of a retracted or superseded mechanism.

    >>> refuse_superseded("mechanism=", "gauss")
    """
    key = name.lower().replace("-", "_") if isinstance(name, str) else ""
    if key in SUPERSEDED:
        reason, instead = SUPERSEDED[key]
        raise ArgumentError(f"{argument}{name!r} is not offered: {reason}; {instead}")


CHECKED: Final = "user-supplied mechanism, checked"
NOT_CHECKED: Final = "user-supplied mechanism, not checked"
LAWS: Final[Mapping[str, add_noise.Law]] = {
    "gaussian": add_noise.GAUSSIAN,
    "laplace": add_noise.LAPLACE,
}
# The scale of the integer noise that is divided to make floating-point noise: a choice.
_FINE: Final = 2.0**40
# A plan may fall short by so much, as products are rounded; the noise is drawn larger by as much.
_ROUNDING: Final = 1e-9
Kind = TypeVar("Kind", bound=type)
_REGISTERED: Final[dict[str, type[MomentMechanism]]] = {}
# What was checked of a class; it is no longer checked once one of these is replaced.
_PASSED: Final[dict[type[object], tuple[object, ...]]] = {}


@checked_keywords("dp.mechanisms.register")
def register(mechanism: Kind) -> Kind:
    """Make a mechanism of moments known, so that verbs take it by name.

    Parameters
    ----------
    mechanism : type
        A subclass of ``dp.mechanisms.MomentMechanism``.

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
    :func:`power` and :func:`compare_mechanisms`. ``"auto"`` never chooses it. A class
    of the same module and name replaces the one registered before.

    The class runs your code on exact moments of private rows. The package checks before
    the charge that the planned noise suffices for the guarantee, and reports an
    exception of your code with a fixed text that quotes no value. It cannot check that
    ``release`` adds that noise and keeps nothing: ``dp.mechanisms.check`` tests it on
    made-up rows. Tables print "user-supplied mechanism, checked" or "not checked".

    Examples
    --------
    >>> import math
    >>> import dpmodels as dp
    >>> from dpmodels.privacy import gaussian_multiplier
    >>> @dp.mechanisms.register
    ... class OneScale(dp.mechanisms.MomentMechanism):
    ...     name, law = "one_scale", "gaussian"
    ...
    ...     def plan(self, facts, guarantee):
    ...         # Replacing a row moves the sum of z z' by at most √8 in Frobenius norm.
    ...         sd = gaussian_multiplier(guarantee) * math.sqrt(8)
    ...         return dp.mechanisms.MomentNoise(count=sd, mean=sd, diagonal=sd, off=sd)
    """
    instance = require_mechanism(mechanism)
    name: str = instance.name
    if type(instance) is not mechanism:
        class_name = type(instance).__name__
        raise ArgumentError(f"mechanism= is an instance; expected the class, {class_name}")
    refuse_superseded("name=", name)
    package = vars(sys.modules["dpmodels.mechanisms"]).items()
    tables = [table for key, table in package if key.isupper() and isinstance(table, dict)]
    if name == "auto" or any(name in table for table in tables):
        raise ArgumentError(f"name={name!r} is the name of a built-in mechanism; use another")
    registered = _REGISTERED.get(name, mechanism)
    if (registered.__module__, registered.__qualname__) != (
        mechanism.__module__,
        mechanism.__qualname__,
    ):
        raise ArgumentError(
            f"name={name!r} is taken by the registered class {registered.__qualname__}; use another"
        )
    _REGISTERED[name] = mechanism
    return mechanism


@checked_keywords("dp.mechanisms.check")
def check(mechanism: object, *, runs: int = 10_000) -> Any:
    """Try a user-supplied mechanism on made-up rows, and audit it.

    Parameters
    ----------
    mechanism : type or instance
        A class as for :func:`dpmodels.mechanisms.register`, registered or not, or an
        instance with options.
    runs : int
        Releases on each of the two tables of the audit, from 1,000.

    Returns
    -------
    MechanismCheck
        Its ``verdict`` is "passed" or "convicted", with a ``reason``.

    Raises
    ------
    ArgumentError
        If it is not a mechanism of moments at all.

    Notes
    -----
    It checks that ``plan`` is a function of its arguments with enough noise; that a
    release draws random numbers by ``draw`` alone; that what it adds to the moments is
    independent and of the planned size; by ``dp.audit.coupled``, that neighbours
    differ by no more than that noise allows; and runs ``dp.audit``. A false
    conviction has a probability of about 1e-4.

    Releases of a mechanism that passed are printed with "user-supplied mechanism,
    checked", until one of its methods or options changes. Passing proves no guarantee:
    rows and neighbours that were not tried may be treated otherwise.

    Examples
    --------
    >>> import dpmodels as dp
    >>> from dpmodels.privacy import gaussian_multiplier
    >>> class TooQuiet(dp.mechanisms.MomentMechanism):
    ...     name, law = "too_quiet", "gaussian"
    ...
    ...     def plan(self, facts, guarantee):
    ...         sd = gaussian_multiplier(guarantee)
    ...         return dp.mechanisms.MomentNoise(sd, sd, sd, sd)
    >>> dp.mechanisms.check(TooQuiet).verdict
    'convicted'
    """
    return deferred["check"]()(mechanism, runs)


def require_mechanism(mechanism: object) -> MomentMechanism:
    """Return an instance of a mechanism of moments or of its class; else ArgumentError."""
    kind: Any = mechanism if isinstance(mechanism, type) else type(mechanism)
    fault = _class_fault(kind)
    try:
        signature(kind.release).bind(None, "moments", "sd", "draw")
        instance = kind() if isinstance(mechanism, type) and not fault else mechanism
    except Exception as error:
        fault = fault or (
            f"{kind.__name__}() raised {type(error).__name__}; define plan(self, facts, "
            "guarantee), release(self, moments, sd, draw) and a default for every option"
        )
    if fault:
        raise ArgumentError(f"{kind.__name__}: {fault}")
    return cast("MomentMechanism", instance)


def _class_fault(kind: type[object]) -> str:
    """Describe the fault of a class; empty for a valid class."""
    name, law = (getattr(kind, word, None) for word in ("name", "law"))
    claims = [word for word in ("info", "claim", "numerics") if hasattr(kind, word)]
    if not issubclass(kind, MomentMechanism):
        return "expected a subclass of dp.mechanisms.MomentMechanism"
    if not isinstance(name, str) or not name.isidentifier() or iskeyword(name):
        return f"name={quoted(name)}: expected an identifier, such as name = 'mine'"
    if not isinstance(law, str) or law not in LAWS:
        return f"law={quoted(law)}: expected the law of its noise, 'gaussian' or 'laplace'"
    if claims:
        return (
            "a user-supplied mechanism cannot declare its own guarantee or numerics, such as "
            f"'exact'; leave out {claims[0]}"
        )
    return ""


def supplied(mechanism: object, table: Mapping[str, object]) -> UserSupplied | None:
    """Return the strategy of a registered mechanism where a table is of moments, else None."""
    if isinstance(mechanism, UserSupplied) or not table.keys() & {"gauss", "adassp"}:
        return mechanism if isinstance(mechanism, UserSupplied) else None
    candidate = _REGISTERED.get(mechanism) if isinstance(mechanism, str) else mechanism
    kind = candidate if isinstance(candidate, type) else type(candidate)
    if kind in _REGISTERED.values():
        return UserSupplied(require_mechanism(candidate))
    if issubclass(kind, MomentMechanism):
        raise ArgumentError(
            f"mechanism= is the class {kind.__name__}, which is not registered: write "
            f"dp.mechanisms.register({kind.__name__}) first"
        )
    return None


def registered_info(name: str) -> MechanismInfo | None:
    """Return the info of a registered mechanism; None where no class has the name."""
    return UserSupplied(_REGISTERED[name]()).info if name in _REGISTERED else None


def record_passed(mechanism: MomentMechanism) -> None:
    """Record that a mechanism passed its checks."""
    _PASSED[type(mechanism)] = _checked_parts(mechanism)


def _checked_parts(mechanism: MomentMechanism) -> tuple[object, ...]:
    kind, options = type(mechanism), sorted(getattr(mechanism, "__dict__", {}).items())
    plain = all(isinstance(value, str | int | float | None) for _, value in options)
    return kind.plan, kind.release, kind.law, kind.name, options if plain else object()


@dataclass(frozen=True)
class UserSupplied(OfMoments):
    """The strategy that runs a user-supplied mechanism."""

    mechanism: MomentMechanism

    passes: ClassVar[str] = "one"

    @property
    def law(self) -> add_noise.Law:
        """The law of the noise."""
        return LAWS[self.mechanism.law]

    @property
    def info(self) -> MechanismInfo:
        """What is printed of it, in the package's words."""
        is_checked = _PASSED.get(type(self.mechanism)) == _checked_parts(self.mechanism)
        return MechanismInfo(
            name=self.mechanism.name,
            theorem="noise as planned satisfies the guarantee; that it is added is not proved",
            sensitivity="of the moments of (1, x), as for gauss or laplace",
            noise=f"{self.mechanism.law}, of standard deviations that the mechanism plans",
            numerics=CHECKED if is_checked else NOT_CHECKED,
            source="user-supplied",
        )

    def plan(self, facts: Facts, guarantee: Guarantee) -> Plan:
        """Plan the noise; ArgumentError where it is not a plan, or less than is needed."""
        event: GaussianEvent | LaplaceEvent = (
            GaussianEvent(gaussian_multiplier(guarantee))
            if self.law is add_noise.GAUSSIAN
            else LaplaceEvent(add_noise.laplace_multipliers(guarantee)[0])
        )
        try:
            noise = self.mechanism.plan(facts, guarantee)
        except DPModelsError:
            raise
        except Exception as error:
            raise ArgumentError(
                self._fault(f"raised {type(error).__name__}; nothing was charged")
            ) from None
        scales = self._scales(noise, centred=facts.centred)
        reached = _multiplier(facts, scales, self.law)
        if reached * (1 + _ROUNDING) < event.multiplier:
            short = f"multiply it by {event.multiplier / reached:.6g} or more"
            raise ArgumentError(
                self._fault(f"gives too little noise for {guarantee.describe()}; {short}")
            )
        lattice = choose_lattice(facts.columns, add_noise.ROOM * float(np.nanmax(scales)))
        return Plan(guarantee, (event,), lattice, facts, add_noise.in_steps(lattice, scales, 0.0))

    def release(self, statistic: Statistic, plan: Plan, entropy: Entropy) -> MomentsRelease:
        """Run the mechanism's release; MechanismError, with a fixed text, where it fails."""
        exact, n_rows = statistic.cross()
        radius, steps = plan.lattice.radius, plan.lattice.steps
        noisy = self.released((exact / radius**2).astype(np.float64), plan, entropy)
        unit = radius / steps
        total = None if math.isnan(plan.steps.mean) else noisy[0, 1:] * unit
        parts = add_noise.NoisyMoments(
            float(noisy[0, 0]), total, noisy[1:, 1:] * unit**2, add_noise.noise_of(plan, self.law)
        )
        return add_noise.hand_over(self.info, plan, parts, n_rows)

    def planned(self, plan: Plan) -> Floats:
        """Return the planned standard deviations of moments of rows of length 1 at most."""
        count, mean, diagonal, off = np.nan_to_num(astuple(plan.steps))
        sd = np.full((plan.facts.columns + 1,) * 2, off)
        np.fill_diagonal(sd, diagonal)
        sd[0, :] = sd[:, 0] = mean
        sd[0, 0] = count
        return np.asarray(sd * self.law.sd / plan.lattice.radius**2)

    def released(self, exact: Floats, plan: Plan, entropy: Entropy) -> Floats:
        """Return what the mechanism makes of a copy of exact moments, in its own units."""

        def draw(sd: ArrayLike) -> Floats:
            sds = np.asarray(sd, dtype=np.float64) * (1 + _ROUNDING)
            units = self.law.draw(_FINE, sds.size, entropy).reshape(sds.shape)
            return np.asarray(units * (sds / (_FINE * self.law.sd)))

        sd, noisy = self.planned(plan), exact
        failed = "raised an exception, whose message is not shown because it could quote rows"
        try:
            noisy = np.array(self.mechanism.release(exact.copy(), sd, draw), dtype=np.float64)
            fits = noisy.shape == exact.shape and bool(np.isfinite(noisy).all())
            failed = (
                ""
                if fits and (noisy == noisy.T).all()
                else "did not return a finite symmetric matrix"
            )
        except Exception:
            noisy = exact
        if failed:  # Raised outside of the handler, so that the error has no context
            raise MechanismError(
                f"mechanism {self.mechanism.name!r}: release() {failed}; run "
                "dp.mechanisms.check() on it, with simulated rows"
            )
        return noisy

    def _fault(self, fault: str) -> str:
        return f"mechanism {self.mechanism.name!r}: plan() {fault}"

    def _scales(self, noise: object, *, centred: bool) -> tuple[float, ...]:
        """Return the scales of planned noise; no sum of rows is released unless it is wanted."""
        if not isinstance(noise, MomentNoise):
            expected = "dp.mechanisms.MomentNoise(count, mean, diagonal, off)"
            raise ArgumentError(
                self._fault(f"returned {type(noise).__name__}; expected {expected}")
            )
        sds = vars(noise) if centred else vars(noise) | {"mean": math.nan}
        for part, sd in sds.items():
            number = isinstance(sd, float | int | np.number)
            if not (number and 0 < sd < math.inf) and (centred or part != "mean"):
                fault = f"gives {part}={quoted(sd)}; expected a positive number"
                raise ArgumentError(self._fault(fault))
        return tuple(float(sd) / self.law.sd for sd in sds.values())


def _multiplier(facts: Facts, scales: tuple[float, ...], law: add_noise.Law) -> float:
    count, mean, diagonal, off = scales
    scale = min(diagonal, off * (math.sqrt(2) if law is add_noise.GAUSSIAN else 1.0))
    weights = MomentWeights(scale / count, 0.0 if math.isnan(mean) else scale / mean)
    if law is add_noise.GAUSSIAN:
        return scale / moment_sensitivity(facts.adjacency, weights)
    return scale / absolute_sensitivity(facts.adjacency, facts.columns, weights)
