"""Whether the parts of a result go together, where no annotation of a field can say it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from dpmodels.errors import FrameError
from dpmodels.formula.parse import MAX_ORDER, MAX_TERMS
from dpmodels.outside import LONGEST
from dpmodels.postprocess.halves import Halves
from dpmodels.postprocess.ordered import numbers
from dpmodels.postprocess.residuals import cells, components
from dpmodels.released import (
    AnswersRelease,
    AnyRelease,
    CellsRelease,
    CoefficientsRelease,
    CountsRelease,
    LevelsRelease,
    MarginsRelease,
    MomentsRelease,
    QuantilesRelease,
    RunsRelease,
    SelectionRelease,
    SubspaceRelease,
    SumsRelease,
)
from dpmodels.results.call import (
    CoefficientsCall,
    DescribedCall,
    MomentsCall,
    ScreenCall,
    TableCall,
)

# Of a coefficient's unit, whose square is a number too; bounds of variables are up to 1e100.
_SHORTEST = 1e-120


def sizes(result: Any) -> dict[str, int]:
    """Return the sizes of the dimensions of a result's arrays, as its facts imply them."""
    match result.call:
        case MomentsCall(names=names, ncomp=ncomp):
            model = getattr(result, "model", None)
            terms = len(names) - 1 + (model is not None and model.intercept)
            own = {"variable": len(names), "variable_": len(names), "component": ncomp}
            return {**own, "parameter": terms, "parameter_": terms}
        case CoefficientsCall(names=names, intercept=intercept, blocks=blocks):
            own = dict.fromkeys(("coefficient", "coefficient_"), len(names))
            own |= dict.fromkeys(("column", "column_"), len(names) * blocks)
            return {**own, **dict.fromkeys(("variable", "variable_"), len(names) - intercept)}
        case ScreenCall():
            return {"chosen": len(result.release.chosen)}
        case DescribedCall(tables=(first, *_) as tables):
            bins, probs = first.shape[-1:], getattr(result, "probs", ())
            groups = {"group": first.cells, "prob": len(probs), "place": 3}
            groups["count"] = _counts(result.release)
            groups |= _answers(result.release)
            groups["selected"] = len(getattr(result.release, "places", ()))
            groups["residual"] = _residuals(result)
            parts = sum(own.size for own in tables)
            match result.release:
                case SumsRelease() as sums:
                    parts = _sums(first, sums)
                case RunsRelease(sizes=steps):
                    parts = sum(steps)
            ends = {"edge": sum(bins) + 1, "edge_along": math.prod(first.shape[-2:-1]) + 1}
            return {"part": parts, **ends, **groups}
    raise FrameError("call.tables: expected one at least")


def _answers(release: Any) -> dict[str, int]:
    """Return how many strata and combinations of answers there are."""
    if not isinstance(release, AnswersRelease):
        return {}
    answers = math.prod(len(own.law) for own in release.channels)
    return {"stratum": len(release.strata) or 1, "answer": answers}


def _sums(facts: TableCall, release: SumsRelease) -> int:
    """Return how many sums of the cells of a table there are."""
    groups, *sides = release.shape or (0,)
    own = facts.shape[-len(sides) :] if sides else ()
    if tuple(sides) != own or groups * math.prod(own) != facts.cells or release.fanout < 2:
        raise FrameError("release.shape, release.fanout: not of a tree above such a table")
    return numbers(release)


def _counts(release: AnyRelease) -> int:
    """Return how many counts of cells, or of levels, there are."""
    match release:
        case CellsRelease(sizes=sizes):
            return sum(size + 1 for size in sizes)
        case LevelsRelease(levels=levels):
            return sum(map(len, levels))
    return 0


def _residuals(result: Any) -> int:
    """Return how many numbers the components of margins have; 0 where there are none."""
    if not isinstance(result.release, MarginsRelease):
        return 0
    tables = result.call.tables
    if len(tables) > MAX_TERMS or max(len(own.factors) for own in tables) > MAX_ORDER:
        raise FrameError(
            f"call.tables: expected {MAX_TERMS:,} margins of {MAX_ORDER} variables at most"
        )
    if any(len(own.factors) != len(own.levels) for own in tables):
        raise FrameError("call.tables: expected the levels of each variable")
    return sum(cells(part, result.held.sizes) for part in components(result.held.asked))


