"""What the formula of a regression makes public of the products of its columns."""

from __future__ import annotations

import numpy as np

from dpmodels.formula.products import NONE, cells
from dpmodels.formula.response import two_sided
from dpmodels.postprocess.bound import Identities
from dpmodels.postprocess.few_rows import Layout
from dpmodels.results.call import MomentsCall


def layout(call: MomentsCall, weights: str | None) -> Layout | None:
    """Read off a formula what is public of the products of its columns; None where nothing is.

    Rows that were shortened keep to none of it.
    """
    if call.row_norm < call.worst_case:
        return None
    apart = () if weights is None else (weights,)
    own = cells(two_sided(call.formula, call.codebook, apart=apart).joint.blocks)
    if not (own.levels[:-1] != NONE).any():
        return None
    left, right = np.triu_indices(len(own.factor))
    functions = np.empty((len(own.factor),) * 2, dtype=np.int_)
    functions[left, right] = functions[right, left] = own.products(left, right)
    unit = np.concatenate([[1.0], call.divisor])
    identities = Identities(
        functions, own.factor / unit, np.concatenate([[0.0], call.origin / call.divisor])
    )
    low, high = (np.concatenate([[1.0], end]) for end in call.box)
    return Layout(identities, own.levels, own.numbers, own.sizes, (low, high))
