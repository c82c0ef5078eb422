"""What a column adds to a fit of those named before, as what columns are ranked by.

Matching pursuit (Mallat and Zhang 1993): the column named is that whose product with the residuals
is largest for its spread, which is the square root of what its coefficient takes off their sum of
squares; then the residuals of a fit with that coefficient are next. Coefficients are released
before they are used, so that residuals are a public function of a row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmodels.design import PrivateDesign
from dpmodels.errors import ArgumentError
from dpmodels.mechanisms.add_noise import GAUSSIAN, add_noise
from dpmodels.mechanisms.association_score import (
    TOLD,
    WEIGHTS,
    BoughtMoments,
    Spread,
    bought_moments,
    bought_noise,
    norm_of_ones,
    released_spreads,
    require_meaningful,
    told_of,
)
from dpmodels.mechanisms.count_plan import LEAST_SCALE
from dpmodels.mechanisms.protocol import Ranked
from dpmodels.mechanisms.selection_plan import Paid, SelectionFacts
from dpmodels.noise import Entropy
from dpmodels.noise.lattice import Lattice
from dpmodels.privacy import Adjacency
from dpmodels.statistics import Statistic
from dpmodels.statistics.associations import FINE, box_lattice, product_change, reach, scatters
from dpmodels.statistics.residual_products import (
    PARTS,
    ReleasedFit,
    products,
    residual_change,
    residual_products,
    residual_scatter,
)

# Of the budget: the mean of the response, its spread, and those of all columns. Choices.
OWN_SHARES = (0.05, 0.05, 0.1)
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
class GainScore:
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

    size: int

    own_share: ClassVar[float] = math.fsum((*OWN_SHARES, FIT_SHARE))

    @property
    def lattice(self) -> Lattice:
        """Where the columns and the response live."""
        return box_lattice(self.size + 1)

    @property
    def most(self) -> int:
        """The integers of a half-range."""
        return reach(self.lattice)

    def width(self, adjacency: Adjacency) -> float:
        """Return the length of the interval of a neighbour's changes, for the first name."""
        return 2 * product_change(adjacency, self.most, 0) / (FINE * self.most**2)

    def bought(self, facts: SelectionFacts, paid: Paid, eps: float) -> BoughtFits:
        """Plan mean and spread of the response, spreads, coefficients, and moments.

        ArgumentError with a threshold.
        """
        if facts.threshold is not None:
            raise ArgumentError(
                f"threshold={facts.threshold:g} does not go with score='gain', whose columns are "
                "ranked anew after each name: write k=, or score='correlation'"
            )
        own = bought_moments(self.size, self.most, facts, paid, eps, OWN_SHARES)
        fits = bought_noise(paid(FIT_SHARE), facts.most)
        # The longest residual is of y, all coefficients, and as much again in the centre.
        farthest = 2 * (1 + STEEPEST) * self.most
        require_meaningful(fits.multiplier * self._moved(facts, own, farthest), self.most)
        plain = (own.centre, own.response, own.spreads, own.moments)
        return BoughtFits(*plain, (*own.events, fits), own.reach, fits.multiplier)

    def measure(self, private: PrivateDesign, facts: SelectionFacts) -> Statistic:
        """Sum the products of all columns."""
        return products(private, self.lattice, count_public=facts.adjacency.n_public)

    def ranked(
        self, exact: NDArray[Any], facts: SelectionFacts, bought: BoughtFits, entropy: Entropy
    ) -> Ranked:
        """Release a mean of the response and spreads; return the weighted products by size."""
        lines = np.stack([exact[0], exact.diagonal(), exact[-1]])
        spread = released_spreads(lines, self.most, facts, bought, entropy)
        about = FittedSoFar(spread, (ReleasedFit(spread.centre * (PARTS // FINE)),))
        return self._ranked(exact, facts, bought, entropy, about)

    def _ranked(
        self,
        exact: NDArray[Any],
        facts: SelectionFacts,
        bought: BoughtFits,
        entropy: Entropy,
        about: FittedSoFar,
    ) -> Ranked:
        spread, fit = about.spread, about.fits[-1]
        scores: NDArray[Any] = np.abs(residual_products(exact, fit)) * spread.weights // WEIGHTS
        width = 2 * residual_change(facts.adjacency, self.most, fit)
        unit = PARTS * self.most**2 * spread.response * spread.least
        after = partial(self._after, exact, facts, bought, entropy, about)
        return Ranked(scores, width, False, unit=unit, about=about, after=after)

    def _after(
        self,
        exact: NDArray[Any],
        facts: SelectionFacts,
        bought: BoughtFits,
        entropy: Entropy,
        about: FittedSoFar,
        place: int,
    ) -> Ranked:
        """Release the coefficient of what was named; rank the others by what is left."""
        fit, most, rows = about.fits[-1], self.most, about.spread.rows
        longest = -(-fit.longest(most) // PARTS)
        product = int(residual_products(exact, fit)[place]) // PARTS
        total, square = exact[0, place + 1], exact[place + 1, place + 1]
        sums: NDArray[Any] = np.array(
            [product, longest * total, longest * square // most], dtype=object
        )
        scale = max(bought.multiplier * self._moved(facts, bought, longest), LEAST_SCALE)
        noisy, total, square = (add_noise(sums, scale, entropy, bought.law) / rows).tolist()
        mean = max(-most, min(most, total / longest))
        told = TOLD * bought.law.sd * scale / rows
        spread = max(square - longest * mean**2 / most, told) / (longest * most)
        left = STEEPEST - sum(map(abs, fit.slopes)) / PARTS
        steepest = min(about.spread.response / math.sqrt(spread), left)
        slope = round(PARTS * max(-steepest, min(steepest, noisy / (most**2 * spread))))
        centre = fit.centre - round(slope * mean)
        following = ReleasedFit(centre, (*fit.places, place), (*fit.slopes, slope))
        further = FittedSoFar(about.spread, (*about.fits, following))
        return self._ranked(exact, facts, bought, entropy, further)

    def _moved(self, facts: SelectionFacts, bought: BoughtMoments, longest: int) -> float:
        """Return how far a row moves the sums of a coefficient, for a residual so long."""
        alone = self.most * longest * norm_of_ones(3, gaussian=bought.law is GAUSSIAN)
        return alone * (2 if facts.adjacency.n_public else 1)

    def valued(
        self,
        exact: NDArray[Any],
        ranked: Ranked,
        places: NDArray[np.int64],
        bought: BoughtFits,
        entropy: Entropy,
    ) -> dict[str, Any]:
        """Release moments of what was named, with noise of their own."""
        unit, (spread, fits) = self.most**2, ranked.about
        slopes = np.array(fits[-1].slopes) / PARTS
        found = {**told_of(spread, self.most, bought), "slopes": slopes}
        if not bought.moments:
            return found
        lines = np.stack([exact[0], exact.diagonal(), exact[-1]])
        own = lines[:, np.concatenate([[0], places + 1, [-1, -1]])]
        shared = [
            residual_scatter(exact, fit, place)
            for fit, place in zip(fits[:-1], places.tolist(), strict=True)
        ]
        moments: NDArray[Any] = np.concatenate([np.array(shared, dtype=object), scatters(own)])
        noisy = add_noise(moments, bought.moments, entropy, bought.law) / unit
        return {
            **found,
            "values": noisy[: len(places)],
            "scatters": noisy[len(places) : -1],
            "response": float(noisy[-1]),
            "noise_sd": bought.law.sd * bought.moments / unit,
            "step": 1 / unit,
        }
