"""Expected responses at levels of factors, over an even grid of what else there is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpmodels.dates import Date, text_of_day
from dpmodels.errors import ArgumentError, said, shorten
from dpmodels.formula.parse import quote
from dpmodels.inference.links import Link
from dpmodels.results.estimates import exponentiated
from dpmodels.results.fitted import Fitted
from dpmodels.results.hypotheses import tested
from dpmodels.results.public_rows import bounds
from dpmodels.results.variables import levels_of, variables_named
from dpmodels.typing import Floats

# A choice: regressors of a grid that fit in memory.
MOST = 20_000_000


class Grid(NamedTuple):
    """Combinations of levels of factors, each averaged evenly over those of the others."""

    keys: pd.DataFrame  # one row a combination
    rows: Floats  # its regressors, shape (combinations, coefficients)
    held: dict[str, str]  # at what values numbers are held
    averaged: tuple[str, ...]  # factors that are averaged over


def grid(model: Fitted, factors: str | Sequence[str], at: Mapping[str, object] | None) -> Grid:
    """Lay out the combinations of the levels of factors."""
    design = model.coder.design
    asked = variables_named(design, factors)
    given = _given(model, at)
    values = {name: given.get(name) or _usual(model, name) for name in design.variables}
    for name in asked:
        if name not in given and levels_of(design, name) is None:
            ends = ", ".join(
                _said(design.codebook[name], end) for end in bounds(design.codebook, name)
            )
            raise ArgumentError(
                f"{name!r} is a number: say at which values, as at={{{name!r}: [{ends}]}}"
            )
    order = [*asked, *(name for name in design.variables if name not in asked)]
    shape = [len(values[name]) for name in order]
    if math.prod(shape) * len(model.terms.names) > MOST:
        raise ArgumentError(
            f"{math.prod(shape):,} combinations of levels are too many: hold some at one, as "
            f"at={{{order[-1]!r}: ...}}"
        )
    places = np.indices(shape).reshape(len(order), -1)
    columns = {
        name: np.array(list(values[name].values()))[place]
        for name, place in zip(order, places, strict=True)
    }
    cells = math.prod(shape[: len(asked)])
    rows = model.rows(columns).reshape(cells, -1, len(model.terms.names)).mean(axis=1)
    first = places[:, :: places.shape[1] // cells]
    keys = {
        name: [list(values[name])[one] for one in place]
        for name, place in zip(asked, first, strict=False)
    }
    others = order[len(asked) :]
    held = {quote(name): str(*values[name]) for name in others if len(values[name]) == 1}
    averaged = tuple(quote(name) for name in others if len(values[name]) > 1)
    return Grid(pd.DataFrame(keys), rows, held, averaged)


def _usual(model: Fitted, name: str) -> dict[object, float]:
    """Return all levels of a variable, or the middle of a number's public range."""
    design = model.coder.design
    levels = levels_of(design, name)
    if levels is not None:
        return levels
    middle = sum(bounds(design.codebook, name)) / 2
    return {_said(design.codebook[name], middle).strip("'"): middle}


def _said(variable: object, value: float) -> str:
    """Return a number, or a day in quotes, as it is typed."""
    return repr(text_of_day(value)) if isinstance(variable, Date) else f"{value:g}"


def _given(model: Fitted, at: Mapping[str, object] | None) -> dict[str, dict[object, float]]:
    """Read the values that a user holds variables at."""
    if at is not None and not isinstance(at, Mapping):
        raise ArgumentError(f"at={said(at)}: expected a mapping such as at={{'age': 40}}")
    design, found = model.coder.design, {}
    for name, value in (at or {}).items():
        (own,) = variables_named(design, [name])
        arrays = np.ndarray | np.generic | pd.Series
        plain: Any = value.tolist() if isinstance(value, arrays) else value
        several = isinstance(plain, Sequence) and not isinstance(plain, str)
        listed = list(plain) if several else [plain]
        others = {other: [None] * len(listed) for other in design.variables}
        codes = model.coder.read({**others, own: listed})[own]
        low, high = bounds(design.codebook, own)
        if not len(listed) or not ((codes >= low) & (codes <= high)).all():
            raise ArgumentError(
                f"at={{{own!r}: {shorten(said(value))}}}: expected values within the codebook, "
                f"{design.codebook[own].describe()}"
            )
        found[own] = dict(zip(listed, codes.tolist(), strict=True))
    return found


def contrasts(
    model: Fitted, cells: Grid, adjust: str, level: float, *, ratio: bool = False
) -> pd.DataFrame:
    """Return one row a pair of combinations: differences of linear predictors, or their ratios.

    First less second, or over it; p-values and intervals are adjusted for the number of pairs.
    """
    first, second = np.triu_indices(len(cells.rows), 1)
    ways = cells.rows[first] - cells.rows[second]
    columns = tested(model.law, ways, ways @ model.law.params, level, adjust)
    labels = [", ".join(map(str, line)) for line in cells.keys.to_numpy().tolist()]
    sign = "/" if ratio else "-"
    pairs = [f"{labels[i]} {sign} {labels[j]}" for i, j in zip(first, second, strict=True)]
    table = pd.DataFrame({"contrast": pairs, **columns})
    return exponentiated(table) if ratio else table


def grid_notes(cells: Grid, link: Link) -> tuple[str, ...]:
    """Say at what the rest is held."""
    held = ", ".join(f"{name} = {value}" for name, value in cells.held.items())
    rest = [f"Held at: {held}." if held else ""]
    if cells.averaged:
        rest.append(f"Averaged with equal weights over: {', '.join(cells.averaged)}.")
    first = " ".join(filter(None, rest))
    scale = (
        f"Means are of the {link.name}, brought to the scale of the response with their intervals."
    )
    return tuple(filter(None, (first, scale if link.ratio else "")))
