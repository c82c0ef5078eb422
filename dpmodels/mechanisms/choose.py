"""From the word ``mechanism=`` of a verb to a strategy; ``"auto"`` by public facts alone.

Nothing is assumed of the lengths of rows, which decide what serves best and are private:

- ``rounds``, or ``rounds_pure`` for a pure guarantee, which estimate the lengths first; unless
  every row is divided by its norm, or the rows can be read only once, or are so few that their
  lengths would be lost in noise.
- Then ``gauss`` or ``laplace``: of the mechanisms that read the rows once they have the smallest
  worst loss. For rows of the unit sphere ``ppca`` instead of ``laplace`` if it is predicted to
  capture 15 % more, with eigenvalues that fall as 1/i.
- Counts and margins: the one with less noise, on a ledger of eps and delta at equal price
  (`ledger_price`); for one mean of a public number of rows ``paired`` if it has less in the sum.
  Means and variances of a number that may lie anywhere within its bounds: ``rounds`` if the public
  number of rows is enough to find a range.

Predicted losses of energy were held against simulated releases from such rows, 5 to 100 columns,
10³ to 10⁵ rows, ε of 0.1 and 1: they are within 0.06 of the simulated ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from dpmodels.errors import ArgumentError, did_you_mean, quoted
from dpmodels.mechanisms.count_noise import one_mean
from dpmodels.mechanisms.counts import (
    COUNTS,
    Factorisation,
    Gaussian,
    Geometric,
    Grid,
    Tree,
    Wavelet,
)
from dpmodels.mechanisms.counts.factorisation import MOST_CELLS
from dpmodels.mechanisms.counts.rounds import range_shares
from dpmodels.mechanisms.covariance.rounds import Rounds, RoundsPure
from dpmodels.mechanisms.ledger_price import at_equal_price, price_reason
from dpmodels.mechanisms.margins import MARGINS
from dpmodels.mechanisms.protocol import (
    CountFacts,
    CountMechanism,
    CovarianceMechanism,
    Facts,
    MarginFacts,
    SubspaceMechanism,
    all_cells,
)
from dpmodels.mechanisms.scalar.paired import Paired
from dpmodels.mechanisms.second_moment import scatter_range
from dpmodels.mechanisms.selection import NoisyCounts, Peeling, PermuteAndFlip
from dpmodels.mechanisms.selection.noisy_counts import reach
from dpmodels.mechanisms.selection_plan import LevelScore, SelectionFacts
from dpmodels.mechanisms.user_supplied import refuse_superseded, supplied
from dpmodels.postprocess.hierarchy import prefix_variances, range_counts
from dpmodels.postprocess.plane import rectangle_counts
from dpmodels.postprocess.residuals import fitted_variances
from dpmodels.postprocess.square_root import SquareRoot
from dpmodels.postprocess.wavelet import mean_variances
from dpmodels.privacy import Adjacency, Guarantee, PureDP
from dpmodels.statistics.moments import absolute_sensitivity, absolute_weights
from dpmodels.typing import Floats

Mechanism = CovarianceMechanism | SubspaceMechanism
Table = Mapping[str, type[Mechanism]]
Kind = TypeVar("Kind")


class Choice(NamedTuple, Generic[Kind]):
    """A strategy, and why it was chosen where the choice was automatic."""

    strategy: Kind
    reason: str


def choose_strategy(
    mechanism: object,
    table: Mapping[str, type[Kind]],
    automatic: Callable[[], tuple[str, str]],
    options: Mapping[str, object] = MappingProxyType({}),
) -> Choice[Kind]:
    """Return the strategy that a name or an instance stands for.

    A name is one of the table's, or ``"auto"``, for which `automatic` gives one of them and why;
    each option goes to the named strategy if it has such a field. An instance is taken as it is.
    So is what a registered user-supplied mechanism is run by. ArgumentError for anything else.
    """
    user_strategy: Any = supplied(mechanism, table)
    if user_strategy is not None:
        return Choice(user_strategy, "")
    if not isinstance(mechanism, str):
        return Choice(_checked(mechanism, next(iter(table.values()))), "")
    name, reason = automatic() if mechanism == "auto" else (mechanism, "")
    if name not in table:
        refuse_superseded("mechanism=", name)
        names = ", ".join(repr(name) for name in ("auto", *table))
        meant = did_you_mean(mechanism, table)
        raise ArgumentError(
            f"mechanism={quoted(mechanism)} is not known here{meant}; expected one of {names}"
        )
    strategy: Any = table[name]
    option_names = {field.name for field in fields(strategy)}
    return Choice(
        strategy(**{word: options[word] for word in options if word in option_names}), reason
    )


def _checked(mechanism: object, example: type) -> Any:
    methods = (getattr(mechanism, name, None) for name in ("plan", "measure", "release"))
    if not isinstance(mechanism, type) and all(map(callable, methods)):
        return mechanism
    raise ArgumentError(
        f"mechanism= is of type {type(mechanism).__name__}; expected a name or an instance such "
        f"as dp.mechanisms.{example.__name__}()"
    )


# How much more ppca has to capture: a choice.
BETTER = 1.15
# By this part simulated losses exceed the formulas' where they are far from random.
LATE = 0.3
# Rows over the noise sd of one of their numbers by length: with fewer, rounds may lose more than
# they gain. Laplace noise is told from rows later. Held against simulated rows.
ENOUGH, ENOUGH_PURE = 8, 32


def auto_moments(
    facts: Facts, guarantee: Guarantee, n_rows: int | None, available: frozenset[str]
) -> tuple[str, str]:
    """Return the name of a mechanism of the table and the reason, as it is printed.

    `n_rows` is None where it is private or not known yet, `available` the names that the
    verb and the data take.
    """
    pure = isinstance(guarantee, PureDP)
    plain = "laplace" if pure and "laplace" in available else "gauss"
    name = "rounds_pure" if pure else "rounds"
    if facts.unit:
        if (
            isinstance(guarantee, PureDP)
            and n_rows
            and "ppca" in available
            and _wanted(facts) < facts.columns
        ):
            return _directions(facts, guarantee.eps, n_rows, plain)
        return plain, "all rows have the same norm, so that no radius has to be estimated."
    if name not in available:
        return plain, "it reads the rows once, and its noise is the least for rows of small norm."
    noise_sd = noise_of_lengths(RoundsPure() if pure else Rounds(), facts, guarantee)
    printed_sd = noise_sd * _of_one(facts.adjacency)
    counts_text = f"noisy counts of norms (sd {two_digits(printed_sd)})"
    if n_rows is None:
        return name, f"it first estimates the centre and radius of the rows from {counts_text}."
    rows_text = _many(n_rows, facts.adjacency)
    if n_rows < (ENOUGH_PURE if pure else ENOUGH) * noise_sd:
        return (
            plain,
            f"{rows_text} is too small to estimate a radius of the rows from {counts_text}.",
        )
    return (
        name,
        f"{rows_text} is large enough to estimate the centre and radius of the rows from "
        f"{counts_text}.",
    )


def _many(n_rows: int, neighbours: Adjacency) -> str:
    """Say how many rows there are, or persons, or as many as may be one person's."""
    if neighbours.person is not None:
        return f"n = {n_rows:,} persons"
    of = f" times {neighbours.places} rows" if neighbours.places > 1 else ""
    return f"n = {n_rows:,}{of}"


