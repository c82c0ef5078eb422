"""Passes over rows that are transformed by released values first."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial, reduce
from operator import add
from typing import Final, NamedTuple

import numpy as np

from dpmodels.design import PrivateDesign, Scaling
from dpmodels.design.parts import FACES
from dpmodels.formula import Block, Design
from dpmodels.noise import Entropy
from dpmodels.noise.discrete import NoiseOfSites
from dpmodels.noise.lattice import (
    MAX_BITS,
    Lattice,
    empty_lines,
    lengths,
    on_lattice,
    products,
    to_lattice,
    transformed,
)
from dpmodels.privacy.budget import MOST_ROWS
from dpmodels.statistics.double_double import Pair, dot
from dpmodels.statistics.moments import added, numbers_by_cell
from dpmodels.statistics.statistic import (
    OverDesigns,
    Statistic,
    additive,
    digest_of,
    fingerprint,
    summed,
)
from dpmodels.typing import Exact, Floats, Indices, Integers, Objects

# Integers below 2**53 keep all digits beside powers of 2 below this.
_NORMAL_POWERS: Final = 900
# A choice: rounds of a quarter of the rows or less take that much less time.
WORTH_THINNING: Final = 4


class Passes(OverDesigns[PrivateDesign]):
    """Exact moments of transformed rows, one pass over the rows for each transform.

    The designs hold disjoint rows in the unit ball, which can be read more than once.
    """

    __slots__ = ("lattice",)

    def __init__(self, designs: tuple[PrivateDesign, ...], lattice: Lattice) -> None:
        words = {"lattice": repr(lattice)}
        super().__init__("passes over the rows", designs, words)
        self.lattice = lattice

    @property
    def recipe(self) -> Callable[[tuple[PrivateDesign, ...]], Passes]:
        """A function that binds other rows, on the same lattice."""
        return partial(Passes, lattice=self.lattice)

    @property
    def scaling(self) -> Scaling:
        """How the rows are brought into the ball."""
        return self.designs[0].scaling

    @property
    def reach(self) -> Floats:
        """How far each scaled column may lie from the centre by the codebook."""
        public, scaling = self.designs[0].public, self.scaling
        ends = np.maximum(scaling.centre - public.lower, public.upper - scaling.centre)
        return np.asarray(ends / scaling.scale)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The coded terms of the rows, public."""
        return self.designs[0].public.blocks

    @property
    def weighted(self) -> bool:
        """Whether rows are multiplied by the roots of weights."""
        return any("weights" in design.facts for design in self.designs)

    def rescaled(self, scaling: Scaling) -> Passes:
        """Return passes over the same rows, brought into the ball by released values."""
        return self.recipe(tuple(replace(design, scaling=scaling) for design in self.designs))

    def on(self, lattice: Lattice) -> Passes:
        """Return passes over the same rows on another lattice."""
        return Passes(self.designs, lattice)

    def thinned(self, fewest: float, entropy: Entropy, min_rows: int = 0) -> Passes:
        """Return passes over rows chosen by coins, `fewest` expected; docs/theory.md, Theorem 96.

        For rounds that only say how the last one reads all rows. Passes over all rows, from public
        facts, where that is no gain: fewer rows than `min_rows` or :data:`WORTH_THINNING` times as
        many, a number of rows that is not public, persons, several sources, a database, a cluster.
        """
        design = self.designs[0]
        is_counted = design.rows.terms.neighbours.n_public and len(self.designs) == 1
        n_rows = design.nrows or 0 if is_counted and design.rows.can_be_thinned else 0
        if isinstance(entropy, NoiseOfSites) or n_rows < max(WORTH_THINNING * fewest, min_rows):
            return self
        design = design.of(design.rows.thinned(math.ceil(FACES * fewest / n_rows), entropy))
        design.require_passes()
        return self.recipe((design,))

    def once(self) -> Passes:
        """Return passes over the same rows, which do not stay in memory, without persons."""
        return self.recipe(tuple(design.of(design.rows.standing(1)) for design in self.designs))

    def recoded(self, public: Design, scaling: Scaling, lattice: Lattice) -> Passes:
        """Return passes over the same rows, coded by other columns of the same variables."""
        designs = tuple(design.recoded(public, scaling) for design in self.designs)
        return Passes(designs, lattice)

    def remeasured(
        self, public: Design, scaling: Scaling, measure: Callable[[PrivateDesign], Statistic]
    ) -> Statistic:
        """Measure the same rows, coded by other columns of the same variables."""
        return reduce(add, (measure(x.recoded(public, scaling)) for x in self.designs))

    def measured(self, measure: Callable[..., Statistic], *words: object) -> Statistic:
        """Measure an additive statistic on all the rows."""
        return self.over_rows(measure, self.lattice, *words)

    def cross(self) -> tuple[Exact, int]:
        """Return the augmented moments of the rows without a transform."""
        return self.within(np.eye(self.lattice.columns)).cross()

    def within(self, transform: Floats) -> Statistic:
        """Sum ``z zᵀ`` over the rows exactly, with ``z = (2**bits, T x)`` on the lattice.

        T, shape (columns, columns), is finite and a function of released values and public facts.
        The rows ``T x`` are each clipped to the unit ball; an incomplete row adds zero.

        T is rounded to integers (:func:`dpmodels.statistics.passes.turn`), so that the products
        with integer rows are exact in any order; all that follows is done to each row by itself.
        The integer vector a row becomes has a norm of at most ``2**bits`` and is a function of T
        and that row alone.
        """
        return self.measured(turned_moments, transform)


