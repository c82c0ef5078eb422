"""``load``: a saved result, computed again from its request and its release."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from os import PathLike
from types import MappingProxyType
from typing import Any, Final, NamedTuple, get_args

import numpy as np

from dpmodels.arguments import checked_keywords
from dpmodels.codebook import Codebook
from dpmodels.dates import text_of_day
from dpmodels.errors import DPModelsError, FrameError
from dpmodels.external_files import LONGEST, Shape, array, conform, fields_of, one_of
from dpmodels.formula.functions import by_whole_numbers
from dpmodels.formula.sides import measured, one_measured, parse_sides
from dpmodels.formula.survival import parse_survival
from dpmodels.formula.values import Real
from dpmodels.models.release import result_of, specified
from dpmodels.released import AnswersRelease, AnyRelease, CountsRelease
from dpmodels.request import Request
from dpmodels.results import open_saved
from dpmodels.results.call import CoefficientsCall, DescribedCall, MomentsCall, ScreenCall
from dpmodels.results.store import FORMAT, Saved, arrays_of, read_release, replay, with_arrays
from dpmodels.typing import Floats, Plain


@checked_keywords("dp.load")
def load(path: str | PathLike[str]) -> Any:
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
        If the file is missing, was not written by ``save``, was changed, is of an earlier version,
        or is inconsistent; the message names the first fault.

    Notes
    -----
    A digest in the file detects damage and careless changes. It does not sign the file: who can
    change a file can write the digest too. Trust a file's statements on privacy as far as its
    author.

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
    saved = open_saved(path, FORMAT, FORMAT_1)
    try:
        return replay(saved) if saved.format == FORMAT else result_of_format_1(saved)
    except DPModelsError as error:
        raise FrameError(f"{str(path)!r} is not a usable result: {error}") from None


# Results saved in the first format of files, read as the requests that they were made by.
#
# That format had every field of a result. The request follows from these, and is replayed as any
# other. Of a part of a joint release only its own columns are in the file: it prints as it did, and
# has no request.

FORMAT_1: Final = "dpmodels.result/1"

# Fields of a file of format 1, by name; their content depends on the verb.
Fields = Mapping[str, Plain]
Options = Callable[..., Fields]
_NO_FIELDS: Final[Mapping[str, Shape]] = MappingProxyType({})
# Ranges are worked out by functions that may differ in their last bits between machines.
_NEAR: Final = 1e-9


class Kind(NamedTuple):
    """The verb of a kind of result, the facts of its call, its other fields, and its words."""

    verb: str
    call: type[object]
    options: Options = lambda call, release, fields: {}
    fields: Mapping[str, Shape] = _NO_FIELDS


def result_of_format_1(saved: Saved) -> object:
    """Return the result of a file in the first format."""
    call, release, kind, fields = _read(saved)
    request = Request(
        kind.verb,
        call.formula,
        fields.get("declared", call.codebook),
        release.guarantee,
        release.adjacency,
        kind.options(call, release, fields),
    )
    spec = specified(request, release)
    part = bool(getattr(call, "part_of", ""))
    norm = None if part else _row_norm(getattr(spec.call, "row_norm", None), call, release)
    if norm is not None:
        request = replace(request, options={**request.options, "row_norm": norm})
        spec = specified(request, release)
    result = result_of(request, spec, release, call.ledger, call.reason)
    return replace(result, call=_part_of(result.call, call)) if part else result


def _read(saved: Saved) -> tuple[Any, Any, Kind, Fields]:
    plain: dict[str, object] = dict(saved.facts) if isinstance(saved.facts, dict) else {}
    kind = KINDS[conform(one_of(*KINDS), plain.pop("kind", None), "kind")]
    arrays, facts = dict(saved.arrays), plain.pop("release", None)
    call = with_arrays(kind.call, plain.pop("call", None), arrays)
    names = set(facts) if isinstance(facts, dict) else set()
    form: object = max(get_args(AnyRelease), key=lambda form: len(names & {*fields_of(form)}))
    call_kind: object = kind.call
    array_names = {path[-1] for path, _ in arrays_of(call_kind)}
    plain |= {name: arrays[name] for name in kind.fields.keys() & arrays.keys()}
    rest = {name: arrays[name] for name in arrays.keys() - array_names - kind.fields.keys()}
    release = read_release(form, facts, rest)
    return conform(kind.call, call, "call"), release, kind, conform(kind.fields, plain, "")


def _part_of(expected: MomentsCall, call: MomentsCall) -> MomentsCall:
    """Return the facts of some columns of a joint release, which scaled them together."""
    sizes = {values.shape for values in (call.origin, call.divisor, expected.lower)}
    if len(sizes) > 1 or not (call.divisor >= 1 / LONGEST).all():
        raise FrameError("arrays 'origin', 'divisor': not a scaling of the columns")
    names = ("origin", "divisor", "row_norm", "worst_case", "part_of")
    part = replace(expected, **{name: getattr(call, name) for name in names})
    if not (np.abs(part.box) <= LONGEST).all():
        raise FrameError(f"arrays 'origin', 'divisor': columns are not scaled within {LONGEST:g}")
    return part


def _row_norm(default_norm: float | None, call: Any, release: object) -> float | None:
    """Return the option row_norm= where rows were clipped to less than the codebook allows."""
    has_ball = isinstance(call, MomentsCall) and getattr(release, "ball", None) is not None
    if default_norm is None or has_ball:
        return None
    is_default = math.isclose(default_norm, call.row_norm, rel_tol=_NEAR)
    return None if is_default else float(call.row_norm)


def _scaled(*names: str) -> Options:
    def named_options(call: MomentsCall, release: object, fields: Fields) -> Fields:
        options = {name: getattr(call, name) for name in names}
        return {**options, "row_norm": "unit" if call.unit_rows else None}

    return named_options


def _linear(call: MomentsCall, release: object, fields: Fields) -> Fields:
    return {"weights": fields["model"]["weights"], "row_norm": None, "vcov": None}


def _glm(call: CoefficientsCall, release: object, fields: Fields) -> Fields:
    clip = None if math.isnan(call.clip) else call.clip
    return {"family": call.family, "clip": clip, "scale": call.scale}


def _screened(call: ScreenCall, release: object, fields: Fields) -> Fields:
    return {**fields, "most": call.most, "alternative": call.alternative}


def _selected(call: DescribedCall, release: object, fields: Fields) -> Fields:
    threshold, number = fields["threshold"], fields["asked"]
    rule = {"k": number} if threshold is None else {"threshold": threshold, "most": number}
    score = None if fields["score"] == "count" else fields["score"]
    return {**rule, "score": score, "values": fields["share"] or False}


def _answers(call: object, release: AnswersRelease, fields: Fields) -> Fields:
    return {"weights": release.weighted, "strata": release.stratified}


def _states(call: DescribedCall, release: CountsRelease, fields: Fields) -> Fields:
    return {"time": fields["time"], "person": release.adjacency.person}


def _binned(call: DescribedCall, release: object, fields: Fields) -> Fields:
    number, _ = one_measured(parse_sides(call.formula, call.codebook), "the result")
    return {"breaks": _breaks(fields["breaks"], number)}


def _in_plane(call: DescribedCall, release: object, fields: Fields) -> Fields:
    numbers = map(measured, parse_sides(call.formula, call.codebook).described)
    pairs = zip((fields["along"], fields["across"]), numbers, strict=False)
    return {"breaks": tuple(_breaks(*pair) for pair in pairs)}


def _followed(call: DescribedCall, release: object, fields: Fields) -> Fields:
    time = parse_survival(call.formula, call.codebook).time
    return {"breaks": (time.lower, *fields["ends"])}


def _breaks(ends: Floats, number: Real) -> tuple[object, ...]:
    """Return the option breaks= from edges of bins, which lie beside whole numbers."""
    if by_whole_numbers(number):
        ends = np.concatenate([ends[:1] + 0.5, ends[1:] - 0.5])
    ends = np.clip(ends, number.lower, number.upper)
    return tuple(map(text_of_day, ends)) if number.date else tuple(ends.tolist())


def _fields(call: object, release: object, fields: Fields) -> Fields:
    return fields


_NAMES: Final = {"variable": str}
_FAMILY: Final = Kind("glm", CoefficientsCall, _glm)
KINDS: Final[Mapping[str, Kind]] = {
    "PCAResult": Kind("pca", MomentsCall, _scaled("ncomp", "center", "scale", "denoise")),
    "SubspaceResult": Kind("pca", MomentsCall, _scaled("ncomp", "center", "scale", "denoise")),
    "CovResult": Kind("cov", MomentsCall, _scaled("center", "scale", "denoise")),
    "MomentsResult": Kind("moments", MomentsCall, _scaled("denoise")),
    "CCAResult": Kind("cca", MomentsCall, _scaled()),
    "LMResult": Kind(
        "lm", MomentsCall, _linear, {"model": {"intercept": bool, "weights": str | None}}
    ),
    "GLMResult": _FAMILY,
    "MultinomialResult": _FAMILY,
    "SVMResult": Kind("svm", CoefficientsCall, lambda call, release, fields: {"scale": call.scale}),
    "MeanResult": Kind("mean", DescribedCall),
    "VarResult": Kind("var", DescribedCall),
    "TTestResult": Kind("ttest", DescribedCall, _fields, {"mu": float}),
    "QuantileResult": Kind(
        "quantile",
        DescribedCall,
        lambda call, release, fields: {name: fields[name] for name in ("probs", "level")},
        {"probs": tuple[float, ...], "level": float | None, "grid": int},
    ),
    "SeriesResult": Kind("series", DescribedCall, _fields, {"time": str, "by": str | int | None}),
    "HistResult": Kind("hist", DescribedCall, _binned, {"breaks": array, **_NAMES}),
    "PlaneResult": Kind(
        "hist",
        DescribedCall,
        _in_plane,
        {"along": array, "across": array, "variables": tuple[str, str]},
    ),
    "TableResult": Kind("table", DescribedCall),
    "StatesResult": Kind("table", DescribedCall, _states, {"time": str}),
    "OverviewResult": Kind(
        "summary",
        DescribedCall,
        lambda call, release, fields: {"tests": fields["tested"]},
        {"strata": int, "tested": bool},
    ),
    "BoundsResult": Kind("bounds", DescribedCall, fields={"declared": Codebook.from_dict}),
    "LevelsResult": Kind("levels", DescribedCall, fields={"declared": Codebook.from_dict}),
    "SelectResult": Kind(
        "select",
        DescribedCall,
        _selected,
        {"score": str, "asked": int, "threshold": float | None, "share": float},
    ),
    "SurveyResult": Kind("survey", DescribedCall, _answers),
    "SurveyFitResult": Kind("survey", CoefficientsCall, _answers),
    "SurvfitResult": Kind("survfit", DescribedCall, _followed, {"ends": tuple[float, ...]}),
    "MarginsResult": Kind("margins", DescribedCall),
    "FDRResult": Kind("fdr", ScreenCall, _screened, {"q": float, "method": str}),
}
