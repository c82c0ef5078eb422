"""Mechanisms that search many columns for those associated with a response."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from dpmodels import privacy
from dpmodels.design import PrivateDesign
from dpmodels.errors import ArgumentError, BudgetError
from dpmodels.mechanisms.add_noise import LAPLACE, ROUND_UP, add_noises
from dpmodels.mechanisms.protocol import ScreeningMechanism, refuse_noise, release_terms
from dpmodels.mechanisms.screening_plan import (
    SIGNS,
    Response,
    ScreenFacts,
    ScreenPlan,
    noised_response,
    peeled,
    products_scale,
    response_of,
    response_sums,
    rho_of,
    screen_plan,
    screened,
    valued,
    wide,
)
from dpmodels.noise import Entropy, discrete_laplace
from dpmodels.privacy import ZCDP, PureDP
from dpmodels.released import MechanismInfo, PValuesRelease, ScreenedRelease
from dpmodels.statistics import Statistic, associations
from dpmodels.statistics.associations import centred_squares
from dpmodels.typing import Integers


class _Screening:
    def measure(self, design: PrivateDesign, plan: ScreenPlan) -> Statistic:
        """Sum columns and their products with the response."""
        return associations.associations(design, plan.lattice)


@dataclass(frozen=True)
class ScreenPeeling(_Screening):
    """Peeling by the size of the covariance with the response.

    Columns drawn one after the other by how they go with a response, then valued afresh.

    Theorem
        Three kinds of releases, each a function of the rows and of what was released before,
        compose: the response's mean with noise; m' draws, each with probabilities proportional to
        ``exp(u score)`` among the columns left, whose privacy losses lie in an interval of length
        ``ε₀ = 2 u Δ`` each, so that all draws are m' ε₀-differentially private and m' ε₀²/8-zCDP;
        and products and scatters of the columns drawn. An (ε, δ) guarantee is met by the sum of the
        ε, with Laplace noise, or by zCDP, with Gaussian noise, whichever leaves less.

        *False discoveries.* Let p̃ be the p-values that all columns would have had, each with noise
        of its own as is drawn for those chosen, and no more often below a number than a uniform one
        where its hypothesis is true. Those used are p̃ for columns drawn and 1 for the others.
        Whatever was drawn, each of R rejections by the step-up rule at level q has ``p̃ <= t`` with
        ``t = q R/m``. So ``V/R <= q S`` with ``S = sup F(t)/t`` and F(t) the share of the m that
        are true and have ``p̃ <= t``. For independent p̃ of true hypotheses ``P(S > x) <= 1/x``
        (Daniels 1945), and FDR is at most ``E min(1, q S) <= q (1 + log(1/q))``, as Su (2018) found
        in another way. Under any dependence the cut-offs ``q R/(m Σ 1/i)`` have FDR at most q
        (Blanchard and Roquain 2008). The noise of the response's mean is shared: each p̃ counts it
        in, and it makes them dependent.
    Sensitivity
        With c the released mean of the response, in half-ranges, and rows in a box, the score ``|Σ
        x_j (y - c)|``, or that sum with a sign, moves by at most ``Δ = 1 + |c|`` when a row is
        added or removed and ``2 (1 + |c|)`` when one is replaced; of several columns some up and
        some down. The scatter about the mean moves by at most 4, the number of rows, the sum of y
        and that of its squares by √3 or 2 in L2 and 3 in L1 norm:
        `dpmodels.statistics.associations`.
    Noise
        Draws: Gumbel on the scores, in the limit, as the peeling of columns by noisy scores.
        Values: discrete Gaussian or discrete Laplace on the lattice, independent of the draws.
    Numerics
        exact: integer scores and sums, draws of the exact law, integer noise of exact law.
    Source
        Dwork, Su, Zhang (2018), "Differentially private false discovery rate control",
        arXiv:1807.04209, for peeling and stepping up; Durfee, Rogers (2019), "Practical
        differentially private top-k selection with pay-what-you-get composition", NeurIPS, for
        draws in turn; Su (2018), "The FDR-linking theorem", arXiv:1812.08965; Daniels (1945), "The
        statistical theory of the strength of bundles of threads", Proceedings of the Royal Society
        A 183; Blanchard, Roquain (2008), "Two simple sufficient conditions for FDR control",
        Electronic Journal of Statistics 2.

    Examples
    --------
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> facts = ScreenFacts(1000, 20, "two-sided", adjacency("replace"))
    >>> plan = ScreenPeeling().plan(facts, PureDP(1.0))
    >>> round(plan.draw_eps, 4), plan.chosen
    (0.0175, 20)
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="peeling",
        theorem="eps-DP or zCDP: draws of bounded range, and noisy sums",
        sensitivity="products 1 + |c| or 2(1 + |c|), scatters 4, by column",
        noise="Gumbel on scores; discrete Laplace or Gaussian on values",
        numerics="exact lattice",
        source="Dwork, Su and Zhang (2018); Durfee and Rogers (2019)",
    )

    def plan(self, facts: ScreenFacts, guarantee: privacy.Guarantee) -> ScreenPlan:
        """Calibrate draws and noise to a guarantee; BudgetError where noise is beyond meaning."""
        return screen_plan(facts, guarantee, with_draws=True)

    def release(self, statistic: Statistic, plan: ScreenPlan, entropy: Entropy) -> ScreenedRelease:
        """Release the response, draw the columns, and release their values."""
        return peeled(self.info, statistic, plan, SIGNS[plan.facts.alternative], entropy)