def _of_one(neighbours: Adjacency) -> int:
    """Return how many rows stand for one in what is printed of a noise for one row."""
    return 1 if neighbours.rows == "mean" else neighbours.places


def noise_of_lengths(strategy: Rounds | RoundsPure, facts: Facts, guarantee: Guarantee) -> float:
    """Return the noise sd of the numbers of rows by length that a radius is chosen by."""
    scales = strategy.plan(facts, guarantee).scales
    *_, last = (scales[name] for name in scales if name.startswith("lengths"))
    return last * (math.sqrt(2) if isinstance(strategy, RoundsPure) else 1.0)


def _directions(facts: Facts, eps: float, n_rows: int, plain: str) -> tuple[str, str]:
    """Choose between directions and a matrix for rows of the unit sphere."""
    weights = absolute_weights(facts.adjacency, facts.columns, centred=facts.centred)
    scale = absolute_sensitivity(facts.adjacency, facts.columns, weights) / eps
    matrix = noise_loss(facts, math.sqrt(2) * scale / n_rows)
    frame_loss = directions_loss(facts, n_rows * eps / scatter_range(facts))
    name, second = ("ppca", plain) if 1 - frame_loss > BETTER * (1 - matrix) else (plain, "ppca")
    lost = {"ppca": frame_loss, plain: matrix}
    return name, (
        f"at {_many(n_rows, facts.adjacency)} it is predicted to lose {_percent(lost[name])} of "
        f"the captured energy, {second} {_percent(lost[second])}."
    )


