"""From the verb's word ``mechanism=`` to a strategy, by public facts."""

from __future__ import annotations

from collections.abc import Mapping

from dpmodels.errors import ArgumentError
from dpmodels.mechanisms.protocol import CovarianceMechanism

AUTO = "gauss"


def choose(
    mechanism: str | CovarianceMechanism, table: Mapping[str, type[CovarianceMechanism]]
) -> CovarianceMechanism:
    """Return the strategy that a name or an instance stands for.

    Parameters
    ----------
    mechanism : str or CovarianceMechanism
        ``"auto"``, a name in the table, or an instance.
    table : mapping
        The strategies of the verb's family.

    Raises
    ------
    ArgumentError
        If the name is not in the table.
    """
    if not isinstance(mechanism, str):
        methods = (getattr(mechanism, name, None) for name in ("plan", "release"))
        if not isinstance(mechanism, type) and all(map(callable, methods)):
            return mechanism
        raise ArgumentError(
            f"mechanism= is of type {type(mechanism).__name__}; expected a name or an instance "
            "such as dp.mechanisms.Gauss()"
        )
    name = AUTO if mechanism == "auto" else mechanism
    if name not in table:
        names = ", ".join(repr(known) for known in ("auto", *table))
        raise ArgumentError(f"mechanism={mechanism!r} is not known; expected one of {names}")
    return table[name]()
