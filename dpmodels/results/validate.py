"""Checks that a release from a file belongs to its request, beyond annotations of fields.

The public facts of the request are computed before; they imply the sizes of a release's arrays, and
constraints on its numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING, Final

import numpy as np

from dpmodels import released
from dpmodels.errors import FrameError
from dpmodels.external_files import LONGEST, fields_of
from dpmodels.postprocess.graphical.model import MOST_CELLS
from dpmodels.postprocess.ordered import numbers
from dpmodels.postprocess.pooled_counts import Halves
from dpmodels.postprocess.residuals import Term, cells, components, largest
from dpmodels.privacy import Pufferfish
from dpmodels.request import Request
from dpmodels.results.call import (
    AnyCall,
    CoefficientsCall,
    DescribedCall,
    MomentsCall,
    ScreenCall,
    Spec,
    TableCall,
)
from dpmodels.results.margin import ReleasedMargins
from dpmodels.results.store import arrays_of, part_at

if TYPE_CHECKING:
    from dpmodels.released import Released

# How far from 1 the sum of a law may be, as its entries are rounded.
_TOLERANCE: Final = 1e-9


def require_release(spec: Spec[object], release: object) -> None:
    """Refuse a release of another request, of other sizes, or that contradicts itself."""
    request, call = spec.request, spec.call
    assert request is not None
    # Nothing of the release is read yet: its class alone determines the class of the result.
    kind: object = type(spec.result(call, release))
    if not isinstance(release, fields_of(kind, "release")["release"]):
        raise FrameError(f"release: {type(release).__name__} is not a release of the request")
    _require_terms(request, release)
    _require_shapes(release, {**_sizes(call, release), **spec.sizes})
    _OF_KIND[type(release)](call, release)
    spec.check(release)


def require_law(release: released.MomentsRelease) -> None:
    """Refuse moments without a known law of their noise."""
    if release.total is None or not all(map(math.isfinite, astuple(release.noise))):
        raise FrameError("array 'total', release.noise: expected both, without nan")


def _require_shapes(release: Released, sizes: Mapping[str, int]) -> None:
    kind: object = type(release)
    for path, dims in arrays_of(kind):
        values = part_at(release, path)
        if values is None:
            continue
        if unknown := [dim for dim in dims if dim not in sizes]:
            raise FrameError(f"release: the request has no array by {unknown[0]}")
        expected, shape = tuple(sizes[dim] for dim in dims), values.shape
        if shape != expected:
            raise FrameError(f"array {path[-1]!r}: expected the shape {expected}, found {shape}")


def _sizes(call: AnyCall, release: Released) -> dict[str, int]:
    """Return the sizes of the dimensions of a release's arrays, as public facts imply them."""
    match call:
        case MomentsCall(names=names, ncomp=ncomp):
            return {"variable": len(names), "variable_": len(names), "component": ncomp}
        case CoefficientsCall(names=names, intercept=intercept, blocks=blocks):
            sizes = dict.fromkeys(("coefficient", "coefficient_"), len(names))
            sizes |= dict.fromkeys(("column", "column_"), len(names) * blocks)
            return sizes | dict.fromkeys(("variable", "variable_"), len(names) - intercept)
        case ScreenCall():
            return {"chosen": len(getattr(release, "chosen", ()))}
    return _table_sizes(call, release)


def _table_sizes(call: DescribedCall, release: Released) -> dict[str, int]:
    first = call.tables[0]
    sizes = {"group": first.cells, "place": 3, "part": sum(table.size for table in call.tables)}
    match release:
        case released.SumsRelease():
            sizes["part"] = _sums(first, release)
        case released.RunsRelease(sizes=steps):
            sizes["part"] = sum(steps)
        case released.CellsRelease(sizes=steps):
            sizes["count"] = sum(size + 1 for size in steps)
        case released.LevelsRelease(levels=levels):
            sizes["count"] = sum(map(len, levels))
        case released.AnswersRelease(strata=strata):
            sizes["answer"] = _n_answers(first, release)
            sizes["stratum"] = len(strata) or 1
        case released.SelectionRelease(places=places):
            sizes["selected"] = len(places)
        case released.GraphRelease(margins=rounds):
            shape = _shape_of_graph(call, release)
            sizes["residual"] = sum(_residual_cells(terms, shape) for terms in rounds)
        case released.MarginsRelease():
            margins = ReleasedMargins(call, release)
            sizes["residual"] = _residual_cells(margins.terms, margins.sizes)
    return sizes