def auto_counts(
    facts: CountFacts, guarantee: Guarantee, n_rows: int | None = None
) -> tuple[str, str]:
    """Return the name of a mechanism for counts, or for one mean, and the reason.

    `n_rows` is None where no range is to be found: where the variable is not a number,
    where rows are read once, or where how many there are is private or not known beforehand.
    """
    shares = None if n_rows is None else range_shares(facts, guarantee, n_rows)
    if n_rows is not None and shares is not None:
        share = f"{'' if len(shares) == 1 else 'up to '}{100 * sum(shares):.0f}%"
        return "rounds", (
            f"{share} of the budget estimates a range of the values, for which "
            f"{_many(n_rows, facts.adjacency)} is large enough; noise is proportional to it."
        )
    unit_rows = _of_one(facts.adjacency)
    strategies: tuple[CountMechanism, ...] = (Geometric(), Gaussian())
    if isinstance(guarantee, PureDP):
        strategies = strategies[:1]
    plans = [strategy.plan(facts, guarantee) for strategy in strategies]
    noises = [plan.noise_sd for plan in plans]
    if len(plans) == 1:
        place, reason = 0, "it needs no delta."
    else:
        priced = at_equal_price(noises, plans)
        place = priced.index(min(priced))
        second = strategies[1 - place].info.name
        reason = (
            f"{price_reason(noises, place)}its noise in a count has an sd of "
            f"{two_digits(unit_rows * noises[place])}; that of {second} would have "
            f"{two_digits(unit_rows * noises[1 - place])}."
        )
    best = strategies[place].info.name
    if not one_mean(facts):
        return best, reason
    # Of the sum of t - 1/2: half of one noise variable, or of the difference of two.
    unpaired_sd = noises[place] / math.sqrt(2)
    pair = Paired().plan(facts, guarantee)
    paired_sd = pair.noise_sd / 2
    unpaired, paired = at_equal_price([unpaired_sd, paired_sd], [plans[place], pair])
    if unpaired <= paired:
        return best, reason
    return "paired", (
        f"its noise in the sum has an sd of {two_digits(unit_rows * paired_sd)} ranges; that of "
        f"{best} would have {two_digits(unit_rows * unpaired_sd)}."
    )


def auto_margins(facts: MarginFacts, guarantee: Guarantee) -> tuple[str, str]:
    """Return the name of a mechanism for margins, and the reason."""
    if isinstance(guarantee, PureDP):
        return "marginals", "it needs no delta."
    unit_rows, sizes = _of_one(facts.adjacency), facts.sizes
    spread, plans = {}, {}
    for name, strategy in MARGINS.items():
        plan = plans[name] = strategy().plan(facts, guarantee)
        sds = dict(zip(plan.measured, plan.noise_sds, strict=True))
        variances = {term: sd**2 for term, sd in sds.items()}
        if name == "marginals":
            variances = fitted_variances(sds, sizes)
        cells = sum(math.prod(sizes[i] for i in term) for term in facts.terms)
        spread[name] = unit_rows * math.sqrt(all_cells(facts, variances) / cells)
    noises = list(spread.values())
    priced = at_equal_price(noises, list(plans.values()))
    place = priced.index(min(priced))
    best, second = list(spread)[place], list(spread)[1 - place]
    return best, (
        f"{price_reason(noises, place)}its noise in a cell has an sd of "
        f"{two_digits(spread[best])}; that of {second} would have {two_digits(spread[second])}."
    )


