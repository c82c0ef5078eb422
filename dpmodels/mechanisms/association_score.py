"""Scores that rank columns by their association with a response.

Scores are ``|Σ x_j (y - c)| τ/max(σ_j, τ)`` about a noisy mean c of the response, with columns and
response in units of their public half-ranges and σ_j a noisy standard deviation. Where it is above
τ that is the correlation but for a factor that all columns have. One row moves a correlation most
where σ_j is small, and all columns have the noise of the one that moves most. So a σ_j below τ is
replaced by τ, which lowers the rank of such columns. τ is the smallest value that the noise allows,
by what was released.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from dpmodels import privacy
from dpmodels.design import PrivateDesign
from dpmodels.errors import ArgumentError
from dpmodels.mechanisms.add_noise import GAUSSIAN, ROUND_UP, Law, add_noise, event_law
from dpmodels.mechanisms.protocol import LEAST_SCALE, Ranked, refuse_noise
from dpmodels.mechanisms.selection_plan import Paid, SelectionFacts
from dpmodels.noise import Entropy
from dpmodels.noise.lattice import Lattice
from dpmodels.statistics import Statistic
from dpmodels.statistics.associations import (
    FINE,
    PARTS,
    PRODUCTS,
    SUMS,
    ReleasedFit,
    associations,
    box_lattice,
    centred_products,
    mean_change,
    product_change,
    products,
    reach,
    residual_change,
    residual_products,
    residual_scatter,
    scatters,
)
from dpmodels.typing import Floats, Integers, Numbers, Objects, Scalars

# Of the budget: the mean of the response, its spread, and those of all columns. Choices.
OWN_SHARES = (0.1, 0.05, 0.1)
# In lattice integers; beyond, noise is of no use and does not fit 64 bits.
LARGEST_SCALE = 2.0**55
# Noise in the ranking that is accepted for columns of small spread, as a correlation: a choice.
FAINT = 0.1
# Steps of the weights of columns.
WEIGHTS = 2**16
# A spread is detected if its square exceeds this many of its noise sds.
DETECTED = 4.0


@dataclass(frozen=True)
class BoughtMoments:
    """Noise of what is released besides the names, in lattice integers."""

    centre: float  # Scale of the noise in the sum of y and in the rows' half-ranges
    response: float  # In the scatter of y
    spreads: float  # In the scatter of every column
    moments: float  # In moments of what is named; 0 where none are bought
    events: tuple[privacy.Event, ...]
    reach: float  # How far noise in the ranking goes, of scores that a row moves by 1

    @property
    def law(self) -> Law:
        """The law of all of it."""
        return event_law(self.events[0])

    @property
    def noise_sd(self) -> float:
        """The noise in a moment of what is named and in a spread together."""
        return self.law.sd * (self.spreads + self.moments)


@dataclass(frozen=True)
class Spread:
    """Released spreads of all columns, in half-ranges."""

    centre: int  # Mean of the response, in parts of lattice steps
    count: float  # Number of complete rows
    response: float  # Standard deviation of the response
    floor: float  # Smallest spread that is used
    columns: Floats  # Standard deviations of all columns, or `floor`

    @property
    def n_rows(self) -> float:
        """The number of complete rows, taken for one at least."""
        return max(self.count, 1.0)

    @property
    def weights(self) -> Numbers:
        """What products are multiplied by for the spread of their column, in `WEIGHTS`."""
        return np.rint(WEIGHTS * self.floor / self.columns).astype(np.int64).astype(object)


@dataclass(frozen=True)
class _ColumnScore:
    size: int

    @property
    def lattice(self) -> Lattice:
        """Where the columns and the response live."""
        return box_lattice(self.size + 1)

    @property
    def limit(self) -> int:
        """The integers of a half-range."""
        return reach(self.lattice)

    def width(self, adjacency: privacy.Adjacency) -> float:
        """Return the length of the interval of a neighbour's changes, for a mean in the middle."""
        return 2 * product_change(adjacency, self.limit, 0) / (FINE * self.limit**2)

    def _bought_moments(
        self, facts: SelectionFacts, paid: Paid, eps: float, shares: tuple[float, float, float]
    ) -> BoughtMoments:
        """Plan mean and spread of the response, spreads, and moments of what is named.

        `shares` of the budget are for the first three; draws have `eps`.
        """
        size, limit = self.size, self.limit
        gaussian = not isinstance(paid(shares[0]), privacy.PureDP)
        mean = mean_change(facts.adjacency, limit, 2 if gaussian else 1)
        numbers = (1, size, 2 * facts.max_chosen + 1)
        changes = [
            mean,
            *(4.0 * limit**2 * norm_of_ones(count, gaussian=gaussian) for count in numbers),
        ]
        scales, events = [0.0] * len(changes), list[privacy.LaplaceEvent | privacy.GaussianEvent]()
        for place, share in enumerate((*shares, facts.share)):
            if not share:
                continue
            events.append(bought_noise(paid(share), 1))
            scale = events[-1].multiplier * changes[place] * ROUND_UP
            scales[place] = max(scale, LEAST_SCALE)
        require_meaningful(max(scales), limit)
        answers = 1 if facts.threshold is None else facts.max_chosen
        centre, response, spreads, moments = scales
        reach = 2 * answers / eps * math.log(size)
        return BoughtMoments(centre, response, spreads, moments, tuple(events), reach)


