"""Every mechanism of the package, one line each: its name, how to make it, what it takes."""

from collections.abc import Callable
from typing import NamedTuple

from dpmodels.mechanisms import CovarianceMechanism, Gauss
from dpmodels.privacy import ZCDP, ApproxDP


class Mechanism(NamedTuple):
    name: str
    make: Callable[[], CovarianceMechanism]
    takes: tuple[type, ...]


MECHANISMS = (Mechanism("gauss", Gauss, takes=(ApproxDP, ZCDP)),)
