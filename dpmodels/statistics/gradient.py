"""Gradients and curvature of a loss at a parameter, one pass over the rows for each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dpmodels.design import PrivateDesign, Scaling
from dpmodels.noise import Entropy
from dpmodels.noise.lattice import MAX_BITS, Lattice, on_lattice, products
from dpmodels.statistics import double_double
from dpmodels.statistics.double_double import Pair, exact_integers, rounded
from dpmodels.statistics.losses import Logistic, Loss, Multinomial, Poisson, Predictors, mean_bend
from dpmodels.statistics.moments import moments
from dpmodels.statistics.passes import Passes, person_squares
from dpmodels.statistics.statistic import (
    Fingerprint,
    OverDesigns,
    Statistic,
    digest_of,
    one_pass,
    total_of,
)
from dpmodels.typing import Floats, Integers, Numbers, Objects

# Units of a miss of 1: finer than the sampling error of one row.
MISS = 2**20


class Slopes(NamedTuple):
    """Floating-point value, gradient and curvature of a sum of losses, and the sum of ``|z|²``."""

    value: float
    gradient: Floats
    curvature: Floats
    energy: float


class GradientScore(NamedTuple):
    """The score ``A z r`` of a row: r the fall of its loss at a parameter, in its own units.

    All are finite and functions of released values and public facts.
    """

    regressors: Floats  # A, shape (parameters, columns)
    parameter: Floats  # Shape (columns,)
    predictors: Predictors
    loss: Logistic | Poisson

    @property
    def digest(self) -> str:
        """A digest of A and the parameter."""
        return digest_of(np.vstack([self.regressors, self.parameter]))

    def function(self, lattice: Lattice) -> Callable[[Floats], Floats]:
        """Return the function that computes the scores of a block, shape (parameters, rows).

        A score is one correctly rounded product of two numbers that are the row's alone
        (:meth:`dpmodels.statistics.losses.Predictors.linear_rows`).
        """
        predictors, matrix = self.predictors, self.regressors * self.loss.length
        without_offset = replace(predictors, known=None)

        def scores(block: Floats) -> Floats:
            linear = predictors.linear_rows(block, lattice, self.parameter).linear
            turned = without_offset.linear_rows(block, lattice, matrix).linear
            return np.asarray(turned * _pull(self.loss, predictors, linear, block, lattice))

        return scores


class Gradients(OverDesigns[PrivateDesign]):
    """Statistics of rows ``(z, y)`` at a parameter; each reads the rows once.

    The designs are disjoint joint rows (x, y) on the lattice, which can be read more than once.
    """

    __slots__ = ("_loss", "_predictors", "lattice")

    def __init__(
        self,
        designs: tuple[PrivateDesign, ...],
        predictors: Predictors,
        loss: Loss | Poisson | Multinomial,
        lattice: Lattice,
    ) -> None:
        words = {"predictors": repr(predictors), "loss": repr(loss)}
        if predictors.known is not None:
            words["offset"] = repr(predictors.known)
        if predictors.axes:
            words["axes"] = repr(predictors.axes)
        words["lattice"] = repr(lattice)
        super().__init__("gradients of a loss", designs, words)
        self._predictors, self._loss, self.lattice = predictors, loss, lattice

    def cross(self) -> tuple[Objects, int]:
        """Return the exact gradient at zero."""
        columns = self.columns
        return self.gradient(np.zeros(columns), Lattice(MAX_BITS, columns)).cross()

    @property
    def recipe(self) -> Callable[[tuple[PrivateDesign, ...]], Gradients]:
        """A function, made of public facts and released values, that binds other rows."""
        return partial(
            Gradients,
            predictors=self._predictors,
            loss=self._loss,
            lattice=self.lattice,
        )

    @property
    def columns(self) -> int:
        """Coordinates of the parameter: of a multinomial loss those of all levels."""
        lines = self._loss.levels if isinstance(self._loss, Multinomial) else 1
        return self._predictors.columns * lines

    @property
    def scaling(self) -> Scaling:
        """How the joint rows are brought into the ball."""
        return self.designs[0].scaling

    def within(self, predictors: Predictors, loss: Poisson | None = None) -> Gradients:
        """Return the same rows under other predictors, of released values and public facts.

        The same holds of another loss, where one is given.
        """
        return Gradients(self.designs, predictors, loss or self._loss, self.lattice)

    def sides(self, heads: int, entropy: Entropy) -> tuple[Gradients, Gradients]:
        """Split the rows at random: each is in the first part with probability ``heads/256``.

        Rows of the other part count as incomplete.
        """
        first, second = zip(*(design.sides(heads, entropy) for design in self.designs), strict=True)
        return self.recipe(first), self.recipe(second)

    def passes(self) -> Passes:
        """Return the same joint rows, for moments of their columns."""
        return Passes(self.designs, self.lattice)

    @one_pass
    def outcomes(self) -> Statistic:
        """Count complete rows of the second level and of the first; a row is in one at most."""

        def counted(block: Floats) -> Floats:
            labels = self._predictors.labels(block)
            return np.array([(labels > 0).sum(), (labels < 0).sum()])

        return self._sum("outcomes", counted, (2,), self.fingerprint)

    @one_pass
    def sums(self) -> Statistic:
        """Sum the integers of terms and offset, each row's at most ``lattice.radius`` long."""
        basis, size = self.fingerprint, self._predictors.terms
        size += self._predictors.known is not None
        return self._sum(
            "sums of terms", lambda block: block[1 : 1 + size].sum(axis=1), (size,), basis
        )

    @one_pass
    def responses(self, ends: Floats) -> Statistic:
        """Count complete rows by response, each in the first cell that ends at it or above.

        `ends`, shape (cells,), increase, in units of the response; rows above all are not counted.
        """

        def counted(block: Floats) -> Floats:
            response = self._predictors.response(block, self.lattice)[block[0] > 0]
            return _by_cell(response, ends)

        basis = self.fingerprint.also({"ends": digest_of(ends)})
        return self._sum("rows by response", counted, (len(ends),), basis)

    @one_pass
    def deviations(self, parameter: Floats, ends: Floats) -> Statistic:
        """Count rows by the size of the residual, and by the expected response, in two tables.

        Rows that are left out, or incomplete, are in neither. Otherwise as :meth:`responses`, at a
        parameter as for :meth:`gradient`; shape (2, cells).
        """
        loss = self._loss
        assert isinstance(loss, Poisson)

        def counted(block: Floats) -> Floats:
            is_inside = self._predictors.inside(block, self.lattice)
            linear = self._predictors.linear_rows(block, self.lattice, parameter).linear[0]
            expected = loss.expected(linear)[is_inside]
            response = self._predictors.response(block, self.lattice)[is_inside]
            return np.stack([_by_cell(np.abs(response - expected), ends), _by_cell(expected, ends)])

        basis = self._at(parameter, self.lattice).also({"ends": digest_of(ends)})
        return self._sum("rows by deviation", counted, (2, len(ends)), basis)

    @one_pass
    def lengths(self, radii: Floats) -> Statistic:
        """Count complete rows by their distance from the predictors' centre.

        `radii`, shape (cells,), increase, in units of the ball's; rows beyond all are not counted.
        """
        edges = (radii * self.lattice.steps) ** 2

        def counted(block: Floats) -> Floats:
            return _by_cell(self._predictors.away(block)[block[0] > 0], edges)

        basis = self.fingerprint.also({"radii": digest_of(radii)})
        return self._sum("rows by length", counted, (len(radii),), basis)

    def moments(self, lattice: Lattice) -> Statistic:
        """Sum the augmented moments of the joint rows (x, y) exactly."""
        return self.over_rows(moments, lattice)

    @one_pass
    def gradient(self, parameter: Floats, lattice: Lattice) -> Statistic:
        """Sum the gradients of the rows, each rounded to the lattice, exactly.

        The parameter, shape (columns,), of several levels one after the other, is a function of
        released values and public facts. A row moves the integers, shape (columns,), by a vector of
        Euclidean norm at most ``lattice.radius``; an incomplete one adds zero.

        That vector is a function of the parameter and the row alone, so that neighbours differ in
        the vectors of one row, by at most ``lattice.radius``, or of two, by at most twice that,
        without a margin: what is summed over columns before it is rounded are integers
        (:meth:`Predictors.linear_rows`), the loss is computed by correctly rounded operations
        (:mod:`dpmodels.statistics.losses`), and the norm is held on the integers that are added
        (:func:`dpmodels.noise.lattice.to_lattice`).
        """

        def summed(block: Floats) -> Floats:
            z, linear = self._predictors.linear_rows(block, self.lattice, parameter)
            pulled = _times(-self._pull(linear, block), z)
            return np.asarray(on_lattice(pulled, lattice).sum(axis=1))

        basis = self._at(parameter, lattice)
        return self._sum("gradient", summed, (self.columns,), basis)

    @one_pass
    def misses(self, parameters: Floats, cap: int) -> Statistic:
        """Sum the excess miss of each of several parameters over the row's best.

        `parameters`, shape (candidates, columns), are as for :meth:`gradient`; `cap`, above 0, is
        a function of them and of public facts. A row adds integers from 0 to `cap`, in units of
        :data:`MISS`, an incomplete one zeros: its smallest miss is subtracted from all of them,
        and the rest is clipped at `cap`.
        """
        loss = self._loss
        assert not isinstance(loss, Poisson | Multinomial)

        def summed(block: Floats) -> Floats:
            labels = self._predictors.labels(block)
            linear = self._predictors.linear_rows(block, self.lattice, parameters).linear
            misses = np.rint(loss.miss(labels * linear) * MISS)
            above = np.minimum(misses - misses.min(axis=0), cap)
            return np.asarray((above * (labels != 0)).sum(axis=1))

        basis = self._at(parameters, self.lattice).also({"held at": str(cap)})
        return self._sum("misses", summed, (len(parameters),), basis)

    @one_pass
    def curvature(self, parameter: Floats, lattice: Lattice) -> Statistic:
        """Sum ``w z zᵀ`` over the rows exactly, w the curvature as a share of the largest.

        Weighted rows ``√w z`` are rounded to the lattice: each adds to the integers, shape
        (columns, columns), the square of an integer vector that follows from it alone, as for
        :meth:`gradient`. Of a multinomial loss it is the sum of ``(diag p - p pᵀ) ⊗ z zᵀ`` itself,
        of integer vectors for ``√p_k z`` and for ``p ⊗ z``.
        """
        if isinstance(self._loss, Multinomial):
            return self._spread(self._loss, parameter, lattice)
        return self._products("curvature", parameter, lattice, self._root)

    @one_pass
    def mean_curvature(self, start: Floats, end: Floats, lattice: Lattice) -> Statistic:
        """Sum the mean of ``w z zᵀ`` over parameters between two; otherwise as :meth:`curvature`.

        A row's linear predictor at `end` is the number that :meth:`squares` uses there.
        """
        loss = self._loss
        assert not isinstance(loss, Multinomial | Poisson)

        def root(linear: Floats, block: Floats) -> Floats:
            first, last = self._predictors.labels(block) * linear
            return np.sqrt(np.minimum(mean_bend(loss, first, last) / loss.smoothness, 1.0))[None]

        return self._products("mean curvature", np.stack([start, end]), lattice, root)

    @one_pass
    def squares(self, parameter: Floats, lattice: Lattice) -> Statistic:
        """Sum the squares of the gradients exactly; otherwise as :meth:`curvature`."""
        return self._products("squared gradients", parameter, lattice, self._pull)

    @one_pass
    def person_squares(self, parameter: Floats, lattice: Lattice, places: int) -> Statistic:
        """Sum the squares of the gradients of persons exactly.

        Each is the sum of those of its rows over its places, and adds the square of an integer
        vector as for :meth:`gradient` (:mod:`dpmodels.statistics.passes`).
        """

        def pulled(block: Floats) -> Floats:
            z, linear = self._predictors.linear_rows(block, self.lattice, parameter)
            return _times(self._pull(linear, block), z)

        (design,) = self.designs
        exact, n_rows = person_squares(design, self.lattice, pulled, lattice, places)
        basis = self._at(parameter, lattice)
        return Statistic("squared gradients of persons", exact, n_rows, basis)

    def _products(
        self,
        name: str,
        parameter: Floats,
        lattice: Lattice,
        weight: Callable[[Floats, Floats], Floats],
    ) -> Statistic:
        def summed(block: Floats) -> Integers:
            z, linear = self._predictors.linear_rows(block, self.lattice, parameter)
            return products(on_lattice(_times(weight(linear, block), z), lattice))

        size = self.columns
        return self._sum(name, summed, (size, size), self._at(parameter, lattice))

    def _spread(self, loss: Multinomial, parameter: Floats, lattice: Lattice) -> Statistic:
        levels, columns = loss.levels, self._predictors.columns

        def summed(block: Floats) -> Numbers:
            z, linear = self._predictors.linear_rows(block, self.lattice, parameter)
            chances = loss.chances(linear)
            total = -products(on_lattice(_times(chances, z), lattice))
            total = total.reshape((levels, columns) * 2)
            for level, root in enumerate(np.sqrt(chances)):
                total[level, :, level] += products(on_lattice(z * root, lattice))
            return np.asarray(total.reshape((self.columns,) * 2))

        basis = self._at(parameter, lattice)
        return self._sum("curvature", summed, (self.columns,) * 2, basis)

    def slopes(self, parameter: Floats, loss: Loss) -> Slopes:
        """Return a sum of losses in floating point, for a minimiser inside a mechanism.

        How often it is called depends on the rows, so progress is not shown. The caller has to
        account for rounding in the sums.
        """
        size = self._predictors.columns
        exact, _ = self._slope_sums(parameter, loss).cross()
        value, energy, *sums = rounded(exact).tolist()
        return Slopes(value, np.array(sums[:size]), np.reshape(sums[size:], (size, size)), energy)

    @one_pass
    def _slope_sums(self, parameter: Floats, loss: Loss) -> Statistic:
        """Sum losses over the rows of one design, as integers that stand for floats."""

        def summed(block: Floats) -> Slopes:
            z = self._predictors.read(block, self.lattice)
            labels = self._predictors.labels(block)
            margins = labels * (parameter @ z + self._predictors.offsets(block, self.lattice))
            # Sums along lines are pairwise: their error grows with the logarithm of the rows.
            gradient = (z * -(labels * loss.slope(margins))).sum(axis=1)
            value = float(loss.value(margins)[labels != 0].sum())
            curvature = (z * loss.bend(margins)) @ z.T
            return Slopes(value, gradient, curvature, float((z * z).sum()))

        size = self._predictors.columns
        value, curvature, energy, gradients = 0.0, np.zeros((size, size)), 0.0, [np.zeros(size)]
        for part, _ in self._each(summed):
            value, energy = value + part.value, energy + part.energy
            curvature += part.curvature
            gradients.append(part.gradient)
        gradient = [math.fsum(parts) for parts in np.transpose(gradients)]
        sums = np.concatenate([[value, energy], gradient, curvature.ravel()])
        return Statistic("sums of losses", exact_integers(sums), 0, self.fingerprint)

    def precise_slopes(
        self, parameter: Pair, loss: Loss, linear: tuple[Floats, ...] = ()
    ) -> tuple[Slopes, int]:
        """Return the same with a gradient of some 70 bits after the point, and the number of rows.

        The gradient is that of the sum of losses plus the sum of `linear`, vectors of shape
        (columns,), rounded once. Of n rows z, as they are in float64, in d columns its error is
        below ``n (2**-70 + 2**-103 L d² |θ|)`` before that rounding, for d up to 2**16 and L the
        smoothness of the loss: ``2**-77`` of a slope, ``8 d² u² |θ|`` of a margin
        (:func:`dpmodels.statistics.double_double.dot`) and ``2**-79`` of each coordinate of a sum.
        `parameter` has ``|low| <= 2**-53 |high|``. No value is computed: it is infinite.
        """
        exact, n_rows = self._precise_sums(parameter, loss).cross()
        return precise_total(exact, linear), n_rows

    @one_pass
    def _precise_sums(self, parameter: Pair, loss: Loss) -> Statistic:
        """Sum precise slopes over the rows of one design, as integers that stand for floats."""

        def summed(block: Floats) -> _PreciseSums:
            z = self._predictors.read(block, self.lattice)
            offsets = self._predictors.offsets(block, self.lattice)
            return precise_sums(z, self._predictors.labels(block), parameter, loss, offsets)

        exact, n_rows = precise_integers(self._each(summed), self._predictors.columns)
        return Statistic("precise sums of losses", exact, n_rows, self.fingerprint)

    @property
    def rows(self) -> int:
        """Number of rows, complete or not; one pass over them if they are not on workers."""
        counts = [design.rows.readings.n_read for design in self.designs]
        if None not in counts:
            return sum(count or 0 for count in counts)
        return self._counted().cross()[1]

    @one_pass
    def _counted(self) -> Statistic:
        n_rows = sum(count for _, count in self._each(lambda _: None))
        return Statistic("numbers of rows", np.zeros(0, dtype=object), n_rows, self.fingerprint)

    def _pull(self, linear: Floats, block: Floats) -> Floats:
        """Return minus each row's slope in the predictors, shape (lines, rows), 1 at most."""
        if isinstance(self._loss, Multinomial):
            return self._loss.pull(linear, self._predictors.chosen(block))
        return _pull(self._loss, self._predictors, linear, block, self.lattice)

    def _root(self, linear: Floats, block: Floats) -> Floats:
        """Return the root of each row's curvature as a share of the largest, in [0, 1]."""
        assert not isinstance(self._loss, Multinomial)
        if isinstance(self._loss, Poisson):
            bend = self._loss.bend(linear, self._predictors.response(block, self.lattice))
        else:
            bend = self._loss.bend(self._predictors.labels(block) * linear)
        return np.sqrt(np.minimum(bend / self._loss.smoothness, 1.0))

    def _at(self, parameter: Floats, lattice: Lattice) -> Fingerprint:
        facts = {"parameter": digest_of(parameter), "rounded to": repr(lattice)}
        return self.fingerprint.also(facts)

    def _sum(
        self,
        name: str,
        function: Callable[[Floats], Numbers],
        shape: tuple[int, ...],
        basis: Fingerprint,
    ) -> Statistic:
        parts = self._each(lambda block: function(block).astype(np.int64))
        return total_of(name, parts, np.zeros(shape, dtype=object), basis)

    def _each(self, function: Callable[[Floats], object]) -> Any:
        for design in self.designs:
            yield from design.blocks(function, self.lattice)


