"""Linear constraints on coefficients, as users write them."""

from __future__ import annotations

from typing import Any

import numpy as np
from patsy import DesignInfo, PatsyError

from dpmodels.errors import ArgumentError, said, shorten
from dpmodels.results.terms import Terms
from dpmodels.typing import Floats


def read_constraints(terms: Terms, constraints: object) -> tuple[Floats, Floats, list[str]]:
    """Return matrix, right-hand sides and labels of linear constraints."""
    names = list(terms.names)
    if isinstance(constraints, list) and any(isinstance(one, str) for one in constraints):
        each = [read_constraints(terms, one) for one in constraints]
        rows, held, told = zip(*each, strict=True)
        return np.vstack(rows), np.concatenate(held), [label for own in told for label in own]
    if not isinstance(constraints, str):
        matrix, values = _numbers(constraints)
    elif constraints not in names and (term := terms.named(constraints)) is not None:
        matrix = terms.matrix(term)
        values = np.zeros(len(matrix))
    else:
        matrix, values = _spelt(terms, constraints)
    shaped = matrix.ndim == 2 and matrix.shape[1] == len(names) and len(matrix) == len(values)
    if not (shaped and len(matrix) and np.isfinite(matrix).all() and np.isfinite(values).all()):
        raise ArgumentError(
            f"constraints= of shape {matrix.shape}: expected rows of {len(names)} finite numbers, "
            f"one a coefficient of {shorten(str(names), 120)}, and finite values"
        )
    if not matrix.any(axis=1).all():
        raise ArgumentError("constraints=: one of them names no coefficient; leave it out")
    labels = [_label(names, row) for row in matrix]
    return matrix, values, labels


def _label(names: list[str], row: Floats) -> str:
    """Write a combination as it would be typed."""
    parts = [
        f"{'-' if c < 0 else '+'} {'' if abs(c) == 1 else f'{abs(c):g}*'}{name}"
        for c, name in zip(row.tolist(), names, strict=True)
        if c
    ]
    text = " ".join(parts)
    return text.removeprefix("+ ") if text.startswith("+") else text.replace("- ", "-", 1)


def _spelt(terms: Terms, constraints: str) -> tuple[Floats, Floats]:
    names = list(terms.names)
    try:
        read = DesignInfo(names).linear_constraint(constraints)
    except (PatsyError, ValueError) as error:
        raise ArgumentError(
            f"constraints={shorten(repr(constraints))} cannot be read ({type(error).__name__}); "
            f"write 'a = 0' or 'a = b, c = 2' with names of {shorten(str(names), 120)}, "
            f"or one term: {shorten(', '.join(terms.factors), 120)}"
        ) from None
    return np.asarray(read.coefs, float), np.asarray(read.constants, float)[:, 0] + 0.0  # For -0


def _numbers(constraints: object) -> tuple[Floats, Floats]:
    left: Any = constraints
    right: Any = 0.0
    if isinstance(constraints, tuple) and len(constraints) == 2:
        left, right = constraints
    try:
        matrix = np.atleast_2d(np.asarray(left, dtype=np.float64))
        values = np.broadcast_to(np.asarray(right, dtype=np.float64).ravel(), len(matrix))
    except (TypeError, ValueError):
        raise ArgumentError(
            f"constraints={said(constraints)}: expected text such as 'a = 0', a matrix of numbers "
            "with one column a coefficient, or that matrix and the values it is held against"
        ) from None
    return matrix, values