def require_together(result: Any) -> None:
    """Refuse a result whose call and release contradict themselves or each other."""
    call, release = result.call, result.release
    _require_terms(release)
    match call:
        case MomentsCall():
            _require_scaling(call)
        case DescribedCall():
            _require_tables(call)
    if type(release) in _OF_KIND:
        _OF_KIND[type(release)](call, release)


def _require_terms(release: AnyRelease) -> None:
    relation, joint = release.adjacency, getattr(release, "shared", None)
    if (release.rows is not None) != relation.n_public or not 0 <= (release.rows or 0) <= 2**53:
        raise FrameError(f"release.rows: not a number of rows as under {relation.name!r}")
    if joint is not None and min(joint.numbers, joint.size) < 0:
        raise FrameError("release.shared: expected numbers that are not negative")
    # Selections without values of their own have no noise.
    noised = not isinstance(release, SelectionRelease)
    if noised and getattr(release, "noise_sd", None) == 0:
        raise FrameError("release.noise_sd: expected a positive number")


def _require_scaling(call: MomentsCall) -> None:
    if not 1 <= call.ncomp <= len(call.names):
        raise FrameError(f"call.ncomp: expected a number from 1 to {len(call.names)}")
    if not (call.divisor >= 1 / LONGEST).all() or not (call.lower <= call.upper).all():
        raise FrameError("arrays 'lower', 'upper', 'divisor': no ranges, or no scaling of them")
    if not call.row_norm >= 1 / LONGEST:
        raise FrameError("call.row_norm: expected a positive number")
    if not (np.abs(call.box) <= LONGEST).all():
        raise FrameError(f"arrays 'origin', 'divisor': columns are not scaled within {LONGEST:g}")


def _require_tables(call: DescribedCall) -> None:
    for own in call.tables:
        if own.degree < 0 or not own.lower <= own.upper or 0 in own.shape:
            raise FrameError("call.tables: no table of levels and of a number's range")
        if own.clustered and own.degree != 2:
            raise FrameError("call.tables: persons in several cells, and not the parts of a mean")


def _require_moments(call: MomentsCall, release: MomentsRelease) -> None:
    if release.total is None and call.center:
        raise FrameError("array 'total' is missing: call.center says the mean was taken off")
    noise = release.noise
    others = (noise.count, noise.diagonal, 0.0 if release.total is None else noise.mean)
    lawful = not any(map(math.isnan, others))
    if not (math.isnan(noise.diagonal) if math.isnan(noise.off) else lawful):
        raise FrameError("release.noise: expected a law of all that was released, or of none")


def _require_coefficients(call: CoefficientsCall, release: CoefficientsRelease) -> None:
    if not (np.abs(call.matrix).max(axis=1, initial=0.0) >= _SHORTEST).all():
        raise FrameError(f"array 'matrix': expected a number from {_SHORTEST:g} up in each row")
    if release.gradient is not None and math.isnan(release.gradient_sd + release.coefficient_sd):
        raise FrameError("release: array 'gradient' is there, and nan for its noise or the rest's")
    bought = release.curvature
    laws = () if bought is None else (bought.bread_noise, bought.meat_noise)
    if any(math.isnan(law.diagonal + law.off) for law in laws):
        raise FrameError("release.curvature: bought, and the law of its noise has nan")
    if release.ball is not None and release.ball.axes is not None:
        raise FrameError("release.ball.axes: expected none for such a regression")
    if release.ball is not None and not release.ball.radius >= 1 / LONGEST:
        raise FrameError(f"release.ball.radius: expected a number from {1 / LONGEST:g} up")


def _require_variances(call: MomentsCall, release: SubspaceRelease) -> None:
    unknown = math.isnan(release.variance_sd) or math.isnan(release.count)
    if release.variances is not None and unknown:
        raise FrameError("release: variances were bought, without a number of rows or noise")