@dataclass(frozen=True)
class AssociationScore(_ColumnScore):
    """Products of columns with a response about its noisy mean, by size and the columns' spread.

    What a row moves a product by is shown with `product_change`; it is multiplied by a weight of at
    most 1 and rounded down. Weights follow from scatters of all columns and of the response, which
    are released first. Of what is named the scatter of each column, its scatter with the response,
    ``⌊Σ (x - x̄)(y - ȳ)⌋``, and that of the response are released, about means of the rows
    themselves, with noise that the ranking had no part in.

    *Each moves by 4 R² at most*, of integers up to R, for either adjacency. One more row changes
    ``Σ (x - x̄)(y - ȳ)`` by ``f = (x - x̄)(y - ȳ) n/(n + 1)``, about the others' means, and
    ``|f| <= 4 R²``. Of two rows that replace each other f is largest where x and y are at ends of
    one sign, smallest where they are at ends of two: corners that share an end of x or of y, say
    x = R, where the difference is ``2 R (R - x̄) n/(n + 1)``, at most 4 R² too. For
    ``Σ (x - x̄)²`` f is between 0 and 4 R². Rounding down to integers does not increase that.
    Of k columns there are 2 k + 1 such numbers.
    """

    kind: Literal["correlation", "z"]

    own_share: ClassVar[float] = math.fsum(OWN_SHARES)

    def bought(self, facts: SelectionFacts, paid: Paid, eps: float) -> BoughtMoments:
        """Plan mean and spread of the response, spreads, and moments of what is named."""
        return self._bought_moments(facts, paid, eps, OWN_SHARES)

    def measure(self, private: PrivateDesign, facts: SelectionFacts) -> Statistic:
        """Sum the columns, their squares and their products with the response."""
        return associations(private, self.lattice)

    def ranked(
        self, exact: Numbers, facts: SelectionFacts, bought: BoughtMoments, entropy: Entropy
    ) -> Ranked:
        """Release a mean of the response and spreads; return the weighted products by size."""
        adjacency, limit = facts.adjacency, self.limit
        about = released_spreads(exact, limit, facts, bought, entropy)
        products = np.abs(centred_products(exact, about.centre))
        scores: Objects = products * about.weights // WEIGHTS
        change = product_change(adjacency, limit, about.centre)
        unit, count = FINE * limit**2 * about.n_rows * about.response * about.floor, about.n_rows
        unlike = 1.0 if self.kind == "correlation" else math.sqrt(count / adjacency.places)
        above = None if facts.threshold is None else math.ceil(facts.threshold * unit / unlike)
        return Ranked(scores, 2 * change, False, above, unit / count, about)

    def valued(
        self,
        exact: Objects,
        ranked: Ranked,
        places: Integers,
        bought: BoughtMoments,
        entropy: Entropy,
    ) -> dict[str, object]:
        """Release moments of what was named, with noise of their own."""
        unit, fields = self.limit**2, spread_fields(ranked.about, self.limit, bought)
        if not bought.moments:
            return fields
        columns = np.concatenate([[0], places + 1, [-1, -1]])
        selected = exact[:, columns]
        n_rows = max(int(selected[SUMS, 0]), 1)
        products = (
            n_rows * selected[PRODUCTS, 1:-2] - selected[SUMS, 1:-2] * selected[SUMS, -1]
        ) // n_rows
        moments: Numbers = np.concatenate([products, scatters(selected)])
        noisy = add_noise(moments, bought.moments, entropy, bought.law) / unit
        return {**fields, **_moment_fields(noisy, len(places), bought, unit)}