@additive
def turned_moments(design: PrivateDesign, lattice: Lattice, transform: Floats) -> Statistic:
    """Sum what :meth:`Passes.within` sums over the rows of one design."""
    matrix = turn(transform, lattice)

    def product(block: Floats) -> Integers:
        return products(turned(block, matrix, lattice))

    zeros: Objects = np.zeros((lattice.columns + 1,) * 2, dtype=object)
    total, n_rows = added(zeros, design.blocks(product, lattice))
    words = {"lattice": repr(lattice)}
    basis = fingerprint(design, words)
    basis = basis.also({"transform": digest_of(transform)})
    return Statistic("moments of transformed rows", total, n_rows, basis)


def turned(block: Floats, matrix: Turn, lattice: Lattice) -> Floats:
    """Transform integer rows, then clip and round them to the lattice."""
    clipped = empty_lines(*block.shape)
    clipped[0] = block[0]
    rows = clipped[1:]
    matrix.times(block[1:], out=rows)
    # Halved until the largest coordinate is below two radii, a row stays outside the ball
    # where it was, and its square does not overflow.
    _, halvings = np.frexp(np.abs(rows).max(axis=0, initial=0.0) / (2 * lattice.radius))
    if (halvings > 0).any():
        np.ldexp(rows, -np.maximum(halvings, 0), out=rows)
    columns = np.ones(lattice.columns)
    to_lattice(rows, columns / lattice.steps, 0 * columns, lattice)
    return clipped


# A matrix rounded to integers, so that its products with rows on the lattice are exact.


class Turn(NamedTuple):
    """An integer matrix whose line i is scaled by ``2**-powers[i]``; the matrix itself if fine."""

    integers: Floats  # Shape (lines, columns): whole numbers
    powers: Indices  # Shape (lines, 1): of two
    scaled: Floats | None  # The integers in that unit, where it loses no digit
    is_fine: bool = False

    def times(self, rows: Floats, out: Floats | None = None) -> Floats:
        """Return the product with integer rows, shape (columns, rows), in the matrix's unit.

        Sums of integers times one power of 2 are as exact as sums of integers.
        """
        if self.is_fine:
            products = [dot(Pair(line, 0 * line), rows).rounded for line in self.integers]
            return np.stack(products, out=out)
        if self.scaled is not None:
            return transformed(self.scaled, rows, out)
        product = transformed(self.integers, rows, out)
        return np.asarray(np.ldexp(product, -self.powers, out=product))