def _require_counts(
    call: DescribedCall, release: CountsRelease | SumsRelease | RunsRelease
) -> None:
    if release.step > 1:
        raise FrameError("release.step: expected a part of a row, at most 1")
    if isinstance(release, RunsRelease):
        _require_runs(call.tables[0], release)
    if not isinstance(release, CountsRelease):
        return
    if release.paired and len(release.values) != 4:
        raise FrameError("release.paired: expected false but for the mean of one number")
    held = release.held
    if held is not None and not held.lower < held.upper:
        raise FrameError("release.held: expected a range, its lower end first")


def _require_runs(facts: TableCall, release: RunsRelease) -> None:
    each = facts.shape[-1]
    if release.shape != (facts.cells // each, each):
        raise FrameError("release.shape: not that of the table")
    halves, cells = Halves(each), facts.cells
    told = zip(release.sizes, release.levels, release.noise_sds, strict=False)
    if not len(release.sizes) == len(release.levels) == len(release.noise_sds) or not all(
        size >= 0 and 0 <= level <= halves.lowest and noise_sd >= 1 / LONGEST
        for size, level, noise_sd in told
    ):
        raise FrameError("release.sizes, levels, noise_sds: not those of steps above such a table")
    *steps, last = np.split(release.starts, np.cumsum(release.sizes)[:-1])
    for starts, level in zip(steps, release.levels, strict=False):
        cell = np.clip(starts, 0, cells - 1).astype(np.int64)
        first = halves.firsts[level][halves.node(level, cell % each)] + cell // each * each
        if not (first == starts).all():
            raise FrameError("array 'starts': not the first cells of runs")
    if release.sizes[-1:] != (1,) or last != cells:
        raise FrameError("array 'starts': expected the incomplete rows last")


def _require_quantiles(call: DescribedCall, release: QuantilesRelease) -> None:
    if len(call.tables) != 1:
        raise FrameError("call.tables: expected one")
    if not (release.rank_sd > 0).all() or not (release.count_sd > 0).all():
        raise FrameError("arrays 'rank_sd', 'count_sd': expected positive numbers")


def _require_cells(call: DescribedCall, release: CellsRelease) -> None:
    if len(release.sizes) != 2 * len(call.tables) or min(release.sizes) < 1:
        raise FrameError("release.sizes: expected cells of each number in two rounds")
    if not min(release.noise_sds) >= 1 / LONGEST:
        raise FrameError(f"release.noise_sds: expected numbers from {1 / LONGEST:g} up")
    stops = np.cumsum([size + 1 for size in release.sizes])[:-1]
    for own, ends in zip((*call.tables, *call.tables), np.split(release.ends, stops), strict=True):
        if (ends[0], ends[-1]) != (own.lower, own.upper) or not (np.diff(ends) > 0).all():
            raise FrameError("array 'ends': not rising from one declared bound to the other")


def _require_levels(call: DescribedCall, release: LevelsRelease) -> None:
    if len(release.levels) != len(call.tables) or release.most < 1:
        raise FrameError("release.levels: expected those of each variable")
    if any(list(own) != sorted(set(own)) for own in release.levels):
        raise FrameError("release.levels: expected each once, sorted")
    if not release.scale >= 1 / LONGEST or not (release.values > release.most).all():
        raise FrameError("array 'values': expected numbers above release.most")


def _require_selected(call: DescribedCall, release: SelectionRelease) -> None:
    places = release.places
    if len(set(places)) != len(places) or not all(0 <= at < call.tables[0].cells for at in places):
        raise FrameError("release.places: expected candidates, each once")
    if release.values is not None and not (release.noise_sd > 0 and release.step <= 1):
        raise FrameError("release.noise_sd, release.step: expected a law of the values' noise")


# What each kind of release is held to, beside its call.
_OF_KIND: Final[Mapping[type[Any], Callable[[Any, Any], None]]] = {
    MomentsRelease: _require_moments,
    SubspaceRelease: _require_variances,
    CoefficientsRelease: _require_coefficients,
    CountsRelease: _require_counts,
    SumsRelease: _require_counts,
    RunsRelease: _require_counts,
    QuantilesRelease: _require_quantiles,
    CellsRelease: _require_cells,
    LevelsRelease: _require_levels,
    SelectionRelease: _require_selected,
}