def bought_noise(
    guarantee: privacy.Guarantee, releases: int
) -> privacy.LaplaceEvent | privacy.GaussianEvent:
    """Return the noise of each of so many releases that have a guarantee together."""
    if isinstance(guarantee, privacy.PureDP):
        return privacy.LaplaceEvent(releases * ROUND_UP / guarantee.eps, releases)
    return privacy.GaussianEvent(
        privacy.gaussian_multiplier(guarantee) * math.sqrt(releases) * ROUND_UP, releases
    )


def require_meaningful(scale: float, limit: int) -> None:
    """Refuse noise of a scale that does not fit 64 bits."""
    if scale > LARGEST_SCALE:
        refuse_noise(scale / limit**2, "rows in a product")


def released_spreads(
    exact: Scalars, limit: int, facts: SelectionFacts, bought: BoughtMoments, entropy: Entropy
) -> Spread:
    """Release the mean and the spread of the response, and the spreads of all columns."""
    law = bought.law
    sums: Scalars = np.array([exact[SUMS, -1], limit * exact[SUMS, 0]], dtype=object)
    total, reached = add_noise(sums, bought.centre, entropy, law).tolist()
    count = max(reached / limit, 1.0)
    centre = round(FINE * max(-limit, min(limit, total / count)))
    scaled_count = limit**2 * count
    around = scatters(np.concatenate([exact, exact[:, -1:]], axis=1))
    (square,) = add_noise(around[-1:], bought.response, entropy, law) / scaled_count
    squares = add_noise(around[:-1], bought.spreads, entropy, law) / scaled_count
    change = product_change(facts.adjacency, limit, centre)
    square_floor = DETECTED * law.sd * bought.response / scaled_count
    response = math.sqrt(min(max(float(square), square_floor), 1.0))
    faint = bought.reach * change / (FINE * scaled_count * response * FAINT)
    spreads = np.sqrt(np.maximum(squares, 0.0))
    variance_floor = DETECTED * law.sd * bought.spreads / scaled_count
    spread_floor = min(max(math.sqrt(variance_floor), faint, float(spreads.min())), 1.0)
    return Spread(
        centre, reached / limit, response, spread_floor, np.maximum(spreads, spread_floor)
    )


def spread_fields(about: Spread, limit: int, bought: BoughtMoments) -> dict[str, object]:
    """Return the spreads and means as fields of a release."""
    return {
        "count": about.count,
        "centre": about.centre / (FINE * limit),
        "least": about.floor,
        "law": "gaussian" if bought.law is GAUSSIAN else "laplace",
    }