def _residual_cells(terms: Sequence[Term], shape: Sequence[int]) -> int:
    return sum(cells(part, shape) for part in components(terms))


def _n_answers(facts: TableCall, release: released.AnswersRelease) -> int:
    """Return the number of combinations of answers; of a bit for each level, two for each."""
    laws = [len(channel.law) for channel in release.channels]
    if not release.unary:
        return math.prod(laws)
    if laws != [2] or len(facts.shape) != 1:
        raise FrameError("release.channels: expected that of one bit, for one question")
    return 2 * facts.cells


def _sums(facts: TableCall, release: released.SumsRelease) -> int:
    groups, *sides = release.shape or (0,)
    table_shape = facts.shape[-len(sides) :] if sides else ()
    is_table = tuple(sides) == table_shape and groups * math.prod(table_shape) == facts.cells
    if not is_table or release.fanout < 2:
        raise FrameError("release.shape, release.fanout: not of a tree above such a table")
    return numbers(release)


def _require_terms(request: Request, release: released.AnyRelease) -> None:
    stated = ["guarantee"]
    # For a chain of states, adjacency only has the number of a person's rows.
    if not isinstance(request.guarantee, Pufferfish):
        stated.append("adjacency")
    # A file of the first format has no declarations of the variables of a condition.
    if request.subset is not None:
        stated.append("subset")
    for name in stated:
        if getattr(release, name) != getattr(request, name):
            raise FrameError(f"release.{name}: not that of the request")
    relation, joint = release.adjacency, getattr(release, "shared", None)
    if (release.rows is not None) != relation.n_public or not 0 <= (release.rows or 0) <= 2**53:
        raise FrameError(f"release.rows: not a number of rows as under {relation.name!r}")
    if joint is not None and min(joint.numbers, joint.size) < 0:
        raise FrameError("release.shared: expected numbers that are not negative")
    # Selections without values of their own have no noise.
    noised = not isinstance(release, released.SelectionRelease)
    if noised and getattr(release, "noise_sd", None) == 0:
        raise FrameError("release.noise_sd: expected a positive number")


def _require_moments(call: MomentsCall, release: released.MomentsRelease) -> None:
    box = call.held_in(release.ball).box
    if not (np.abs(box) <= LONGEST).all():
        raise FrameError(f"release.ball: columns are not scaled within {LONGEST:g}")
    if release.total is None and call.center:
        raise FrameError("array 'total' is missing: call.center says the mean was taken off")
    noise = release.noise
    sds = (noise.count, noise.diagonal, 0.0 if release.total is None else noise.mean)
    lawful = not any(map(math.isnan, sds))
    if not (math.isnan(noise.diagonal) if math.isnan(noise.off) else lawful):
        raise FrameError("release.noise: expected a law of all that was released, or of none")


def _require_coefficients(call: CoefficientsCall, release: released.CoefficientsRelease) -> None:
    if release.gradient is not None and math.isnan(release.gradient_sd + release.coefficient_sd):
        raise FrameError("release: array 'gradient' is there, and a noise sd is nan")
    curvature = release.curvature
    laws = () if curvature is None else (curvature.bread_noise, curvature.meat_noise)
    if any(math.isnan(law.diagonal + law.off) for law in laws):
        raise FrameError("release.curvature: bought, and a noise sd is nan")
    if curvature is not None:
        _require_path(curvature)
    axes = None if release.ball is None else release.ball.axes
    has_axes = call.family in ("binomial", "poisson")
    if axes is not None and (not has_axes or np.linalg.matrix_rank(axes) < len(axes)):
        raise FrameError("release.ball.axes: expected none for such a regression")
    if release.ball is not None and not release.ball.radius >= 1 / LONGEST:
        raise FrameError(f"release.ball.radius: expected a number from {1 / LONGEST:g} up")
    tuning = release.tuning
    if tuning is not None and release.ridge != dict(enumerate(tuning.ridges)).get(tuning.chosen):
        raise FrameError("release.tuning: the ridge is not the one that was chosen")


def _require_path(curvature: released.BoughtCurvature) -> None:
    parts = (curvature.first, curvature.first_noise, curvature.end)
    if len({part is None for part in parts}) > 1:
        raise FrameError("release.curvature: expected first, first_noise and end, or none of them")
    has_score = curvature.score is not None
    has_end = curvature.end is not None
    if has_score is (curvature.score_sd is None) or (has_score and not has_end):
        raise FrameError("release.curvature: expected score, score_sd and end, or no score")
    noise = curvature.first_noise
    if noise is not None and math.isnan(noise.diagonal + noise.off):
        raise FrameError("release.curvature: first was bought, and a noise sd is nan")