def turn(transform: Floats, lattice: Lattice, halvings: int = 0) -> Turn:
    """Round a matrix to integers, with a power of 2 as the unit of each line.

    Products with rows are ``2**halvings`` times smaller than those of the transform.

    `transform`, shape (lines, columns), is finite and a function of released values and public
    facts.

    A line has a Euclidean norm below ``2**(52 - bits)`` before it is rounded, by at most half the
    root of the number of columns, and a row one of at most ``2**bits``. So the absolute values of
    the terms of a product have a sum below ``2**53``: every partial sum is an integer that float64
    holds, in any order, fused or not, and the product is that of this row alone. On a lattice of
    more than 20 bits it is a sum in one order, of correctly rounded operations on each number.
    """
    if lattice.bits > MAX_BITS + 1:
        fine = np.ldexp(transform, -halvings)
        return Turn(fine, np.zeros((len(fine), 1), dtype=np.intp), None, is_fine=True)
    _, exponents = np.frexp(np.linalg.norm(transform, axis=1))
    powers = (52 - lattice.bits - exponents)[:, None].astype(np.intp)
    integers, powers = np.rint(np.ldexp(transform, powers)), powers + halvings
    is_normal = np.abs(powers).max(initial=0) < _NORMAL_POWERS
    return Turn(integers, powers, np.ldexp(integers, -powers) if is_normal else None)


# Exact counts of rows by the size of each column, and by their length after a transform.


@additive
def level_counts(design: PrivateDesign, lattice: Lattice) -> Statistic:
    """Count complete rows by the indicators that they are 1 in, which are above 0 when scaled.

    The integers have the shape (columns,). A row adds 1 to one indicator of each of f factors: the
    L2 sensitivity is ``√(2f)`` when a row is replaced and ``√f`` when it is added or removed.
    """

    def counted(block: Floats) -> Integers:
        return np.asarray(np.count_nonzero(block[1:, block[0] > 0] > 0, axis=1))

    return summed("rows by level", counted, design, lattice, {})


@additive
def column_counts(design: PrivateDesign, lattice: Lattice, halvings: int) -> Statistic:
    """Count complete rows, for each column, by the cell that its squared integer lies in.

    The integers have the shape (columns, halvings + 1). Cell k is of squared integers up to
    ``4**bits / 2**(halvings - k)`` and above those of cell k - 1; 0 is in the first that 1 can be
    in. A row adds 1 to one cell of each column, an incomplete row nothing, so the L2
    sensitivity is ``√(2 columns)`` when a row is replaced and ``√columns`` when it is added or
    removed.
    """
    size, first_cell = halvings + 1, max(halvings - 2 * lattice.bits, 0)
    starts = size * np.arange(lattice.columns)[:, None]

    def counted(block: Floats) -> Integers:
        columns, leading = block[1:], block[0]
        if ((leading != 0) & (leading != lattice.radius)).any():
            # Without the root of a weight, which line 0 is the radius times.
            columns = np.abs(columns) * (lattice.radius / np.maximum(leading, 1.0))
            columns = np.minimum(columns, lattice.radius)
        # A whole number is at most a power of 2 where half less is below it.
        # Exponents from the bits, as np.frexp has them of numbers that are not subnormal.
        biased = (np.square(columns) - 0.5).view(np.int64) >> 52 & 2047
        cells = np.maximum(biased + (halvings - 2 * lattice.bits - 1022), 0) + starts
        by_cell = np.bincount(cells.ravel(), minlength=starts.size * size)
        by_cell = by_cell.reshape(starts.size, size)
        by_cell[:, first_cell] -= np.count_nonzero(block[0] == 0)
        return by_cell

    facts = {"halvings": str(halvings)}
    return summed("rows by column", counted, design, lattice, facts)


@additive
def turned_counts(
    design: PrivateDesign,
    lattice: Lattice,
    transform: Floats,
    limits: tuple[int, ...],
) -> Statistic:
    """Count complete rows x by the length of ``T x``, clipped to the unit ball.

    T, shape (columns, columns), is finite and a function of released values and public facts. The
    integer vector that a row becomes is that of :meth:`dpmodels.statistics.Passes.within`, so it is
    in one cell at most: the L2 sensitivity is √2 when a row is replaced, 1 when it is added or
    removed.
    """
    edges, matrix = np.array(limits, dtype=np.float64), turn(transform, lattice)

    def counted(block: Floats) -> Integers:
        rows = turned(block, matrix, lattice)[1:, block[0] > 0]
        squares = np.einsum("ij,ij->j", rows, rows)
        return numbers_by_cell(squares, edges)

    facts = {"limits": str(limits), "transform": digest_of(transform)}
    return summed("turned rows by length", counted, design, lattice, facts)