def _moment_fields(
    noisy: Floats, n_columns: int, bought: BoughtMoments, unit: int
) -> dict[str, object]:
    return {
        "values": noisy[:n_columns],
        "scatters": noisy[n_columns:-1],
        "response": float(noisy[-1]),
        "noise_sd": bought.law.sd * bought.moments / unit,
        "step": 1 / unit,
    }


def norm_of_ones(numbers: int, *, gaussian: bool) -> float:
    """Return the norm of so many ones by which noise is calibrated, L2 or L1."""
    return math.sqrt(numbers) if gaussian else float(numbers)


# Scores that rank columns by what they add to a fit of the columns named before.
#
# Matching pursuit (Mallat and Zhang 1993): the column named is that whose product with the
# residuals is largest for its spread, which is the square root of what its coefficient takes off
# their sum of squares; then the residuals of a fit with that coefficient are next. Coefficients are
# released before they are used, so that residuals are a public function of a row.

# Of the budget: the mean of the response, its spread, and those of all columns. Choices.
GAIN_SHARES = (0.05, 0.05, 0.1)
# Of the budget, for the coefficients of what is named: a choice.
FIT_SHARE = 0.2
# Of all coefficients together, in half-ranges: a choice, by which noise in them is bounded.
STEEPEST = 2**6


@dataclass(frozen=True)
class BoughtFits(BoughtMoments):
    """Noise of what is released besides the names, in lattice integers."""

    multiplier: float  # Of the noise in each coefficient's sums, by what a row moves them


class FittedSoFar(NamedTuple):
    """What was released before a column is named."""

    spread: Spread
    fits: tuple[ReleasedFit, ...]  # Before the first name, before the second, ...