def _require_variances(call: MomentsCall, release: released.SubspaceRelease) -> None:
    unknown = math.isnan(release.variance_sd) or math.isnan(release.count)
    if release.variances is not None and unknown:
        raise FrameError("release: variances were bought, without a number of rows or noise")


def _require_counts(
    call: DescribedCall,
    release: released.CountsRelease | released.SumsRelease | released.RunsRelease,
) -> None:
    if release.step > 1:
        raise FrameError("release.step: expected a part of a row, at most 1")
    if isinstance(release, released.RunsRelease):
        _require_runs(call.tables[0], release)
    if not isinstance(release, released.CountsRelease):
        return
    if release.paired and len(release.values) != 4:
        raise FrameError("release.paired: expected false but for the mean of one number")
    limits = release.held
    if limits is not None and not limits.lower < limits.upper:
        raise FrameError("release.held: expected a range, its lower end first")
    points = None if limits is None else limits.points
    if points is not None and not (len(points) > 2 and 0 <= points[0] < points[1] <= 1):
        raise FrameError("release.held: expected the ends of a range first among its points")


def _require_runs(facts: TableCall, release: released.RunsRelease) -> None:
    sides = facts.shape[1 - len(release.shape) :] if len(release.shape) in (2, 3) else ()
    n_bins = math.prod(sides)
    if release.shape != (facts.cells // n_bins, *sides):
        raise FrameError("release.shape: not that of the table")
    halves, cells = Halves(n_bins), facts.cells
    are_steps = len(release.sizes) == len(release.levels) == len(release.noise_sds)
    are_steps = are_steps and all(0 <= level <= halves.lowest for level in release.levels)
    has_sizes = all(size >= 0 for size in release.sizes)
    if not (are_steps and has_sizes and all(sd >= 1 / LONGEST for sd in release.noise_sds)):
        raise FrameError("release.sizes, levels, noise_sds: not those of steps above such a table")
    *steps, last = np.split(release.starts, np.cumsum(release.sizes)[:-1])
    for starts, level in zip(steps, release.levels, strict=False):
        cell = np.clip(starts, 0, cells - 1).astype(np.int64)
        first = halves.firsts[level][halves.node(level, cell % n_bins)] + cell // n_bins * n_bins
        if not (first == starts).all():
            raise FrameError("array 'starts': not the first cells of runs")
    if release.sizes[-1:] != (1,) or last != cells:
        raise FrameError("array 'starts': expected the incomplete rows last")


def _require_quantiles(call: DescribedCall, release: released.QuantilesRelease) -> None:
    if not (release.rank_sd > 0).all() or not (release.count_sd > 0).all():
        raise FrameError("arrays 'rank_sd', 'count_sd': expected positive numbers")


def _require_cells(call: DescribedCall, release: released.CellsRelease) -> None:
    if len(release.sizes) != 2 * len(call.tables) or min(release.sizes) < 1:
        raise FrameError("release.sizes: expected cells of each number in two rounds")
    if not min(release.noise_sds) >= 1 / LONGEST:
        raise FrameError(f"release.noise_sds: expected numbers from {1 / LONGEST:g} up")
    stops = np.cumsum([size + 1 for size in release.sizes])[:-1]
    for table, ends in zip(call.tables * 2, np.split(release.ends, stops), strict=True):
        if (ends[0], ends[-1]) != (table.lower, table.upper) or not (np.diff(ends) > 0).all():
            raise FrameError("array 'ends': not rising from one declared bound to the other")


def _require_levels(call: DescribedCall, release: released.LevelsRelease) -> None:
    if len(release.levels) != len(call.tables) or release.most < 1:
        raise FrameError("release.levels: expected those of each variable")
    if any(list(levels) != sorted(set(levels)) for levels in release.levels):
        raise FrameError("release.levels: expected each once, sorted")
    if not release.scale >= 1 / LONGEST or not (release.values > release.most).all():
        raise FrameError("array 'values': expected numbers above release.most")


def _require_selected(call: DescribedCall, release: released.SelectionRelease) -> None:
    places = release.places
    if len(set(places)) != len(places) or not all(0 <= at < call.tables[0].cells for at in places):
        raise FrameError("release.places: expected candidates, each once")
    if release.values is not None and not (release.noise_sd > 0 and release.step <= 1):
        raise FrameError("release.noise_sd, release.step: expected a law of the values' noise")


def _require_screened(
    call: ScreenCall, release: released.ScreenedRelease | released.PValuesRelease
) -> None:
    chosen = release.chosen.tolist()
    is_distinct = bool(chosen) and len(set(chosen)) == len(chosen)
    if not is_distinct or not set(chosen) <= {*range(len(call.names))}:
        raise FrameError("release.chosen: not columns of the formula, each once")
    if not abs(release.centre) <= 1:
        raise FrameError("release.centre: expected a number from -1 to 1")


def _require_margins(call: DescribedCall, release: released.MarginsRelease) -> None:
    terms = ReleasedMargins(call, release).terms
    noised = components(terms)[int(release.rows is not None) :]
    expected = len(noised if release.law == "gaussian" else largest(terms))
    _require_noise_sds(release, expected)


def _require_noise_sds(
    release: released.MarginsRelease | released.GraphRelease, expected: int
) -> None:
    if len(release.noise_sds) != expected or not min(release.noise_sds) >= 1 / LONGEST:
        raise FrameError(f"release.noise_sds: expected {expected} numbers from {1 / LONGEST:g} up")


def _shape_of_graph(call: DescribedCall, release: released.GraphRelease) -> tuple[int, ...]:
    """Return the levels of each column; FrameError if a margin is not one of some columns."""
    shape = tuple(len(table.levels[0]) + 1 for table in call.tables)
    terms = [term for terms in release.margins for term in terms]
    is_valid = 1 <= len(release.margins) <= 2 and all(release.margins)
    for term in terms:
        inside = set(term) <= {*range(len(shape))} and tuple(sorted(set(term))) == term
        is_valid = is_valid and bool(term) and inside and cells(term, shape) <= MOST_CELLS
    if not is_valid:
        raise FrameError("release.margins: expected margins of the columns, in one or two rounds")
    return shape


def _require_graph(call: DescribedCall, release: released.GraphRelease) -> None:
    n_public = int(release.rows is not None)
    _require_noise_sds(release, sum(len(components(terms)) - n_public for terms in release.margins))


def _require_answers(call: DescribedCall, release: released.AnswersRelease) -> None:
    facts = call.tables[0]
    row_channels = [channel for channel in release.channels[:1] if len(channel.law) > facts.cells]
    sizes = (facts.cells + 1,) if row_channels else (2,) if release.unary else facts.shape
    if len(release.channels) != len(sizes):
        raise FrameError("release.channels: expected one a question")
    for channel, size in zip(release.channels, sizes, strict=True):
        _require_channel(channel, size)
    weights = [values for values in (release.weights, release.squares) if values is not None]
    if len(weights) == 1 or not all((values >= 0).all() for values in (release.values, *weights)):
        raise FrameError("arrays 'values', 'weights', 'squares': expected sums of weights")
    if release.shares is not None and len(release.shares) != len(release.strata):
        raise FrameError("release.shares: expected one a stratum")
    if release.incomplete < 0:
        raise FrameError("release.incomplete: expected a number of respondents")


def _require_channel(channel: released.Channel, size: int) -> None:
    """Refuse what is not the channel of a question with so many levels."""
    is_law = abs(math.fsum(channel.law) - 1) < _TOLERANCE if channel.how else channel.truth == 1
    is_law = is_law and len(channel.law) == size and min(channel.law) >= 0
    if not is_law or not 0 < channel.truth <= 1:
        raise FrameError("release: a channel is not that of a device of its question")


# What each kind of release has to satisfy, with the public facts of its request.
_OF_KIND: Final[Mapping[type[object], Callable[..., None]]] = {
    released.MomentsRelease: _require_moments,
    released.SubspaceRelease: _require_variances,
    released.CoefficientsRelease: _require_coefficients,
    released.CountsRelease: _require_counts,
    released.SumsRelease: _require_counts,
    released.RunsRelease: _require_counts,
    released.QuantilesRelease: _require_quantiles,
    released.CellsRelease: _require_cells,
    released.LevelsRelease: _require_levels,
    released.SelectionRelease: _require_selected,
    released.ScreenedRelease: _require_screened,
    released.PValuesRelease: _require_screened,
    released.MarginsRelease: _require_margins,
    released.GraphRelease: _require_graph,
    released.AnswersRelease: _require_answers,
    released.AnswersFitRelease: lambda call, release: _require_channel(release.channel, 2),
}
