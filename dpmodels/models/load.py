"""``load``: a saved result back in hand, once its parts go together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any, Final

import numpy as np

from dpmodels.design import row_coder
from dpmodels.errors import DPModelsError, FrameError
from dpmodels.formula import Design, design
from dpmodels.formula.margins import margins
from dpmodels.formula.response import two_sided
from dpmodels.formula.sides import Sides, named, one_measured, sides
from dpmodels.formula.survival import survival
from dpmodels.formula.tally import Tally
from dpmodels.models.bounds import numbers
from dpmodels.models.describing import mean_tally, table_call
from dpmodels.models.fdr import require_screened
from dpmodels.models.held_columns import (
    NEAR,
    require_centred,
    require_coefficients,
    require_columns,
    require_linear,
    require_sets,
)
from dpmodels.models.hist import bins
from dpmodels.models.margins import margins_call
from dpmodels.models.overview import tables
from dpmodels.models.plane import in_plane, plane_bins
from dpmodels.models.quantile import checked_probs, grid_of
from dpmodels.models.select import columns, columns_call
from dpmodels.models.select import levels as selectable
from dpmodels.models.series import RUNNING, tallied, timed
from dpmodels.models.states import series_of, states_of
from dpmodels.models.survey import fit_call
from dpmodels.models.table import counted
from dpmodels.outside import LONGEST
from dpmodels.postprocess.residuals import components, largest
from dpmodels.privacy import Pufferfish
from dpmodels.results import (
    CCAResult,
    CovResult,
    MomentsResult,
    PCAResult,
    SubspaceResult,
    open_saved,
)
from dpmodels.results.base import checked_level
from dpmodels.results.bounds import BoundsResult
from dpmodels.results.call import CoefficientsCall, TableCall
from dpmodels.results.fdr import FDRResult
from dpmodels.results.glm import GLMResult
from dpmodels.results.groups import MeanResult, VarResult
from dpmodels.results.held_answers import require_answers, require_channel
from dpmodels.results.hist import HistResult
from dpmodels.results.levels import LevelsResult
from dpmodels.results.lm import LMResult
from dpmodels.results.margins import MarginsResult
from dpmodels.results.multinomial import MultinomialResult
from dpmodels.results.overview import OverviewResult
from dpmodels.results.plane import PlaneResult
from dpmodels.results.quantile import QuantileResult
from dpmodels.results.select import COUNT, GAIN, SelectResult
from dpmodels.results.series import SeriesResult
from dpmodels.results.states import StatesResult
from dpmodels.results.store import FORMAT, read_result
from dpmodels.results.survey import SurveyResult
from dpmodels.results.survey_fit import SurveyFitResult
from dpmodels.results.survfit import SurvfitResult
from dpmodels.results.svm import SVMResult
from dpmodels.results.table import TableResult
from dpmodels.results.ttest import TTestResult
from dpmodels.typing import Floats


def require_tables(result: Any) -> None:
    """Refuse a description whose tables are not those of the formula."""
    call = result.call
    both = sides(call.formula, call.codebook)
    if isinstance(result, HistResult):
        tally, ends, variable = bins(both, 2)
        expected = [_binned(result, table_call(tally), [(result.breaks, ends)])]
        _require_variables(same=result.variable == variable)
    elif isinstance(result, PlaneResult):
        if not in_plane(both):
            raise FrameError("call.formula: expected two numbers")
        tally, both_ends, variables = plane_bins(both, 2)
        own = list(zip((result.along, result.across), both_ends, strict=True))
        expected = [_binned(result, table_call(tally), own)]
        _require_variables(same=result.variables == variables)
    elif isinstance(result, SeriesResult):
        if result.release.sums not in RUNNING:
            raise FrameError("release.sums: no sums of counts over time")
        over = timed(call.formula, call.codebook, result.time, result.by)
        expected = [table_call(tallied(*over))]
    else:
        tallies = _tallies(result, both)
        expected = list(map(table_call, tallies))
        if isinstance(result, QuantileResult):
            _require_quantiles(result, tallies[0])
    _require_tables(result, expected)
    if isinstance(result, OverviewResult) and result.strata != len(both.groups):
        raise FrameError("strata: not as many as the formula groups by")
    if isinstance(result, OverviewResult) and result.tested and not both.groups:
        raise FrameError("tested: the formula has no groups that a test could compare")


def _require_tables(result: Any, expected: Sequence[TableCall]) -> None:
    found = result.call.tables
    if len(expected) != len(found) or not all(map(_same, expected, found)):
        raise FrameError("call.tables: not those of the formula")


def _tallies(result: Any, both: Sides) -> tuple[Tally, ...]:
    if isinstance(result, OverviewResult):
        return tables(both, result.release.adjacency)
    if isinstance(result, TableResult | SurveyResult):
        return (counted(both),)
    if isinstance(result, BoundsResult):
        return numbers(both)
    if isinstance(result, SelectResult):
        return (selectable(both),)
    number, factors = one_measured(both, "the result")
    if isinstance(result, QuantileResult):
        return (Tally(factors, number),)
    two = [len(factor.levels) for factor in factors] in ([], [2])
    if isinstance(result, TTestResult) and not two:
        raise FrameError("call.formula: a t-test compares two groups, or one mean with a number")
    if isinstance(result, VarResult):
        return (Tally(factors, number, 4),)
    return (mean_tally(result.release.adjacency, factors, number),)


def _binned(
    result: Any, facts: TableCall, bins: list[tuple[Floats, tuple[float, ...]]]
) -> TableCall:
    """Return a table whose last factors are bins, with the names of these that the file has."""
    names = result.call.tables[0].levels[-len(bins) :]
    for own, (breaks, ends) in zip(names, bins, strict=False):
        if len(set(own)) + 1 != len(breaks) or not all(isinstance(name, str) for name in own):
            raise FrameError("breaks: not as many as there are bins, and one")
        slack = NEAR * (ends[-1] - ends[0])
        held = ends[0] - slack <= breaks[0] and breaks[-1] <= ends[-1] + slack
        if not held or not (np.diff(breaks) > 0).all():
            raise FrameError("breaks: not increasing, or outside the declared range")
    return replace(facts, levels=(*facts.levels[: -len(bins)], *names))


def _require_variables(*, same: bool) -> None:
    if not same:
        raise FrameError("variable: not that of the formula")


def _require_quantiles(result: QuantileResult, grouped: Tally) -> None:
    checked_probs(result.probs)
    if result.level is not None:
        checked_level(result.level)
    if result.grid != grid_of(grouped).cells:
        raise FrameError("grid: not the number of cells of such a quantile")


def _same(expected: TableCall, found: TableCall) -> bool:
    ends = np.allclose(
        [found.lower, found.upper], [expected.lower, expected.upper], rtol=NEAR, atol=0
    )
    return bool(ends) and replace(found, lower=expected.lower, upper=expected.upper) == expected


Means = MeanResult | VarResult | TTestResult
Described = (
    Means
    | QuantileResult
    | SeriesResult
    | HistResult
    | TableResult
    | OverviewResult
    | BoundsResult
    | LevelsResult
    | MarginsResult
    | SelectResult
    | SurvfitResult
)
Surveyed = SurveyResult | SurveyFitResult
Components = PCAResult | SubspaceResult
Result = (
    Components
    | CovResult
    | MomentsResult
    | CCAResult
    | LMResult
    | GLMResult
    | MultinomialResult
    | SVMResult
    | Described
    | Surveyed
    | FDRResult
)


def load(path: str | PathLike[str]) -> Result:
    """Read a result that ``fit.save(path)`` wrote.

    Parameters
    ----------
    path : path
        A netCDF file.

    Returns
    -------
    the result that was saved
        Prints the same tables and codes public rows like the one saved.

    Raises
    ------
    FrameError
        If the file is missing, was not written by ``save``, was changed, is of
        an earlier version, or says what does not go together; the message
        names the first fault.

    Notes
    -----
    A digest in the file shows damage and careless change. It is no signature:
    who can change a file can write the digest too. What a file says of privacy
    is as true as whoever it comes from.

    Examples
    --------
    >>> import os, tempfile
    >>> import dpmodels as dp
    >>> book = dp.codebook(a=(0, 1), b=(0, 1))
    >>> rows = {"a": [0.2, 0.7] * 50, "b": [0.1, 0.9] * 50}
    >>> fit = dp.dp_pca("~ a + b", rows, codebook=book, eps=1.0, delta=1e-6)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "fit.nc")
    ...     fit.save(path)
    ...     again = dp.load(path)
    >>> str(again.summary()) == str(fit.summary())
    True
    """
    saved = open_saved(path, FORMAT)
    try:
        result = read_result(saved, RESULTS)
        held: Result = RESULTS[type(result)](result)
        return held
    except DPModelsError as error:
        raise FrameError(f"{str(path)!r} is no result that can be used: {error}") from None


def _columns(result: Any) -> Any:
    """Attach the coder of a formula's rows, once the columns are known to be the formula's."""
    own = design(result.call.formula, result.call.codebook)
    require_columns(result.call, own)
    return replace(result, coder=row_coder(own))


def _moments(result: MomentsResult) -> MomentsResult:
    require_centred(result)
    return replace(result, coders=row_coder)


def _terms(require: Callable[[Any], Design], result: Any) -> Any:
    """Attach the coder of the right-hand side, where it has terms."""
    terms = require(result)
    return replace(result, coder=row_coder(terms) if terms.names else None)


def _described(result: Any) -> Any:
    require_tables(result)
    return result


def _bounded(result: BoundsResult) -> BoundsResult:
    for name in result.names:
        if result.declared.get(name) != result.call.codebook[name]:
            raise FrameError(f"declared: {name!r} is not as in call.codebook")
    require_tables(result)
    return result


def _levelled(result: LevelsResult) -> LevelsResult:
    _, names = named(result.call.formula, result.declared)
    if result.call.tables != tuple(TableCall((), (), measured=name) for name in names):
        raise FrameError("call.tables: not the variables of the formula")
    result.codebook  # noqa: B018
    return result


def _selected(result: SelectResult) -> SelectResult:
    release, asked, call = result.release, result.asked, result.call
    if result.score == COUNT:
        require_tables(result)
    else:
        (expected,) = columns_call(columns(call.formula, call.codebook)).tables
        if len(call.tables) != 1 or not _same(expected, call.tables[0]):
            raise FrameError("call.tables: not the columns of the formula")
        bought = {own is None for own in (release.values, release.scatters, release.response)}
        if release.count is None or release.least is None or len(bought) > 1:
            raise FrameError("release: the number of rows or moments of columns are missing")
        if (result.score == GAIN) != (release.slopes is not None):
            raise FrameError("release.slopes: expected coefficients where columns are of most gain")
    if not 1 <= asked <= result.ncandidates or len(release.places) > asked:
        raise FrameError("asked: expected the number that was to be named, of the candidates")
    if result.threshold is None and len(release.places) != asked:
        raise FrameError("release.places: not as many as were asked for")
    return result


def _answered(result: SurveyResult) -> SurveyResult:
    require_tables(result)
    require_answers(result)
    return result


def _surveyed(result: SurveyFitResult) -> SurveyFitResult:
    both = two_sided(result.call.formula, result.call.codebook)
    expected = fit_call(both, result.call.codebook)
    if _plain(expected) != _plain(result.call):
        raise FrameError("call: not that of the formula")
    require_channel(result.release.channel, 2)
    return replace(result, coder=row_coder(both.terms) if both.terms.names else None)


def _followed(result: SurvfitResult) -> SurvfitResult:
    own = survival(result.call.formula, result.call.codebook)
    _require_tables(result, [table_call(own.tally((own.time.lower, *result.ends))[0])])
    return result


def _plain(call: CoefficientsCall) -> tuple[object, ...]:
    """Return what a regression of answers says of its formula."""
    scaled = np.array_equal(call.matrix, np.eye(len(call.names)))
    return call.names, call.response, call.levels, call.family, scaled


def _states(result: StatesResult) -> StatesResult:
    both, over = series_of(result.call.formula, result.call.codebook, result.time)
    own, release = table_call(states_of(both)), result.release
    if result.call.tables != (own,):
        raise FrameError("call.tables: not that of the formula")
    budget, quilt = release.guarantee, release.quilt
    if not isinstance(budget, Pufferfish) or quilt is None:
        raise FrameError("release.guarantee, release.quilt: expected those of a Pufferfish release")
    budget.model.ordered(own.levels[0])
    needed = budget.active(len(over)).scale
    if not math.isclose(quilt.scale, needed, rel_tol=NEAR):
        raise FrameError("release.quilt: not that of the guarantee and so many times")
    return result


def _margins(result: MarginsResult) -> MarginsResult:
    own = margins(result.call.formula, result.call.codebook)
    if result.call.tables != margins_call(own).tables:
        raise FrameError("call.tables: not the margins of the formula")
    release = result.release
    noised = components(own.terms)[int(release.rows is not None) :]
    expected = len(noised if release.law == "gaussian" else largest(own.terms))
    if len(release.noise_sds) != expected or not min(release.noise_sds) >= 1 / LONGEST:
        raise FrameError(f"release.noise_sds: expected {expected} numbers from {1 / LONGEST:g} up")
    return result


# What is held against the formula, and given back what code it needs, in each kind of result.
RESULTS: Final[Mapping[type[Any], Callable[[Any], Any]]] = {
    PCAResult: _columns,
    SubspaceResult: _columns,
    CovResult: _columns,
    MomentsResult: _moments,
    CCAResult: require_sets,
    FDRResult: require_screened,
    LMResult: partial(_terms, require_linear),
    GLMResult: partial(_terms, require_coefficients),
    MultinomialResult: partial(_terms, require_coefficients),
    SVMResult: partial(_terms, require_coefficients),
    MeanResult: _described,
    VarResult: _described,
    TTestResult: _described,
    QuantileResult: _described,
    SeriesResult: _described,
    HistResult: _described,
    PlaneResult: _described,
    TableResult: _described,
    StatesResult: _states,
    OverviewResult: _described,
    BoundsResult: _bounded,
    LevelsResult: _levelled,
    SelectResult: _selected,
    SurveyResult: _answered,
    SurveyFitResult: _surveyed,
    SurvfitResult: _followed,
    MarginsResult: _margins,
}