# Exact squares of the sums over the rows of a person, clipped after the sum.

# Rounding steps per unit length, and the largest coordinate in steps: sums over all places of a
# person fit 64-bit integers.
PARTS: Final = 2.0**24
MOST: Final = 2.0**61 / MOST_ROWS


def person_squares(
    design: PrivateDesign,
    lattice: Lattice,
    vectors: Callable[[Floats], Floats],
    finer: Lattice,
    places: int,
) -> tuple[Exact, int]:
    """Sum ``v vᵀ`` over persons, v the sum of vectors of its rows over its places.

    Returns exact integers and the number of places that the rows take. See
    :func:`person_totals` for the sums.

    Only the sum is clipped to the unit ball, on the lattice `finer`. So a person adds the square of
    one integer vector of norm at most ``finer.radius``, a function of its rows and the places that
    they take: persons who are exchanged move the sum as two rows of the unit ball do, whatever the
    number of their rows. Rows without a person add nothing.
    """
    totals, n_rows = person_totals(design, lattice, vectors, finer.columns)
    return squares_of_totals(totals / (PARTS * places), finer), n_rows


def person_totals(
    design: PrivateDesign,
    lattice: Lattice,
    vectors: Callable[[Floats], Floats],
    size: int,
) -> tuple[Integers, int]:
    """Sum vectors of `size` numbers over the places of persons, and count the places.

    `vectors` gives those of a block of rows, shape (size, rows), each a function of released values
    and that row alone. Each is rounded to integers, which add in any order, as often as its row
    takes a place. Returns the sums by number of the person, in steps of ``1/PARTS``.
    """
    totals: Integers = np.zeros((size, 0), dtype=np.int64)
    n_rows, n_persons = 0, 0

    def integers(block: Floats) -> Integers:
        return _to_integers(vectors(block))

    for rounded, part in design.by_person(integers, lattice):
        assert part.persons is not None
        assert part.places is not None
        n_rows += int(part.places.sum())
        is_person = part.persons >= 0
        persons = part.persons[is_person]
        n_persons = max(n_persons, int(persons.max(initial=-1)) + 1)
        lacking = n_persons - totals.shape[1]
        if lacking > 0:
            totals = np.pad(totals, ((0, 0), (0, max(lacking, totals.shape[1]))))
        for total, line in zip(totals, rounded[:, is_person] * part.places[is_person], strict=True):
            np.add.at(total, persons, line)
    return totals[:, :n_persons], n_rows