def two_digits(noise: float) -> str:
    """Write a noise to two digits, without powers of ten."""
    return f"{float(f'{noise:.2g}'):,.10g}"


def _percent(share: float) -> str:
    return "100%" if share > 0.995 else f"{100 * share:.2g}%"


def noise_loss(facts: Facts, sd: float) -> float:
    """Return the share of captured energy that a noisy matrix loses.

    `sd` is the noise of an entry of the covariance, rows in the unit ball.

    To first order noise turns the eigenvectors of two values with gap g by an angle of variance
    ``sd²/g²``, which loses g times it; with ``sd²/(g² + columns sd²)`` the sum over all pairs has
    the right limit, the loss of random directions, for large noise too.
    """
    gaps, captured = _gaps(facts)
    loss = float((gaps * sd**2 / (gaps**2 + facts.columns * sd**2)).sum())
    return _corrected(loss, gaps) / captured


def directions_loss(facts: Facts, concentration: float) -> float:
    """Return the share of captured energy that the exponential mechanism loses.

    The density is ``exp(concentration · energy)``, energy by row.

    The squared cosine of a drawn direction with a left-out eigenvector at gap g is about
    ``1/(b + 2 concentration g)``, with b such that all squared cosines of a direction have the sum
    1. Newton's steps find b from below.
    """
    gaps, captured = _gaps(facts)
    components = float(_wanted(facts))
    b = np.full((len(gaps), 1), components)
    for _ in range(12):
        cosines = 1 / (b + 2 * concentration * gaps)
        excess = components / b + cosines.sum(axis=1, keepdims=True) - 1
        b += excess / (components / b**2 + (cosines**2).sum(axis=1, keepdims=True))
    return _corrected(float((gaps / (b + 2 * concentration * gaps)).sum()), gaps) / captured


def _corrected(loss: float, gaps: Floats) -> float:
    """Raise a loss by `LATE` of its distance to that of random directions."""
    return loss * (1 + LATE * (1 - loss * sum(gaps.shape) / float(gaps.sum())))


def _wanted(facts: Facts) -> int:
    return facts.components or facts.columns


def _eigenvalues(facts: Facts) -> Floats:
    """Return the reference spectrum of rows of the unit sphere."""
    values = 1 / np.arange(1.0, facts.columns + 1)
    return np.asarray(values / values.sum())


def _gaps(facts: Facts) -> tuple[Floats, float]:
    """Return gaps between eigenvalues kept and left out, and the sum of those kept."""
    values, n_kept = _eigenvalues(facts), _wanted(facts)
    return values[:n_kept, None] - values[None, n_kept:], float(values[:n_kept].sum())


# Which mechanism counts cells that stand in an order, by public facts alone.
#
# Few bins are read one at a time, many in runs of them: in the count of a bin noise is the least
# where each has noise of its own, in sums over runs where sums were released. With V for the
# predicted noise variance of the mean range and v for that of a bin, the less of ``V √v`` is taken:
# a factor in the noise of ranges weighs twice as much as one in that of bins. Where each bin has
# its own noise V grows with the number of bins, else with a power of its logarithm. Running totals
# by a square root are among what is compared where the guarantee takes Gaussian noise.

# Bins that are read one at a time: a choice.
FEW = 40
# More cells are counted in runs if they have fewer rows on average than so many noise sds of a
# count. Choices, by uniform, smooth, spiky, sparse, rough and zero-inflated rows.
FEW_TO_POOL, POOLED_BELOW = 100, 1.75


class _Predicted(NamedTuple):
    """Noise variances of a way to count."""

    mean_range: float
    cell: float

    @property
    def weighed(self) -> float:
        return self.mean_range * math.sqrt(self.cell)