class _PreciseSums(NamedTuple):
    """Sums over a block of rows: the gradient in three parts, curvature, and squared lengths."""

    coarse: Numbers
    fine: Floats
    error: Floats
    curvature: Floats
    energy: float


def precise_sums(
    z: Floats, labels: Floats, parameter: Pair, loss: Loss, offsets: Floats | None = None
) -> _PreciseSums:
    """Return the sums of :meth:`Gradients.precise_slopes` over a block of rows z."""
    linear = double_double.dot(parameter, z)
    if offsets is not None:
        total, lost = double_double.two_sum(linear.high, offsets)
        linear = double_double.two_sum(total, lost + linear.low)
    margins = Pair(labels * linear.high, labels * linear.low)
    slope = loss.precise_slope(margins)
    parts = double_double.row_sums(Pair(-labels * slope.high, -labels * slope.low), z)
    curvature = (z * loss.bend(margins.high)) @ z.T
    return _PreciseSums(*parts, curvature, float((z * z).sum()))


def precise_integers(
    parts: Iterable[tuple[_PreciseSums, int]], columns: int
) -> tuple[Objects, int]:
    """Add the sums of blocks, each with its number of rows, as integers that stand for floats.

    First the squared lengths, then the gradient and the curvature.
    """
    coarse: Objects = np.zeros(columns, dtype=object)
    fine, curvature, energy, n_rows = 0 * coarse, np.zeros((columns, columns)), 0.0, 0
    for part, count in parts:
        coarse = coarse + part.coarse
        fine = fine + exact_integers(part.fine) + exact_integers(part.error)
        curvature += part.curvature
        energy, n_rows = energy + part.energy, n_rows + count
    gradient = fine + coarse * int(exact_integers(np.array([double_double.COARSE]))[0])
    sums = (exact_integers(np.array([energy])), gradient, exact_integers(curvature.ravel()))
    return np.concatenate(sums), n_rows


