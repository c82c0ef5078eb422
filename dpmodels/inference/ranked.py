"""How sure an order of noisy values is."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from dpmodels.typing import Floats


def above_next(values: Floats, variances: Floats, law: str) -> Floats:
    """Return how probable it is that each exact value is above the next, shape (values,).

    It is the probability that the difference of their two noises, of the law "gaussian" or
    "laplace" and then of one variance, is below the difference that was seen: one less the p-value
    of the test that the next is as large, and the posterior probability where nothing else is known
    of the two. The last, which nothing follows, has nan.
    """
    gaps = -np.diff(values)
    if law == "gaussian":
        found = np.asarray(ndtr(gaps / np.sqrt(variances[1:] + variances[:-1])))
    else:
        # Of the difference of two Laplace variables of scale b the tail is (2 + t) exp(-t) / 4.
        steps = np.abs(gaps) / np.sqrt(variances[1:] / 2)
        tail = (2 + steps) * np.exp(-steps) / 4
        found = np.where(gaps >= 0, 1 - tail, tail)
    return np.append(found, np.nan)[: len(values)]
