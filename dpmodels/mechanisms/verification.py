"""The check of a user-supplied mechanism, which is part of the audit."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def check(mechanism: Any, *, runs: int = 10_000) -> Any:
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
        It prints as a table; ``passed``, ``verdict``, ``reasons``, ``table`` and
        ``audit``, an :class:`~dpmodels.audit.result.AuditResult`.

    Raises
    ------
    ArgumentError
        If it is not a mechanism of moments at all.

    Notes
    -----
    It checks that the plan is a function of its arguments and its noise is large enough
    for the guarantee; that a release depends on the moments and `source` alone and does
    not change the moments; by brute force, that no neighbour changes what noise is added
    to by more than planned; that the noise that is added is independent and of the planned
    size; and an audit bounds the privacy that is lost from below. A false conviction has
    a probability of about 1e-4.

    Releases of a mechanism that passed are printed with "user-supplied mechanism,
    checked", until one of its methods or options changes. Passing proves no guarantee:
    rows and neighbours that were not tried may be treated otherwise.

    Examples
    --------
    >>> import dpmodels as dp
    >>> from dpmodels.privacy import gaussian_multiplier
    >>> class TooQuiet:
    ...     name, law = "too_quiet", "gaussian"
    ...
    ...     def plan(self, facts, guarantee):
    ...         sd = gaussian_multiplier(guarantee)
    ...         return dp.mechanisms.MomentNoise(sd, sd, sd, sd)
    ...
    ...     def release(self, moments, noise, source):
    ...         return moments + source.matrix(noise, len(moments) - 1)
    >>> dp.mechanisms.check(TooQuiet).verdict
    'convicted'
    """
    # The audit stands above the mechanisms, so that it is not imported with them.
    return import_module("dpmodels.audit.mechanism_check").checked_mechanism(mechanism, runs)