def precise_total(exact: Objects, linear: tuple[Floats, ...]) -> Slopes:
    """Return the slopes of such sums, with vectors added to the gradient before it is rounded."""
    size = math.isqrt(len(exact))
    energy, gradient, curvature = np.split(exact, [1, 1 + size])
    for vector in linear:
        gradient = gradient + exact_integers(vector)
    bend = rounded(curvature).reshape(size, size)
    return Slopes(math.inf, rounded(gradient), bend, float(rounded(energy)[0]))


def _pull(
    loss: Loss | Poisson, predictors: Predictors, linear: Floats, block: Floats, lattice: Lattice
) -> Floats:
    """Return minus each row's slope in one linear predictor, 1 at most."""
    if isinstance(loss, Poisson):
        return loss.pull(linear, predictors.response(block, lattice))
    labels = predictors.labels(block)
    return np.asarray(labels * loss.slope(labels * linear))


def _by_cell(values: Floats, ends: Floats) -> Floats:
    """Count values by cell, each in the first that ends at it or above; shape (cells,)."""
    cells = np.searchsorted(ends, values)
    return np.asarray(np.bincount(cells, minlength=len(ends) + 1)[: len(ends)])


def _times(weights: Floats, z: Floats) -> Floats:
    """Return z times each line of weights, shape (lines * columns, rows)."""
    return np.asarray(weights[:, None] * z).reshape(-1, z.shape[1])