def two_words(vectors: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
    """Return a function that gives vectors, and below them what rounding to steps leaves of them.

    The latter is in steps, of which it is a half at most.
    """

    def with_rest(block: Floats) -> Floats:
        steps = np.clip(vectors(block) * PARTS, -MOST, MOST)
        return np.vstack([steps / PARTS, steps - np.rint(steps)])

    return with_rest


def squares_of_totals(totals: Floats, finer: Lattice, marks: Integers | None = None) -> Exact:
    """Sum squares of vectors, each of integers in `marks` and of a total clipped to the ball.

    `totals`, shape (``finer.columns``, persons), are in units of the ball.
    """
    n_marks = 0 if marks is None else len(marks)
    size = finer.columns + n_marks
    squares: Exact = np.zeros((size, size), dtype=object)
    # A vector with marks is at most √3 times as long.
    block_rows = finer.block_rows if marks is None else max(finer.block_rows // 3, 1)
    for at in range(0, totals.shape[1], block_rows):
        block = slice(at, at + block_rows)
        vectors = totals[:, block].copy()
        on_lattice(vectors, finer)
        if marks is not None:
            vectors = np.vstack([marks[:, block], vectors])
        squares = squares + (products(vectors) if finer.bits <= MAX_BITS else _wide(vectors))
    return squares


def _wide(vectors: Floats) -> Objects:
    """Return products of integers of up to 40 bits, exactly, from words of 20."""
    word = 2**20
    high = np.floor(vectors / word)
    low = vectors - high * word
    between = (high @ low.T).astype(np.int64).astype(object)
    squares, rest = (products(part).astype(object) for part in (high, low))
    return np.asarray(squares * word**2 + (between + between.T) * word + rest)


def _to_integers(vectors: Floats) -> Integers:
    """Round vectors to integer steps; nan becomes 0."""
    with np.errstate(over="ignore"):
        return np.nan_to_num(np.rint(np.clip(vectors * PARTS, -MOST, MOST))).astype(np.int64)


# Exact squares of the scores of least squares, at released parameters.


class Score(NamedTuple):
    """The score ``(F a)(g · a)`` of a row ``a = (1, T x)`` of the unit ball.

    All are finite and functions of released values and public facts; T x is clipped to the ball.
    With Q a row counts ``min(1, 1/|Q a|²)`` times.
    """

    regressors: Floats  # F, shape (parameters, columns + 1)
    residual: Floats  # g, shape (columns + 1,)
    transform: Floats  # T, shape (columns, columns)
    lengths: Floats | None = None  # Q, shape (lines, columns + 1)

    @property
    def matrix(self) -> Floats:
        """F, g and Q, by lines."""
        parts = [self.regressors, self.residual[None], self.lengths]
        return np.vstack([part for part in parts if part is not None])

    @property
    def digest(self) -> str:
        """A digest of F, g and Q."""
        return digest_of(self.matrix)

    def function(self, lattice: Lattice) -> Callable[[Floats], Floats]:
        """Return the function that computes the scores of a block, shape (parameters, rows)."""
        units = np.full(lattice.columns + 1, 1 / lattice.steps)
        units[0] = 1 / lattice.radius
        score_matrix, size = turn(self.matrix * units, lattice), len(self.regressors)
        transform = turn(self.transform, lattice)

        def scores(block: Floats) -> Floats:
            products = score_matrix.times(turned(block, transform, lattice))
            vectors = products[:size] * products[size]
            if self.lengths is not None:
                vectors /= np.maximum(lengths(products[size + 1 :]), 1.0) ** 2
            return np.asarray(vectors)

        return scores


@additive
def score_squares(
    design: PrivateDesign, lattice: Lattice, score: Score, finer: Lattice
) -> Statistic:
    """Sum the squares of the rows' scores exactly, each brought to the lattice `finer`.

    Each row adds to the integers, shape (parameters, parameters), the square of an integer vector
    of norm at most ``finer.radius`` that is a function of the score and that row alone; an
    incomplete one adds zero.

    F, g and T are rounded to integers (:func:`dpmodels.statistics.passes.turn`), so that their
    products with an integer row, which is at most √2 times as long as the lattice's radius, have
    partial sums below ``2**53`` in any order; a score is one correctly rounded product of two of
    them, and its norm is held on the integers that are added.
    """
    scores_of = score.function(lattice)

    def of_block(block: Floats) -> Integers:
        return products(on_lattice(scores_of(block), finer))

    words = _words(score, finer)
    return summed("squares of scores", of_block, design, lattice, words)


@additive
def person_score_squares(
    design: PrivateDesign,
    lattice: Lattice,
    score: Score,
    finer: Lattice,
    places: int,
) -> Statistic:
    """Sum the squares of persons' scores exactly, each the sum of its rows' over its places.

    See :func:`score_squares` for the score of a row, and
    :func:`dpmodels.statistics.passes.person_squares`.
    """
    scores_of = score.function(lattice)
    total, n_rows = person_squares(design, lattice, scores_of, finer, places)
    words = {"lattice": repr(lattice), **_words(score, finer)}
    basis = partial(fingerprint, design, words)
    return Statistic("squares of persons' scores", total, n_rows, basis)


def _words(score: Score, finer: Lattice) -> dict[str, str]:
    return {
        "rounded to": repr(finer),
        "score": score.digest,
        "transform": digest_of(score.transform),
    }