@dataclass(frozen=True)
class ScreenMoments(_Screening):
    """Noise on the covariances of all columns with the response.

    Noisy sums of all columns with a response, at once.

    Theorem
        Noisy sums of the response and, given them, of all m columns compose: ε-differentially
        private with discrete Laplace, ρ-zCDP with discrete Gaussian noise. Nothing is chosen, so
        p-values that count the noise in are those of all hypotheses, and any procedure may be used
        on them.
    Sensitivity
        As for peeling: products move by ``1 + |c|`` or ``2 (1 + |c|)``, scatters by 4, each
        column's.
    Noise
        Independent discrete Laplace or discrete Gaussian on the products and the scatters of all
        columns; its sd grows with m, or with √m.
    Numerics
        exact: integer sums, integer noise of exact law.
    Source
        Dwork, McSherry, Nissim, Smith (2006), "Calibrating noise to sensitivity in private data
        analysis", TCC; Bun, Steinke (2016), "Concentrated differential privacy", TCC.

    Examples
    --------
    >>> from dpmodels.privacy import PureDP, adjacency
    >>> facts = ScreenFacts(8, 4, "two-sided", adjacency("replace"))
    >>> ScreenMoments().plan(facts, PureDP(1.0)).chosen
    8
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="moments",
        theorem="eps-DP or zCDP: noisy sums of all columns",
        sensitivity="products 1 + |c| or 2(1 + |c|), scatters 4, by column",
        noise="discrete Laplace or Gaussian",
        numerics="exact lattice",
        source="Dwork, McSherry, Nissim and Smith (2006); Bun and Steinke (2016)",
    )

    def plan(self, facts: ScreenFacts, guarantee: privacy.Guarantee) -> ScreenPlan:
        """Calibrate the noise to a guarantee; BudgetError where it is beyond meaning."""
        return screen_plan(facts, guarantee, with_draws=False)

    def release(self, statistic: Statistic, plan: ScreenPlan, entropy: Entropy) -> ScreenedRelease:
        """Release the response, then the sums of all columns."""
        exact, n_rows = statistic.cross()
        response = noised_response(exact, plan, entropy)
        chosen = np.arange(plan.facts.columns)
        return valued(self.info, exact, n_rows, plan, response, chosen, entropy)


@dataclass(frozen=True)
class ScreenAdapt(_Screening):
    """Peeling whose false discoveries are counted on the side that nobody asked for.

    Columns drawn by the size of their covariance, of which signs tell how many are false.

    Theorem
        The releases and their privacy are those of peeling. Columns are drawn by ``|Σ x_j (y -
        c)|`` and valued with symmetric noise; whatever the sign that is asked for, t passes from
        small to large one-sided p-values, and rejected are those up to the largest t with ``(1 +
        #{p >= 1 - t})/max(#{p <= t}, 1) <= q``.

        *False discoveries.* Let the sums of true hypotheses be symmetric about 0 and independent,
        of each other and of the rest, given their sizes. Draws depend on sizes alone, and noise is
        symmetric: given the sizes of the noisy sums and all that belongs to other columns, the
        signs of true ones are fair coins. So ``V(t)/(1 + #{false side})`` of true ones is a
        supermartingale backwards in t with mean at most 1, and FDR is at most q, exactly, for any
        number of columns looked at (Barber and Candès 2015). Sums are symmetric where the response
        is; else nearly, where rows or noise are many. The noise of the response's mean is shared by
        all columns, and so small beside that of the sums that it is left out here. Columns that go
        the other way make the rule careful, and no more.
    Sensitivity
        As for peeling.
    Noise
        As for peeling, Gaussian.
    Numerics
        exact: integer scores and sums, draws of the exact law, integer noise of exact law.
    Source
        Xia, Cai (2023), "Adaptive false discovery rate control with privacy guarantee", Journal of
        Machine Learning Research 24(252), for mirrored peeling; Lei, Fithian (2018), "AdaPT: an
        interactive procedure for multiple testing with side information", JRSS B 80; Barber, Candès
        (2015), "Controlling the false discovery rate via knockoffs", Annals of Statistics 43.

    Examples
    --------
    >>> from dpmodels.privacy import adjacency
    >>> facts = ScreenFacts(1000, 20, "larger", adjacency("replace"))
    >>> ScreenAdapt().plan(facts, ZCDP(0.1)).law
    'gaussian'
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="adapt",
        theorem="(eps, delta)-DP or zCDP: draws of bounded range, and noisy sums",
        sensitivity="products 1 + |c| or 2(1 + |c|), scatters 4, by column",
        noise="Gumbel on scores; discrete Gaussian on values",
        numerics="exact lattice",
        source="Xia and Cai (2023); Barber and Candes (2015)",
    )

    def plan(self, facts: ScreenFacts, guarantee: privacy.Guarantee) -> ScreenPlan:
        """Calibrate draws and noise to a guarantee.

        ArgumentError where both sides are asked for. BudgetError for a pure guarantee, and where
        noise is beyond meaning.
        """
        if facts.alternative == "two-sided":
            raise ArgumentError(
                "alternative='two-sided': mechanism='adapt' estimates false discoveries from the "
                "opposite side; write alternative='larger' or 'smaller', or mechanism='peeling'"
            )
        if isinstance(guarantee, PureDP):
            raise BudgetError(
                "mechanism='adapt' adds Gaussian noise, which gives no pure eps guarantee; add "
                "delta=1e-6, or write mechanism='peeling'"
            )
        if isinstance(guarantee, privacy.ApproxDP):
            zcdp_plan = screen_plan(facts, ZCDP(rho_of(guarantee)), with_draws=True)
            return replace(zcdp_plan, guarantee=guarantee)
        return screen_plan(facts, guarantee, with_draws=True)

    def release(self, statistic: Statistic, plan: ScreenPlan, entropy: Entropy) -> ScreenedRelease:
        """Release the response, draw columns by size, and release their values."""
        return peeled(self.info, statistic, plan, np.abs, entropy)


# Noise in the sums of columns, which only have to show where their rows lie, over that in the
# squares: a choice, for a tenth of the budget of both.
SUMS_FACTOR = 3.0


@dataclass(frozen=True)
class ScreenCentred(_Screening):
    """Noise on the covariances of all columns with the response, about released means.

    Noisy sums of all columns with a response, in two rounds of sums that add over disjoint rows.

    Theorem
        Theorem 85: the first round has the response and the sum of each column, the second the
        products and the squares of the columns about what the first showed. Given it, all are sums
        over rows with discrete Gaussian noise, which compose. So sites can add the noise of both
        rounds.
    Sensitivity
        Products as for `moments`. The sum of a column moves by half its range R, or 2 R where a row
        is replaced; its squares about c by ``(R + |c|)²`` for either adjacency, as each is from 0
        to that.
    Noise
        Independent discrete Gaussian, in the squares of all columns of the scale of the widest.
    Numerics
        exact: integer sums, integer noise of exact law.
    Source
        Bun, Steinke (2016), "Concentrated differential privacy", TCC. The two rounds are ours.

    Examples
    --------
    >>> from dpmodels.privacy import adjacency
    >>> facts = ScreenFacts(8, 4, "two-sided", adjacency("replace"))
    >>> [event.count for event in ScreenCentred().plan(facts, ZCDP(0.5)).events]
    [1, 8, 8, 8]
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="centred",
        theorem="(eps, delta)-DP or rho-zCDP: noisy sums of all columns, in two rounds",
        sensitivity="products 1 + |c| or 2(1 + |c|), squares (1 + |c|)^2, by column",
        noise="discrete Gaussian",
        numerics="exact lattice",
        source="Bun and Steinke (2016); two rounds ours",
    )

    def plan(self, facts: ScreenFacts, guarantee: privacy.Guarantee) -> ScreenPlan:
        """Calibrate as `moments`, with a tenth of the budget of scatters for the columns' sums.

        BudgetError for a pure guarantee, and where noise is beyond meaning.
        """
        if isinstance(guarantee, PureDP):
            raise BudgetError(
                "mechanism='centred' adds Gaussian noise, which gives no pure eps guarantee; add "
                "delta=1e-6, or write mechanism='moments'"
            )
        budget = ZCDP(0.5 / privacy.gaussian_multiplier(guarantee) ** 2)
        plan = screen_plan(facts, budget, with_draws=False)
        scatters = plan.scatters * math.sqrt(1 + SUMS_FACTOR**-2) * ROUND_UP
        response, products, _ = plan.events
        sums = privacy.GaussianEvent(SUMS_FACTOR * scatters, facts.columns)
        events = (response, sums, products, privacy.GaussianEvent(scatters, facts.columns))
        return replace(plan, guarantee=guarantee, events=events, scatters=scatters)

    def release(self, statistic: Statistic, plan: ScreenPlan, entropy: Entropy) -> ScreenedRelease:
        """Release the response and the columns' sums, then products and squares about them."""
        exact, n_rows = statistic.cross()
        limit, facts = associations.reach(plan.lattice), plan.facts
        half_ranges = SUMS_FACTOR * (2 if facts.adjacency.n_public else 1)
        sums_scale = wide(plan.scatters * half_ranges * limit**2, plan)
        sums = limit * exact[associations.SUMS, 1:-1], sums_scale
        described, totals = add_noises([response_sums(exact, plan), sums], entropy)
        response = response_of(described, plan)
        n_complete = max(response.complete, 1.0)
        means = totals / (limit * n_complete)
        centres = np.rint(np.clip(means, -limit, limit)).astype(np.int64).astype(object)
        change = (limit + int(np.abs(centres).max())) ** 2
        values = (
            (associations.centred_products(exact, response.centre), products_scale(plan, response)),
            (centred_squares(exact, centres), wide(plan.scatters * change, plan)),
        )
        products, squares = add_noises(values, entropy)
        # The mean of what squares about noisy means have beyond scatters.
        squares -= (sums_scale / limit) ** 2 / n_complete
        noisy = [(products, values[0][1]), (squares, values[1][1])]
        return screened(self.info, n_rows, plan, response, np.arange(facts.columns), noisy)


# Of the budget for the response; and standard deviations of the noise by which its sum of squares
# is taken to be larger than released, so that p-values are hardly too small. Choices.
RESPONSE_SHARE, CAREFUL = 0.1, 5.0
# The widest scale of noise: a sum with a level leaves 63 bits with a probability below exp(-8000).
WIDEST = 2.0**50


@dataclass(frozen=True)
class ScreenLogs(_Screening):
    """Peeling of the logarithms of p-values.

    Logarithms of p-values, peeled by noisy minima: the published procedure, for comparison.

    Theorem
        Given the released response, m' rounds compose. In each, the column of the least level plus
        fresh noise is drawn, which is 2/u-differentially private for noise of scale u times what a
        row moves a level by; and its level is released with separate noise, which is
        1/u-differentially private. So all are 3 m'/u-differentially private, and 5 m'/(2 u²)-zCDP.
        An (ε, δ) guarantee is met by the one or the other, whichever has less noise: these
        constants are ours, and so are those of the ledger.

        *Proof for a draw.* Let a row move each of the integer levels by at most k, and fix the
        noise of all but j. Column j is drawn if its noise is at most some integer b: the largest
        with which it comes before all others, ties going to the one that is named first. With a
        neighbour's levels, that of j up by k and the others down by k at worst, it is drawn if its
        noise is at most b - 2 k. For discrete Laplace noise of scale s, ``P(X <= b - 2k) >=
        exp(-2k/s) P(X <= b)`` as its distribution function rises by no more than a factor of
        ``exp(1/s)`` a step.

        *False discoveries.* A column is rejected among R where its noisy logarithm is at most
        ``log(q R/m) - 2 λ log(6 m'/q)``, with λ the scale of the noise. But for a probability of
        q/11 no noise of m' values is below ``-λ log(6 m'/q)``; else every rejected column has a
        p-value of at most q R/m, and as for peeling the rate is at most ``q (1 + log(1/q)) + q/11``
        for independent columns. That sums of true hypotheses are normal is taken for granted, as in
        a z-test; w is no less than their standard deviation, but where the response's noise exceeds
        five of its own.

        It is of little use: noise of p-values is so large that nothing is found at 10,000 rows, nor
        at a million where 1,000 columns have effects of four standard errors.
    Sensitivity
        With ``p = Φ̄(S/w)``, or ``2 Φ̄(|S|/w)``, S as for peeling, w a function of the released
        response, ``log max(p, ν)`` moves by at most ``η = log(Φ̄(z_ν - Δ/w)/ν)``, ν = q/(2 m), for
        S moves by Δ; for two sides ν/2 takes the place of ν. In steps of a grid it is that number,
        rounded up, and one step more: `dpmodels.statistics.associations`. The response as for
        peeling.
    Noise
        Discrete Laplace of one scale, on all levels left in each draw, and afresh on those drawn.
    Numerics
        exact: whole levels, made of exact sums by a fixed function of 160 bits whose rounding is in
        the sensitivity; integer noise of exact law; ties by a public order.
    Source
        Dwork, Su, Zhang (2018), "Differentially private false discovery rate control",
        arXiv:1807.04209.

    Examples
    --------
    >>> from dpmodels.privacy import adjacency
    >>> facts = ScreenFacts(1000, 20, "two-sided", adjacency("replace"))
    >>> ScreenLogs().plan(facts, ZCDP(0.1)).events[0].describe()
    'pure, eps 0.0848528 x 20'
    """

    info: ClassVar[MechanismInfo] = MechanismInfo(
        name="dp_bh",
        theorem="eps-DP or zCDP: noisy minima of log p-values, and noisy ones",
        sensitivity="log(tail(z - D/w)/tail(z)), z the largest statistic told apart",
        noise="discrete Laplace on log p-values",
        numerics="exact lattice",
        source="Dwork, Su and Zhang (2018); constants ours",
    )

    def plan(self, facts: ScreenFacts, guarantee: privacy.Guarantee) -> ScreenPlan:
        """Calibrate the noise to a guarantee; BudgetError where it is beyond meaning."""
        scales = []
        if isinstance(guarantee, PureDP | privacy.ApproxDP):
            eps = guarantee.eps
            scales.append(
                (3 * facts.max_chosen / (1 - RESPONSE_SHARE) / eps, 1 / RESPONSE_SHARE / eps)
            )
        if isinstance(guarantee, ZCDP | privacy.ApproxDP):
            rho = guarantee.rho if isinstance(guarantee, ZCDP) else rho_of(guarantee)
            parts = 5 * facts.max_chosen / (1 - RESPONSE_SHARE), 1 / RESPONSE_SHARE
            scales.append((math.sqrt(parts[0] / 2 / rho), math.sqrt(parts[1] / 2 / rho)))
        times, response = (scale * ROUND_UP for scale in min(scales))
        if times * (associations.STEPS * -math.log(least_of(facts)) + 2) > WIDEST:
            refuse_noise(
                times,
                "times the sensitivity of a log p-value",
                "eps, delta or rho, or a smaller most",
            )
        draw = 2 / times
        events = (
            privacy.PureEvent(draw, facts.max_chosen),
            privacy.LaplaceEvent(times, facts.max_chosen),
            privacy.LaplaceEvent(response),
        )
        lattice = associations.box_lattice(facts.columns + 1)
        return ScreenPlan(
            guarantee, events, facts, lattice, "laplace", draw, response, times, scatters=0.0
        )

    def release(self, statistic: Statistic, plan: ScreenPlan, entropy: Entropy) -> PValuesRelease:
        """Release the response, draw columns by noisy p-values, and release those."""
        exact, n_rows = statistic.cross()
        response = noised_response(exact, plan, entropy)
        facts, limit = plan.facts, associations.reach(plan.lattice)
        part, centre = associations.FINE * limit**2, response.centre / (associations.FINE * limit)
        spread = associations.spread_change(facts.adjacency, limit, 1) / limit**2
        response_sd = LAPLACE.sd * plan.response * spread
        scale = z_scale(response, response_sd, centre, plan)
        test = scale * part, least_of(facts), 1 + (facts.alternative == "two-sided")
        sums = SIGNS[facts.alternative](associations.centred_products(exact, response.centre))
        levels = associations.log_levels(sums, *test)
        change = associations.log_change(
            associations.product_change(facts.adjacency, limit, response.centre), *test
        )
        wide = max(plan.products * change * ROUND_UP, LAPLACE.smallest)
        chosen = least_noisy(levels, wide, facts.max_chosen, entropy)
        noisy = levels[chosen] + discrete_laplace(wide, len(chosen), entropy)
        return PValuesRelease(
            chosen=chosen.astype(np.float64),
            logs=noisy / associations.STEPS,
            log_sd=LAPLACE.sd * wide / associations.STEPS,
            count=response.complete,
            total=response.total,
            squares=response.squares,
            centre=centre,
            response_sd=response_sd,
            scale=scale,
            choice=plan.draw_eps,
            **release_terms(self.info, plan, n_rows),
        )


def least_of(facts: ScreenFacts) -> float:
    """Return ν, below which p-values are not distinguished."""
    return facts.level / (2 * facts.columns)


def z_scale(response: Response, response_sd: float, centre: float, plan: ScreenPlan) -> float:
    """Return what a sum of products is divided by, in squared half-ranges.

    For a column that is independent of the response its variance is at most ``Σ (y - c)²`` times
    that of the column, which is at most 1; rows of one person may all be alike. With the column's
    mean the noise of the response's mean takes the place of its variance, of which it takes more.
    """
    squares = response.squares - 2 * centre * response.total + centre**2 * response.complete
    careful = squares + CAREFUL * response_sd * (1 + abs(centre)) ** 2
    shared = response_sd**2 * (1 + centre**2)
    return math.sqrt(plan.facts.adjacency.places * max(careful, shared, 1.0))


def least_noisy(levels: Integers, scale: float, count: int, entropy: Entropy) -> Integers:
    """Draw `count` different indices, each that of the least noisy level of those left."""
    left = np.arange(len(levels))
    indices = np.empty(count, dtype=np.int64)
    for place in range(count):
        choice = int(np.argmin(levels[left] + discrete_laplace(scale, len(left), entropy)))
        indices[place] = left[choice]
        left = np.delete(left, choice)
    return indices


SCREENING: dict[str, type[ScreeningMechanism]] = {
    "peeling": ScreenPeeling,
    "moments": ScreenMoments,
    "centred": ScreenCentred,
    "adapt": ScreenAdapt,
    "dp_bh": ScreenLogs,
}