@dataclass(frozen=True)
class GainScore(_ColumnScore):
    """Products of columns with residuals of the columns named before, by size and spread.

    What a row moves a product by is shown with `residual_change`; it is multiplied by a weight of
    at most 1 and rounded down. Once a column is named ``⌊Σ x r⌋``, ``h Σ x`` and ``⌊h Σ x²/R⌋`` are
    released, h the largest residual in steps, rounded up: each moves by ``R h`` where a row is
    added or removed, twice that where it is replaced. The column's mean, spread and coefficient
    follow, then the residuals. The spread is bought anew, with the noise of one column's.

    *The rounds compose*: what a draw and three sums are calibrated by is a function of what was
    released before them. So whatever that was, the draw has its eps, and the noise its multiplier
    of what one row moves the sums by; a fixed list of prices holds for such a sequence.

    Of what is named the scatters with the residuals before it, the scatters of the columns and that
    of the response are released at the end, each in a unit in which a row moves it by 4 R² at most
    (`residual_scatter`), with noise that no name depends on. Of k columns there are 2 k + 1.
    """

    own_share: ClassVar[float] = math.fsum((*GAIN_SHARES, FIT_SHARE))

    def bought(self, facts: SelectionFacts, paid: Paid, eps: float) -> BoughtFits:
        """Plan mean and spread of the response, spreads, coefficients, and moments.

        ArgumentError with a threshold.
        """
        if facts.threshold is not None:
            raise ArgumentError(
                f"threshold={facts.threshold:g} cannot be combined with score='gain', which ranks "
                "the columns again after each choice; write k= or score='correlation'"
            )
        moments = self._bought_moments(facts, paid, eps, GAIN_SHARES)
        fits = bought_noise(paid(FIT_SHARE), facts.max_chosen)
        # The longest residual is of y, all coefficients, and as much again in the centre.
        farthest = 2 * (1 + STEEPEST) * self.limit
        require_meaningful(fits.multiplier * self._moved(facts, moments, farthest), self.limit)
        plain = (moments.centre, moments.response, moments.spreads, moments.moments)
        return BoughtFits(*plain, (*moments.events, fits), moments.reach, fits.multiplier)

    def measure(self, private: PrivateDesign, facts: SelectionFacts) -> Statistic:
        """Sum the products of all columns."""
        return products(private, self.lattice)

    def ranked(
        self, exact: Numbers, facts: SelectionFacts, bought: BoughtFits, entropy: Entropy
    ) -> Ranked:
        """Release a mean of the response and spreads; return the weighted products by size."""
        lines = np.stack([exact[0], exact.diagonal(), exact[-1]])
        spread = released_spreads(lines, self.limit, facts, bought, entropy)
        about = FittedSoFar(spread, (ReleasedFit(spread.centre * (PARTS // FINE)),))
        return self._ranked(exact, facts, bought, entropy, about)

    def _ranked(
        self,
        exact: Objects,
        facts: SelectionFacts,
        bought: BoughtFits,
        entropy: Entropy,
        about: FittedSoFar,
    ) -> Ranked:
        def after(place: int) -> Ranked:
            """Release the coefficient of what was named; rank the others by what is left."""
            fit, limit, n_rows = about.fits[-1], self.limit, about.spread.n_rows
            longest = -(-fit.longest(limit) // PARTS)
            product = int(residual_products(exact, fit)[place]) // PARTS
            total, square = exact[0, place + 1], exact[place + 1, place + 1]
            sums: Scalars = np.array(
                [product, longest * total, longest * square // limit], dtype=object
            )
            scale = max(bought.multiplier * self._moved(facts, bought, longest), LEAST_SCALE)
            noisy, total, square = (add_noise(sums, scale, entropy, bought.law) / n_rows).tolist()
            mean = max(-limit, min(limit, total / longest))
            square_floor = DETECTED * bought.law.sd * scale / n_rows
            spread = max(square - longest * mean**2 / limit, square_floor) / (longest * limit)
            left = STEEPEST - sum(map(abs, fit.slopes)) / PARTS
            steepest = min(about.spread.response / math.sqrt(spread), left)
            slope = round(PARTS * max(-steepest, min(steepest, noisy / (limit**2 * spread))))
            centre = fit.centre - round(slope * mean)
            following = ReleasedFit(centre, (*fit.places, place), (*fit.slopes, slope))
            further = FittedSoFar(about.spread, (*about.fits, following))
            return self._ranked(exact, facts, bought, entropy, further)

        spread, fit = about.spread, about.fits[-1]
        scores: Objects = np.abs(residual_products(exact, fit)) * spread.weights // WEIGHTS
        width = 2 * residual_change(facts.adjacency, self.limit, fit)
        unit = PARTS * self.limit**2 * spread.response * spread.floor
        return Ranked(scores, width, False, unit=unit, about=about, after=after)

    def _moved(self, facts: SelectionFacts, bought: BoughtMoments, longest: int) -> float:
        """Return how far a row moves the sums of a coefficient, for a residual so long."""
        alone = self.limit * longest * norm_of_ones(3, gaussian=bought.law is GAUSSIAN)
        return alone * (2 if facts.adjacency.n_public else 1)

    def valued(
        self, exact: Numbers, ranked: Ranked, places: Integers, bought: BoughtFits, entropy: Entropy
    ) -> dict[str, object]:
        """Release moments of what was named, with noise of their own."""
        unit, (spread, fits) = self.limit**2, ranked.about
        slopes = np.array(fits[-1].slopes) / PARTS
        fields = {**spread_fields(spread, self.limit, bought), "slopes": slopes}
        if not bought.moments:
            return fields
        lines = np.stack([exact[0], exact.diagonal(), exact[-1]])
        selected = lines[:, np.concatenate([[0], places + 1, [-1, -1]])]
        shared = [
            residual_scatter(exact, fit, place)
            for fit, place in zip(fits[:-1], places.tolist(), strict=True)
        ]
        moments: Scalars = np.concatenate([np.array(shared, dtype=object), scatters(selected)])
        noisy = add_noise(moments, bought.moments, entropy, bought.law) / unit
        return {**fields, **_moment_fields(noisy, len(places), bought, unit)}