def auto_ordered(
    facts: CountFacts, guarantee: Guarantee, n_rows: int | None = None
) -> tuple[str, str]:
    """Return the name of a mechanism for cells in an order and the reason, as it is printed.

    `n_rows` is None where it is private or not known yet.
    """
    flat, plain = auto_counts(facts, guarantee)
    noise = COUNTS[flat]().plan(facts, guarantee).noise_sd
    cells = facts.shape[1]
    if cells <= FEW:
        return flat, plain
    if _few_rows(facts, noise, n_rows):
        return "partition", _reason_of_runs(facts)
    first = _Predicted(noise**2 * range_counts(cells, cells), noise**2)
    candidates = {"tree": _of_tree(facts, guarantee), "wavelet": _of_wavelets(facts, guarantee)}
    if cells <= MOST_CELLS and not isinstance(guarantee, PureDP):
        candidates["factorisation"] = _of_root(facts, guarantee)
    name = min(candidates, key=lambda candidate: candidates[candidate].weighed)
    best = candidates[name]
    if first.weighed <= best.weighed:
        return flat, plain
    unit_rows = 1 if facts.adjacency.rows == "mean" else facts.adjacency.places
    sds = (
        unit_rows * variance**0.5
        for variance in (best.mean_range, first.mean_range, best.cell, first.cell)
    )
    texts = [two_digits(sd) for sd in sds]
    return name, (
        f"with {cells:,} bins, sums of ranges matter most: in the mean range its noise sd is "
        f"{texts[0]} rows ({flat}: {texts[1]}), in a single bin {texts[2]} ({texts[3]})."
    )


def _few_rows(facts: CountFacts, noise: float, n_rows: int | None) -> bool:
    """Whether cells have fewer rows on average than the noise that each would have alone."""
    cells = math.prod(facts.shape)
    if n_rows is None or cells <= FEW_TO_POOL:
        return False
    return n_rows <= POOLED_BELOW * cells * noise


def _reason_of_runs(facts: CountFacts) -> str:
    return (
        f"there are few rows for noise in each of {math.prod(facts.shape):,} cells: it counts "
        "runs of cells, split where the rows are."
    )


def _of_tree(facts: CountFacts, guarantee: Guarantee) -> _Predicted:
    tree = Tree()
    plan = tree.plan(facts, guarantee)
    hierarchy, fanout = tree.above(plan)
    noise = plan.noise_sd**2
    cell_factor = 1 - 1 / fanout if hierarchy.starts else 1.0
    return _Predicted(noise * range_counts(facts.shape[1], fanout), noise * cell_factor)


def _of_wavelets(facts: CountFacts, guarantee: Guarantee) -> _Predicted:
    noise = Wavelet().plan(facts, guarantee).noise_sd ** 2
    return _Predicted(*(noise * variance for variance in mean_variances(facts.shape[1])))


def _of_root(facts: CountFacts, guarantee: Guarantee) -> _Predicted:
    noise = Factorisation().plan(facts, guarantee).noise_sd ** 2
    return _Predicted(*(noise * variance for variance in SquareRoot(facts.shape[1]).mean_variances))


# Which mechanism counts the cells of a plane, by public facts alone.
#
# As for cells in a row: with V for the predicted noise variance of the mean rectangle and v for
# that of a cell, the less of ``V √v`` is taken, and of few cells the one with less noise in each.

# Cells that are read one at a time: a choice.
FEW_CELLS = 64


def auto_plane(
    facts: CountFacts, guarantee: Guarantee, n_rows: int | None = None
) -> tuple[str, str]:
    """Return the name of a mechanism for cells in a plane and the reason, as for a line."""
    flat, plain = auto_counts(facts, guarantee)
    sides = facts.shape[1:]
    grid = Grid()
    plan = grid.plan(facts, guarantee)
    side, noise = grid.side_of(plan), COUNTS[flat]().plan(facts, guarantee).noise_sd
    if _few_rows(facts, noise, n_rows):
        return "partition", _reason_of_runs(facts)
    means = [
        sd * math.sqrt(rectangle_counts(sides, blocks))
        for sd, blocks in ((plan.noise_sd, side), (noise, max(sides)))
    ]
    grid_product, flat_product = (
        mean**2 * sd for mean, sd in zip(means, (plan.noise_sd, noise), strict=True)
    )
    if math.prod(sides) <= FEW_CELLS or flat_product <= grid_product:
        return flat, plain
    unit_rows = 1 if facts.adjacency.rows == "mean" else facts.adjacency.places
    texts = [two_digits(unit_rows * sd) for sd in (*means, plan.noise_sd, noise)]
    return "grid", (
        f"with {math.prod(sides):,} cells, sums of rectangles matter most: in the mean rectangle "
        f"its noise sd is {texts[0]} rows ({flat}: {texts[1]}), in a single cell about "
        f"{texts[2]} ({texts[3]})."
    )


