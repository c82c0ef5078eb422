"""Sums and counts of one column with Laplace noise: small faults that everybody can make.

All claim ε, which is right if the noise has scale Δ/ε, Δ the L1 sensitivity of
everything released together [1]_.

`unclipped_row`
    Values are declared to lie in [0, 1] and nothing holds them there. A value
    of 3 moves the sum by 3: the true ε is 3ε.
`budget_slip`
    A sum and a count, each with all of ε. A row added moves both by 1, and
    where both releases lie above their centres the ratio of the densities is
    e^{2ε}: the true ε is 2ε.
`exact_count`
    A sum, and beside it the number of rows as it is, under neighbours that
    differ by a row. No ε is enough.
`bounds_from_rows`
    The noise is scaled by the least and the largest value found. One outlier
    makes it a hundred times wider: a release far out has probability near 1/2
    with the outlier and less than e^{-50} without. `dp_hist` of dp-stats takes
    the edges of its bins so.
`reused_seed`
    Libraries take `random_state=1` for repeatable examples, and users pass the
    same integer to every call: with dp-econometrics and diffprivlib two
    releases then carry the same noise, and their difference is the difference
    of the statistics, exactly, even for a seed that nobody knows. No ε is
    enough.
`scaled_by_rows`
    `center(x)` and `scale(x)` of formula languages, patsy's among them, take
    mean and standard deviation from the rows. Whoever noises moments of such
    columns with the sensitivity of one row believes that one row moves one
    row; it moves all of them. 30 of 60 rows lie at .01 and 30 at 0: the first
    stand one standard deviation above the mean, and their standardised values
    add up to 30. One row of the others moves to 1: the 30 rows that did not
    change now add up to -2.7. The noise has scale 4/ε, for values cut at ±2
    standard deviations; the release moves by 32.7, and the true ε is 8.2ε.
    Right is a public centre and half-width, here .5 and .5.
`porous_laplace`
    Textbooks and libraries drew Laplace noise as the inverse distribution
    function of a uniform double, and added it in doubles. The set of doubles
    that can come out depends on the value [2]_. Doubles lie denser near zero.
    1 plus any double is a multiple of 2⁻⁵³ once rounded, wherever it falls; 0
    plus the noise is the noise itself, with all its low bits. So a release that
    is not a multiple of 2⁻⁵³ tells 0 from 1 for certain. Between 2⁻ʲ⁻¹ and 2⁻ʲ
    doubles are multiples of 2⁻⁵³⁻ʲ, of which one in 2ʲ is a multiple of 2⁻⁵³:
    at ε = 1 such a release comes with probability near
    Σ (1 - 2⁻ʲ) P(2⁻ʲ⁻¹ < |noise| < 2⁻ʲ), about .27. No ε is enough. Right is
    integer noise on a public lattice: two-sided geometric noise on multiples of
    2⁻¹⁰, whose outputs lie on the same lattice whatever the rows [3]_.

References
----------
.. [1] Dwork, McSherry, Nissim and Smith (2006). "Calibrating noise to
   sensitivity in private data analysis." TCC 2006.
.. [2] Mironov, I. (2012). "On significance of the least significant bits for
   differential privacy." CCS 2012.
.. [3] Ghosh, A., Roughgarden, T. and Sundararajan, M. (2012). "Universally
   utility-maximizing privacy mechanisms." SIAM Journal on Computing 41(6).
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from dpmodels.audit.neighbours import Pair
from dpmodels.typing import Floats
from exhibits.exhibit import LAPLACE, Batched, Exhibit

EPS = 1.0
_LATTICE = 2.0**10  # a choice: multiples of 1/1024


def _laplace(
    rows: Floats,
    generator: np.random.Generator,
    runs: int,
    *,
    statistic: Callable[[Floats], Floats],
    scale: Callable[[Floats], tuple[float, ...]],
) -> Floats:
    """Release a statistic with Laplace noise, one scale an entry: shape (runs, k)."""
    exact, scales = statistic(rows), np.array(scale(rows))
    return exact + scales * generator.laplace(size=(runs, exact.size))


def _recipe(
    statistic: Callable[[Floats], Floats], scale: Callable[[Floats], tuple[float, ...]]
) -> Batched:
    return Batched(partial(_laplace, statistic=statistic, scale=scale))


def _always(*scale: float) -> Callable[[Floats], tuple[float, ...]]:
    return lambda rows: scale


def _found_width(rows: Floats) -> tuple[float, ...]:
    return (float(rows.max() - rows.min()) / EPS,)


def _total(rows: Floats) -> Floats:
    return np.array([rows.sum()])


def _clipped_total(rows: Floats) -> Floats:
    return _total(np.clip(rows, 0.0, 1.0))


def _total_and_count(rows: Floats) -> Floats:
    return np.array([rows.sum(), float(len(rows))])


_ROWS = np.linspace(0.0, 0.01, 11)
_UNCLIPPED = Exhibit(
    name="unclipped_row",
    fault="a value outside its declared range is let through",
    source="a slip",
    recipe=_recipe(_total, _always(1 / EPS)),
    pair=Pair(np.append(_ROWS, 3.0), np.append(_ROWS, 0.0), name="a value of 3 in [0, 1]"),
    loss=3 * EPS,
)
BOUNDS = replace(
    _UNCLIPPED,
    name="bounds_from_rows",
    fault="the range is read off the rows",
    source="dp-stats, the bin edges of dp_hist",
    recipe=_recipe(_total, _found_width),
    pair=Pair(np.append(_ROWS, 1.0), np.append(_ROWS, 0.0), name="an outlier"),
    loss=math.inf,
)
_SLIP = replace(
    _UNCLIPPED,
    name="budget_slip",
    fault="two releases, each with the whole budget",
    recipe=_recipe(_total_and_count, _always(1 / EPS, 1 / EPS)),
    pair=Pair(np.append(_ROWS, 1.0), _ROWS, adjacency="add-remove", name="a row of value 1 more"),
    loss=2 * EPS,
)
_COUNT = replace(
    _SLIP,
    name="exact_count",
    fault="the number of rows is released as it is",
    recipe=_recipe(_total_and_count, _always(1 / EPS, 0.0)),
    loss=math.inf,
)


def _two_sums(rows: Floats, generator: np.random.Generator, runs: int, *, draws: int) -> Floats:
    """Release the sums of two columns, with one draw of noise for both or one each: (runs, 2)."""
    return np.asarray(rows.sum(axis=0) + generator.laplace(0.0, 2 / EPS, (runs, draws)))


_OTHERS = np.array([[0.2, 0.9], [0.5, 0.1], [0.7, 0.3]])
_SEED = Exhibit(
    name="reused_seed",
    fault="two releases carry the same noise",
    source="random_state=1, twice, in dp-econometrics and diffprivlib",
    recipe=Batched(partial(_two_sums, draws=1)),
    pair=Pair(
        np.vstack([_OTHERS, [1.0, 0.0]]),
        np.vstack([_OTHERS, [0.0, 1.0]]),
        name="extremes of two columns swapped",
    ),
    loss=math.inf,
)


def _standardised(rows: Floats) -> Floats:
    """Standardise column 0 by its rows, cut at ±2, and add up the rows that column 1 marks."""
    x = rows[:, 0]
    return np.array([(rows[:, 1] * np.clip((x - x.mean()) / x.std(), -2.0, 2.0)).sum()])


def _declared(rows: Floats) -> Floats:
    return np.array([(rows[:, 1] * np.clip((rows[:, 0] - 0.5) / 0.5, -1.0, 1.0)).sum()])


def _marked(last: float) -> Floats:
    rows = np.zeros((60, 2))
    rows[:30] = 0.01, 1.0
    rows[-1, 0] = last
    return rows


_SCALED = Exhibit(
    name="scaled_by_rows",
    fault="a row moves the centre and the scale of all others",
    source="center() and scale() of formula languages",
    recipe=_recipe(_standardised, _always(4 / EPS)),
    pair=Pair(_marked(0.0), _marked(1.0), name="an outlier in the other group"),
    loss=float(np.abs(_standardised(_marked(0.0)) - _standardised(_marked(1.0)))[0]) * EPS / 4,
)


def _porous(rows: Floats, generator: np.random.Generator, runs: int) -> Floats:
    """Release a sum with noise sign(u) ln(1 - 2|u|)/ε for u uniform: shape (runs, 1)."""
    uniform = generator.random((runs, 1)) - 0.5
    noise = -np.sign(uniform) * np.log(1 - 2 * np.abs(uniform)) / EPS
    return np.asarray(rows.sum() + noise)


def _on_lattice(rows: Floats, generator: np.random.Generator, runs: int) -> Floats:
    """Release a sum of values on a lattice, with noise on it: shape (runs, 1)."""
    step = -math.expm1(-EPS / _LATTICE)
    up, down = generator.geometric(step, (2, runs, 1))
    return np.asarray(np.rint(rows * _LATTICE).sum() + up - down) / _LATTICE


_POROUS = Exhibit(
    name="porous_laplace",
    fault="the doubles that can come out depend on the rows",
    source="Mironov (CCS 2012)",
    recipe=Batched(_porous, step=None),
    pair=Pair(np.array([0.0]), np.array([1.0]), name="a value of 0 against 1"),
    loss=math.inf,
)

EXHIBITS = {
    value.name: value for value in (_UNCLIPPED, _SLIP, _COUNT, BOUNDS, _SEED, _SCALED, _POROUS)
}
_CLIPPED = _recipe(_clipped_total, _always(1 / EPS))
_SPLIT = _recipe(_total_and_count, _always(2 / EPS, 2 / EPS))
CORRECT = {
    _UNCLIPPED.name: _UNCLIPPED.mended(_CLIPPED, LAPLACE),
    _SLIP.name: _SLIP.mended(_SPLIT, LAPLACE),
    _COUNT.name: _COUNT.mended(_SPLIT, LAPLACE),
    BOUNDS.name: BOUNDS.mended(_CLIPPED, LAPLACE),
    _SEED.name: _SEED.mended(Batched(partial(_two_sums, draws=2)), LAPLACE),
    _SCALED.name: _SCALED.mended(_recipe(_declared, _always(2 / EPS)), LAPLACE, loss=0.0),
    _POROUS.name: _POROUS.mended(
        Batched(_on_lattice), "Ghosh, Roughgarden and Sundararajan (2012)"
    ),
}
