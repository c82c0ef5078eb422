"""How columns go with one response, as what columns are ranked by.

Scores are ``|Σ x_j (y - c)|`` about a noisy mean c of the response, with columns and response in
units of their public half-ranges: n times a covariance, up to the noise of c. In these units no
standard deviation is above 1, so that a covariance is no larger than the correlation, and its
product with the root of n no larger than z: what is above a threshold is so by either.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dpmodels.design import PrivateDesign
from dpmodels.errors import BudgetError
from dpmodels.mechanisms.add_noise import GAUSSIAN, LAPLACE, ROUND_UP, Law, add_noise
from dpmodels.mechanisms.count_plan import LEAST_SCALE
from dpmodels.mechanisms.protocol import Ranked
from dpmodels.mechanisms.selection_plan import SelectionFacts, part
from dpmodels.noise import Entropy
from dpmodels.noise.lattice import Lattice
from dpmodels.privacy import (
    ZCDP,
    Adjacency,
    Event,
    GaussianEvent,
    LaplaceEvent,
    PureDP,
    gaussian_multiplier,
)
from dpmodels.statistics import Statistic
from dpmodels.statistics.associations import (
    FINE,
    PRODUCTS,
    SUMS,
    associations,
    box_lattice,
    centred_products,
    mean_change,
    product_change,
    reach,
    scatters,
)

# Of the budget: the mean of the response. A choice; its noise moves all scores.
CENTRE_SHARE = 0.1
# In lattice integers; beyond, noise is of no use and does not fit 64 bits.
LARGEST_SCALE = 2.0**55


@dataclass(frozen=True)
class BoughtMoments:
    """Noise of the mean of the response, and of moments of what is named; 0 for none."""

    centre: float  # Scale of the noise in the sum of y and in the rows' half-ranges
    moments: float  # In every moment
    events: tuple[Event, ...]

    @property
    def law(self) -> Law:
        """The law of either noise."""
        return GAUSSIAN if isinstance(self.events[0], GaussianEvent) else LAPLACE


@dataclass(frozen=True)
class Centre:
    """A released mean of the response, in parts of lattice steps, and number of rows."""

    parts: int
    count: float


@dataclass(frozen=True)
class AssociationScore:
    """Products of columns with a response about its noisy mean, by size.

    What a row moves them by is shown with `product_change`. Of what is named the scatter of each
    column, its scatter with the response, ``⌊Σ (x - x̄)(y - ȳ)⌋``, and that of the response are
    released, about means of the rows themselves, with noise that the ranking had no part in.

    *Each moves by 4 R² at most*, of integers up to R, for either adjacency. One more row changes
    ``Σ (x - x̄)(y - ȳ)`` by ``f = (x - x̄)(y - ȳ) n/(n + 1)``, about the others' means, and
    ``|f| <= 4 R²``. Of two rows that replace each other f is largest where x and y are at ends of
    one sign, smallest where they are at ends of two: corners that share an end of x or of y, say
    x = R, where the difference is ``2 R (R - x̄) n/(n + 1)``, at most 4 R² too. For
    ``Σ (x - x̄)²`` f is between 0 and 4 R². Integers below numbers so far apart are no farther. Of
    k columns there are 2 k + 1 such numbers.
    """

    size: int
    kind: Literal["correlation", "z"]

    own_share: ClassVar[float] = CENTRE_SHARE

    @property
    def lattice(self) -> Lattice:
        """Where the columns and the response live."""
        return box_lattice(self.size + 1)

    @property
    def most(self) -> int:
        """The integers of a half-range."""
        return reach(self.lattice)

    def width(self, adjacency: Adjacency) -> float:
        """Return the length of the interval of a neighbour's changes, for a mean in the middle."""
        middle = product_change(adjacency, self.most, 0) / (FINE * self.most**2)
        return 2 * middle

    def bought(self, facts: SelectionFacts, budget: PureDP | ZCDP) -> BoughtMoments:
        """Plan the mean of the response, and moments of what is named."""
        gaussian, moments = isinstance(budget, ZCDP), 2 * facts.most + 1
        scales, events = [], list[Event]()
        for share, change, numbers in (
            (CENTRE_SHARE, mean_change(facts.adjacency, self.most, 2 if gaussian else 1), 1),
            (facts.share, 4.0 * self.most**2, moments),
        ):
            if not share:
                scales.append(0.0)
                continue
            own = part(budget, share)
            if isinstance(own, ZCDP):
                multiplier = gaussian_multiplier(own)
                events.append(GaussianEvent(multiplier))
                change *= math.sqrt(numbers)
            else:
                multiplier = ROUND_UP / own.eps
                events.append(LaplaceEvent(multiplier))
                change *= numbers
            scales.append(max(multiplier * change * ROUND_UP, LEAST_SCALE))
        if max(scales) > LARGEST_SCALE:
            raise BudgetError(
                f"the budget asks for noise of {max(scales) / self.most**2:.2g} rows in a product, "
                "beyond what is meaningful; give a larger eps, delta or rho"
            )
        centre, own_moments = scales
        return BoughtMoments(centre, own_moments, tuple(events))

    def measure(self, private: PrivateDesign, facts: SelectionFacts) -> Statistic:
        """Sum the columns, their squares and their products with the response."""
        return associations(private, self.lattice, count_public=facts.adjacency.n_public)

    def ranked(
        self, exact: NDArray[Any], facts: SelectionFacts, bought: BoughtMoments, entropy: Entropy
    ) -> Ranked:
        """Release a mean of the response, and return the products about it by size."""
        most, own = self.most, facts.adjacency
        sums: NDArray[Any] = np.array([exact[SUMS, -1], most * exact[SUMS, 0]], dtype=object)
        total, reached = add_noise(sums, bought.centre, entropy, bought.law).tolist()
        count = max(reached / most, 1.0)
        centre = round(FINE * max(-most, min(most, total / count)))
        scores = np.abs(centred_products(exact, centre))
        unit = FINE * most**2
        least = None
        if facts.threshold is not None:
            places = own.places if own.counts_persons else 1
            rows = count if self.kind == "correlation" else math.sqrt(count * places)
            least = math.ceil(facts.threshold * rows * unit)
        width = 2 * product_change(own, most, centre)
        return Ranked(scores, width, False, least, unit, Centre(centre, reached / most))

    def valued(
        self,
        exact: NDArray[Any],
        ranked: Ranked,
        places: NDArray[np.int64],
        bought: BoughtMoments,
        entropy: Entropy,
    ) -> dict[str, Any]:
        """Release moments of what was named, with noise of their own."""
        unit, centre = self.most**2, ranked.about
        found = {
            "count": centre.count,
            "centre": centre.parts / (FINE * self.most),
            "law": "gaussian" if bought.law is GAUSSIAN else "laplace",
        }
        if not bought.moments:
            return found
        columns = np.concatenate([[0], places + 1, [-1, -1]])
        own = exact[:, columns]
        rows = max(int(own[SUMS, 0]), 1)
        products = (rows * own[PRODUCTS, 1:-2] - own[SUMS, 1:-2] * own[SUMS, -1]) // rows
        moments: NDArray[Any] = np.concatenate([products, scatters(own)])
        noisy = add_noise(moments, bought.moments, entropy, bought.law) / unit
        return {
            **found,
            "values": noisy[: len(places)],
            "scatters": noisy[len(places) : -1],
            "response": float(noisy[-1]),
            "noise_sd": bought.law.sd * bought.moments / unit,
            "step": 1 / unit,
        }
