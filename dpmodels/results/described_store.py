"""Descriptions in files: counts or quantiles, and what was asked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal, NamedTuple

from dpmodels.errors import FrameError
from dpmodels.levels import Level
from dpmodels.outside import Shape, amount, conform, fields_of, quantity, require_text
from dpmodels.released import CountsRelease, QuantilesRelease
from dpmodels.results.described_call import DescribedCall, TableFacts
from dpmodels.results.netcdf import Saved
from dpmodels.results.store import read_facts, result_bytes, take

MEAN, VAR, TTEST = "dpmodels.mean/1", "dpmodels.var/1", "dpmodels.ttest/1"
QUANTILE, HIST = "dpmodels.quantile/1", "dpmodels.hist/1"
TABLE, OVERVIEW = "dpmodels.table/1", "dpmodels.overview/1"

# What each result is made of besides its call and release.
OWN: Mapping[str, Mapping[str, Shape]] = {
    TTEST: {"mu": quantity},
    QUANTILE: {"probs": tuple[float, ...], "level": float | None, "grid": int},
    HIST: {"breaks": tuple[float, ...], "variable": str},
    OVERVIEW: {"strata": int},
}


def _level(plain: object) -> Level:
    """Read a level of a category; of which kinds there are, the codebook says."""
    if not isinstance(plain, Level):
        raise FrameError("expected a text, a number or a truth value")
    return require_text(plain, "a level") if isinstance(plain, str) else plain


def _table(plain: object) -> TableFacts:
    shape = {**fields_of(TableFacts), "levels": [[_level]]}
    own = TableFacts(**conform(shape, plain, ""))
    if own.degree < 0 or not own.lower <= own.upper or 0 in own.shape:
        raise FrameError("no table of levels and of a number's range")
    return own


_CALL: Mapping[str, Shape] = {
    **fields_of(DescribedCall, "formula", "ledger", "reason"),
    "tables": [_table],
}
_COUNTS: Mapping[str, Shape] = {
    "law": Literal["laplace", "gaussian"],
    "paired": bool,
    "noise_sd": amount,
    "step": amount,
}
_QUANTILES: Mapping[str, Shape] = {"count_sd": amount}
_DIMENSIONS = {
    "values": ("group", "prob", "place"),
    "drawn": ("group", "prob"),
    "counts": ("group",),
    "concentration": ("prob",),
}


class Description(NamedTuple):
    """What a file holds.

    Attributes
    ----------
    call : DescribedCall
        What was asked.
    release : CountsRelease or QuantilesRelease
        What was released.
    own : dict
        Plain values of the result itself, lists as tuples.
    """

    call: DescribedCall
    release: Any
    own: dict[str, Any]


def described_bytes(
    written: str, call: DescribedCall, release: CountsRelease | QuantilesRelease, **own: Any
) -> bytes:
    """Return the file of a description; what is read back prints the same tables.

    Parameters
    ----------
    written : str
        The format, such as ``MEAN``.
    call, release : DescribedCall, CountsRelease or QuantilesRelease
        What was asked and released.
    **own
        What else the result is made of, as in ``OWN``.
    """
    counted = isinstance(release, CountsRelease)
    dimensions = {"values": ("part",)} if counted else _DIMENSIONS
    words = _COUNTS if counted else _QUANTILES
    asked = {
        "formula": call.formula,
        "codebook": call.codebook.to_dict(),
        "tables": [asdict(table) for table in call.tables],
        "ledger": call.ledger,
        "reason": call.reason,
    }
    arrays = {name: (places, getattr(release, name)) for name, places in dimensions.items()}
    plain = {name: getattr(release, name) for name in words}
    return result_bytes(asked, release, {**plain, "own": own}, arrays, written, read_described)


def read_described(saved: Saved) -> Description:
    """Read what :func:`described_bytes` wrote."""
    counted = saved.format != QUANTILE
    words = _COUNTS if counted else _QUANTILES
    shapes = {**words, "own": OWN.get(saved.format, {})}
    asked, terms = read_facts(saved, _CALL, shapes, shared=counted)
    call, own = DescribedCall(**asked), terms.pop("own")
    if counted:
        size = sum(table.size for table in call.tables)
        if terms["step"] > 1:
            raise FrameError("release.step: expected a part of a row, at most 1")
        if terms["paired"] and size != 4:
            raise FrameError("release.paired: expected false but for the mean of one number")
        return Description(call, CountsRelease(**terms, **take(saved, {"values": (size,)})), own)
    if len(call.tables) != 1:
        raise FrameError("call.tables: expected one")
    k, cells = len(own["probs"]), call.tables[0].cells
    dims = {"group": cells, "prob": k, "place": 3}
    sizes = {name: tuple(dims[place] for place in places) for name, places in _DIMENSIONS.items()}
    arrays = take(saved, sizes, holes=("values", "drawn"))
    if not (arrays["concentration"] > 0).all() or not math.isfinite(terms["count_sd"]):
        raise FrameError("array 'concentration', release.count_sd: expected positive numbers")
    return Description(call, QuantilesRelease(**terms, **arrays), own)