# Which mechanism counts over time, by public facts alone: what has the quieter running totals.


def auto_running(facts: CountFacts, guarantee: Guarantee) -> tuple[str, str]:
    """Return the name of a mechanism for running totals and the reason, as it is printed."""
    if isinstance(guarantee, PureDP):
        return "tree", "it needs no delta."
    cells = facts.shape[1]
    if cells > MOST_CELLS:
        return "tree", f"{cells:,} periods are more than the {MOST_CELLS:,} of factorisation."
    unit_rows = 1 if facts.adjacency.rows == "mean" else facts.adjacency.places
    totals_sd = {
        "factorisation": unit_rows * _choose_running_of_root(facts, guarantee),
        "tree": unit_rows * _choose_running_of_tree(facts, guarantee),
    }
    best, second = sorted(totals_sd, key=lambda name: totals_sd[name])
    return best, (
        f"the root mean square noise in its running totals is {totals_sd[best]:.3g}; with "
        f"{second} it would be {totals_sd[second]:.3g}."
    )


def _choose_running_of_root(facts: CountFacts, guarantee: Guarantee) -> float:
    root = SquareRoot(facts.shape[1])
    total_variance = root.whole_variance(facts.shape[0])
    variances = _given_n(facts, root.prefix_variances, root.with_last, total_variance)
    return Factorisation().plan(facts, guarantee).noise_sd * math.sqrt(variances.mean())


def _choose_running_of_tree(facts: CountFacts, guarantee: Guarantee) -> float:
    tree = Tree()
    plan = tree.plan(facts, guarantee)
    hierarchy, _ = tree.above(plan)
    prefixes, added = prefix_variances(hierarchy)
    of_all = hierarchy.whole_variance
    total_variance = facts.shape[0] * of_all + 1
    variances = _given_n(facts, prefixes**2 * of_all + added, prefixes * of_all, total_variance)
    return plan.noise_sd * math.sqrt(variances.mean())


def _given_n(
    facts: CountFacts, variances: Floats, with_all: Floats, total_variance: float
) -> Floats:
    """Take off what a public number of rows tells, by covariances with the released one."""
    return variances - with_all**2 / total_variance if facts.adjacency.n_public else variances


# Which mechanism names candidates, by public facts alone: whose noise goes least far.
#
# Of m candidates the noise of one exceeds its scale times log m once, on average, where it is
# exponential, Gumbel or Laplace noise; of Gaussian noise that is a quantile.


def auto_selection(facts: SelectionFacts, guarantee: Guarantee) -> tuple[str, str]:
    """Return the name of a mechanism that names candidates and the reason, as it is printed.

    Of two that go as far the first is taken: the expected error of permute-and-flip is never above
    that of the exponential mechanism of the same eps.
    """
    if facts.threshold is not None:
        if isinstance(facts.score, LevelScore):
            return (
                "noisy_counts",
                "each row has one level, so that noise on all counts costs the least.",
            )
        return "sparse_vector", "candidates below the threshold cost no budget."
    width, size = facts.score.width(facts.adjacency), facts.score.size
    farthest = {
        mechanism.info.name: width / mechanism.plan(facts, guarantee).eps * math.log(size)
        for mechanism in (PermuteAndFlip(), Peeling())
    }
    if isinstance(facts.score, LevelScore):
        farthest[NoisyCounts.info.name] = reach(NoisyCounts().plan(facts, guarantee))
    best, second, *_ = sorted(farthest, key=lambda name: farthest[name])
    return best, (
        f"its noise in the ranking reaches {farthest[best]:.3g}; that of {second} would reach "
        f"{farthest[second]:.3g}."
    )
